// More threads at once than most programs have. With an interval of 1 the stack of each block is
// known; where there is no room for a thread's figures, as the segment was made with a limited
// address space, it says that samples were lost.
//
//   many_threads THREADS [MEBIBYTES]    of address space when the segment is made
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "own_segment.hpp"

namespace {

using heapwright::segment::size_scale;

constexpr std::size_t size = 5'500;  // libc and libstdc++ ask for nothing like it

pthread_barrier_t all_have, all_may_end;

void* keep_a_block(void*) {
  void* volatile p = std::malloc(size);
  ::pthread_barrier_wait(&all_have);
  ::pthread_barrier_wait(&all_may_end);
  std::free(p);
  return nullptr;
}

/// Of blocks of this size, by stack.
std::uint64_t live_in_stacks(const probe_test::own_segment& segment, std::size_t at_least) {
  using namespace heapwright::segment;
  std::uint64_t live = 0;
  for (std::uint64_t at = 0; at < segment.header().stacks_used;) {
    const auto& s = *reinterpret_cast<const stack*>(segment.base() + segment.header().stacks_at + at);
    const std::uint64_t blocks = (s.counters.allocations - s.counters.frees) / 1024;
    const std::uint64_t bytes = s.counters.allocated_bytes - s.counters.freed_bytes;
    if (blocks != 0 && bytes / blocks >= at_least && bytes / blocks < at_least + 100) live += blocks;
    at += stack_length(s.depth);
  }
  return live;
}

}  // namespace

int main(int count, char** arguments) {
  const auto threads = static_cast<unsigned>(std::atoi(arguments[1]));
  const bool is_limited = count > 2;
  if (is_limited && ::getenv("IS_LIMITED") == nullptr) {
    const rlimit limit{std::strtoull(arguments[2], nullptr, 10) << 20, RLIM_INFINITY};
    ::setenv("IS_LIMITED", "1", 1);
    if (::setrlimit(RLIMIT_AS, &limit) == 0) ::execv("/proc/self/exe", arguments);
    return 2;
  }
  // The segment is there by now. The limit is not to be in the way of the threads themselves.
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (is_limited && ::setrlimit(RLIMIT_AS, &none) != 0) return 2;
  ::pthread_barrier_init(&all_have, nullptr, threads + 1);
  ::pthread_barrier_init(&all_may_end, nullptr, threads + 1);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::max<std::size_t>(PTHREAD_STACK_MIN, 16'384));
  std::vector<pthread_t> all(threads);
  for (pthread_t& t : all) {
    if (::pthread_create(&t, &attributes, keep_a_block, nullptr) == 0) continue;
    std::fprintf(stderr, "many_threads: no thread %td\n", &t - all.data());
    return 2;
  }
  ::pthread_barrier_wait(&all_have);
  const probe_test::own_segment segment;
  const probe_test::figures f = segment.read();
  const auto& of_class = f.classes[size_scale::index(size)];
  const std::uint64_t known = live_in_stacks(segment, size), lost = segment.header().lost_samples;
  ::pthread_barrier_wait(&all_may_end);
  for (const pthread_t t : all) ::pthread_join(t, nullptr);
  std::printf("%lu blocks, %lu in stacks, %lu samples lost\n", of_class.allocations - of_class.frees, known, lost);
  if (of_class.allocations - of_class.frees != threads) return 1;
  if (is_limited) return known < threads && known + lost >= threads ? 0 : 1;
  return known == threads && lost == 0 ? 0 : 1;
}
