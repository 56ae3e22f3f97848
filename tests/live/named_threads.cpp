// A program whose threads have names. It does what lines on stdin say, and answers each with a line
// of JSON: what is live by the name of the threads that have allocated it. Of the main thread's
// blocks only those are in it that `blocks` has.
//
//   pools    three threads io-1, io-2, io-3 and two work-1, work-2; each names itself after its
//            first block
//   cross    main and a thread free blocks of pools, and the thread one of main's
//   ended    200 threads, one after the other, with six names. Each frees a block of the thread
//            whose slot of the probe it has got
//   renamed  a thread that takes two other names, and goes on in the same place
//   tables   a std::map in main
//   markup   a thread whose name looks like the end of a script
//   cut      a thread with a name of eight letters of two bytes each, of which Linux keeps 15
//            bytes; it is not in the answer
//   fork     a child that names itself "child", allocates a block, and frees one of io-1; it ends
//            with its parent
//   many     300 threads with 300 names
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

constexpr std::size_t block_bytes = 100'000;

using name = std::array<char, 16>;

struct block {
  void* at = nullptr;
  name allocated_by{};
};

std::array<block, 1'000> blocks;
std::size_t used = 0;

[[gnu::noinline]] block& keep_block() {
  block& b = blocks.at(used++);
  prctl(PR_GET_NAME, b.allocated_by.data());
  b.at = std::malloc(block_bytes);
  if (b.at == nullptr) std::abort();
  return b;
}

void free_block(block& b) { std::free(std::exchange(b.at, nullptr)); }

block& live_block_of(const char* thread) {
  for (block& b : blocks)
    if (b.at != nullptr && std::string_view(b.allocated_by.data()) == thread) return b;
  std::abort();
}

void call_this_thread(const std::string& as) { prctl(PR_SET_NAME, as.c_str()); }

/// Nothing else of this program runs meanwhile.
template <class Work>
void in_a_thread(Work work) {
  std::thread(work).join();
}

void run_pools() {
  for (const char* const thread : {"io-1", "io-2", "io-3", "work-1", "work-2"})
    in_a_thread([thread] {
      keep_block();
      call_this_thread(thread);
      for (int i = 0; i < 10; ++i) keep_block();
    });
}

void free_blocks_of_others() {
  keep_block();
  free_block(live_block_of("io-1"));
  in_a_thread([] {
    call_this_thread("work-2");
    free_block(live_block_of("io-2"));
    free_block(live_block_of("work-1"));
    free_block(live_block_of("named_threads"));
  });
}

void take_over_slots() {
  // As many that have ended have slots of their own; see probe/thread_slots.hpp.
  constexpr std::size_t kept = 64;
  std::array<block*, 200> kept_by{};
  for (std::size_t i = 0; i < kept_by.size(); ++i)
    in_a_thread([&, i] {
      call_this_thread("ended-" + std::to_string(i % 6));
      kept_by[i] = &keep_block();
      if (i > kept) free_block(*kept_by[i - kept - 1]);
    });
}

void run_renamed() {
  in_a_thread([] {
    call_this_thread("before");
    for (int i = 0; i < 70; ++i) keep_block();
    call_this_thread("after");
    for (int i = 0; i < 3; ++i) keep_block();
    pthread_setname_np(pthread_self(), "at last");
    for (int i = 0; i < 3; ++i) keep_block();
  });
}

std::map<int, std::string> table;

[[gnu::noinline]] void fill_table() {
  for (int i = 0; i < 1'000; ++i) table[i] = std::string(100, 'x');
}

void fork_child() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  const pid_t parent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    call_this_thread("child");
    keep_block();
    free_block(live_block_of("io-1"));
    if (getppid() != parent || write(ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char done = 0;
  if (read(ends[0], &done, 1) != 1) std::abort();
}

void name_many() {
  for (int i = 0; i < 300; ++i)
    in_a_thread([i] {
      call_this_thread("many-" + std::to_string(i));
      keep_block();
    });
}

std::string live_by_name() {
  std::map<std::string, std::size_t> live;
  for (const block& b : blocks)
    if (b.allocated_by[0] != '\0') live[b.allocated_by.data()] += b.at == nullptr ? 0 : malloc_usable_size(b.at);
  std::string text = "{";
  for (const auto& [thread, bytes] : live)
    text += (text.size() > 1 ? ", \"" : "\"") + thread + "\": " + std::to_string(bytes);
  return text + "}";
}

}  // namespace

int main() {
  std::cout << live_by_name() << std::endl;
  for (std::string line; std::getline(std::cin, line); std::cout << live_by_name() << std::endl) {
    if (line == "pools") run_pools();
    if (line == "cross") free_blocks_of_others();
    if (line == "ended") take_over_slots();
    if (line == "renamed") run_renamed();
    if (line == "tables") fill_table();
    if (line == "markup")
      in_a_thread([] {
        call_this_thread("</script><b>x");
        keep_block();
      });
    if (line == "cut")
      in_a_thread([] {
        call_this_thread("\u0447\u0438\u0442\u0430\u0442\u0435\u043b\u044c");
        keep_block().allocated_by = {};
      });
    if (line == "fork") fork_child();
    if (line == "many") name_many();
  }
}
