// Programs whose events are known: blocks of 777 bytes and their kin are theirs alone, as sizes
// 20,001, 20,002 and 70,000 to 79,999 are.
//   recorded kinds | buffers | handover BATCHES | exchange BLOCKS | fork | forks CHILDREN | daemon
//            | exec | endless | threads | signal
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void* volatile kept;  // so that the compiler leaves out no pair of malloc and free

void* block(std::size_t size) {
  void* const p = std::malloc(size);
  kept = p;
  return p;
}

void kinds() {
  void* const a = block(70'001);
  void* const b = std::calloc(2, 35'001);
  kept = b;
  void* const c = std::aligned_alloc(4096, 77'824);
  kept = c;
  void* d = ::operator new(70'004);
  d = (::operator delete(d), ::operator new(70'005, std::align_val_t(256)));
  void* const e = std::realloc(a, 70'006);
  void* const f = std::realloc(nullptr, 70'007);
  kept = std::realloc(f, 0);
  ::operator delete(d, std::align_val_t(256));
  std::free(b);
  std::free(c);
  std::free(e);
  block(70'008);  // is never freed
}

/// A buffer that is freed as soon as it was had, many times, and one that lives for a while.
void buffers() {
  for (int i = 0; i < 1000; ++i) std::free(block(20'001));
  void* const p = block(20'002);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::free(p);
}

/// Each of four threads frees what the next one has allocated, a batch at a time.
void handover(unsigned batches) {
  constexpr unsigned threads = 4;
  struct batch {
    void* blocks[100];
  };
  std::vector<std::atomic<batch*>> places(threads);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (unsigned i = 0; i < batches; ++i) {
        auto* const mine = new batch;
        for (void*& b : mine->blocks) b = std::malloc(777);
        while (places[t].load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
        places[t].store(mine, std::memory_order_release);
        batch* others = nullptr;
        while ((others = places[(t + 1) % threads].exchange(nullptr, std::memory_order_acq_rel)) == nullptr)
          std::this_thread::yield();
        for (void* const b : others->blocks) std::free(b);
        delete others;
      }
    });
  }
  for (std::thread& t : all) t.join();
}

/// Sixteen threads put so many blocks each into 512 places, and free what was there. Now and then
/// one rests between a free and the next allocation, which others meanwhile give the same address.
void exchange(unsigned blocks) {
  static std::array<std::atomic<void*>, 512> places{};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 16; ++t) {
    all.emplace_back([=] {
      unsigned chance = t + 1;
      for (unsigned i = 0; i < blocks; ++i) {
        chance = chance * 1103515245 + 12345;
        std::free(places[(chance >> 8) % places.size()].exchange(std::malloc(16 + (chance >> 16) % 500)));
        if (i % 500 == 0) usleep(2000);
      }
    });
  }
  for (std::thread& t : all) t.join();
}

void fork_and_free() {
  void* const first = block(70'001);
  void* const second = block(70'002);
  if (fork() == 0) {
    std::free(first);
    block(70'003);
    _exit(0);
  }
  std::free(second);
  wait(nullptr);
  std::free(first);
}

/// So many children, one after the other, from SIGUSR1 on.
void fork_often(unsigned children) {
  sigset_t begin;
  sigemptyset(&begin);
  sigaddset(&begin, SIGUSR1);
  sigprocmask(SIG_BLOCK, &begin, nullptr);
  std::printf("running\n");
  std::fflush(stdout);
  int came = 0;
  sigwait(&begin, &came);
  for (unsigned i = 0; i < children; ++i) {
    if (fork() == 0) {
      std::free(block(70'001));
      _exit(0);
    }
    wait(nullptr);
  }
}

/// The process that goes on is a grandchild, in a session of its own, with no descriptor of its
/// grandparent's.
void become_daemon() {
  block(70'001);
  if (fork() != 0) _exit(0);
  setsid();
  if (fork() != 0) _exit(0);
  for (int descriptor = 0; descriptor < 1024; ++descriptor) close(descriptor);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  block(70'002);
}

void* volatile by_handler;
void handle(int) { by_handler = std::malloc(70'002); }

/// A handler allocates, wherever it interrupts the program's own calls.
void interrupted() {
  std::signal(SIGALRM, handle);
  for (int i = 0; i < 2000; ++i) {
    std::free(block(777));
    std::raise(SIGALRM);
    std::free(by_handler);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "kinds") kinds();
  if (what == "buffers") buffers();
  if (what == "handover") handover(static_cast<unsigned>(std::atoi(argv[2])));
  if (what == "exchange") exchange(static_cast<unsigned>(std::atoi(argv[2])));
  if (what == "fork") fork_and_free();
  if (what == "forks") fork_often(static_cast<unsigned>(std::atoi(argv[2])));
  if (what == "daemon") become_daemon();
  if (what == "signal") interrupted();
  if (what == "threads") {
    for (int i = 0; i < 20; ++i) std::thread([] { std::free(block(777)); }).join();
  }
  if (what == "exec") {
    block(70'001);
    execl(argv[0], argv[0], "kinds", nullptr);
  }
  if (what == "endless") {
    for (int i = 0;; ++i) {
      std::free(block(777));
      if (i == 100'000) {
        std::printf("running\n");
        std::fflush(stdout);
      }
    }
  }
  return what == "kinds" ? 7 : 0;
}
