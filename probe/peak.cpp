#include "peak.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "../segment/sample_weight.hpp"
#include "clocks.hpp"
#include "segment_writer.hpp"
#include "shared_counter.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

constexpr std::uint32_t slots_behind = 12;  ///< slots 1 to 12 may be behind in the precise way

bool may_be_behind(std::uint32_t slot) noexcept { return slot - 1 < slots_behind; }

bool is_more(std::uint64_t a, std::uint64_t b) noexcept { return static_cast<std::int64_t>(a - b) > 0; }

std::uint64_t net_of(const class_counters& c) noexcept {
  return c.allocated_bytes.load(relaxed) - c.freed_bytes.load(relaxed);
}

/// Live bytes are negative where blocks are freed that were not counted.
std::uint64_t not_negative(std::uint64_t live) noexcept { return is_more(live, 0) ? live : 0; }

/// True: it was raised.
bool raise_to(counter& most, std::uint64_t value) noexcept {
  std::uint64_t old = most.load(relaxed);
  while (is_more(value, old)) {
    if (most.compare_exchange_weak(old, value, relaxed)) return true;
  }
  return false;
}

/// Takes out of a sum what a thread has published in `published` beyond its net bytes. Nothing if
/// the thread, or another one that settles, has written there meanwhile.
void take_out(counter& published, std::uint64_t seen, std::uint64_t beyond, counter& sum) noexcept {
  if (is_more(beyond, 0) && published.compare_exchange_strong(seen, seen - beyond, relaxed))
    add_shared(sum, 0 - beyond);
}

void set_band(thread_slot& s, std::uint64_t bytes, std::uint64_t ahead) noexcept {
  s.band_bytes.store(bytes, std::memory_order_release);
  s.band_ahead.store(ahead, std::memory_order_release);
}

bool is_behind(const thread_slot& s) noexcept { return s.band_bytes.load(std::memory_order_acquire) == endless_band; }

}  // namespace

constinit peak_keeper the_peak;

void peak_keeper::reset(segment_header& h, std::uint64_t interval) noexcept {
  header_ = &h;
  last_slot_.store(0, relaxed);
  behind_.store(0, relaxed);
  some_are_behind_.store(false, relaxed);
  set_grain(interval == 1 ? 0 : usual_grain);
}

// header.peak_grain is what the peak is exact to since it began: it falls only in begin_again.
void peak_keeper::set_grain(std::uint64_t grain) noexcept {
  grain_.store(grain);
  raise_to(header_->peak_grain, grain_);
}

void peak_keeper::admit(std::uint32_t slot) noexcept {
  std::uint32_t last = last_slot_.load(relaxed);
  while (last < slot && !last_slot_.compare_exchange_weak(last, slot, std::memory_order_release)) {
  }
}

void peak_keeper::publish(thread_slot& s, std::uint32_t slot) noexcept {
  const std::uint64_t grain = grain_.load(relaxed), net = s.net_bytes.load(relaxed);
  const bool is_endless = grain == 0 && may_be_behind(slot);
  const std::uint64_t bytes = is_endless ? endless_band : 2 * grain, old_bytes = s.band_bytes.load(relaxed);
  // Of a thread that has freed more than it has allocated there is nothing.
  const std::uint64_t least = is_more(net, 0) ? certain(net) : net;
  if (is_more(least, s.peak_net.load(relaxed))) s.peak_net.store(least, relaxed);
  if (is_endless != (old_bytes == endless_band)) [[unlikely]] {
    move_published(s, bytes, grain);
    return raise_peak(published());
  }
  const std::uint64_t beyond = old_bytes - s.band_ahead.load(relaxed);
  const std::uint64_t was = exchange_shared(s.band_begin, net + grain - bytes) + beyond;
  set_band(s, bytes, grain);
  const std::uint64_t sum = add_shared(is_endless ? behind_ : header_->live, net - was);
  raise_peak(sum + (is_endless ? header_->live : behind_).load(relaxed));
}

// settle() reads the begin of an endless band first, and writes there only if it has not changed:
// so the begin is written last when the band stops being endless, and first when it begins to be.
void peak_keeper::move_published(thread_slot& s, std::uint64_t bytes, std::uint64_t grain) noexcept {
  const std::uint64_t net = s.net_bytes.load(relaxed);
  const std::uint64_t beyond = s.band_bytes.load(relaxed) - s.band_ahead.load(relaxed);
  const bool was_endless = is_behind(s);
  moves_begun_.fetch_add(1);
  if (was_endless) set_band(s, bytes, grain);
  const std::uint64_t was = exchange_shared(s.band_begin, net + grain - bytes) + beyond;
  if (!was_endless) set_band(s, bytes, grain);
  add_shared(was_endless ? behind_ : header_->live, 0 - was);
  add_shared(was_endless ? header_->live : behind_, net);
  some_are_behind_.store(true, relaxed);
  moves_ended_.fetch_add(1);
}

void peak_keeper::publish_class(thread_slot& s, std::uint32_t slot, unsigned c) noexcept {
  const std::uint64_t net = net_of(s.classes[c]), was = s.class_published[c].load(relaxed);
  if (may_be_behind(slot) ? !is_more(net, was) : net == was) return;
  const std::uint64_t by = net - exchange_shared(s.class_published[c], net);
  raise_class_peak(c, add_shared(header_->class_live[c], by));
}

void peak_keeper::publish_classes(thread_slot& s, std::uint32_t slot) noexcept {
  s.sampled_since_published.store(0, relaxed);
  for (unsigned c = 0; c < size_scale::count; ++c) publish_class(s, slot, c);
}

void peak_keeper::publish_all(thread_slot& s) noexcept {
  publish(s, 0);
  publish_classes(s, 0);
}

void peak_keeper::count_apart(std::uint64_t by) noexcept {
  raise_peak(add_shared(header_->live, by) + behind_.load(relaxed));
}

void peak_keeper::count_class_apart(unsigned c, std::uint64_t by) noexcept {
  raise_class_peak(c, add_shared(header_->class_live[c], by));
}

std::uint64_t peak_keeper::published() const noexcept { return header_->live.load(relaxed) + behind_.load(relaxed); }

void peak_keeper::raise_peak(std::uint64_t published) noexcept {
  segment_header& h = *header_;
  const std::uint64_t peak = h.peak.load(relaxed);
  if (!is_more(published, peak)) return;
  std::optional<std::uint64_t> live = published;
  if (some_are_behind_.load(relaxed)) live = certainly_live(peak);
  if (!live || !raise_to(h.peak, certain(*live))) return;
  h.peak_at_ns.store(monotonic_ns(), relaxed);
  add_shared(h.peak_number, 1);
}

// Looking at all slots takes long where there are many. In the precise mode the few that may be
// behind are settled first; otherwise a class must have grown by a grain for each slot.
void peak_keeper::raise_class_peak(unsigned c, std::uint64_t published) noexcept {
  counter& peak = header_->class_peak[c];
  const std::uint32_t slots = last_slot_.load(std::memory_order_acquire);
  if (!is_more(published, peak.load(relaxed) + grain() * slots)) return;
  if (is_precise()) {
    settle_class(c, std::min(slots, slots_behind));
    if (!is_more(header_->class_live[c].load(relaxed), peak.load(relaxed))) return;
  }
  settle_class(c, slots);
  if (const auto live = class_certainly_live(c)) raise_to(peak, certain(*live, c));
}

void peak_keeper::count_variance(unsigned size_class, double by) noexcept {
  if (by == 0) return;
  add_real_shared(header_->live_variance, by);
  add_real_shared(header_->class_live_variance[size_class], by);
}

std::uint64_t peak_keeper::certain(std::uint64_t live) const noexcept {
  return certain_part(live, std::bit_cast<double>(header_->live_variance.load(relaxed)));
}

std::uint64_t peak_keeper::certain(std::uint64_t live, unsigned size_class) const noexcept {
  return certain_part(live, std::bit_cast<double>(header_->class_live_variance[size_class].load(relaxed)));
}

void peak_keeper::settle(thread_slot& s) noexcept {
  const std::uint64_t begin = s.band_begin.load(std::memory_order_acquire);
  if (is_behind(s)) take_out(s.band_begin, begin, begin + endless_band - s.net_bytes.load(relaxed), behind_);
}

// Nothing if it is not above `above`, or if a thread changes its mode meanwhile.
std::optional<std::uint64_t> peak_keeper::certainly_live(std::uint64_t above) noexcept {
  std::array<std::uint64_t, slots_behind + 1> gross;
  const std::uint32_t moves = moves_ended_.load();
  if (moves_begun_.load() != moves) return std::nullopt;
  const std::uint32_t last = std::min(last_slot_.load(std::memory_order_acquire), slots_behind);
  for (std::uint32_t i = last; i > 0; --i) {
    thread_slot& s = slot_of(header_, i);
    gross[i] = s.gross_bytes.load(std::memory_order_acquire);
    settle(s);
  }
  if (!is_more(published(), above)) return std::nullopt;
  std::uint64_t live = header_->live.load(std::memory_order_acquire);
  for (std::uint32_t i = last; i > 0; --i) {
    const thread_slot& s = slot_of(header_, i);
    if (!is_behind(s)) continue;
    const std::uint64_t net = s.net_bytes.load(std::memory_order_acquire);
    live += net - (s.gross_bytes.load(std::memory_order_acquire) - gross[i]);  // without what was allocated meanwhile
  }
  if (moves_begun_.load() != moves) return std::nullopt;
  return live;
}

void peak_keeper::settle_class(unsigned c, std::uint32_t slots) noexcept {
  for (std::uint32_t i = slots; i > 0; --i) {
    thread_slot& s = slot_of(header_, i);
    const std::uint64_t published = s.class_published[c].load(std::memory_order_acquire);
    (void)take_out(s.class_published[c], published, published - net_of(s.classes[c]), header_->class_live[c]);
  }
}

// Nothing while figures move from a slot to slot 0.
std::optional<std::uint64_t> peak_keeper::class_certainly_live(unsigned c) const noexcept {
  const std::uint64_t sequence = header_->fold_sequence.load(std::memory_order_acquire);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0, last = last_slot_.load(std::memory_order_acquire); i <= last; ++i)
    sum += slot_of(header_, i).classes[c].allocated_bytes.load(relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::uint32_t i = 0, last = last_slot_.load(std::memory_order_acquire); i <= last; ++i)
    sum -= slot_of(header_, i).classes[c].freed_bytes.load(relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (sequence % 2 != 0 || header_->fold_sequence.load(relaxed) != sequence) return std::nullopt;
  return sum;
}

void peak_keeper::begin_again() noexcept {
  segment_header& h = *header_;
  std::uint32_t seen = resets_.load(relaxed);
  if (!resets_.compare_exchange_strong(seen, h.reset.load(relaxed), relaxed)) return;
  h.peak.store(certain(not_negative(certainly_live(0).value_or(0))), relaxed);
  h.peak_at_ns.store(monotonic_ns(), relaxed);
  add_shared(h.peak_number, 1);
  h.peak_grain.store(0);
  raise_to(h.peak_grain, grain_.load());
  const std::uint32_t slots = last_slot_.load(std::memory_order_acquire);
  for (std::uint32_t i = 1; i <= slots; ++i) {
    thread_slot& s = slot_of(header_, i);
    raise_to(h.peak_grain, s.band_ahead.load(relaxed));
    s.peak_net.store(certain(not_negative(s.net_bytes.load(relaxed))), relaxed);
  }
  for (unsigned c = 0; c < size_scale::count; ++c) {
    settle_class(c, slots);
    h.class_peak[c].store(certain(not_negative(class_certainly_live(c).value_or(0)), c), relaxed);
  }
}

}  // namespace heapwright::probe
