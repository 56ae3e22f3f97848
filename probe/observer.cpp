#include "observer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <heapwright/core/bits.hpp>

#include "clocks.hpp"
#include "malloc_mappings.hpp"
#include "poisson.hpp"
#include "sampled_paths.hpp"
#include "sampling_pace.hpp"
#include "stacks.hpp"
#include "thread_slots.hpp"
#include "tick_clock.hpp"
#include "unwind.hpp"

extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace heapwright::probe {

using namespace segment;

namespace {

constexpr std::uint64_t never_near = std::uint64_t{1} << 62;

enum class stage { early, forked, observed, unobserved };

constinit stage now{stage::early};
constinit segment_header early_header{.counting = 1};
constinit thread_slot early_slot{.band_begin = never_near};
constinit stack_table stacks;
constinit thread_slots slots;
constinit peak_keeper the_peak;
constinit process_lock modules_lock;

/// The samples between two looks at the interval. The thread that sets is_closing may call `pace`,
/// and thin live samples.
struct sampling_window {
  sampling_pace pace;
  counter samples{}, bytes{}, ends_ns{};
  std::uint64_t since_thinning = 0, began_ns = 0;
  std::atomic<bool> is_closing{false};

  void reset() noexcept {
    pace = {};
    samples.store(0, relaxed);
    bytes.store(0, relaxed);
    began_ns = monotonic_ns();
    ends_ns.store(began_ns + sampling_pace::window_ns, relaxed);
    since_thinning = 0;
    is_closing.store(false, relaxed);
  }
};
constinit sampling_window window;
constinit settings chosen;
constinit char chosen_directory[512]{};
constinit pthread_key_t thread_end_key{};

// What the child of a fork begins with.
constinit segment_header* parents_segment = nullptr;
constinit slot_sums inherited;
constinit std::uint64_t forked_at = 0;

thread_local constinit bool is_inside [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit bool has_ended [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit std::uintptr_t stack_end [[gnu::tls_model("initial-exec")]] = 0;
/// What a thread remembers for its samples.
struct thread_memory {
  call_memo calls;
  sampled_paths paths;
  // Skipped since the last one that was taken.
  std::uint64_t skipped_samples = 0, skipped_bytes = 0;
};
thread_local constinit thread_memory* this_memory [[gnu::tls_model("initial-exec")]] = nullptr;
/// Number of this_slot; 0: none.
thread_local constinit std::uint32_t this_owner [[gnu::tls_model("initial-exec")]] = 0;
thread_local constinit tick_clock this_clock [[gnu::tls_model("initial-exec")]];

/// While it lives, what the probe itself asks libc for, which may call malloc, is counted but leads
/// to nothing further. Keeps errno.
class inside {
 public:
  inside() noexcept : was_(is_inside) { is_inside = true; }
  ~inside() {
    is_inside = was_;
    errno = errno_;
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;

 private:
  int errno_ = errno;
  bool was_;
};

// --- threads without a slot

/// Where those are counted that have no slot: before there is a segment, or in slot 0. Several
/// threads may be here.
void count_apart(std::uint64_t bytes, std::uint64_t requested, bool is_allocation) noexcept {
  const bool has_segment = now == stage::observed;
  thread_slot& s = has_segment ? slot_of(the_segment, 0) : early_slot;
  class_counters& c = s.classes[size_scale::index(bytes)];
  is_allocation ? count_allocation<with_others>(c, bytes) : count_free<with_others>(c, bytes);
  if (is_allocation) add_shared(s.requested_bytes, requested);
  if (!has_segment) return;
  const std::uint64_t by = is_allocation ? bytes : 0 - bytes;
  the_peak.count_apart(by);
  the_peak.count_class_apart(size_scale::index(bytes), by);
}

// --- beginning

/// libc keeps what it knows of a thread at the end of the thread's stack: nothing else says where
/// that is without calling malloc.
std::uintptr_t end_of_this_stack() noexcept {
  if (::getpid() != ::gettid()) return static_cast<std::uintptr_t>(::pthread_self());
  return &__libc_stack_end != nullptr ? reinterpret_cast<std::uintptr_t>(__libc_stack_end) : 0;
}

std::size_t memory_bytes() noexcept { return align_up(sizeof(thread_memory), linux_os::page_size()); }

void end_this_thread(void* slot) noexcept {
  inside guard;
  has_ended = true;
  this_slot = &early_slot;
  this_owner = 0;
  if (this_memory != nullptr) linux_os::unmap(std::exchange(this_memory, nullptr), memory_bytes());
  auto& s = *static_cast<thread_slot*>(slot);
  the_peak.publish_all(s);
  slots.close(s);
}

void take_over(const slot_sums& sums) noexcept {
  slots.add_to_everyone(sums);
  std::uint64_t net = 0;
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const std::uint64_t of_class = sums.classes[c].allocated_bytes - sums.classes[c].freed_bytes;
    the_peak.count_class_apart(c, of_class);
    net += of_class;
  }
  the_peak.count_apart(net);
}

/// Other threads may open and set theirs meanwhile: what is set later is whole again.
void copy_meters(const segment_header& from, segment_header& to) noexcept {
  for (std::size_t i = 0; i < from.meters.size(); ++i) {
    const named_meter& f = from.meters[i];
    named_meter& t = to.meters[i];
    t.name = f.name;
    for (std::size_t k = 0; k < f.figures.size(); ++k) t.figures[k].store(f.figures[k].load(relaxed), relaxed);
    t.state.store(f.state.load(relaxed), relaxed);
  }
}

/// From here on there are figures that others can read, if a segment can be had.
/// A thread notes an object only once, so those of the parent's threads are not noted again.
void copy_modules(segment_header& from, segment_header& to) noexcept {
  const std::uint64_t n = from.modules_used.load(std::memory_order_acquire);
  auto* const copied = at_offset<module>(&to, modules_at);
  if (n == 0 || !make_present(copied, n * sizeof(module))) return;
  std::memcpy(copied, at_offset<module>(&from, modules_at), n * sizeof(module));
  to.modules_used.store(n, std::memory_order_release);
}

void start() noexcept {
  inside guard;
  const stage before = now;
  segment_header* const h = create_segment(chosen);
  if (h == nullptr) {
    early_header.counting = 0;
    now = stage::unobserved;
    return;
  }
  stacks.reset(*h);
  the_samples.reset(*h);
  slots.reset(*h);
  the_peak.reset(*h, chosen.interval & ~interval_adapts);
  window.reset();
  copy_meters(*the_segment, *h);
  malloc_mappings::copy(*the_segment, *h);
  the_segment = h;
  now = stage::observed;
  if (before == stage::forked) {
    h->forked_from = parents_segment->process_id;
    h->peak_number.store(parents_segment->peak_number.load(relaxed), relaxed);
    h->adapted_seconds.store(parents_segment->adapted_seconds.load(relaxed), relaxed);
    h->interval_by_seconds.store(parents_segment->interval_by_seconds.load(relaxed), relaxed);
    take_over(inherited);
    if (stacks.copy_from(*parents_segment)) {
      const std::uint64_t units = h->stacks_used.load(relaxed) / reference_unit;
      the_samples.copy_from(*parents_segment, forked_at, static_cast<reference>(units));
    }
    copy_modules(*parents_segment, *h);
    ::munmap(parents_segment, parents_segment->bytes);
    parents_segment = nullptr;
  }
  if (chosen.is_counting) take_over(sums_of(early_slot));
}

/// Draws when the thread samples next. `interval`: bytes, without interval_adapts.
void draw_next_sample(thread_slot& s, std::uint64_t interval) noexcept {
  constexpr std::int64_t until_looking_again = 1 << 20;
  const std::uint64_t drawn_by = interval == 0 ? 0 : sampling_interval(interval).bytes();
  s.drawn_by.store(drawn_by, relaxed);
  if (drawn_by == 0) return s.until_sample.store(until_looking_again, relaxed);
  std::uint64_t random = s.random.load(relaxed);
  s.until_sample.store(bytes_to_next_sample(drawn_by, random), relaxed);
  s.random.store(random, relaxed);
}

void begin(char** environment) noexcept;

/// The first call after libc has handed out the environment begins to observe the process.
[[gnu::noinline]] thread_slot* new_slot() noexcept {
  if (is_inside || has_ended || is_finding_next_malloc()) return nullptr;
  if (now == stage::forked) start();
  if (now == stage::early && environ != nullptr) begin(environ);
  if (now != stage::observed) return nullptr;
  inside guard;
  thread_slot* const s = slots.open(*the_segment);
  if (s == nullptr) return nullptr;
  std::uint64_t random = monotonic_ns() ^ std::uint64_t{s->thread_id} << 32;
  random |= 1;
  s->random.store(random, relaxed);
  const std::uint64_t interval = the_segment->interval.load(relaxed) & ~interval_adapts;
  (void)the_peak.follow(interval);
  draw_next_sample(*s, interval);
  stack_end = end_of_this_stack();
  s->stack_at = stack_end != 0 ? stack_end : reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (this_memory == nullptr) {
    this_memory = static_cast<thread_memory*>(linux_os::map(memory_bytes()));
  } else {
    this_memory->calls.forget_remembered();  // of another segment, after a fork
  }
  this_slot = s;
  this_owner = slots.number_of(*s);
  the_peak.admit(this_owner);
  ::pthread_setspecific(thread_end_key, s);
  return s;
}

/// The calling thread's slot, which it gets now if it has none; null when it has none.
thread_slot* own_slot() noexcept { return this_slot != &early_slot ? this_slot : new_slot(); }

// --- samples

void note_object(const code_object& o) noexcept {
  holding guard(modules_lock);
  segment_header& h = *the_segment;
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
void keep_at_peak(stack_counters& c) noexcept {
  const std::uint64_t peak = the_segment->peak_number.load(relaxed);
  if (c.peak_number.load(relaxed) == peak) return;
  c.at_peak.store(c.allocated_bytes.load(relaxed) - c.freed_bytes.load(relaxed) + c.thinned_bytes.load(relaxed),
                  relaxed);
  c.peak_number.store(peak, relaxed);
}

template <class Adding>
void count_sample_allocated(stack_counters& c, const weight& stands_for) noexcept {
  keep_at_peak(c);
  Adding::add(c.samples, 1);
  Adding::add(c.allocations, stands_for.blocks);
  Adding::add(c.allocated_bytes, stands_for.bytes);
  if (stands_for.variance > 0) Adding::add_real(c.allocated_variance, stands_for.variance);
}

template <class Adding>
void count_sample_freed(stack_counters& c, const weight& stands_for, std::uint64_t lived_ns) noexcept {
  constexpr std::uint64_t short_life = 1'000'000;
  keep_at_peak(c);
  Adding::add(c.frees, stands_for.blocks);
  Adding::add(c.freed_bytes, stands_for.bytes);
  if (stands_for.variance > 0) Adding::add_real(c.freed_variance, stands_for.variance);
  Adding::add(c.lifetimes[lifetime_bucket(lived_ns)], 1);
  if (lived_ns >= short_life) return;
  Adding::add(c.short_lived, stands_for.blocks);
  Adding::add(c.short_lived_bytes, stands_for.bytes);
}

void note_sample_allocated(stack& at, const taken_sample& s) noexcept {
  stack_counters& c = at.counters;
  const weight stands_for = weight_of(s.bytes, s.interval);
  if (c.samples.load(relaxed) == 0) c.first_ns.store(s.at_ns, relaxed);
  c.last_ns.store(s.at_ns, relaxed);
  at.owner == 0 ? count_sample_allocated<with_others>(c, stands_for) : count_sample_allocated<alone>(c, stands_for);
}

void note_sample_freed(const taken_sample& s, std::uint64_t now_ns) noexcept {
  stack& allocated_at = stacks.at(s.at_stack);
  const weight stands_for = weight_of(s.bytes, s.interval);
  const std::uint64_t lived_ns = now_ns > s.at_ns ? now_ns - s.at_ns : 0;
  if (allocated_at.owner == this_owner && this_owner != 0)
    return count_sample_freed<alone>(allocated_at.counters, stands_for, lived_ns);
  stack* const everyones = stacks.everyones(allocated_at);
  if (everyones == nullptr) {
    add_shared(the_segment->lost_samples, 1);
    return;
  }
  count_sample_freed<with_others>(everyones->counters, stands_for, lived_ns);
}

/// `is` null: the sample was dropped.
void note_sample_thinned(const taken_sample& was, const sampling_interval* is) noexcept {
  stack* const everyones = stacks.everyones(stacks.at(was.at_stack));
  if (everyones == nullptr) {
    add_shared(the_segment->lost_samples, 1);
    return;
  }
  stack_counters& c = everyones->counters;
  const weight before = weight_of(was.bytes, was.interval);
  const weight after = is != nullptr ? weight_of(was.bytes, *is) : weight{};
  keep_at_peak(c);
  if (is == nullptr) add_shared(c.thinned_samples, 1);
  add_shared(c.thinned_blocks, after.blocks - before.blocks);
  add_shared(c.thinned_bytes, after.bytes - before.bytes);
  add_real_shared(c.thinned_variance, after.variance - before.variance);
}

/// Where an allocation was asked for.
struct call_site {
  machine_state at;           ///< within the probe
  std::uintptr_t returns_to;  ///< from there
};

/// 0: there is no room for it.
reference stack_of(const call_site& site, bool will_come_again) noexcept {
  if (will_come_again)
    if (const reference known = this_memory->calls.recall(site.at, site.returns_to, stack_end); known != 0)
      return known;
  this_memory->calls.walk(site.at, stack_end, note_object);
  const stack* const found = stacks.find_or_add(this_memory->calls, this_owner);
  if (found == nullptr) return 0;
  const reference r = stacks.refer(found);
  if (will_come_again) this_memory->calls.remember(site.at, site.returns_to, r);
  return r;
}

bool take_sample(void* p, std::uint64_t bytes, sampling_interval interval, std::uint64_t at_ns,
                 const call_site& site) noexcept {
  if (this_memory == nullptr) return false;
  const reference at = stack_of(site, interval.is_one());
  if (at == 0) return false;
  const taken_sample s{at, interval, bytes, at_ns};
  note_sample_allocated(stacks.at(at), s);
  if (the_samples.add(p, s)) return true;
  note_sample_freed(s, s.at_ns);
  return false;
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

/// Notes the time that a sample has taken, and at the end of a window sets the interval for the
/// next one, and thins live samples.
void end_sample(segment_header& h, thread_slot& s, std::uint64_t interval, std::uint64_t drawn_by,
                std::uint64_t begun_ns) noexcept {
  constexpr std::uint64_t longest = 20'000;  // otherwise the thread was interrupted
  constexpr std::uint64_t skipping_ns = 60;
  const std::uint64_t ended_ns = this_clock.now();
  std::uint64_t took = ended_ns > begun_ns ? std::min(ended_ns - begun_ns, longest) : 0;
  const std::uint64_t skipped = std::exchange(this_memory->skipped_samples, 0);
  const std::uint64_t spent = add_shared(h.sampling_ns, took + skipped * skipping_ns);
  const std::uint64_t bytes = add_shared(window.bytes, drawn_by + std::exchange(this_memory->skipped_bytes, 0));
  const std::uint64_t samples = add_shared(window.samples, 1 + skipped);
  if (samples < sampling_pace::window_samples && ended_ns < window.ends_ns.load(relaxed)) return;
  if (window.is_closing.exchange(true, std::memory_order_acquire)) return;
  // The filter is made for so many live samples. A pass costs as much as some samples do; it may be
  // late by an eighth of what there are.
  constexpr std::uint64_t most_live = 2048;
  window.since_thinning += samples;
  if (window.since_thinning * 8 >= std::max(the_samples.records(), most_live)) {
    window.since_thinning = 0;
    std::uint64_t random = s.random.load(relaxed);
    the_samples.thin(most_live, random, note_sample_thinned);
    s.random.store(random, relaxed);
    const std::uint64_t thinned_ns = this_clock.now();
    add_shared(h.sampling_ns, thinned_ns > ended_ns ? thinned_ns - ended_ns : 0);
  }
  const std::uint64_t processor_ns = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t next = window.pace.next({.samples = samples,
                                               .bytes = bytes,
                                               .sampling_ns = spent,
                                               .processor_ns = processor_ns,
                                               .passed_ns = ended_ns - std::min(ended_ns, h.started_ns)});
  h.processor_ns.store(processor_ns, relaxed);
  const double seconds = static_cast<double>(ended_ns - std::min(ended_ns, window.began_ns)) / 1e9;
  add_real(h.adapted_seconds, seconds);
  add_real(h.interval_by_seconds, seconds * static_cast<double>(interval & ~interval_adapts));
  window.began_ns = ended_ns;
  // A viewer may have stored an interval meanwhile: that one stays.
  h.interval.compare_exchange_strong(interval, next | interval_adapts, relaxed);
  window.samples.store(0, relaxed);
  window.bytes.store(0, relaxed);
  window.ends_ns.store(ended_ns + sampling_pace::window_ns, relaxed);
  window.is_closing.store(false, std::memory_order_release);
}

/// The thread's next sample is due: with this block.
[[gnu::noinline]] void sample_due(thread_slot& s, void* p, std::uint64_t bytes, const call_site& site) noexcept {
  segment_header& h = *the_segment;
  const std::uint64_t wanted = h.interval.load(relaxed), interval = wanted & ~interval_adapts;
  const std::uint64_t drawn_by = s.drawn_by.load(relaxed);
  unsigned thinning = 0;
  if (wanted != interval && drawn_by != 0 && this_memory != nullptr) {
    thinning = this_memory->paths.count(site.returns_to, site.at.sp);
    if (is_skipped(s, thinning, drawn_by)) {
      ++this_memory->skipped_samples;
      this_memory->skipped_bytes += drawn_by;
      return draw_next_sample(s, interval);
    }
  }
  the_samples.prefetch(p);
  const std::uint64_t begun_ns = this_clock.now();
  const std::uint64_t grain = the_peak.follow(interval);
  if (interval == 1) the_samples.expect_all();
  if (drawn_by != 0 && !take_sample(p, bytes, sampling_interval(drawn_by << thinning), begun_ns, site))
    add_shared(h.lost_samples, 1);
  if (s.band_ahead.load(relaxed) != grain) the_peak.publish(s, this_owner);
  if (grain != 0) the_peak.publish_classes_now_and_then(s, this_owner);
  draw_next_sample(s, interval);
  if (wanted != interval && this_memory != nullptr) end_sample(h, s, wanted, drawn_by, begun_ns);
}

/// Restores the invariant: the slot's net bytes, of which a block of this class has changed, are
/// within their band.
void publish_net(thread_slot& s, unsigned size_class) noexcept {
  if (is_out_of_band(s, s.net_bytes.load(relaxed))) the_peak.publish(s, this_owner);
  if (the_peak.is_precise()) the_peak.publish_class(s, this_owner, size_class);
}

// --- fork

void before_fork() noexcept {
  is_inside = true;
  slots.fork_lock().acquire();
  modules_lock.acquire();
  stacks.fork_lock().acquire();
  the_samples.fork_lock().acquire();
  if (now == stage::observed) inherited = slots.sums();
}

void after_fork_in_parent() noexcept {
  the_samples.fork_lock().release();
  stacks.fork_lock().release();
  modules_lock.release();
  slots.fork_lock().release();
  is_inside = false;
}

/// The segment is still the parent's, and must not be written to any more.
void after_fork_in_child() noexcept {
  the_samples.fork_lock().reset_after_fork();
  stacks.fork_lock().reset_after_fork();
  modules_lock.reset_after_fork();
  slots.fork_lock().reset_after_fork();
  if (now == stage::observed) {
    parents_segment = the_segment;
    forked_at = monotonic_ns();
    chosen.is_counting = is_counting();
    chosen.interval = the_segment->interval.load(relaxed);
    early_header.counting = chosen.is_counting ? 1 : 0;
    copy_meters(*parents_segment, early_header);
    malloc_mappings::copy(*parents_segment, early_header);
    clear(early_slot);
    the_segment = &early_header;
    this_slot = &early_slot;
    this_owner = 0;
    now = stage::forked;
  }
  is_inside = false;
}

/// Once. libc's own early blocks have been counted by now.
void begin(char** environment) noexcept {
  static std::atomic<bool> has_begun{false};
  if (has_begun.exchange(true)) return;
  find_next_malloc();
  chosen = read_settings(environment);
  tick_clock::find_out();
  if (chosen.directory != nullptr) {
    std::strncpy(chosen_directory, chosen.directory, sizeof chosen_directory - 1);
    chosen.directory = chosen_directory;
  }
  {
    inside guard;
    look_up_newer_libc();
    ::pthread_key_create(&thread_end_key, end_this_thread);
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  start();
}

/// Constructors of other libraries may run before this one, and call malloc: then it has begun.
[[gnu::constructor]] void begin_at_last(int, char**, char** environment) noexcept { begin(environment); }

[[gnu::destructor]] void finish() noexcept {
  if (now == stage::observed && this_slot != &early_slot) the_peak.publish_all(*this_slot);
  note_exit();
}

}  // namespace

void note_exit() noexcept {
  // The child of a vfork ends in its parent's memory.
  if (now != stage::observed || the_segment->process_id != static_cast<std::uint32_t>(::getpid())) return;
  the_segment->ended_ns.store(monotonic_ns(), relaxed);
  the_segment->state.store(static_cast<std::uint32_t>(process_state::exited), relaxed);
}

constinit segment_header* the_segment = &early_header;
constinit sample_table the_samples;
thread_local constinit thread_slot* this_slot = &early_slot;

void* allocated_slow(void* p, std::size_t requested, std::uint64_t bytes) noexcept {
  thread_slot* const s = own_slot();
  if (s == nullptr) {
    count_apart(bytes, requested, true);
    return p;
  }
  s->until_sample.store(s->until_sample.load(relaxed) - static_cast<std::int64_t>(bytes), relaxed);
  // Who reads the net bytes reads these after them: peak_keeper::certainly_live.
  add(s->gross_bytes, bytes);
  s->net_bytes.store(s->net_bytes.load(relaxed) + bytes, std::memory_order_release);
  add(s->requested_bytes, requested);
  count_allocation<alone>(s->classes[size_scale::index(bytes)], bytes);
  // First the sample, then the peak that has the block in it: see keep_at_peak.
  if (s->until_sample.load(relaxed) < 0 && !is_inside) {
    inside guard;
    sample_due(*s, p, bytes, {current_state(), reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))});
  }
  publish_net(*s, size_scale::index(bytes));
  the_peak.obey_reset();
  return p;
}

void begin_thread() noexcept { (void)own_slot(); }

bool begin_peak_again() noexcept {
  thread_slot* const s = own_slot();
  if (now != stage::observed) return false;
  the_segment->reset.fetch_add(1, relaxed);
  if (s != nullptr) the_peak.publish(*s, this_owner);
  the_peak.obey_reset();
  return true;
}

bool has_segment() noexcept { return now == stage::observed; }

void freed_slow(std::uint64_t bytes) noexcept {
  thread_slot* const s = own_slot();
  if (s == nullptr) return count_apart(bytes, 0, false);
  s->net_bytes.store(s->net_bytes.load(relaxed) - bytes, relaxed);
  count_free<alone>(s->classes[size_scale::index(bytes)], bytes);
  publish_net(*s, size_scale::index(bytes));
}

void* reallocated_slow(void* p, std::size_t requested, std::uint64_t bytes, std::uint64_t before) noexcept {
  freed(before);
  return allocated(p, requested, bytes, size_scale::index(bytes));
}

// The sample is taken out before another thread can have the address, and put back if the block
// stays.
void* reallocate_sample(void* p, std::size_t requested) noexcept {
  begin_thread();
  if (!has_segment()) return next.reallocate(p, requested);  // the samples are still the parent's
  const taken_sample s = the_samples.take(p);
  const std::uint64_t before = next.usable_size(p);
  void* const moved = next.reallocate(p, requested);
  if (moved == nullptr && requested != 0) {
    if (s.at_stack != 0) (void)the_samples.add(p, s);
    return nullptr;
  }
  freed(before);
  if (s.at_stack != 0) note_sample_freed(s, this_clock.now());
  return allocated(moved, requested);
}

void freeing_sample(void* p, std::uint64_t bytes) noexcept {
  const int kept = errno;
  begin_thread();
  taken_sample s;
  std::uint64_t now_ns = 0;
  if (has_segment()) {  // otherwise the samples are still the parent's
    the_samples.prefetch(p);
    // Where nearly every block is a sample, the clock is read while the record is on its way.
    if (the_samples.expects_all()) now_ns = this_clock.now();
    s = the_samples.take(p);
  }
  if (s.at_stack != 0) note_sample_freed(s, now_ns != 0 ? now_ns : this_clock.now());
  errno = kept;
  if (bytes == size_not_known) bytes = s.at_stack != 0 ? s.bytes : next.usable_size(p);
  freed(bytes);
}

}  // namespace heapwright::probe
