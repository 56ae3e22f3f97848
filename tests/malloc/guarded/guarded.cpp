// Mistakes with blocks that a malloc guards now and then (HEAPWRIGHT_GUARD_SAMPLE): each is made
// again and again, as a server makes it with each request, until one of the blocks is guarded.
//
//   guarded MISTAKE [THREADS]
//
// Exit code 3: none was found. 7: the program's own handler of faults was called.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/opaque.h"

namespace {

constexpr int requests = 200'000;

volatile char sink;

char* block_of(std::size_t n) { return static_cast<char*>(opaque(std::malloc(opaque_size(n)))); }
char* touched(char* p) { return static_cast<char*>(opaque(p)); }

using mistake = void (*)(std::size_t size);

void read_after_free(std::size_t size) {
  char* const p = block_of(size);
  std::free(p);
  sink = touched(p)[size / 2];
}

void write_after_free(std::size_t size) {
  char* const p = block_of(size);
  std::free(opaque(p));
  // What it was stays: without a guard the program goes on.
  volatile char* const at = touched(p) + size / 2;
  *at = *at;
}

void read_beyond(std::size_t size) {
  char* const p = block_of(size);
  sink = touched(p)[size + 4096];
  std::free(p);
}

void write_beyond(std::size_t size) {
  char* const p = block_of(size);
  const std::size_t usable = malloc_usable_size(p);
  volatile char* const at = touched(p) + usable;
  *at = static_cast<char>(*at +
                          (usable == size ? 1 : 0));  // of this size, a guarded block alone is as long as was asked for
  std::free(p);
}

void read_before(std::size_t size) {
  char* const p = block_of(size);
  sink = touched(p)[-4096];
  std::free(p);
}

/// Whether a block of 1001 or 300,001 bytes is guarded, and ends where its page ends, as three of
/// four do. A page between two that cannot be touched may be the heap's too, but no block of it
/// begins there.
bool is_guarded(char* p, std::size_t size) {
  const auto cannot_be_touched = [](char* at) { return access(at, F_OK) != 0 && errno == EFAULT; };
  constexpr std::uintptr_t begin = 4096 - 1008;
  char* const page = p - begin;
  return reinterpret_cast<std::uintptr_t>(p) % 4096 == begin && cannot_be_touched(page - 4096) &&
         cannot_be_touched(page + (begin + size + 4095) / 4096 * 4096);
}

void free_inside(std::size_t size) {
  char* const p = block_of(size);
  std::free(opaque(is_guarded(p, size) ? p + 1 : p));
}

void usable_size_of_freed(std::size_t size) {
  char* const p = block_of(size);
  const bool asks = is_guarded(p, size);
  std::free(opaque(p));
  if (asks) sink = static_cast<char>(malloc_usable_size(opaque(p)));
}

void free_twice(std::size_t size) {
  char* const p = block_of(size);
  const bool twice = is_guarded(p, size);
  std::free(opaque(p));
  if (twice) std::free(opaque(p));
}

void wrong_size(std::size_t size) {
  void* const p = opaque(::operator new(size));
  ::operator delete(p, is_guarded(static_cast<char*>(p), size) ? size + 1 : size);
}

void wrong_alignment(std::size_t size) {
  void* const p = opaque(::operator new(size, std::align_val_t{16}));
  ::operator delete(p, std::align_val_t{is_guarded(static_cast<char*>(p), size) ? 32U : 16U});
}

void wrong_function(std::size_t size) {
  void* const p = opaque(::operator new(size));
  is_guarded(static_cast<char*>(p), size) ? std::free(p) : ::operator delete(p);
}

/// What is right: in all ways that blocks come and go.
void nothing(std::size_t size) {
  static thread_local std::vector<char*> kept;
  char* p = block_of(size);
  std::memset(p, 1, malloc_usable_size(p));
  p = static_cast<char*>(std::realloc(p, size * 2));
  std::memset(p, 2, size * 2);
  void* aligned = nullptr;
  if (posix_memalign(&aligned, 256, size) != 0) std::abort();
  if (reinterpret_cast<std::size_t>(aligned) % 256 != 0) std::abort();
  auto* const zero = static_cast<char*>(std::calloc(1, size));
  for (std::size_t i = 0; i < size; ++i) {
    if (zero[i] != 0) std::abort();
  }
  std::free(zero);
  std::free(aligned);
  kept.push_back(p);
  if (kept.size() > 500) {
    for (char* k : kept) std::free(k);
    kept.clear();
  }
}

void own_handler(int) {
  constexpr char text[] = "the program's own handler\n";
  (void)!write(2, text, sizeof text - 1);
  _exit(7);
}

struct sigaction found;

/// Passes on to what was there before it, as crash reporters do.
void calling_handler(int signal, siginfo_t* info, void* context) {
  if ((found.sa_flags & SA_SIGINFO) != 0) return found.sa_sigaction(signal, info, context);
  _exit(9);
}

/// Puts back what was there before it and raises the signal again, as Python's faulthandler does.
void restoring_handler(int signal) {
  sigaction(signal, &found, nullptr);
  raise(signal);
}

sigjmp_buf after_fault;

void jumping_handler(int) { siglongjmp(after_fault, 1); }

/// Faults that the program survives, until a second one has been.
int jump() {
  static volatile int faults = 0;
  if (sigsetjmp(after_fault, 1) != 0) faults = faults + 1;
  if (faults == 2) return 0;
  for (int i = 0; i < requests; ++i) read_after_free(100);
  return 3;
}

int make(mistake m, int threads, std::size_t size) {
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (int i = 0; i < requests / threads; ++i) m(size);
    });
  for (std::thread& t : running) t.join();
  return m == nothing ? 0 : 3;
}

}  // namespace

/// Bytes of address space that this process has.
std::size_t address_space() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages * 4096;
}

/// Every allocation is a sample here. Freed ones keep their address space, until there is no other.
int without_memory() {
  constexpr std::size_t size = std::size_t{64} << 20;
  const rlimit limit{address_space() + 3 * size, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  for (int i = 0; i < 200; ++i) {
    std::vector<void*> blocks;
    blocks.reserve(8);
    while (void* const p = i % 2 == 0 ? std::malloc(size) : std::calloc(1, size)) blocks.push_back(p);
    if (blocks.empty()) return 2;
    void* const small = std::malloc(100);
    if (std::realloc(small, size) != nullptr) return 3;  // there was address space left
    for (void* p : blocks) std::free(p);
    void* const again = std::realloc(small, size);
    if (again == nullptr) return 4;
    std::free(again);
    ::operator delete(::operator new(size));
  }
  return 0;
}

int main(int count, char** arguments) {
  const std::string_view name = count > 1 ? arguments[1] : "";
  const int threads = count > 2 ? std::atoi(arguments[2]) : 1;
  if (name == "read_after_free") return make(read_after_free, threads, 100);
  if (name == "read_after_free_16") return make(read_after_free, threads, 16);
  if (name == "read_after_free_5000") return make(read_after_free, threads, 5000);
  if (name == "read_after_free_50000") return make(read_after_free, threads, 50'000);
  if (name == "write_after_free") return make(write_after_free, threads, 100);
  if (name == "read_beyond") return make(read_beyond, threads, 100);
  if (name == "write_beyond") return make(write_beyond, threads, 1001);
  if (name == "read_before") return make(read_before, threads, 3000);
  if (name == "free_inside") return make(free_inside, threads, 1001);
  if (name == "usable_size_of_freed") return make(usable_size_of_freed, threads, 1001);
  if (name == "free_twice") return make(free_twice, threads, 1001);
  if (name == "wrong_size") return make(wrong_size, threads, 1001);
  if (name == "wrong_size_300001") return make(wrong_size, threads, 300'001);
  if (name == "wrong_alignment") return make(wrong_alignment, threads, 1001);
  if (name == "wrong_function") return make(wrong_function, threads, 1001);
  if (name == "nothing") return make(nothing, threads, 101);
  if (name == "without_memory") return without_memory();
  if (name == "own_handler") {
    std::signal(SIGSEGV, own_handler);
    return make(read_after_free, threads, 100);
  }
  if (name == "calling_back") {
    struct sigaction own {};
    own.sa_sigaction = calling_handler;
    own.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &own, &found);
    return make(read_after_free, threads, 100);
  }
  if (name == "restoring" || name == "restoring_raised") {
    struct sigaction own {};
    own.sa_handler = restoring_handler;
    own.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &own, &found);
    if (name == "restoring") return make(read_after_free, threads, 100);
    for (int i = 0; i < 1000; ++i) nothing(101);  // until the library has put its own in front
    raise(SIGSEGV);
    return 3;
  }
  if (name == "raised") {
    raise(SIGSEGV);
    return 3;
  }
  if (name == "raised_and_ignored") {
    std::signal(SIGSEGV, SIG_IGN);
    for (int i = 0; i < 1000; ++i) nothing(101);
    raise(SIGSEGV);
    return 0;
  }
  if (name == "jumping") {
    std::signal(SIGSEGV, jumping_handler);
    return jump();
  }
  if (name == "in_child") {
    make(nothing, 2, 101);
    const pid_t child = fork();
    if (child == 0) _exit(make(read_after_free, 1, 100));
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 0 : 3;
  }
  return 2;
}
