#include "thread_slots.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/prctl.h>
#include <unistd.h>

#include "clocks.hpp"

namespace heapwright::probe {

using namespace segment;

void note_name(thread_slot& s) noexcept { ::prctl(PR_GET_NAME, s.name.data()); }

void slot_sums::add(const thread_slot& s) noexcept {
  for (unsigned c = 0; c < size_scale::count; ++c) {
    classes[c].allocations += s.classes[c].allocations.load(relaxed);
    classes[c].allocated_bytes += s.classes[c].allocated_bytes.load(relaxed);
    classes[c].requested_bytes += s.classes[c].requested_bytes.load(relaxed);
    classes[c].frees += s.classes[c].frees.load(relaxed);
    classes[c].freed_bytes += s.classes[c].freed_bytes.load(relaxed);
  }
}

/// Where more was freed than allocated, as counting began late, that remains.
void slot_sums::leave_live() noexcept {
  for (auto& c : classes) {
    const auto take_out = [](std::uint64_t& allocated, std::uint64_t& freed) {
      const std::uint64_t both = std::min(allocated, freed);
      allocated -= both;
      freed -= both;
    };
    const std::uint64_t allocated = c.allocated_bytes;
    take_out(c.allocations, c.frees);
    take_out(c.allocated_bytes, c.freed_bytes);
    // What was asked for is not known of what is live alone: the share that it has of all.
    const double share = allocated != 0 ? static_cast<double>(c.allocated_bytes) / static_cast<double>(allocated) : 0;
    c.requested_bytes = static_cast<std::uint64_t>(static_cast<double>(c.requested_bytes) * share);
  }
}

void clear(thread_slot& s) noexcept {
  s.sampled_since_published.store(0, relaxed);
  for (auto& published : s.class_published) published.store(0, relaxed);
  std::atomic_thread_fence(
      std::memory_order_release);  // peak_keeper::settle_class must not see the counters' zeros first
  for (auto& c : s.classes) {
    c.allocations.store(0, relaxed);
    c.allocated_bytes.store(0, relaxed);
    c.requested_bytes.store(0, relaxed);
    c.frees.store(0, relaxed);
    c.freed_bytes.store(0, relaxed);
  }
}

void thread_slots::reset(segment_header& h) noexcept {
  header_ = &h;
  used_ = 1;
  gone_first_ = gone_count_ = 0;
}

thread_slot* thread_slots::open(segment_header& h) noexcept {
  holding guard(lock_);
  thread_slot* const s = free_slot(h);
  if (s == nullptr) return nullptr;
  s->thread_id = static_cast<std::uint32_t>(::gettid());
  note_name(*s);
  s->began_ns.store(monotonic_ns(), relaxed);
  s->ended_ns.store(0, relaxed);
  s->net_bytes.store(0, relaxed);
  s->gross_bytes.store(0, relaxed);
  s->peak_net.store(0, relaxed);
  s->band_begin.store(0, relaxed);
  s->band_bytes.store(0, relaxed);
  s->band_ahead.store(0, relaxed);
  s->state.store(static_cast<std::uint32_t>(slot_state::alive), std::memory_order_release);
  h.threads_ever.fetch_add(1, relaxed);
  return s;
}

thread_slot* thread_slots::free_slot(segment_header& h) noexcept {
  const std::uint32_t slots = h.thread_slots < most ? h.thread_slots : most;
  if (gone_count_ <= kept_gone && used_ < slots) {
    thread_slot& s = slot_of(&h, used_);
    if (make_present(&s, thread_slot_bytes)) {
      ++used_;
      return &s;
    }
  }
  if (gone_count_ == 0) return nullptr;
  thread_slot& s = slot_of(&h, gone_[gone_first_]);
  gone_first_ = (gone_first_ + 1) % most;
  --gone_count_;
  fold(s);
  return &s;
}

std::uint32_t thread_slots::number_of(const thread_slot& s) const noexcept {
  const auto offset = reinterpret_cast<const std::byte*>(&s) - reinterpret_cast<const std::byte*>(&slot_of(header_, 0));
  return static_cast<std::uint32_t>(static_cast<std::size_t>(offset) / thread_slot_bytes);
}

void thread_slots::close(thread_slot& s) noexcept {
  holding guard(lock_);
  note_name(s);
  s.ended_ns.store(monotonic_ns(), relaxed);
  s.state.store(static_cast<std::uint32_t>(slot_state::gone), std::memory_order_release);
  gone_[(gone_first_ + gone_count_) % most] = static_cast<std::uint16_t>(number_of(s));
  ++gone_count_;
}

void thread_slots::fold(thread_slot& s) noexcept {
  header_->fold_sequence.fetch_add(1, std::memory_order_acq_rel);
  add_to_everyone(s);
  clear(s);
  header_->threads_folded.fetch_add(1, relaxed);
  header_->fold_sequence.fetch_add(1, std::memory_order_acq_rel);
}

template <class Counted>
void thread_slots::add_to_everyone(const Counted& counted) noexcept {
  thread_slot& all = slot_of(header_, 0);
  for (unsigned c = 0; c < size_scale::count; ++c) {
    all.classes[c].allocations.fetch_add(counted.classes[c].allocations, relaxed);
    all.classes[c].allocated_bytes.fetch_add(counted.classes[c].allocated_bytes, relaxed);
    all.classes[c].requested_bytes.fetch_add(counted.classes[c].requested_bytes, relaxed);
    all.classes[c].frees.fetch_add(counted.classes[c].frees, relaxed);
    all.classes[c].freed_bytes.fetch_add(counted.classes[c].freed_bytes, relaxed);
  }
}
template void thread_slots::add_to_everyone(const slot_sums&) noexcept;
template void thread_slots::add_to_everyone(const thread_slot&) noexcept;

void thread_slots::get_sums(slot_sums& of_all) const noexcept {
  of_all = {};
  for (std::uint32_t i = 0; i < used_; ++i) of_all.add(slot_of(header_, i));
}

}  // namespace heapwright::probe
