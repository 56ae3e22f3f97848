// Runs under the probe, does what a model says, and compares what the probe has counted with it: to
// the block and to the byte, and the peaks. Threads take turns, so that there is one right answer;
// they free each other's blocks, fall idle, end, and fork.
//
//   model SEED [THREADS [INTERVALS]]     exit status 0: all as the model says; 1 otherwise, with a
//                                        line for each difference
//
// INTERVALS  one        the default: the probe runs with an interval of 1; peaks and call stacks
//                       are exact
//            other      it runs with another interval; peaks are within the bounds that
//                       docs/live.md states
//            changing   the interval changes between turns; peaks are within these bounds
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_segment.hpp"

namespace {

using heapwright::segment::size_scale;
using probe_test::figures;
using probe_test::own_segment;

/// What one thread has allocated less what it has freed.
struct thread_model {
  std::int64_t net = 0, peak = 0;
  pid_t id = 0;

  void add(std::int64_t bytes) {
    net += bytes;
    peak = std::max(peak, net);
  }
};

thread_local thread_model* this_thread_model = nullptr;

/// What should be counted. All in memory that malloc has nothing to do with.
struct model {
  figures expected;
  std::int64_t live = 0, peak = 0, blocks = 0;
  std::int64_t class_live[size_scale::count]{}, class_peak[size_scale::count]{};

  void allocated(void* p, std::size_t requested) {
    const std::size_t bytes = malloc_usable_size(p);
    auto& c = expected.classes[size_scale::index(bytes)];
    ++c.allocations;
    c.allocated_bytes += bytes;
    c.requested_bytes += requested;
    live += static_cast<std::int64_t>(bytes);
    peak = std::max(peak, live);
    ++blocks;
    if (this_thread_model != nullptr) this_thread_model->add(static_cast<std::int64_t>(bytes));
    const unsigned index = size_scale::index(bytes);
    class_live[index] += static_cast<std::int64_t>(bytes);
    class_peak[index] = std::max(class_peak[index], class_live[index]);
  }

  void begin_peaks_again() {
    peak = live;
    std::copy(std::begin(class_live), std::end(class_live), class_peak);
  }

  void freeing(std::size_t bytes) {
    auto& c = expected.classes[size_scale::index(bytes)];
    ++c.frees;
    c.freed_bytes += bytes;
    live -= static_cast<std::int64_t>(bytes);
    --blocks;
    if (this_thread_model != nullptr) this_thread_model->add(-static_cast<std::int64_t>(bytes));
    class_live[size_scale::index(bytes)] -= static_cast<std::int64_t>(bytes);
  }
};

std::uint64_t state = 1;

std::uint64_t random_below(std::uint64_t n) {
  state = state * 6364136223846793005 + 1442695040888963407;
  return (state >> 33) % n;
}

constexpr std::size_t block_count = 300;
std::array<void*, block_count> blocks{};
model the_model;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "model: %s\n", what);
  std::_Exit(2);
}

std::size_t random_size() { return random_below(10) == 0 ? random_below(3'000'000) : random_below(2000); }

void allocate(void*& p) {
  const std::size_t n = random_size();
  switch (random_below(6)) {
    case 0:
      p = std::calloc(2, n / 2);
      the_model.allocated(p, n / 2 * 2);
      return;
    case 1: p = memalign(256, n); break;
    case 2: must(posix_memalign(&p, 64, n) == 0, "posix_memalign failed"); break;
    case 3: p = ::operator new(n); break;
    case 4: p = std::realloc(nullptr, n); break;
    default: p = std::malloc(n); break;
  }
  the_model.allocated(p, n);
}

void release(void*& p) {
  the_model.freeing(malloc_usable_size(p));
  random_below(2) == 0 ? std::free(p) : ::operator delete(p);
  p = nullptr;
}

void reallocate(void*& p) {
  const std::size_t before = malloc_usable_size(p);
  if (random_below(20) == 0) {  // more than there is: the block stays
    volatile std::size_t too_much = ~std::size_t{0} / 2;
    must(std::realloc(p, too_much) == nullptr, "realloc of half the address space did not fail");
    return;
  }
  const std::size_t n = random_size() + 1;
  p = random_below(2) == 0 ? std::realloc(p, n) : reallocarray(p, n, 1);
  the_model.freeing(before);
  the_model.allocated(p, n);
}

void some_operations(int n) {
  for (int i = 0; i < n; ++i) {
    void*& p = blocks[random_below(block_count)];
    if (p == nullptr) {
      allocate(p);
    } else if (random_below(3) == 0) {
      reallocate(p);
    } else {
      release(p);
    }
  }
}

constexpr int most_threads = 40;
int thread_count = 6;
thread_model thread_models[most_threads];
sem_t turn[most_threads], done;
bool has_ended = false;

void* worker(void* number) {
  const auto i = reinterpret_cast<std::intptr_t>(number);
  this_thread_model = &thread_models[i];
  this_thread_model->id = ::gettid();
  for (;;) {
    sem_wait(&turn[i]);
    if (has_ended) return nullptr;
    some_operations(200);
    sem_post(&done);
  }
}

/// Runs the threads one turn at a time. The further it goes, the fewer of them get one: the others
/// are idle and live on.
template <class BetweenTurns>
void run_threads(int turns, BetweenTurns between_turns) {
  pthread_t threads[most_threads];
  pthread_attr_t small_stacks;  // libc keeps 40 MiB of stacks for the next threads, and frees what belongs to others
  pthread_attr_init(&small_stacks);
  pthread_attr_setstacksize(&small_stacks, 256 * 1024);
  has_ended = false;
  for (std::intptr_t i = 0; i < thread_count; ++i)
    must(pthread_create(&threads[i], &small_stacks, worker, reinterpret_cast<void*>(i)) == 0, "no thread");
  for (int t = 0; t < turns; ++t) {
    const int active = std::max(2, thread_count - thread_count * t / turns);
    sem_post(&turn[thread_count - 1 - static_cast<int>(random_below(static_cast<std::uint64_t>(active)))]);
    sem_wait(&done);
    between_turns();
  }
  has_ended = true;
  for (int i = 0; i < thread_count; ++i) {
    sem_post(&turn[i]);
    pthread_join(threads[i], nullptr);
  }
}

int differences = 0;
bool all_are_sampled = true;

void expect(const char* what, std::uint64_t is, std::uint64_t should_be) {
  if (is == should_be) return;
  std::fprintf(stderr, "model: %s: %llu counted, %llu expected\n", what, static_cast<unsigned long long>(is),
               static_cast<unsigned long long>(should_be));
  ++differences;
}

/// Whether, since `before`, what the probe has counted is what the model expects.
void compare(const figures& before, const figures& after) {
  const auto by = [](std::uint64_t a, std::uint64_t b) { return a - b; };
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const auto &is = after.classes[c], &was = before.classes[c], &should_be = the_model.expected.classes[c];
    expect("allocations of a class", by(is.allocations, was.allocations), should_be.allocations);
    expect("bytes requested of a class", by(is.requested_bytes, was.requested_bytes), should_be.requested_bytes);
    expect("bytes allocated of a class", by(is.allocated_bytes, was.allocated_bytes), should_be.allocated_bytes);
    expect("frees of a class", by(is.frees, was.frees), should_be.frees);
    expect("bytes freed of a class", by(is.freed_bytes, was.freed_bytes), should_be.freed_bytes);
  }
  expect("live bytes", by(after.live, before.live), static_cast<std::uint64_t>(the_model.live));
  expect("the sum over all threads", after.net(), after.live);
  const auto live = static_cast<std::uint64_t>(the_model.live);
  if (!all_are_sampled) return;
  expect("live bytes of the stacks", by(after.live_of_stacks, before.live_of_stacks), live);
  expect("live bytes of the samples", by(after.live_of_samples, before.live_of_samples), live);
  expect("live samples of the stacks", by(after.live_samples, before.live_samples),
         static_cast<std::uint64_t>(the_model.blocks));
}

/// What the segment of a child begins with.
figures only_live(const figures& f) {
  figures result = f;
  for (auto& c : result.classes) {
    const auto allocated = static_cast<double>(c.allocated_bytes);
    c.allocations -= c.frees;
    c.allocated_bytes -= c.freed_bytes;
    c.frees = c.freed_bytes = 0;
    // What was asked for of these is not counted: a share as of all.
    const double share = allocated > 0 ? static_cast<double>(c.allocated_bytes) / allocated : 0;
    c.requested_bytes = static_cast<std::uint64_t>(static_cast<double>(c.requested_bytes) * share);
  }
  return result;
}

void expect_within(const char* what, std::uint64_t is, std::int64_t true_peak, std::int64_t less, std::int64_t more) {
  const auto peak = static_cast<std::int64_t>(is);
  if (peak >= true_peak - less && peak <= true_peak + more) return;
  std::fprintf(stderr, "model: %s: %lld recorded, %lld was\n", what, static_cast<long long>(peak),
               static_cast<long long>(true_peak));
  ++differences;
}

/// How far a recorded peak may be from the true one: docs/live.md.
struct bounds {
  std::int64_t per_thread;    ///< either way, of the process; below, of a thread
  std::int64_t class_misses;  ///< below, of a size class. Above there is none.
};

void compare_peaks(const own_segment& segment, const figures& before, const figures& after, const bounds& b) {
  const std::int64_t of_process = b.per_thread * (thread_count + 1);
  expect_within("the peak", after.peak - before.live, the_model.peak, of_process, of_process);
  if (all_are_sampled)
    expect("live bytes of the stacks at the peak", after.at_peak_of_stacks - before.live_of_stacks,
           static_cast<std::uint64_t>(the_model.peak));
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const std::uint64_t was_live = before.classes[c].allocated_bytes - before.classes[c].freed_bytes;
    expect_within("the peak of a class", after.class_peak[c] - was_live, the_model.class_peak[c], b.class_misses, 0);
  }
  for (int i = 0; i < thread_count; ++i) {
    expect_within("the peak of a thread", segment.peak_of_thread(thread_models[i].id), thread_models[i].peak,
                  b.per_thread, 0);
  }
}

/// The peaks begin again from what is live. A block that is longer than any band makes the probe
/// look at the request.
void begin_peaks_again(const own_segment& segment) {
  segment.reset_peak();
  void* const seen = std::malloc(4 << 20);
  the_model.allocated(seen, 4 << 20);
  the_model.begin_peaks_again();
  for (thread_model& t : thread_models) t.peak = std::max<std::int64_t>(t.net, 0);
  the_model.freeing(malloc_usable_size(seen));
  std::free(seen);
}

void change_interval(const own_segment& segment) {
  constexpr std::uint64_t some_intervals[]{1, 512 * 1024, 0, 4096};
  segment.header().interval.store(some_intervals[random_below(std::size(some_intervals))]);
}

}  // namespace

int main(int argc, char** argv) {
  state = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  if (argc > 2) thread_count = std::atoi(argv[2]);
  must(thread_count >= 2 && thread_count <= most_threads, "too few or too many threads");
  const std::string_view intervals = argc > 3 ? argv[3] : "one";
  all_are_sampled = intervals == "one";
  for (auto& s : turn) sem_init(&s, 0, 0);
  sem_init(&done, 0, 0);
  std::fprintf(stderr, "%s", "");  // stderr has what it needs
  run_threads(0, [] {});           // libc keeps what threads need

  own_segment segment;
  some_operations(1000);
  const figures before = segment.read();
  the_model = {};
  begin_peaks_again(segment);
  run_threads(100 + 10 * thread_count, [&] {
    if (intervals == "changing" && random_below(10) == 0) change_interval(segment);
    if (random_below(50) == 0) begin_peaks_again(segment);
  });
  some_operations(1000);
  const figures after = segment.read();
  compare(before, after);
  // A thread may have allocated some intervals' bytes since it looked at its classes, with an
  // interval of 0 a MiB.
  const std::int64_t grain = 16 * 1024, unseen = 4 << 20;
  compare_peaks(segment, before, after, all_are_sampled ? bounds{0, 0} : bounds{grain, unseen * thread_count});

  // A child goes on from what is live, in a segment of its own, and the parent's does not change by
  // it.
  const figures at_fork = only_live(after);
  const pid_t child = ::fork();
  must(child >= 0, "no fork");
  if (child == 0) {
    differences = 0;
    the_model = {};
    some_operations(3000);
    own_segment childs;
    compare(at_fork, childs.read());
    expect("the parent", childs.forked_from(), static_cast<std::uint64_t>(::getppid()));
    std::_Exit(differences == 0 ? 0 : 1);
  }
  int status = 0;
  must(::waitpid(child, &status, 0) == child, "no child");
  expect("status of the child", static_cast<std::uint64_t>(status), 0);
  compare(before, segment.read());
  return differences == 0 ? 0 : 1;
}
