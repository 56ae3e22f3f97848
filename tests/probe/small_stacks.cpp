// Programs give coroutines, signal handlers and threads as little stack as they need themselves:
// malloc and free, sampled or not, must do with that. Behind each such stack is memory that cannot
// be touched.
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096;

/// A stack of so many bytes, whole pages.
void* stack_of(std::size_t bytes) {
  auto* const p = static_cast<std::byte*>(
      ::mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (p == MAP_FAILED || ::mprotect(p, page, PROT_NONE) != 0) std::abort();
  return p + page;
}

[[gnu::noinline]] void use_malloc() {
  for (const std::size_t size : {24U, 3'000U, 70'000U, 3'000'000U}) {
    void* volatile p = std::malloc(size);
    p = std::realloc(p, size + 100);
    std::free(p);
  }
}

ucontext_t main_context;

void run_coroutines() {
  constexpr std::size_t bytes = 4096;
  for (int i = 0; i < 50; ++i) {
    ucontext_t coroutine;
    ::getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack_of(bytes);
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &main_context;
    ::makecontext(&coroutine, use_malloc, 0);
    ::swapcontext(&main_context, &coroutine);
  }
}

void run_in_handlers() {
  // What the processor's state takes there, and a page.
  const std::size_t bytes = (static_cast<std::size_t>(::sysconf(_SC_MINSIGSTKSZ)) + 2 * page - 1) / page * page;
  stack_t other{};
  other.ss_sp = stack_of(bytes);
  other.ss_size = bytes;
  struct sigaction action {};
  action.sa_handler = [](int) { use_malloc(); };
  action.sa_flags = SA_ONSTACK;
  if (::sigaltstack(&other, nullptr) != 0 || ::sigaction(SIGUSR1, &action, nullptr) != 0) std::abort();
  for (int i = 0; i < 50; ++i) ::raise(SIGUSR1);
}

/// More threads than the probe keeps figures of, so that some take over those of others.
void run_threads() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 16'384);
  for (int i = 0; i < 200; ++i) {
    pthread_t thread{};
    const auto work = [](void*) -> void* {
      std::array<volatile char, 8'000> own{};
      use_malloc();
      own[0] = 1;
      return nullptr;
    };
    if (::pthread_create(&thread, &attributes, work, nullptr) != 0) std::abort();
    ::pthread_join(thread, nullptr);
  }
}

}  // namespace

int main() {
  run_coroutines();
  run_in_handlers();
  run_threads();
  std::puts("done");
}
