#include "sampler.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <unistd.h>

#include <heapwright/core/bits.hpp>

#include "clocks.hpp"
#include "interpreter.hpp"
#include "merged_calls.hpp"
#include "peak.hpp"
#include "poisson.hpp"
#include "sample_tracepoints.hpp"
#include "sampled_paths.hpp"
#include "shared_counter.hpp"
#include "thread_slots.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

/// What a thread remembers for its samples.
struct thread_memory {
  struct {
    call_memo calls;
    interpreted_calls interpreted;
    merged_calls merged;
  } walked;
  sampled_paths paths;
  std::uint32_t name = 0;     ///< number in thread_names
  std::uint32_t samples = 0;  ///< that this thread has taken, modulo 2^32
  sample_table::spare_record spare = 0;
  // Skipped since the last one that was taken.
  std::uint64_t skipped_samples = 0, skipped_bytes = 0;
};

thread_local constinit thread_memory* this_memory [[gnu::tls_model("initial-exec")]] = nullptr;
thread_local constinit std::uintptr_t stack_end [[gnu::tls_model("initial-exec")]] = 0;
thread_local constinit tick_clock this_clock [[gnu::tls_model("initial-exec")]];

std::size_t memory_bytes() noexcept { return align_up(sizeof(thread_memory), linux_os::page_size()); }

constexpr std::uint64_t until_looking_again = 1 << 20;  ///< bytes, with an interval of 0

/// Draws when the thread samples next. `interval`: bytes, without interval_adapts.
void draw_next_sample(thread_slot& s, std::uint64_t interval) noexcept {
  const std::uint64_t drawn_by = interval == 0 ? 0 : sampling_interval(interval).bytes();
  s.drawn_by.store(drawn_by, relaxed);
  if (drawn_by == 0) return s.until_sample.store(static_cast<std::int64_t>(until_looking_again), relaxed);
  std::uint64_t random = s.random.load(relaxed);
  s.until_sample.store(bytes_to_next_sample(drawn_by, random), relaxed);
  s.random.store(random, relaxed);
}

/// The interval by which the block's bytes are sampled as likely as what was drawn is by
/// `drawn_by`.
sampling_interval interval_for(const due_block& block, std::uint64_t drawn_by) noexcept {
  if (block.drawn == block.bytes || drawn_by <= 1) return sampling_interval(drawn_by);
  const double times = static_cast<double>(block.bytes) / static_cast<double>(block.drawn);
  return sampling_interval(std::max<std::uint64_t>(rounded(static_cast<double>(drawn_by) * times), 2));
}

/// Whether a sample that is due is skipped, as `thinning` (sampled_paths.hpp) has it. A byte of the
/// block was chosen; where it is skipped, one behind it in the same block may be chosen.
bool is_skipped(thread_slot& s, unsigned thinning, std::uint64_t drawn_by) noexcept {
  if (thinning == 0) return false;
  std::uint64_t random = s.random.load(relaxed);
  std::int64_t behind = -s.until_sample.load(relaxed);
  bool is_skipped = true;
  while (is_skipped && behind > 0) {
    is_skipped = next_random(random) >> (64 - thinning) != 0;
    behind -= bytes_to_next_sample(drawn_by, random);
  }
  s.random.store(random, relaxed);
  return is_skipped;
}

template <class Adding>
void count_allocated(stack_counters& c, const weight& stands_for) noexcept {
  Adding::add(c.samples, 1);
  Adding::add(c.allocations, stands_for.blocks);
  Adding::add(c.allocated_bytes, stands_for.bytes);
  if (stands_for.variance > 0) Adding::add_real(c.allocated_variance, stands_for.variance);
}

template <class Adding>
void count_freed(stack_counters& c, const weight& stands_for, std::uint64_t lived_ns) noexcept {
  constexpr std::uint64_t short_life = 1'000'000;
  Adding::add(c.frees, stands_for.blocks);
  Adding::add(c.freed_bytes, stands_for.bytes);
  if (stands_for.variance > 0) Adding::add_real(c.freed_variance, stands_for.variance);
  Adding::add(c.freed_samples, 1);
  Adding::add(c.lifetimes[lifetime_bucket(lived_ns)], stands_for.bytes);
  if (lived_ns >= short_life) return;
  Adding::add(c.short_lived, stands_for.blocks);
  Adding::add(c.short_lived_bytes, stands_for.bytes);
}

}  // namespace

constinit sampler the_sampler;

void sampler::window::reset() noexcept {
  pace = {};
  samples.store(0, relaxed);
  bytes.store(0, relaxed);
  began_ns = monotonic_ns();
  ends_ns.store(began_ns + sampling_pace::window_ns, relaxed);
  since_thinning = 0;
  is_closing.store(false, relaxed);
}

void sampler::reset(segment_header& h) noexcept {
  header_ = &h;
  stacks_.reset(h);
  names_.reset(h);
  the_interpreter.reset(h);
  samples_.reset(h);
  window_.reset();
}

void sampler::inherit_from(segment_header& parents, std::uint64_t forked_ns) noexcept {
  the_interpreter.inherit_from(parents);  // stacks name its records
  names_.inherit_from(parents);
  sample_table::for_each_in(parents, forked_ns, inherit);
  copy_modules(parents);
}

/// The parent goes on meanwhile: a stack that is not complete is of a sample that came later.
void sampler::inherit(segment_header& parents, const void* p, const taken_sample& parents_sample) noexcept {
  sampler& all = the_sampler;
  taken_sample s = parents_sample;
  const std::uint64_t offset = (s.at_stack - std::uint64_t{1}) * reference_unit;
  if (s.at_stack == 0 || offset >= parents.stacks_used.load(std::memory_order_acquire)) return;
  const stack& parents_stack = *at_offset<stack>(&parents, parents.stacks_at + offset);
  if (parents_stack.hash == 0) return;
  stack* const here = all.stacks_.inherited(parents_stack);
  if (here != nullptr) s.at_stack = all.stacks_.refer(here);
  if (here == nullptr || !all.samples_.add(p, s)) return (void)add_shared(all.header_->lost_samples, 1);
  const weight stands_for = all.note_allocated(*here, s);
  if ((all.header_->counting.load(relaxed) & counting_is_of_samples) != 0)
    the_peak.count_variance(size_scale::index(s.bytes), stands_for.variance);
}

/// A thread notes an object only once, so those of the parent's threads are not noted again.
void sampler::copy_modules(segment_header& from) noexcept {
  const std::uint64_t n = from.modules_used.load(std::memory_order_acquire);
  auto* const copied = at_offset<module>(header_, modules_at);
  if (n == 0 || !make_present(copied, n * sizeof(module))) return;
  std::memcpy(copied, at_offset<module>(&from, modules_at), n * sizeof(module));
  header_->modules_used.store(n, std::memory_order_release);
}

void sampler::begin_thread(thread_slot& s) noexcept {
  const std::uint64_t random = monotonic_ns() ^ std::uint64_t{s.thread_id} << 32;
  s.random.store(random | 1, relaxed);
  const std::uint64_t interval = header_->interval.load(relaxed) & ~interval_adapts;
  (void)the_peak.follow(interval);
  draw_next_sample(s, interval);
  stack_end = unwind::end_of_this_stack();
  s.stack_at = stack_end != 0 ? stack_end : reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (this_memory == nullptr) {
    this_memory = static_cast<thread_memory*>(linux_os::map(memory_bytes()));
  } else {
    this_memory->walked.calls.forget_remembered();  // of another segment, after a fork
    this_memory->spare = 0;
  }
  if (this_memory != nullptr) this_memory->name = names_.number_of(s.name);
}

void sampler::look_at_name() noexcept {
  if (this_memory != nullptr) this_memory->samples = 0;
}

/// What other threads call this one is not told, nor what a system call does by itself. To ask the
/// kernel takes as long as a twentieth of a sample.
void sampler::follow_name(thread_slot& s) noexcept {
  const std::uint32_t samples = ++this_memory->samples;
  if (!is_power_of_two(samples) && samples % 64 != 0) return;
  note_name(s);
  const std::uint32_t name = names_.number_of(s.name);
  if (std::exchange(this_memory->name, name) != name) this_memory->walked.calls.forget_remembered();
}

void sampler::end_thread() noexcept {
  if (this_memory == nullptr) return;
  samples_.give_back(this_memory->spare);
  linux_os::unmap(std::exchange(this_memory, nullptr), memory_bytes());
}

void sampler::note_object(const code_object& o) noexcept {
  the_interpreter.look_into(o);
  holding guard(the_sampler.modules_lock_);
  segment_header& h = *the_sampler.header_;
  auto* const modules = at_offset<module>(&h, modules_at);
  const std::uint64_t n = h.modules_used.load(relaxed);
  for (std::uint64_t i = 0; i < n; ++i) {
    if (modules[i].begin == o.begin && modules[i].end == o.end) return;
  }
  if (n == max_modules || !make_present(&modules[n], sizeof(module))) return;
  modules[n].begin = o.begin;
  modules[n].end = o.end;
  modules[n].base = o.base;
  const char* const path = *o.path == '\0' ? h.program.data() : o.path;
  std::memcpy(modules[n].path.data(), path, std::min(std::strlen(path), modules[n].path.size() - 1));
  h.modules_used.store(n + 1, std::memory_order_release);
}

/// Before counters of a stack change: what they say is of the peak, if there has been one since
/// they changed last.
void sampler::keep_at_peak(stack_counters& c) const noexcept {
  const std::uint64_t peak = header_->peak_number.load(relaxed);
  if (c.peak_number.load(relaxed) == peak) return;
  c.at_peak.store(c.allocated_bytes.load(relaxed) - c.freed_bytes.load(relaxed) + c.thinned_bytes.load(relaxed),
                  relaxed);
  c.peak_number.store(peak, relaxed);
}

weight sampler::note_allocated(stack& at, const taken_sample& s) noexcept {
  stack_counters& c = at.counters;
  const weight stands_for = weight_of(s.bytes, s.interval);
  if (c.samples.load(relaxed) == 0 || s.at_ns < c.first_ns.load(relaxed)) c.first_ns.store(s.at_ns, relaxed);
  if (s.at_ns > c.last_ns.load(relaxed)) c.last_ns.store(s.at_ns, relaxed);
  keep_at_peak(c);
  counts_for_all(at) ? count_allocated<with_others>(c, stands_for) : count_allocated<alone>(c, stands_for);
  return stands_for;
}

void sampler::note_freed(const void* p, const taken_sample& s, std::uint32_t owner, std::uint64_t now_ns) noexcept {
  tell_freed(p);
  count_free(s, owner, now_ns);
}

void sampler::count_free(const taken_sample& s, std::uint32_t owner, std::uint64_t now_ns) noexcept {
  stack& allocated_at = stacks_.at(s.at_stack);
  const bool is_own = allocated_at.owner == owner && owner != 0;
  stack* const counts = is_own ? &allocated_at : stacks_.everyones(allocated_at);
  if (counts == nullptr) {
    add_shared(header_->lost_samples, 1);
    return;
  }
  const weight stands_for = weight_of(s.bytes, s.interval);
  const std::uint64_t lived_ns = now_ns > s.at_ns ? now_ns - s.at_ns : 0;
  keep_at_peak(counts->counters);
  is_own ? count_freed<alone>(counts->counters, stands_for, lived_ns)
         : count_freed<with_others>(counts->counters, stands_for, lived_ns);
}

/// `is` null: the sample was dropped. Its free will not be known, so the listener is told now: one
/// that does not count itself, or began while samples were thinned.
void sampler::note_thinned(const void* p, const taken_sample& was, const sampling_interval* is) noexcept {
  if (is == nullptr) tell_freed(p);
  sampler& all = the_sampler;
  stack* const everyones = all.stacks_.everyones(all.stacks_.at(was.at_stack));
  if (everyones == nullptr) {
    add_shared(all.header_->lost_samples, 1);
    return;
  }
  stack_counters& c = everyones->counters;
  const weight before = weight_of(was.bytes, was.interval);
  const weight after = is != nullptr ? weight_of(was.bytes, *is) : weight{};
  all.keep_at_peak(c);
  if ((all.header_->counting.load(relaxed) & counting_is_of_samples) != 0)
    all.count_estimate_apart(was.bytes, before, after);
  if (is == nullptr) add_shared(c.thinned_samples, 1);
  add_shared(c.thinned_blocks, after.blocks - before.blocks);
  add_shared(c.thinned_bytes, after.bytes - before.bytes);
  add_real_shared(c.thinned_variance, after.variance - before.variance);
}

void sampler::count_estimate_apart(std::uint64_t block_bytes, const weight& before, const weight& after) noexcept {
  const unsigned size_class = size_scale::index(block_bytes);
  // What is allocated never falls: the difference, of either sign, is among the frees.
  probe::count_free<with_others>(slot_of(header_, 0).classes[size_class], before.bytes - after.bytes,
                                 before.blocks - after.blocks);
  the_peak.count_variance(size_class, after.variance - before.variance);
  the_peak.count_apart(after.bytes - before.bytes);
  the_peak.count_class_apart(size_class, after.bytes - before.bytes);
}

std::uint64_t sampler::now() noexcept { return this_clock.now(); }

/// 0: there is no room for it.
reference sampler::stack_of(const call_site& site, stack_owner owner, bool will_come_again) noexcept {
  auto& [calls, interpreted, merged] = this_memory->walked;
  using answer = interpreter::answer;
  const answer is = the_interpreter.walk(interpreted);
  const bool may_recall = will_come_again && is != answer::by_native_calls;
  if (may_recall)
    if (const reference known = calls.recall(site.at, site.returns_to, interpreted.hash(), stack_end); known != 0)
      return known;
  calls.walk(site.at, stack_end, note_object);
  if (is != answer::known) the_interpreter.walk_with(calls, interpreted);  // this walk may have met it
  const stack* found = nullptr;
  if (interpreted.count() == 0 || calls.depth() == 0) {
    found = stacks_.find_or_add(calls, owner);
  } else {
    merged.merge(calls, interpreted, the_interpreter);
    found = stacks_.find_or_add(merged, owner);
  }
  if (found == nullptr) return 0;
  const reference r = stacks_.refer(found);
  if (may_recall) calls.remember(site.at, site.returns_to, interpreted.hash(), r);
  return r;
}

reference sampler::stack_at(const call_site& site) noexcept {
  return this_memory == nullptr ? 0 : stack_of(site, {}, true);
}

bool sampler::take_sample(std::uint32_t owner, void* p, taken_sample& s, const call_site& site) noexcept {
  if (this_memory == nullptr) return false;
  s.at_stack = stack_of(site, {owner, this_memory->name}, s.interval.is_one());
  if (s.at_stack == 0) return false;
  const weight stands_for = note_allocated(stacks_.at(s.at_stack), s);
  if (!samples_.add(p, s, this_memory->spare)) {
    count_free(s, owner, s.at_ns);
    s.at_stack = 0;
    return false;
  }
  tell_sampled(p, s.bytes, stands_for.bytes);
  return true;
}

/// A pass costs as much as some samples do; it may be late by an eighth of what there are. Nothing
/// is thinned while a tool listens: it can be told of dropped samples, but not that others stand
/// for more.
void sampler::thin_samples(thread_slot& s, std::uint64_t begun_ns) noexcept {
  constexpr std::uint64_t most_live = 2048;  // the filter is made for so many
  if (is_free_heard()) return;
  if (window_.since_thinning * 8 < std::max(samples_.records(), most_live)) return;
  window_.since_thinning = 0;
  std::uint64_t random = s.random.load(relaxed);
  samples_.thin(most_live, random, note_thinned);
  s.random.store(random, relaxed);
  const std::uint64_t ended_ns = this_clock.now();
  add_shared(header_->sampling_ns, ended_ns > begun_ns ? ended_ns - begun_ns : 0);
}

/// Notes the time that a sample has taken, and at the end of a window sets the interval for the
/// next one, and thins live samples.
void sampler::end_sample(thread_slot& s, std::uint64_t interval, std::uint64_t drawn_by,
                         std::uint64_t begun_ns) noexcept {
  constexpr std::uint64_t longest = 20'000;  // otherwise the thread was interrupted
  constexpr std::uint64_t skipping_ns = 60;
  segment_header& h = *header_;
  const std::uint64_t ended_ns = this_clock.now();
  const std::uint64_t took = ended_ns > begun_ns ? std::min(ended_ns - begun_ns, longest) : 0;
  const std::uint64_t skipped = std::exchange(this_memory->skipped_samples, 0);
  const std::uint64_t spent = add_shared(h.sampling_ns, took + skipped * skipping_ns);
  const std::uint64_t bytes = add_shared(window_.bytes, drawn_by + std::exchange(this_memory->skipped_bytes, 0));
  const std::uint64_t samples = add_shared(window_.samples, 1 + skipped);
  if (samples < sampling_pace::window_samples && ended_ns < window_.ends_ns.load(relaxed)) return;
  if (window_.is_closing.exchange(true, std::memory_order_acquire)) return;
  window_.since_thinning += samples;
  thin_samples(s, ended_ns);
  const std::uint64_t processor_ns = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t next = window_.pace.next({.samples = samples,
                                                .bytes = bytes,
                                                .sampling_ns = spent,
                                                .processor_ns = processor_ns,
                                                .passed_ns = ended_ns - std::min(ended_ns, h.started_ns)});
  h.processor_ns.store(processor_ns, relaxed);
  const double seconds = static_cast<double>(ended_ns - std::min(ended_ns, window_.began_ns)) / 1e9;
  add_real(h.adapted_seconds, seconds);
  add_real(h.interval_by_seconds, seconds * static_cast<double>(interval & ~interval_adapts));
  window_.began_ns = ended_ns;
  // A viewer may have stored an interval meanwhile: that one stays.
  h.interval.compare_exchange_strong(interval, next | interval_adapts, relaxed);
  window_.samples.store(0, relaxed);
  window_.bytes.store(0, relaxed);
  window_.ends_ns.store(ended_ns + sampling_pace::window_ns, relaxed);
  window_.is_closing.store(false, std::memory_order_release);
}

taken_sample sampler::sample_due(thread_slot& s, std::uint32_t owner, void* p, const due_block& block,
                                 const call_site& site) noexcept {
  const std::uint64_t wanted = header_->interval.load(relaxed), interval = wanted & ~interval_adapts;
  const std::uint64_t drawn_by = s.drawn_by.load(relaxed);
  unsigned thinning = 0;
  if (wanted != interval && drawn_by != 0 && this_memory != nullptr) {
    thinning = this_memory->paths.count(site.returns_to, site.at.sp);
    if (is_skipped(s, thinning, drawn_by)) {
      ++this_memory->skipped_samples;
      this_memory->skipped_bytes += drawn_by;
      draw_next_sample(s, interval);
      return {};
    }
  }
  samples_.prefetch(p);
  const std::uint64_t begun_ns = this_clock.now();
  const std::uint64_t grain = the_peak.follow(interval);
  if (interval == 1) samples_.expect_all();
  if (this_memory != nullptr) follow_name(s);
  taken_sample taken{0, interval_for(block, drawn_by << thinning), block.bytes, begun_ns};
  if (drawn_by != 0 && !take_sample(owner, p, taken, site)) add_shared(header_->lost_samples, 1);
  if (s.band_ahead.load(relaxed) != grain) the_peak.publish(s, owner);
  const std::uint64_t stands_for = drawn_by != 0 ? drawn_by << thinning : until_looking_again;
  if (grain != 0) the_peak.publish_classes_now_and_then(s, owner, stands_for);
  draw_next_sample(s, interval);
  if (wanted != interval && this_memory != nullptr) end_sample(s, wanted, drawn_by, begun_ns);
  return taken;
}

void sampler::lock_for_fork() noexcept {
  modules_lock_.acquire();
  names_.fork_lock().acquire();
  stacks_.fork_lock().acquire();
  samples_.fork_lock().acquire();
  the_interpreter.codes().lock_for_fork();
}

void sampler::unlock_in_parent() noexcept {
  the_interpreter.codes().unlock_in_parent();
  samples_.fork_lock().release();
  stacks_.fork_lock().release();
  names_.fork_lock().release();
  modules_lock_.release();
}

void sampler::unlock_in_child() noexcept {
  the_interpreter.codes().unlock_in_child();
  samples_.fork_lock().reset_after_fork();
  stacks_.fork_lock().reset_after_fork();
  names_.fork_lock().reset_after_fork();
  modules_lock_.reset_after_fork();
}

}  // namespace heapwright::probe
