// What callgrind counts: `pairs WHAT N` does WHAT N times and nothing else that depends on N.
// script/instructions runs it.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int batch_size = 1000;

void pair(long n) {
  for (long i = 0; i < n; ++i) std::free(std::malloc(64));
}

void mixed(long n) {
  static std::size_t sizes[256];
  for (std::size_t i = 0; i < 256; ++i) sizes[i] = 32 + i * 48 % 225;
  for (long i = 0; i < n; ++i) std::free(std::malloc(sizes[i % 256]));
}

void batch(long n) {
  void* held[batch_size];
  for (long done = 0; done < n; done += batch_size) {
    for (void*& p : held) p = std::malloc(64);
    for (void* p : held) std::free(p);
  }
}

void shuffled(long n) {
  static void* held[batch_size];
  static void** order[batch_size];
  for (int i = 0; i < batch_size; ++i) order[i] = &held[i * 7919 % batch_size];
  for (long done = 0; done < n; done += batch_size) {
    for (void*& p : held) p = std::malloc(64);
    for (void** p : order) std::free(*p);
  }
}

void sized(long n) {
  for (long i = 0; i < n; ++i) ::operator delete(::operator new(64), 64);
}

void zeroed(long n) {
  for (long i = 0; i < n; ++i) std::free(std::calloc(1, 64));
}

/// A text of 4 KB made of 64 pieces: 64 reallocs and a free.
void growth(long n) {
  for (long i = 0; i < n; i += 64) {
    void* text = nullptr;
    for (std::size_t size = 64; size <= 4096; size += 64) text = std::realloc(text, size);
    std::free(text);
  }
}

/// The same as batch, while a hundred other threads live that have allocated and freed too.
void crowded(long n) {
  std::latch all_are_here(101), the_end(1);
  std::vector<std::jthread> others;
  for (int t = 0; t < 100; ++t) {
    others.emplace_back([&] {
      batch(batch_size);
      all_are_here.count_down();
      the_end.wait();
    });
  }
  all_are_here.arrive_and_wait();
  batch(n);
  the_end.count_down();
}

struct kind {
  std::string_view name;
  void (*run)(long);
};
constexpr std::array all = {kind{"pair", pair},         kind{"mixed", mixed},    kind{"batch", batch},
                            kind{"shuffled", shuffled}, kind{"sized", sized},    kind{"calloc", zeroed},
                            kind{"growth", growth},     kind{"crowded", crowded}};

}  // namespace

int main(int argc, char** argv) {
  for (const kind& k : all) {
    if (argc == 3 && k.name == argv[1]) {
      k.run(std::atol(argv[2]));
      return 0;
    }
  }
  std::fprintf(stderr, "usage: pairs pair|mixed|batch|shuffled|sized|calloc|growth|crowded N\n");
  return 2;
}
