#include "peak.hpp"

#include "clocks.hpp"
#include "segment_writer.hpp"
#include "shared_counter.hpp"

namespace heapwright::probe {

using namespace trace;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

constexpr std::uint32_t slots_behind = 12;  ///< slots 1 to 12 may be behind in the precise way
constexpr std::uint64_t endless = std::uint64_t{1} << 62;

bool may_be_behind(std::uint32_t slot) noexcept { return slot - 1 < slots_behind; }

bool is_more(std::uint64_t a, std::uint64_t b) noexcept { return static_cast<std::int64_t>(a - b) > 0; }

std::uint64_t net_of(const class_counters& c) noexcept {
  return c.allocated_bytes.load(relaxed) - c.freed_bytes.load(relaxed);
}

/// True: it was raised.
bool raise_to(counter& most, std::uint64_t value) noexcept {
  std::uint64_t old = most.load(relaxed);
  while (is_more(value, old)) {
    if (most.compare_exchange_weak(old, value, relaxed)) return true;
  }
  return false;
}

/// Takes out of a sum what a thread has published there and freed since. If the thread goes on meanwhile, it will put right what is wrong.
void take_out(counter& published, std::uint64_t is_published, std::uint64_t net, counter& sum) noexcept {
  if (!is_more(is_published, net)) return;
  const std::uint64_t by = net - is_published;
  add_shared(published, by);
  add_shared(sum, by);
}

}  // namespace

void peak_keeper::reset(segment_header& h) noexcept {
  header_ = &h;
  last_slot_.store(0, relaxed);
}

void peak_keeper::admit(std::uint32_t slot) noexcept {
  std::uint32_t last = last_slot_.load(relaxed);
  while (may_be_behind(slot) && last < slot &&
         !last_slot_.compare_exchange_weak(last, slot, std::memory_order_release)) {
  }
}

void peak_keeper::publish(thread_slot& s, std::uint32_t slot) noexcept {
  const std::uint64_t grain = header_->peak_grain.load(relaxed), net = s.net_bytes.load(relaxed);
  const std::uint64_t bytes = grain != 0 ? 2 * grain : may_be_behind(slot) ? endless : 0;
  const std::uint64_t beyond = s.band_bytes.load(relaxed) - s.band_ahead.load(relaxed);
  const std::uint64_t was = exchange_shared(s.band_begin, net + grain - bytes) + beyond;
  s.band_bytes.store(bytes, relaxed);
  s.band_ahead.store(grain, relaxed);
  if (is_more(net, s.peak_net.load(relaxed))) s.peak_net.store(net, relaxed);
  raise_peak(add_shared(header_->live, net - was));
}

void peak_keeper::publish_class(thread_slot& s, std::uint32_t slot, unsigned c) noexcept {
  const std::uint64_t net = net_of(s.classes[c]), was = s.class_published[c].load(relaxed);
  if (may_be_behind(slot) ? !is_more(net, was) : net == was) return;
  const std::uint64_t by = net - exchange_shared(s.class_published[c], net);
  raise_class_peak(c, add_shared(header_->class_live[c], by));
}

void peak_keeper::publish_classes(thread_slot& s, std::uint32_t slot) noexcept {
  for (unsigned c = 0; c < size_scale::count; ++c) publish_class(s, slot, c);
}

void peak_keeper::publish_all(thread_slot& s) noexcept {
  publish(s, 0);
  publish_classes(s, 0);
}

void peak_keeper::count_apart(std::uint64_t by) noexcept { raise_peak(add_shared(header_->live, by)); }

void peak_keeper::count_class_apart(unsigned c, std::uint64_t by) noexcept {
  raise_class_peak(c, add_shared(header_->class_live[c], by));
}

void peak_keeper::raise_peak(std::uint64_t live) noexcept {
  segment_header& h = *header_;
  if (!is_more(live, h.peak.load(relaxed))) return;
  if (is_precise()) {
    settle();
    live = h.live.load(relaxed);
  }
  if (raise_to(h.peak, live)) h.peak_at_ns.store(monotonic_ns(), relaxed);
}

void peak_keeper::raise_class_peak(unsigned c, std::uint64_t live) noexcept {
  if (!is_more(live, header_->class_peak[c].load(relaxed))) return;
  settle_class(c);
  raise_to(header_->class_peak[c], header_->class_live[c].load(relaxed));
}

void peak_keeper::settle() noexcept {
  for (std::uint32_t i = last_slot_.load(std::memory_order_acquire); i > 0; --i) {
    thread_slot& s = slot_of(header_, i);
    if (s.band_bytes.load(relaxed) == endless)
      take_out(s.band_begin, published_net(s), s.net_bytes.load(relaxed), header_->live);
  }
}

void peak_keeper::settle_class(unsigned c) noexcept {
  for (std::uint32_t i = last_slot_.load(std::memory_order_acquire); i > 0; --i) {
    thread_slot& s = slot_of(header_, i);
    take_out(s.class_published[c], s.class_published[c].load(relaxed), net_of(s.classes[c]), header_->class_live[c]);
  }
}

void peak_keeper::begin_again() noexcept {
  segment_header& h = *header_;
  std::uint32_t seen = resets_.load(relaxed);
  if (!resets_.compare_exchange_strong(seen, h.reset.load(relaxed), relaxed)) return;
  if (is_precise()) settle();
  for (unsigned c = 0; c < size_scale::count; ++c) settle_class(c);
  h.peak.store(h.live.load(relaxed), relaxed);
  h.peak_at_ns.store(monotonic_ns(), relaxed);
  for (unsigned c = 0; c < size_scale::count; ++c) h.class_peak[c].store(h.class_live[c].load(relaxed), relaxed);
}

}  // namespace heapwright::probe
