// What every call of malloc and free passes through: it is counted in the thread's slot of the
// segment, and now and then sampled.
//
//   allocated  ->  counters of this_slot    a few loads and stores, no atomic read-modify-write
//              ->  allocated_slow           the thread's next sample is due, or a slow step (below)
//   freeing    ->  counters of this_slot
//              ->  freed_slow               a slow step
//              ->  freeing_sample           the block may be a sample
//   realloc    ->  counters of this_slot
//              ->  reallocated_slow         the thread's next sample is due, or a slow step
//              ->  reallocate_sample        the block may be a sample
//
// Where only samples are counted (HEAPWRIGHT_PROBE=estimate), a call leaves the counters alone:
//
//   estimated  ->  until_sample of this_slot
//              ->  estimated_slow           the thread's next sample is due, or it has no slot
//   freeing    ->  freeing_sample           the block may be a sample
//
// A slow step is needed when the thread's net bytes leave their band, and for a thread that has no
// slot (yet, or any more).
//
// States of a process: early (before its segment is there: counted in `early_slot`), observed, and
// unobserved (no segment can be had: calls are passed on). A fork makes the child early again, with
// what it has inherited. Of a fork that libc's handlers were not told of the child knows by a word
// that the kernel wipes for it, which each slow step looks at: until then it counts as the parent.
//
// Invariant, for each thread, between calls: net_bytes is within its band (peak.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "../segment/segment.hpp"
#include "next_malloc.hpp"
#include "peak.hpp"
#include "sampler.hpp"
#include "shared_counter.hpp"

namespace heapwright::probe {

using segment::relaxed;

/// Never null: before there is a segment it is a header of the process's own.
extern constinit segment::segment_header* the_segment [[gnu::visibility("hidden")]];

/// Never null: `early_slot` for threads without a slot. Its band is empty, so that each of their
/// calls takes a slow step.
extern thread_local constinit segment::thread_slot* this_slot
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

[[gnu::noinline]] void* allocated_slow(void* p, std::size_t requested, std::uint64_t bytes) noexcept;
inline constexpr std::uint64_t size_not_known = ~std::uint64_t{0};
[[gnu::noinline]] void* estimated_slow(void* p, std::size_t requested, std::uint64_t bytes) noexcept;
[[gnu::noinline]] void freed_slow(std::uint64_t bytes) noexcept;
[[gnu::noinline]] void freeing_sample(void* p, std::uint64_t bytes) noexcept;
[[gnu::noinline]] void* reallocated_slow(void* p, std::size_t requested, std::uint64_t bytes,
                                         std::uint64_t before) noexcept;

/// Of a block that may be a sample: reallocates it, and notes that.
[[gnu::noinline]] void* reallocate_sample(void* p, std::size_t requested) noexcept;

/// 0: this is the child of a fork, and not yet known to be one. Linux before 4.14 does not say so.
extern constinit const std::atomic<std::uint32_t>* fork_mark [[gnu::visibility("hidden")]];
/// This is the child of a fork that libc's handlers were not told of.
[[gnu::noinline]] void note_untold_fork() noexcept;
inline void look_for_fork() noexcept {
  if (fork_mark->load(relaxed) == 0) [[unlikely]]
    note_untold_fork();
}

/// For a thread without a slot: it gets one, and the child of a fork its segment; until then the
/// samples are the parent's.
void begin_thread() noexcept;

/// The process is about to end. Takes no lock: signal handlers may call it. Does nothing in the
/// child of a vfork.
void note_exit() noexcept;

/// What is counted now. Others that the segment may have are as `nothing`.
enum class counted : std::uint32_t {
  nothing = 0,
  each_call = segment::counting_is_on,
  samples = segment::counting_is_on | segment::counting_is_of_samples,
};
[[nodiscard]] inline counted counted_now() noexcept {
  return static_cast<counted>(the_segment->counting.load(relaxed));
}

/// Of the calling thread's slot, which it gets now if it has none. 0: it has none.
[[nodiscard]] std::uint32_t number_of_own_slot() noexcept;

/// The stack of a call that is recorded; 0: not known.
[[nodiscard]] segment::reference stack_for_recording(const call_site& site) noexcept;

/// At once, from what is live. False: there is no segment.
bool begin_peak_again() noexcept;

/// Whether there are figures that others can read.
[[nodiscard]] bool has_segment() noexcept;

/// Notes that p has been allocated; returns p. `size_class`: of so many bytes.
[[gnu::always_inline]] inline void* allocated(void* p, std::size_t requested, std::uint64_t bytes,
                                              unsigned size_class) noexcept {
  segment::thread_slot& s = *this_slot;
  const std::int64_t until_sample = s.until_sample.load(relaxed) - static_cast<std::int64_t>(bytes);
  const std::uint64_t net = s.net_bytes.load(relaxed) + bytes;
  if (until_sample < 0 || is_out_of_band(s, net)) [[unlikely]]
    return allocated_slow(p, requested, bytes);
  s.until_sample.store(until_sample, relaxed);
  s.net_bytes.store(net, relaxed);
  count_allocation<alone>(s.classes[size_class], bytes, requested);
  return p;
}

/// Notes that p has been allocated by malloc, which knows its bytes; returns p. Null is not noted.
[[gnu::always_inline]] inline void* allocated(void* p, std::size_t requested) noexcept {
  if (p == nullptr) [[unlikely]]
    return p;
  const std::uint64_t bytes = usable_size(p);
  return allocated(p, requested, bytes, segment::size_scale::index(bytes));
}

/// Notes that p has been allocated by malloc, with no more alignment than all blocks have, and not
/// by realloc; returns p. Null is not noted.
[[gnu::always_inline]] inline void* allocated_anew(void* p, std::size_t requested) noexcept {
  if (p == nullptr) [[unlikely]]
    return p;
  const auto* const known = promised.of(requested);
  if (known == nullptr) return allocated(p, requested);
  return allocated(p, requested, known->bytes, known->size_class);
}

/// Where only samples are counted: notes that p has been allocated; returns p. Null is not noted.
/// What the next sample is drawn by is what was asked for, and a byte, as there may be none: what
/// the block has is asked about with a sample only. `bytes`: where that is known already.
[[gnu::always_inline]] inline void* estimated(void* p, std::size_t requested,
                                              std::uint64_t bytes = size_not_known) noexcept {
  if (p == nullptr) [[unlikely]]
    return p;
  segment::thread_slot& s = *this_slot;
  const std::int64_t until_sample = s.until_sample.load(relaxed) - static_cast<std::int64_t>(requested + 1);
  if (until_sample < 0) [[unlikely]]
    return estimated_slow(p, requested, bytes);
  s.until_sample.store(until_sample, relaxed);
  return p;
}

/// Notes that a block of so many bytes, no sample any more, has been or will be freed.
[[gnu::always_inline]] inline void freed(std::uint64_t bytes) noexcept {
  segment::thread_slot& s = *this_slot;
  const std::uint64_t net = s.net_bytes.load(relaxed) - bytes;
  if (is_out_of_band(s, net)) [[unlikely]]
    return freed_slow(bytes);
  s.net_bytes.store(net, relaxed);
  count_free<alone>(s.classes[segment::size_scale::index(bytes)], bytes);
}

/// Notes that p, not null, will be freed.
inline void freeing(void* p, std::uint64_t bytes) noexcept {
  if (the_sampler.may_have(p)) [[unlikely]]
    return freeing_sample(p, bytes);
  freed(bytes);
}

/// Notes that p, not null, which malloc knows the bytes of, will be freed.
[[gnu::always_inline]] inline void freeing(void* p) noexcept {
  if (the_sampler.may_have(p)) [[unlikely]]
    return freeing_sample(p, size_not_known);
  freed(usable_size(p));
}

/// Notes that a block of `before` bytes, no sample, has become p, not null: a free and an
/// allocation, in one go.
[[gnu::always_inline]] inline void* reallocated(void* p, std::size_t requested, std::uint64_t before) noexcept {
  const std::uint64_t bytes = usable_size(p);
  segment::thread_slot& s = *this_slot;
  const std::int64_t until_sample = s.until_sample.load(relaxed) - static_cast<std::int64_t>(bytes);
  const std::uint64_t net = s.net_bytes.load(relaxed) + bytes - before;
  if (until_sample < 0 || is_out_of_band(s, net)) [[unlikely]]
    return reallocated_slow(p, requested, bytes, before);
  s.until_sample.store(until_sample, relaxed);
  s.net_bytes.store(net, relaxed);
  count_free<alone>(s.classes[segment::size_scale::index(before)], before);
  count_allocation<alone>(s.classes[segment::size_scale::index(bytes)], bytes, requested);
  return p;
}

}  // namespace heapwright::probe
