// Children that libc's handlers for forks are not told of: of _Fork, clone and the system call.
// Whatever they do with blocks of the parent's and their own, the parent's figures are its own, and
// each child has figures of its own, which begin with what was live.
//
//   untold_forks MOST_FOREIGN    calls of a child of the system call that may count as the parent's
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_segment.hpp"

extern "C" pid_t _Fork() noexcept;

namespace {

using heapwright::segment::size_scale;

constexpr std::size_t size = 5'500;  // libc and libstdc++ ask for nothing like it
constexpr std::uint64_t childs_blocks = 3'000, freed_by_child = 300;

std::array<void*, 1'000> kept{};
std::uint64_t allocated = 0, freed = 0;
std::uint64_t most_foreign = 0;

struct counts {
  std::uint64_t allocations = 0, frees = 0;
};

counts counts_of_class(const probe_test::own_segment& segment) {
  const unsigned c = size_scale::index(size);
  const probe_test::figures f = segment.read();
  return {f.classes[c].allocations, f.classes[c].frees};
}

bool is_about(std::uint64_t is, std::uint64_t should_be, std::uint64_t off) {
  return is + off >= should_be && is <= should_be + off;
}

void* allocate() {
  void* const p = std::malloc(size);
  if (p == nullptr) std::abort();
  return p;
}

/// Exit status: 0 where its figures are right.
int be_child(pid_t parent, std::uint64_t foreign) {
  for (std::uint64_t i = 0; i < childs_blocks; ++i) std::free(allocate());
  for (std::uint64_t i = 0; i < freed_by_child; ++i) std::free(kept[i]);
  const probe_test::own_segment segment;
  if (segment.forked_from() != static_cast<std::uint64_t>(parent)) return 3;
  const counts is = counts_of_class(segment);
  const std::uint64_t inherited = allocated - freed;
  // The parent goes on meanwhile, and has one block more now and then.
  const bool is_right = is_about(is.allocations, inherited + childs_blocks, foreign + 1) &&
                        is_about(is.frees, childs_blocks + freed_by_child, foreign);
  if (!is_right) std::fprintf(stderr, "untold_forks: child: %lu and %lu\n", is.allocations, is.frees);
  return is_right ? 0 : 4;
}

pid_t self;

int run_clone(void*) { return be_child(self, 0); }

pid_t begin(const char* how) {
  if (std::strcmp(how, "clone") == 0) {
    constexpr std::size_t bytes = 256 * 1024;
    auto* const stack =
        static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return ::clone(run_clone, stack + bytes, SIGCHLD, nullptr);
  }
  if (std::strcmp(how, "_Fork") == 0) {
    const pid_t child = ::_Fork();
    if (child == 0) ::_exit(be_child(self, 0));
    return child;
  }
  if (std::strcmp(how, "system call") == 0) {
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) std::exit(be_child(self, most_foreign));
    return child;
  }
  // A thread that ends in a child which has called no malloc.
  const pid_t child = ::fork();
  if (child == 0) ::pthread_exit(nullptr);
  return child;
}

bool is_own_slot_alive(const probe_test::own_segment& segment) {
  using namespace heapwright::segment;
  for (std::uint32_t i = 1; i < segment.header().thread_slots; ++i) {
    const auto& s =
        *reinterpret_cast<const thread_slot*>(segment.base() + segment.header().threads_at + i * thread_slot_bytes);
    if (s.thread_id == static_cast<std::uint32_t>(::gettid()))
      return s.state == static_cast<std::uint32_t>(slot_state::alive);
  }
  return false;
}

}  // namespace

int main(int, char** arguments) {
  most_foreign = std::strtoull(arguments[1], nullptr, 10);
  self = ::getpid();
  for (void*& p : kept) {
    p = allocate();
    ++allocated;
  }
  const probe_test::own_segment segment;
  std::uint64_t foreign = 0;
  for (int round = 0; round < 20; ++round) {
    for (const char* how : {"clone", "_Fork", "system call", "fork"}) {
      if (std::strcmp(how, "system call") == 0) foreign += most_foreign;
      const pid_t child = begin(how);
      for (int i = 0; i < 500; ++i) {  // while the child runs
        std::free(allocate());
        ++allocated, ++freed;
      }
      int status = 0;
      if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
        std::fprintf(stderr, "untold_forks: the child of %s has ended with status %x\n", how, status);
        return 1;
      }
      const counts is = counts_of_class(segment);
      if (!is_about(is.allocations, allocated, foreign) || !is_about(is.frees, freed, foreign) ||
          !is_own_slot_alive(segment)) {
        std::fprintf(stderr, "untold_forks: after %s %lu allocations and %lu frees, and not %lu and %lu\n", how,
                     is.allocations, is.frees, allocated, freed);
        return 1;
      }
    }
  }
}
