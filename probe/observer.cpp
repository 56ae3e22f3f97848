#include "observer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clocks.hpp"
#include "malloc_mappings.hpp"
#include "recording.hpp"
#include "thread_slots.hpp"
#include "tick_clock.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

constexpr std::uint64_t never_near = std::uint64_t{1} << 62;

enum class stage { early, forked, observed, unobserved };

constinit stage now{stage::early};
constinit segment_header early_header{.counting = 1};
constinit thread_slot early_slot{.band_begin = never_near};
constinit thread_slots slots;

constinit settings chosen;
constinit char chosen_directory[512]{};
constinit pthread_key_t thread_end_key{};

// What the child of a fork begins with.
constinit segment_header* parents_segment = nullptr;
constinit slot_sums inherited;
constinit std::uint64_t forked_at = 0;
constinit std::uint64_t fork_number = 0;

thread_local constinit bool is_inside [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit bool has_ended [[gnu::tls_model("initial-exec")]] = false;
/// Number of this_slot; 0: none.
thread_local constinit std::uint32_t this_owner [[gnu::tls_model("initial-exec")]] = 0;

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
  is_allocation ? count_allocation<with_others>(c, bytes, requested) : count_free<with_others>(c, bytes);
  if (!has_segment) return;
  const std::uint64_t by = is_allocation ? bytes : 0 - bytes;
  the_peak.count_apart(by);
  the_peak.count_class_apart(size_scale::index(bytes), by);
}

/// Allocated by a thread without a slot. Where there was none for it, the samples that would have
/// been due are told as lost.
void count_unsampled(std::uint64_t bytes) noexcept {
  static constinit std::atomic<std::uint64_t> passed{0};
  if (now != stage::observed || is_inside || has_ended) return;
  const std::uint64_t interval = the_segment->interval.load(relaxed) & ~interval_adapts;
  if (interval == 0) return;
  const std::uint64_t before = passed.fetch_add(bytes, relaxed);
  const std::uint64_t due = interval == 1 ? 1 : (before + bytes) / interval - before / interval;
  if (due != 0) add_shared(the_segment->lost_samples, due);
}

// --- beginning

void end_this_thread(void* slot) noexcept {
  look_for_fork();
  if (slot != this_slot) return;  // of the parent, before a fork
  inside guard;
  record_thread_end();
  has_ended = true;
  this_slot = &early_slot;
  this_owner = 0;
  the_sampler.end_thread();
  auto& s = *static_cast<thread_slot*>(slot);
  the_peak.publish_all(s);
  slots.close(s);
}

template <class Counted>
void take_over(const Counted& counted) noexcept {
  slots.add_to_everyone(counted);
  std::uint64_t net = 0;
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const std::uint64_t of_class = counted.classes[c].allocated_bytes - counted.classes[c].freed_bytes;
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

/// `parents`: the segment of the process that has forked this one; null where a program begins.
void tell_not_recorded(segment_header* parents, int error) noexcept {
  if (parents != nullptr)
    parents->why_child_not_recorded.store(static_cast<std::uint16_t>(error), relaxed);
  else
    leave_refusal(chosen, error);
}

void start() noexcept {
  inside guard;
  const stage before = now;
  segment_header* const h = create_segment(chosen);
  if (h == nullptr) {
    if (chosen.is_recording) tell_not_recorded(before == stage::forked ? parents_segment : nullptr, errno);
    early_header.counting = 0;
    early_header.recording = 0;
    now = stage::unobserved;
    return;
  }
  the_sampler.reset(*h);
  slots.reset(*h);
  the_peak.reset(*h, chosen.interval & ~interval_adapts);
  copy_meters(*the_segment, *h);
  malloc_mappings::copy(*the_segment, *h);
  the_segment = h;
  now = stage::observed;
  if (before == stage::forked) {
    h->forked_from = parents_segment->process_id;
    h->fork_number = fork_number;
    h->adapted_seconds.store(parents_segment->adapted_seconds.load(relaxed), relaxed);
    h->interval_by_seconds.store(parents_segment->interval_by_seconds.load(relaxed), relaxed);
    take_over(inherited);
    for (const auto& c : inherited.classes) {
      h->inherited_blocks += c.allocations;
      h->inherited_bytes += c.allocated_bytes;
    }
    the_sampler.inherit_from(*parents_segment, forked_at);
    ::munmap(parents_segment, parents_segment->bytes);
    parents_segment = nullptr;
  }
  if (chosen.counting == counting_is_on) take_over(early_slot);
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
  the_sampler.begin_thread(*s);
  this_slot = s;
  this_owner = slots.number_of(*s);
  the_peak.admit(this_owner);
  ::pthread_setspecific(thread_end_key, s);
  return s;
}

/// The calling thread's slot, which it gets now if it has none; null when it has none.
thread_slot* own_slot() noexcept {
  look_for_fork();
  return this_slot != &early_slot ? this_slot : new_slot();
}

// --- samples

/// Restores the invariant: the slot's net bytes, of which a block of this class has changed, are
/// within their band.
void publish_net(thread_slot& s, unsigned size_class) noexcept {
  if (is_out_of_band(s, s.net_bytes.load(relaxed))) the_peak.publish(s, this_owner);
  if (the_peak.is_precise()) the_peak.publish_class(s, this_owner, size_class);
}

// --- where only samples are counted

/// The sample's block has been allocated by the calling thread, which asked for so many bytes.
void count_as_allocations(thread_slot& s, const taken_sample& sample, std::uint64_t requested) noexcept {
  const weight stands_for = weight_of(sample.bytes, sample.interval);
  const unsigned size_class = size_scale::index(sample.bytes);
  const double asked_for = static_cast<double>(requested) / static_cast<double>(sample.bytes);
  the_peak.count_variance(size_class, stands_for.variance);
  add(s.gross_bytes, stands_for.bytes);
  s.net_bytes.store(s.net_bytes.load(relaxed) + stands_for.bytes, std::memory_order_release);
  count_allocation<alone>(s.classes[size_class], stands_for.bytes,
                          rounded(static_cast<double>(stands_for.bytes) * asked_for), stands_for.blocks);
  publish_net(s, size_class);
}

/// The sample's block has been freed by the calling thread.
void count_as_frees(const taken_sample& sample) noexcept {
  const weight stands_for = weight_of(sample.bytes, sample.interval);
  if (this_slot == &early_slot) return the_sampler.count_estimate_apart(sample.bytes, stands_for, weight{});
  thread_slot& s = *this_slot;
  const unsigned size_class = size_scale::index(sample.bytes);
  s.net_bytes.store(s.net_bytes.load(relaxed) - stands_for.bytes, relaxed);
  count_free<alone>(s.classes[size_class], stands_for.bytes, stands_for.blocks);
  publish_net(s, size_class);
  the_peak.count_variance(size_class, -stands_for.variance);
}

// --- fork

void before_fork() noexcept {
  look_for_fork();
  fork_number = record_fork();
  is_inside = true;
  slots.fork_lock().acquire();
  the_sampler.lock_for_fork();
  if (now != stage::observed) return;
  slots.get_sums(inherited);
  inherited.leave_live();
}

void after_fork_in_parent() noexcept {
  the_sampler.unlock_in_parent();
  slots.fork_lock().release();
  is_inside = false;
}

constinit std::atomic<std::uint32_t> never_wiped{1};
constinit std::atomic<std::uint32_t>* own_mark = &never_wiped;

/// Before Linux 4.14 there is none.
void make_fork_mark() noexcept {
  constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK
  const std::size_t bytes = linux_os::page_size();
  void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, bytes, wipe_on_fork) != 0) {
    ::munmap(page, bytes);
    return;
  }
  own_mark = new (page) std::atomic<std::uint32_t>(1);
  fork_mark = own_mark;
}

/// The segment is still the parent's, and must not be written to any more.
void after_fork_in_child() noexcept {
  own_mark->store(1, relaxed);
  the_sampler.unlock_in_child();
  slots.fork_lock().reset_after_fork();
  if (now == stage::observed) {
    parents_segment = the_segment;
    forked_at = monotonic_ns();
    close_rings_in_child();
    chosen.is_recording = is_recorded_from_start();
    chosen.counting = the_segment->counting.load(relaxed);
    chosen.interval = the_segment->interval.load(relaxed);
    chosen.interval_before_all = the_segment->interval_before_all.load(relaxed);
    early_header.counting = chosen.counting;
    early_header.recording = chosen.is_recording ? segment::recorded_from_start : 0;
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
    make_fork_mark();
    ::pthread_key_create(&thread_end_key, end_this_thread);
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  start();
}

/// Constructors of other libraries may run before this one, and call malloc: then it has begun.
[[gnu::constructor]] void begin_at_last(int, char**, char** environment) noexcept { begin(environment); }

[[gnu::destructor]] void finish() noexcept {
  look_for_fork();
  if (now == stage::observed && this_slot != &early_slot) the_peak.publish_all(*this_slot);
  note_exit();
}

}  // namespace

void note_exit() noexcept {
  // The child of a vfork ends in its parent's memory.
  if (now != stage::observed || the_segment->process_id != static_cast<std::uint32_t>(::getpid())) return;
  record_exit();
  the_segment->ended_ns.store(monotonic_ns(), relaxed);
  the_segment->state.store(static_cast<std::uint32_t>(process_state::exited), relaxed);
}

/// What is live in the child, by the parent's figures, as it goes on.
void note_untold_fork() noexcept {
  const bool was_inside = is_inside;
  fork_number = 0;
  if (now == stage::observed) {
    slots.get_sums(inherited);
    inherited.leave_live();
  }
  after_fork_in_child();
  is_inside = was_inside;
}

constinit const std::atomic<std::uint32_t>* fork_mark = &never_wiped;
constinit segment_header* the_segment = &early_header;
thread_local constinit thread_slot* this_slot = &early_slot;

void* allocated_slow(void* p, std::size_t requested, std::uint64_t bytes) noexcept {
  thread_slot* const s = own_slot();
  // The call that has begun the process, which is not to count.
  if (counted_now() != counted::each_call) return noted_otherwise(counted_now(), p, requested, 0, false);
  if (s == nullptr) {
    count_apart(bytes, requested, true);
    count_unsampled(bytes);
    return p;
  }
  s->until_sample.store(s->until_sample.load(relaxed) - static_cast<std::int64_t>(bytes), relaxed);
  // Who reads the net bytes reads these after them: peak_keeper::certainly_live.
  add(s->gross_bytes, bytes);
  s->net_bytes.store(s->net_bytes.load(relaxed) + bytes, std::memory_order_release);
  count_allocation<alone>(s->classes[size_scale::index(bytes)], bytes, requested);
  // First the sample, then the peak that has the block in it: see keep_at_peak.
  if (s->until_sample.load(relaxed) < 0 && !is_inside) {
    inside guard;
    (void)the_sampler.sample_due(*s, this_owner, p, {.bytes = bytes, .drawn = bytes},
                                 {current_state(), reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))});
  }
  publish_net(*s, size_scale::index(bytes));
  the_peak.obey_reset();
  return p;
}

void* estimated_slow(void* p, std::size_t requested, std::uint64_t bytes) noexcept {
  thread_slot* const s = own_slot();
  if (counted_now() != counted::samples) return p;
  if (s == nullptr) {
    count_unsampled(requested + 1);
    return p;
  }
  s->until_sample.store(s->until_sample.load(relaxed) - static_cast<std::int64_t>(requested + 1), relaxed);
  if (s->until_sample.load(relaxed) < 0 && !is_inside) {
    inside guard;
    if (bytes == size_not_known) bytes = usable_size(p);
    const taken_sample sample =
        the_sampler.sample_due(*s, this_owner, p, {.bytes = bytes, .drawn = requested + 1},
                               {current_state(), reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))});
    if (sample.at_stack != 0) count_as_allocations(*s, sample, requested);
  }
  the_peak.obey_reset();
  return p;
}

void begin_thread() noexcept { (void)own_slot(); }

std::uint32_t number_of_own_slot() noexcept { return own_slot() != nullptr ? this_owner : 0; }

segment::reference stack_for_recording(const call_site& site) noexcept {
  if (is_inside || own_slot() == nullptr) return 0;
  inside guard;
  return the_sampler.stack_at(site);
}

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
  if (counted_now() != counted::each_call) return;
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
// stays. Tools outside are told of the free when it is certain: after that.
void* reallocate_sample(void* p, std::size_t requested) noexcept {
  begin_thread();
  if (!has_segment()) return next.reallocate(p, requested);  // the samples are still the parent's
  const taken_sample s = the_sampler.take(p);
  const std::uint64_t before = usable_size(p);
  void* const moved = next.reallocate(p, requested);
  if (moved == nullptr && requested != 0) {
    if (s.at_stack != 0) the_sampler.put_back(p, s);
    return nullptr;
  }
  if (counted_now() == counted::each_call) freed(before);
  if (s.at_stack != 0) the_sampler.note_freed(p, s, this_owner, the_sampler.now());
  if (counted_now() == counted::each_call) return allocated(moved, requested);
  if (s.at_stack != 0) count_as_frees(s);
  return estimated(moved, requested);
}

void freeing_sample(void* p, std::uint64_t bytes) noexcept {
  const int kept = errno;
  begin_thread();
  taken_sample s;
  std::uint64_t now_ns = 0;
  if (has_segment()) {  // otherwise the samples are still the parent's
    the_sampler.prefetch(p);
    // Where nearly every block is a sample, the clock is read while the record is on its way.
    if (the_sampler.expects_all()) now_ns = the_sampler.now();
    s = the_sampler.take(p);
  }
  if (s.at_stack != 0) the_sampler.note_freed(p, s, this_owner, now_ns != 0 ? now_ns : the_sampler.now());
  errno = kept;
  if (counted_now() != counted::each_call) {
    if (s.at_stack != 0) count_as_frees(s);
    return;
  }
  if (bytes == size_not_known) bytes = s.at_stack != 0 ? s.bytes : usable_size(p);
  freed(bytes);
}

}  // namespace heapwright::probe
