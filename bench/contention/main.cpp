// `contended KIND THREADS ROUNDS`: in each round each thread allocates and frees 1000 blocks, and
// nothing else that depends on ROUNDS but a barrier. run.py counts what the malloc does meanwhile.
//
//   own      each thread replaces blocks of its own
//   ring     each thread frees what the thread beside it has allocated
//   one      the first thread frees what all the others allocate
#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t blocks_per_round = 1000;
using blocks = std::vector<void*>;

/// Most blocks are short: 8 to 256 bytes, one in eight up to 4 KiB.
std::size_t size_of_block(std::minstd_rand& random) {
  const auto word = random();
  return word % 8 == 0 ? 256 + word / 8 % 3840 : 8 + word / 8 % 249;
}

void fill(blocks& b, std::minstd_rand& random) {
  for (void*& p : b) p = std::malloc(size_of_block(random));
}

void release(blocks& b) {
  for (void*& p : b) {
    std::free(p);
    p = nullptr;
  }
}

/// Whose blocks thread `t` of `n` frees.
struct own {
  static void free_round(std::vector<blocks>& all, std::size_t t) { release(all[t]); }
};
struct ring {
  static void free_round(std::vector<blocks>& all, std::size_t t) { release(all[(t + 1) % all.size()]); }
};
struct one {
  static void free_round(std::vector<blocks>& all, std::size_t t) {
    if (t != 0) return;
    for (blocks& b : all) release(b);
  }
};

template <class Kind>
void run(std::size_t threads, long rounds) {
  std::vector<blocks> all(threads, blocks(blocks_per_round));
  std::barrier<> step(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      for (long r = 0; r < rounds; ++r) {
        fill(all[t], random);
        step.arrive_and_wait();
        Kind::free_round(all, t);
        step.arrive_and_wait();
      }
    });
  }
}

struct kind {
  std::string_view name;
  void (*run)(std::size_t, long);
};
constexpr std::array kinds = {kind{"own", run<own>}, kind{"ring", run<ring>}, kind{"one", run<one>}};

}  // namespace

int main(int argc, char** argv) {
  for (const kind& k : kinds) {
    if (argc == 4 && k.name == argv[1]) {
      k.run(std::strtoul(argv[2], nullptr, 10), std::atol(argv[3]));
      return 0;
    }
  }
  std::fprintf(stderr, "usage: contended own|ring|one THREADS ROUNDS\n");
  return 2;
}
