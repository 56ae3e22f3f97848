// Whether the probe's call stacks are those that libc's backtrace tells, which goes by the same
// tables but not by the same code: for frames of every shape. Runs under the probe with an interval
// of 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <alloca.h>
#include <execinfo.h>

#include "own_segment.hpp"

namespace {

using namespace heapwright::segment;

constexpr int most = 120;

struct expected_stack {
  const char* shape;
  std::size_t size;
  void* block;
  void* addresses[most];
  int depth;
  bool libc_gives_up = false;  ///< the outermost that it has seen is of code without tables
};

std::vector<expected_stack>& expected() {
  static std::vector<expected_stack> all;
  return all;
}

/// A block of its own size, and the stack that led to it.
[[gnu::noinline]] void allocate_here(const char* shape, bool libc_gives_up = false) {
  static std::size_t size = 100'000;
  expected_stack e{};
  e.shape = shape;
  e.size = size += 16;
  e.block = std::malloc(e.size);
  e.depth = ::backtrace(e.addresses, most);
  e.libc_gives_up = libc_gives_up;
  expected().push_back(e);
}

[[gnu::noinline]] void plain() {
  allocate_here("plain");
  asm volatile("");
}

[[gnu::noinline]] void recursive(int n) {
  if (n == 0) {
    allocate_here("recursive");
  } else {
    recursive(n - 1);
  }
  asm volatile("");
}

[[gnu::noinline]] void with_alloca(std::size_t n) {
  auto* const p = static_cast<char*>(alloca(n));
  std::memset(p, 1, n);
  allocate_here("alloca");
  asm volatile("" : : "r"(p) : "memory");
}

template <class Then>
[[gnu::noinline]] void with_room(std::size_t n, const Then& then) {
  auto* const p = static_cast<char*>(alloca(n));
  std::memset(p, 1, n);
  then();
  asm volatile("" : : "r"(p) : "memory");
}

[[gnu::noinline]] void with_aligned_stack() {
  alignas(256) char room[512];
  std::memset(room, 1, sizeof room);
  asm volatile("" : : "r"(room) : "memory");
  allocate_here("aligned stack");
  asm volatile("" : : "r"(room) : "memory");
}

[[gnu::noinline]] void with_both(std::size_t n) {
  alignas(128) char room[256];
  auto* const p = static_cast<char*>(alloca(n));
  asm volatile("" : : "r"(room), "r"(p) : "memory");
  allocate_here("aligned stack and alloca");
  asm volatile("" : : "r"(room), "r"(p) : "memory");
}

int compare_and_allocate(const void* a, const void* b) {
  static bool is_first = true;
  if (is_first) allocate_here("called back by qsort");
  is_first = false;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

[[gnu::noinline]] void through_libc() {
  int numbers[] = {3, 1, 2};
  std::qsort(numbers, 3, sizeof numbers[0], compare_and_allocate);
}

[[gnu::noinline]] void through_a_catch() {
  try {
    recursive(3);
    throw 1;
  } catch (int) {
    allocate_here("in a catch");
  }
}

#ifdef __x86_64__
/// Code in a file of which no table knows, but which keeps frame pointers, as V8's and Go's: libc
/// ends there.
extern "C" [[gnu::used]] void called_by_code_without_tables() {
  allocate_here("code without tables", true);
  asm volatile("");
}
asm(R"(
  .pushsection .text
  .type code_without_tables, @function
code_without_tables:
  push %rbp
  mov %rsp, %rbp
  call called_by_code_without_tables@PLT
  pop %rbp
  ret
  .size code_without_tables, . - code_without_tables
  .popsection
)");
extern "C" void code_without_tables();
#else
void code_without_tables() {}
#endif

[[gnu::noinline]] void through_code_without_tables() {
  code_without_tables();
  asm volatile("");
}

/// Ways to the same few calls of malloc that differ at their inner end, at their outer end, in
/// between, or only in how large a frame is.
[[gnu::noinline]] void wander(unsigned way, int n) {
  if (n == 0) {
    if (way % 2 == 0) return allocate_here("wandering");
    with_aligned_stack();
  } else if (way % 4 == 1) {
    with_room(1 + way / 4 % 3 * 100, [=] { wander(way / 4, n - 1); });
  } else if (way % 4 == 2) {
    wander(way / 4, n - 1);
  } else if (way % 4 == 3) {
    wander(way / 4, n - 1);
    asm volatile("");
  } else {
    way / 4 % 2 == 0 ? plain() : recursive(2);
  }
  asm volatile("");
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Whether samples have the time that the kernel has, over a time in which the probe's own clock
/// begins and goes on.
bool have_right_times(const probe_test::own_segment& segment) {
  bool all_right = true;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t before = monotonic_ns();
    void* const block = std::malloc(77);
    const std::uint64_t after = monotonic_ns();
    const sample* const s = segment.sample_of(block);
    constexpr std::uint64_t believable = 100'000;
    if (s == nullptr || s->at_ns + believable < before || s->at_ns > after + believable) {
      std::fprintf(stderr, "call_stacks: at %lu, and not between %lu and %lu\n", s == nullptr ? 0 : s->at_ns.load(),
                   before, after);
      all_right = false;
    }
    ::usleep(1000);
  }
  return all_right;
}

bool is_right(const expected_stack& e, const stack* s) {
  if (s == nullptr) {
    std::fprintf(stderr, "call_stacks: %s: not sampled\n", e.shape);
    return false;
  }
  const auto* const addresses = reinterpret_cast<const std::uint64_t*>(s + 1);
  const auto depth = static_cast<std::size_t>(e.depth);
  // The innermost frame is allocate_here, where it calls malloc and where it calls backtrace.
  const expected_stack& first = expected().front();  // of main, too
  bool same = e.libc_gives_up
                  ? s->depth > depth &&
                        addresses[s->depth - 1] == reinterpret_cast<std::uintptr_t>(first.addresses[first.depth - 1])
                  : s->depth == depth;
  for (std::size_t i = 1; same && i < depth; ++i)
    same = addresses[i] == reinterpret_cast<std::uintptr_t>(e.addresses[i]);
  if (same) return true;
  std::fprintf(stderr, "call_stacks: %s: %u frames, libc says %zu\n", e.shape, s->depth, depth);
  for (std::size_t i = 0; i < std::max<std::size_t>(s->depth, depth); ++i) {
    std::fprintf(stderr, "  %16lx %16lx\n", i < s->depth ? addresses[i] : 0,
                 i < depth ? reinterpret_cast<std::uintptr_t>(e.addresses[i]) : 0);
  }
  return false;
}

}  // namespace

int main() {
  void* ignored[2];
  (void)::backtrace(ignored, 2);  // loads what it needs
  expected().reserve(3000);
  plain();
  for (int depth : {1, 20, 5, 6, 5, 80}) recursive(depth);
  with_alloca(100);
  with_alloca(10'000);
  with_aligned_stack();
  with_both(777);
  with_both(7);
  through_libc();
  through_a_catch();
  through_code_without_tables();
  std::function<void()> f = [] { plain(); };
  f();
  std::thread([] {
    recursive(4);
    with_both(77);
  }).join();
  plain();
  for (unsigned i = 0; i < 2000; ++i) wander(i % 5 == 0 ? i % 37 : i * 2654435761U >> 20, static_cast<int>(i % 7));

  const probe_test::own_segment segment;
  bool all_right = have_right_times(segment);
  for (const auto& e : expected()) all_right &= is_right(e, segment.stack_of(e.block));
  return all_right ? 0 : 1;
}
