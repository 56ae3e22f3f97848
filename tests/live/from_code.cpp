// Does what it is told on standard input, a line each, and answers with a line: what a program can
// tell the live view.
#include <heapwright/live.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heapwright/kit.hpp>

namespace live = heapwright::live;

namespace {

using metered_pool = heapwright::metered<heapwright::upstream_malloc, live::meter_report>;

/// Names of blocks: nothing is there, and nothing else is. With a tag, as some have it in the bits
/// that an address does not need.
const void* address(std::size_t i) { return reinterpret_cast<const void*>(0x5a00'1000'0000'0000 + i * 4096); }

[[gnu::noinline]] int remember_in_arena(std::size_t blocks, std::size_t bytes) {
  int counted = 0;
  for (std::size_t i = 0; i < blocks; ++i) counted += live::record_allocation(address(i), bytes) ? 1 : 0;
  return counted;
}

}  // namespace

int main() {
  std::vector<std::unique_ptr<metered_pool>> meters;
  std::vector<void*> blocks;
  for (std::string word; std::cin >> word;) {
    if (word == "start") {
      std::string host;
      unsigned port = 0;
      std::cin >> host >> port;
      const live::viewer v = live::start(host, static_cast<std::uint16_t>(port));
      std::cout << v.error << ' ' << v.url << std::endl;
    } else if (word == "timer") {
      struct sigaction nothing {};
      nothing.sa_handler = [](int) {};
      nothing.sa_flags = SA_RESTART;
      sigaction(SIGALRM, &nothing, nullptr);
      const itimerval often{{0, 2000}, {0, 2000}};
      std::cout << setitimer(ITIMER_REAL, &often, nullptr) << std::endl;
    } else if (word == "quiet") {
      std::cout << close(STDERR_FILENO) << std::endl;
    } else if (word == "malloc") {
      std::size_t many = 0, bytes = 0;
      std::cin >> many >> bytes;
      for (std::size_t i = 0; i < many; ++i) {
        void* volatile p = std::malloc(bytes);
        std::free(p);
      }
      std::cout << many << std::endl;
    } else if (word == "mark") {
      std::cin >> word;
      std::cout << live::mark(word.c_str()) << std::endl;
    } else if (word == "reset") {
      std::cout << live::reset() << std::endl;
    } else if (word == "allocate" || word == "free") {
      std::size_t many = 0, bytes = 0;
      std::cin >> many >> bytes;
      if (word == "free")
        for (std::size_t i = 0; i < many; ++i) live::record_free(address(i), bytes);
      std::cout << (word == "free" ? 0 : remember_in_arena(many, bytes)) << std::endl;
    } else if (word == "meter") {
      std::cin >> word;
      meters.push_back(std::make_unique<metered_pool>());
      std::cout << meters.back()->report().open(word.c_str()) << std::endl;
    } else if (word == "use") {
      std::size_t many = 0, bytes = 0;
      std::cin >> many >> bytes;
      for (std::size_t i = 0; i < many; ++i) blocks.push_back(meters.back()->allocate({bytes, 16}));
      std::cout << meters.back()->reading().in_use << std::endl;
    } else if (word == "unuse") {
      std::size_t bytes = 0;
      std::cin >> bytes;
      for (void* p : blocks) meters.back()->deallocate(p, {bytes, 16});
      blocks.clear();
      std::cout << meters.back()->reading().in_use << std::endl;
    } else if (word == "close") {
      meters.pop_back();
      std::cout << meters.size() << std::endl;
    } else if (word == "fork") {
      // The child's meters are its own: what it uses is not the parent's.
      const pid_t child = fork();
      if (child == 0) {
        void* const p = meters.back()->allocate({100, 16});
        const bool is_marked = live::mark("child");
        meters.back()->deallocate(p, {100, 16});
        _exit(p != nullptr && is_marked ? 0 : 1);
      }
      int status = -1;
      waitpid(child, &status, 0);
      std::cout << status << ' ' << child << std::endl;
    } else if (word == "children") {
      std::cout << (waitpid(-1, nullptr, WNOHANG) < 0 ? "none" : "some") << std::endl;
    } else {
      std::cout << "? " << word << std::endl;
    }
  }
}
