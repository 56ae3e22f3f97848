// heapwright-replayer PLAN turns|speed|nothing|count|count-nothing: carries out a plan (plan.hpp)
// on the malloc of this process, and prints what it has measured. `nothing` is `speed` without a
// malloc: what the replay itself takes. `count` is `turns` without looks at memory, for callgrind,
// which counts the instructions in heapwright_counted_operations.
//
// Problem. What is measured is the malloc, so nothing else may use memory or take time that depends
// on it. This program calls malloc for the plan's operations alone; its own tables are shared
// mappings, which do not count as anonymous memory. In a plan of an advice some operations are for
// parts of the kit (kit_parts.hpp), which take their memory from malloc.
//
// The main thread is the plan's first; each thread is begun by the one that comes before it. In
// turns, the clock that the malloc sees is that of the recording: what it does after a time it does
// as it did in the program.
//
// Output, a line each: `measured AT_NS LIVE ANONYMOUS` (in turns), and `result NAME VALUE`.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "anonymous_memory.hpp"
#include "kit_parts.hpp"
#include "memory_calls.hpp"
#include "plan.hpp"
#include "shared_table.hpp"

using namespace heapwright::replay;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

constexpr std::size_t page_bytes = 4096;

/// In a slot: the malloc had no memory.
constexpr std::uintptr_t failed_block = 1;

struct measured_moment {
  std::uint64_t at_ns, live, anonymous;
};

/// A number that one thread sets, and others wait for.
class gate {
 public:
  void open(std::uint32_t to) noexcept {
    value_.store(to, release);
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
  }
  void wait_for(std::uint32_t least) noexcept {
    for (std::uint32_t is = value_.load(acquire); is < least; is = value_.load(acquire))
      syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, is, nullptr, nullptr, 0);
  }

 private:
  std::atomic<std::uint32_t> value_{0};
};

struct thread_state {
  gate may_go;  ///< in turns: how often it was its turn
  std::uint32_t turns_given = 0;
  bool has_begun = false;
  pthread_t id{};
};

struct replay_state {
  const plan_footer* footer;
  const operation* operations;
  const turn* turns;
  const stint* stints;
  const thread* threads;
  const round* rounds;
  std::atomic<std::uintptr_t>* slots;
  thread_state* states;
  measured_moment* moments;
  kit_parts parts;

  bool is_nothing = false;
  bool is_counted = false;
  gate is_over;

  // In turns.
  std::uint64_t next_turn = 0;
  std::uint32_t ended_plus_one = 0;  ///< the thread that has ended, and is to be joined
  std::uint64_t moments_taken = 0;
  std::uint64_t anonymous_before = 0;

  // At once.
  gate round_begun;
  std::atomic<std::uint32_t> missing{0};  ///< threads that are not through with the round
  std::atomic<std::uint64_t> waits{0};    ///< for blocks of other threads

  // Allocations for which the malloc had no memory.
  std::atomic<std::uint64_t> refused{0}, first_refused_bytes{0};
};

constinit replay_state is{};

/// What the malloc takes for the time. It stands still from the start of the process on, as a
/// malloc may look at it before main; in turns it then goes as the recorded one did, else as the
/// system's, which is never behind.
struct recorded_clock {
  static constexpr std::uint64_t begin_ns = 1'000'000'000;

  std::atomic<bool> is_on{true};
  std::atomic<std::uint64_t> passed_ns{0};
};

constinit recorded_clock the_clock{};

std::uint64_t anonymous_bytes() noexcept { return heapwright::trace::anonymous_bytes("/proc/self/smaps"); }

std::uint64_t clock_ns(clockid_t which) noexcept {
  timespec t{};
  syscall(SYS_clock_gettime, which, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

// --- operations

void touch(std::byte* p, std::uint64_t from, std::uint64_t to) noexcept {
  if (from >= to) return;
  auto* const bytes = static_cast<volatile std::byte*>(p);
  for (std::uint64_t at = from; at < to; at += page_bytes) bytes[at] = std::byte{1};
  bytes[to - 1] = std::byte{1};
}

std::uint64_t touched_bytes(const operation& o) noexcept {
  if (o.touched == operation::whole_size) return o.size;
  return static_cast<std::uint64_t>(static_cast<double>(o.size) * o.touched / operation::whole_size);
}

/// Until another thread has allocated the block of this slot.
[[gnu::noinline]] std::uintptr_t wait_for_block(std::atomic<std::uintptr_t>& slot) noexcept {
  is.waits.fetch_add(1, relaxed);
  for (unsigned looks = 0;; ++looks) {
    if (const std::uintptr_t p = slot.load(acquire); p != 0) return p;
    constexpr unsigned quick_looks = 200, yields = 50;
    if (looks < quick_looks) continue;
    if (looks < quick_looks + yields) {
      sched_yield();
    } else {
      const timespec shortly{0, 20'000};
      nanosleep(&shortly, nullptr);
    }
  }
}

std::uintptr_t take_from(std::uint32_t number) noexcept {
  std::atomic<std::uintptr_t>& slot = is.slots[number];
  std::uintptr_t p = slot.load(acquire);
  if (p == 0) [[unlikely]]
    p = wait_for_block(slot);
  slot.store(0, relaxed);
  return p;
}

/// In place of a block. The program got one, so a malloc that has none is not the program's.
[[gnu::noinline]] std::uintptr_t note_refused(const operation& o) noexcept {
  if (o.size == 0) return failed_block;  // the standard leaves it to the malloc
  std::uint64_t none = 0;
  is.first_refused_bytes.compare_exchange_strong(none, o.size, relaxed);
  is.refused.fetch_add(1, relaxed);
  return failed_block;
}

/// What one thread has of the operations under way.
struct cursor {
  std::uint32_t thread = 0;
  std::uint8_t taken_part = 0;      ///< of the block that was taken
  std::uintptr_t taken = 0;         ///< by a reallocation
  std::uint64_t taken_size = 0;     ///< bytes of it
  std::uint64_t taken_touched = 0;  ///< of these
};

/// Blocks of a malloc that does nothing: in a piece of memory that stays in the processor's cache.
struct no_malloc {
  static constexpr std::uint64_t bytes = 1 << 16;
  alignas(64) static inline std::byte piece[bytes * 2];

  static void choose_part(const operation& o, const cursor& c) noexcept {
    if (o.part != 0) is.parts.find(o, c.thread).choose(o);
  }

  static std::uintptr_t place(const operation& o, const cursor& c) noexcept {
    choose_part(o, c);
    return reinterpret_cast<std::uintptr_t>(piece + (o.slot * std::uint64_t{64}) % bytes);
  }
};

[[gnu::always_inline]] inline std::uintptr_t allocate_from_part(const operation& o, const cursor& c) noexcept {
  void* const p = is.parts.find(o, c.thread).allocate(o);
  if (p == nullptr) return note_refused(o);
  if (o.zeroed != 0) std::memset(p, 0, o.size);
  touch(static_cast<std::byte*>(p), 0, touched_bytes(o));
  return reinterpret_cast<std::uintptr_t>(p);
}

std::uintptr_t allocate(const operation& o, const cursor& c) noexcept {
  if (o.part != 0) return allocate_from_part(o, c);
  void* p = nullptr;
  if (o.zeroed != 0) {
    p = std::calloc(1, o.size);
  } else if (o.alignment != 0) {
    if (posix_memalign(&p, std::size_t{1} << o.alignment, o.size) != 0) p = nullptr;
  } else if (o.by_new != 0) {
    p = ::operator new(o.size);  // aborts where there is no memory
  } else {
    p = std::malloc(o.size);
  }
  if (p == nullptr) return note_refused(o);
  touch(static_cast<std::byte*>(p), 0, touched_bytes(o));
  return reinterpret_cast<std::uintptr_t>(p);
}

/// From one part to another, or to malloc, or back.
[[gnu::noinline]] std::uintptr_t move_block(const operation& o, const cursor& c) noexcept {
  operation before = o;
  before.size = c.taken_size & operation::largest_size;
  before.part = c.taken_part & operation::last_part;
  const std::uintptr_t to = allocate(o, c);
  if (c.taken == failed_block) return to;
  void* const from = reinterpret_cast<void*>(c.taken);
  if (to != failed_block) std::memcpy(reinterpret_cast<void*>(to), from, std::min<std::uint64_t>(o.size, before.size));
  if (before.part == 0)
    std::free(from);
  else
    is.parts.find(before, c.thread).deallocate(before, from);
  return to;
}

std::uintptr_t reallocate(const operation& o, const cursor& c) noexcept {
  if ((o.part | c.taken_part) != 0) [[unlikely]]
    return move_block(o, c);
  void* const before = c.taken == failed_block ? nullptr : reinterpret_cast<void*>(c.taken);
  void* const p = std::realloc(before, o.size);
  if (p == nullptr) {
    std::free(before);
    return note_refused(o);
  }
  touch(static_cast<std::byte*>(p), before == nullptr ? 0 : c.taken_touched, touched_bytes(o));
  return reinterpret_cast<std::uintptr_t>(p);
}

[[gnu::always_inline]] inline void deallocate(const operation& o, const cursor& c) noexcept {
  const std::uintptr_t p = take_from(o.slot);
  if (p == failed_block) return;
  if (o.part != 0) return is.parts.find(o, c.thread).deallocate(o, reinterpret_cast<void*>(p));
  if (o.by_new != 0) return ::operator delete(reinterpret_cast<void*>(p));
  std::free(reinterpret_cast<void*>(p));
}

void note_taken(const operation& o, cursor& c) noexcept {
  c.taken_part = o.part;
  c.taken_size = o.size;
  c.taken_touched = touched_bytes(o);
}

[[gnu::always_inline]] inline void carry_out(const operation& o, cursor& c) noexcept {
  switch (o.kind) {
    case operation_kind::allocate: is.slots[o.slot].store(allocate(o, c), release); break;
    case operation_kind::deallocate: deallocate(o, c); break;
    case operation_kind::take:
      c.taken = take_from(o.slot);
      note_taken(o, c);
      break;
    case operation_kind::reallocate: is.slots[o.slot].store(reallocate(o, c), release); break;
    case operation_kind::nothing: note_taken(o, c); break;
    case operation_kind::grow:
      if (const std::uintptr_t p = is.slots[o.slot].load(relaxed); p != failed_block)
        touch(reinterpret_cast<std::byte*>(p), c.taken_touched, touched_bytes(o));
      break;
  }
}

void carry_out_nothing(const operation& o, cursor& c) noexcept {
  switch (o.kind) {
    case operation_kind::allocate:
    case operation_kind::reallocate: {
      const std::uintptr_t p = no_malloc::place(o, c);
      const std::uint64_t least = o.kind == operation_kind::reallocate ? c.taken_touched : 0, most = touched_bytes(o);
      // As many places are written, but all of them in the piece.
      auto* const bytes = reinterpret_cast<volatile std::byte*>(p);
      for (std::uint64_t at = least; at < most; at += page_bytes) bytes[at % no_malloc::bytes] = std::byte{1};
      is.slots[o.slot].store(p, release);
      break;
    }
    case operation_kind::deallocate:
      (void)take_from(o.slot);
      no_malloc::choose_part(o, c);
      break;
    case operation_kind::take:
      c.taken = take_from(o.slot);
      note_taken(o, c);
      break;
    case operation_kind::nothing:
    case operation_kind::grow: break;
  }
}

void carry_out_all(const operation* o, const operation* end, cursor& c) noexcept {
  if (is.is_nothing) {
    for (; o != end; ++o) carry_out_nothing(*o, c);
  } else {
    for (; o != end; ++o) carry_out(*o, c);
  }
}

}  // namespace

/// callgrind knows it by its name.
extern "C" [[gnu::noinline, gnu::visibility("default")]] void heapwright_counted_operations(const void* begin,
                                                                                            const void* end,
                                                                                            void* c) noexcept {
  carry_out_all(static_cast<const operation*>(begin), static_cast<const operation*>(end), *static_cast<cursor*>(c));
}

namespace {

// --- threads

void* run_in_turns(void* number) noexcept;
void* run_at_once(void* number) noexcept;

void begin_thread(std::uint32_t number, void* (*run)(void*)) noexcept {
  thread_state& t = is.states[number];
  t.has_begun = true;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  const int error = pthread_create(&t.id, &attributes, run, reinterpret_cast<void*>(std::uintptr_t{number}));
  pthread_attr_destroy(&attributes);
  errno = error;
  if (error != 0) die("a thread cannot be begun");
}

// --- in turns

void measure(const turn& t) noexcept { is.moments[is.moments_taken++] = {t.at_ns, t.live, anonymous_bytes()}; }

/// To the thread of the next turn, which may be this one.
void pass_on() noexcept {
  if (is.next_turn == is.footer->turns) return is.is_over.open(1);
  const std::uint32_t next = is.turns[is.next_turn].thread;
  thread_state& t = is.states[next];
  ++t.turns_given;
  if (!t.has_begun) begin_thread(next, run_in_turns);
  t.may_go.open(t.turns_given);
}

/// What the malloc does when a thread ends belongs before the next turn.
void join_ended() noexcept {
  if (is.ended_plus_one == 0) return;
  pthread_join(is.states[is.ended_plus_one - 1].id, nullptr);
  is.ended_plus_one = 0;
}

void* run_in_turns(void* number) noexcept {
  const auto self = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(number));
  thread_state& mine = is.states[self];
  cursor c{.thread = self};
  for (std::uint32_t done = 0; done < is.threads[self].turns; ++done) {
    mine.may_go.wait_for(done + 1);
    join_ended();
    const turn& t = is.turns[is.next_turn++];
    the_clock.passed_ns.store(t.at_ns, relaxed);
    const operation* const begin = is.operations + t.first_operation;
    if (is.is_counted) {
      heapwright_counted_operations(begin, begin + t.operations, &c);
    } else {
      for (const operation* o = begin; o != begin + t.operations; ++o) carry_out(*o, c);
      if (t.is_measured != 0) measure(t);
    }
    const bool ends = done + 1 == is.threads[self].turns && is.threads[self].ends != 0 && self != 0;
    if (ends) is.ended_plus_one = self + 1;
    pass_on();
    if (ends) return nullptr;
  }
  is.is_over.wait_for(1);
  return nullptr;
}

// --- at once

/// By the last thread that is through with the round before.
void begin_round(std::uint32_t number) noexcept {
  if (number == is.footer->rounds) {
    is.round_begun.open(number + 1);
    return is.is_over.open(1);
  }
  const round& r = is.rounds[number];
  is.missing.store(r.threads, relaxed);
  is.round_begun.open(number + 1);
  for (std::uint32_t t = number == 0 ? 1 : is.rounds[number - 1].begun; t < r.begun; ++t) begin_thread(t, run_at_once);
}

void* run_at_once(void* number) noexcept {
  const auto self = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(number));
  cursor c{.thread = self};
  for (std::uint32_t at = is.threads[self].first_stint + 1; at != 0; at = is.stints[at - 1].next_plus_one) {
    const stint& s = is.stints[at - 1];
    is.round_begun.wait_for(s.round + 1);
    const operation* const begin = is.operations + s.first_operation;
    carry_out_all(begin, begin + s.operations, c);
    const bool ends = s.next_plus_one == 0 && is.threads[self].ends != 0 && self != 0;
    if (ends) pthread_detach(pthread_self());
    if (is.missing.fetch_sub(1, std::memory_order_acq_rel) == 1) begin_round(s.round + 1);
    if (ends) return nullptr;
  }
  is.is_over.wait_for(1);
  return nullptr;
}

// --- the whole

template <class T>
const T* table(const std::byte* plan, std::uint64_t size, std::uint64_t at, std::uint64_t count) noexcept {
  if (at > size || count > (size - at) / sizeof(T)) {
    errno = EINVAL;
    die("the plan is cut off");
  }
  return reinterpret_cast<const T*>(plan + at);
}

void map_plan(const char* path) noexcept {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || fstat(fd, &about) != 0) die(path);
  const auto size = static_cast<std::uint64_t>(about.st_size);
  void* const p = size == 0 ? MAP_FAILED : mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  close(fd);
  if (p == MAP_FAILED) die(path);
  const auto* const plan = static_cast<const std::byte*>(p);
  is.footer = table<plan_footer>(plan, size, size - std::min<std::uint64_t>(size, sizeof(plan_footer)), 1);
  if (is.footer->magic != plan_footer::right_magic) {
    errno = EINVAL;
    die("not a plan of this version");
  }
  is.operations = table<operation>(plan, size, 0, is.footer->operations);
  is.turns = table<turn>(plan, size, is.footer->turns_at, is.footer->turns);
  is.stints = table<stint>(plan, size, is.footer->stints_at, is.footer->stints);
  is.threads = table<thread>(plan, size, is.footer->threads_at, is.footer->threads);
  is.rounds = table<round>(plan, size, is.footer->rounds_at, is.footer->rounds);
  is.slots = shared_table<std::atomic<std::uintptr_t>>(is.footer->slots);
  is.states = shared_table<thread_state>(is.footer->threads);
  is.moments = shared_table<measured_moment>(is.footer->measured);
  const kit_part* const parts = table<kit_part>(plan, size, is.footer->parts_at, is.footer->parts);
  is.parts.make(parts, is.footer->parts, is.footer->threads);
}

std::uint64_t processor_ns(const rusage& u) noexcept {
  const auto ns = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_usec) * 1000;
  };
  return ns(u.ru_utime) + ns(u.ru_stime);
}

void print(const char* name, std::uint64_t value) noexcept { std::printf("result %s %lu\n", name, value); }

}  // namespace

/// For all that this process's libraries ask.
extern "C" int clock_gettime(clockid_t which, timespec* t) noexcept {
  const bool is_time = which != CLOCK_PROCESS_CPUTIME_ID && which != CLOCK_THREAD_CPUTIME_ID && which >= 0;
  if (!is_time || !the_clock.is_on.load(relaxed)) return static_cast<int>(syscall(SYS_clock_gettime, which, t));
  const std::uint64_t ns = recorded_clock::begin_ns + the_clock.passed_ns.load(relaxed);
  t->tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  t->tv_nsec = static_cast<long>(ns % 1'000'000'000);
  return 0;
}

int main(int count, char** words) {
  const auto is_word = [&](const char* word) { return count == 3 && std::strcmp(words[2], word) == 0; };
  is.is_counted = is_word("count") || is_word("count-nothing");
  is.is_nothing = is_word("nothing") || is_word("count-nothing");
  const bool in_turns = is_word("turns") || is.is_counted;
  the_clock.is_on.store(in_turns, relaxed);
  if (!in_turns && !is.is_nothing && !is_word("speed")) {
    dprintf(STDERR_FILENO, "usage: heapwright-replayer PLAN turns|speed|nothing|count|count-nothing\n");
    return 1;
  }
  map_plan(words[1]);
  is.states[0].has_begun = true;
  is.anonymous_before = anonymous_bytes();
  rusage before{}, behind{};
  getrusage(RUSAGE_SELF, &before);
  const std::uint64_t began = clock_ns(CLOCK_MONOTONIC);
  bool counts_calls = false;
  if (is.footer->turns > 0) {
    if (in_turns) {
      counts_calls = !is.is_counted && count_memory_calls();
      pass_on();
      run_in_turns(nullptr);
      join_ended();
    } else {
      begin_round(0);
      run_at_once(nullptr);
    }
  }
  const std::uint64_t ended = clock_ns(CLOCK_MONOTONIC), calls = memory_calls();
  getrusage(RUSAGE_SELF, &behind);
  const std::uint64_t anonymous = anonymous_bytes();
  the_clock.is_on.store(false, relaxed);

  for (std::uint64_t i = 0; i < is.moments_taken; ++i) {
    const measured_moment& m = is.moments[i];
    std::printf("measured %lu %lu %lu\n", m.at_ns, m.live, m.anonymous - std::min(m.anonymous, is.anonymous_before));
  }
  print("final_bytes", anonymous - std::min(anonymous, is.anonymous_before));
  print("wall_ns", ended - began);
  print("processor_ns", processor_ns(behind) - processor_ns(before));
  print("page_faults",
        static_cast<std::uint64_t>(behind.ru_minflt - before.ru_minflt + behind.ru_majflt - before.ru_majflt));
  if (counts_calls) print("memory_calls", calls);
  print("waits", is.waits.load(relaxed));
  print("refused", is.refused.load(relaxed));
  print("first_refused_bytes", is.first_refused_bytes.load(relaxed));
  std::fflush(stdout);
  _exit(std::ferror(stdout) != 0 ? 1 : 0);
}
