// What happens when a thread's next sample is due: the block's call stack is found and counted, and
// from time to time the interval follows what sampling costs.
//
//   sample_due  ->  is_skipped    the call path is a frequent one (sampled_paths.hpp)
//               ->  take_sample   stack_of walks the stack, or recalls it  ->  stack_table,
//                                 sample_table
//               ->  end_sample    at the end of a window: the next interval (sampling_pace.hpp),
//                                 and thinning of live samples (thinning.hpp)
//   free        ->  take, note_freed
//
// Tools outside are told of samples and their frees (sample_tracepoints.hpp).
//
// States: the tables of stacks, samples and modules lie in the segment; the window is the
// process's; thread_memory is the thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "../segment/segment.hpp"
#include "samples.hpp"
#include "sampling_pace.hpp"
#include "stacks.hpp"
#include "thread_names.hpp"
#include "tick_clock.hpp"
#include "unwind.hpp"

namespace heapwright::probe {

/// Where an allocation was asked for.
struct call_site {
  machine_state at;           ///< within the probe
  std::uintptr_t returns_to;  ///< from there
};

/// Of a block that a sample is due with.
struct due_block {
  std::uint64_t bytes;
  std::uint64_t drawn;  ///< of the bytes to the next sample; others than `bytes` where those are asked about later
};

class sampler {
 public:
  /// Samples go to this segment from now on.
  void reset(segment::segment_header& h) noexcept;

  /// Takes over the live samples that the parent's segment had when the process forked, with their
  /// stacks.
  void inherit_from(segment::segment_header& parents, std::uint64_t forked_ns) noexcept;

  /// The calling thread has got this slot.
  void begin_thread(segment::thread_slot& s) noexcept;
  void end_thread() noexcept;

  /// The calling thread may have got another name.
  static void look_at_name() noexcept;

  /// With this block of the calling thread, whose slot has the number `owner`. The sample that was
  /// taken, if any.
  [[gnu::noinline]] taken_sample sample_due(segment::thread_slot& s, std::uint32_t owner, void* p,
                                            const due_block& block, const call_site& site) noexcept;

  /// In the table of stacks, for any thread; 0: there is no room for it.
  [[nodiscard]] segment::reference stack_at(const call_site& site) noexcept;

  /// False: the block is no sample.
  [[nodiscard]] bool may_have(const void* p) const noexcept { return samples_.may_have(p); }

  /// As in sample_table.
  void prefetch(const void* p) const noexcept { samples_.prefetch(p); }
  [[nodiscard]] bool expects_all() const noexcept { return samples_.expects_all(); }
  [[nodiscard]] taken_sample take(const void* p) noexcept { return samples_.take(p); }

  /// The block, whose sample has been taken, stays.
  void put_back(const void* p, const taken_sample& s) noexcept { (void)samples_.add(p, s); }

  /// The block, whose sample has been taken, is freed by the calling thread, whose slot has the
  /// number `owner`; 0: it has none.
  void note_freed(const void* p, const taken_sample& s, std::uint32_t owner, std::uint64_t now_ns) noexcept;

  /// Where only samples are counted: blocks of this size stand for something else than before, as
  /// a sample was thinned, or was freed by a thread without a slot. Any thread.
  void count_estimate_apart(std::uint64_t block_bytes, const segment::weight& before,
                            const segment::weight& after) noexcept;

  [[nodiscard]] static std::uint64_t now() noexcept;

  void lock_for_fork() noexcept;
  void unlock_in_parent() noexcept;
  void unlock_in_child() noexcept;

 private:
  /// The samples between two looks at the interval. The thread that sets is_closing may call
  /// `pace`, and thin live samples.
  struct window {
    sampling_pace pace;
    segment::counter samples{}, bytes{}, ends_ns{};
    std::uint64_t since_thinning = 0, began_ns = 0;
    std::atomic<bool> is_closing{false};

    void reset() noexcept;
  };

  static void note_object(const code_object& o) noexcept;
  static void note_thinned(const void* p, const taken_sample& was, const segment::sampling_interval* is) noexcept;

  static void inherit(segment::segment_header& parents, const void* p, const taken_sample& s) noexcept;

  void follow_name(segment::thread_slot& s) noexcept;
  void copy_modules(segment::segment_header& from) noexcept;
  void keep_at_peak(segment::stack_counters& c) const noexcept;
  /// What the sample stands for.
  segment::weight note_allocated(segment::stack& at, const taken_sample& s) noexcept;
  void count_free(const taken_sample& s, std::uint32_t owner, std::uint64_t now_ns) noexcept;
  [[nodiscard]] segment::reference stack_of(const call_site& site, stack_owner owner, bool will_come_again) noexcept;
  /// False: it cannot be kept; at_stack is 0 then.
  [[nodiscard]] bool take_sample(std::uint32_t owner, void* p, taken_sample& s, const call_site& site) noexcept;
  void end_sample(segment::thread_slot& s, std::uint64_t interval, std::uint64_t drawn_by,
                  std::uint64_t begun_ns) noexcept;
  void thin_samples(segment::thread_slot& s, std::uint64_t begun_ns) noexcept;

  segment::segment_header* header_ = nullptr;
  stack_table stacks_;
  thread_names names_;
  sample_table samples_;
  process_lock modules_lock_;
  window window_;
};

extern constinit sampler the_sampler [[gnu::visibility("hidden")]];

}  // namespace heapwright::probe
