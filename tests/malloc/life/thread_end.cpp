// Threads allocate and free to their very end: in destructors of thread_local objects, and in those
// of pthread keys, which run in several rounds and partly after our own. Blocks that such a
// destructor made are freed by another thread.
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <pthread.h>

#include "../support/opaque.h"
#include "../support/pattern.h"
#include "../support/require.h"
#include "../support/resident.h"

namespace {

constexpr int key_count = 12;
pthread_key_t keys[key_count];
std::atomic<int> rounds{0};
std::atomic<void*> left_behind{nullptr};

void use_malloc(std::uint64_t seed) {
  void* blocks[30];
  for (std::size_t i = 0; i < 30; ++i) pattern_fill(blocks[i] = opaque(std::malloc(i * 40)), i * 40, seed + i, 0);
  for (std::size_t i = 0; i < 30; ++i) {
    REQUIRE(pattern_holds(blocks[i], i * 40, seed + i));
    blocks[i] = std::realloc(blocks[i], i * 60 + 1);
    REQUIRE(pattern_holds(blocks[i], i * 40, seed + i));
    std::free(blocks[i]);
  }
  void* const large = opaque(std::calloc(1, 40'000));
  REQUIRE(large != nullptr && all_zero(large, 40'000));
  std::free(large);
}

/// The value of a key is a block; its destructor frees it and, three times, sets another, so that
/// there is another round.
struct key_value {
  int key;
  int round;
};

void set_key(int key, int round) {
  auto* const value = static_cast<key_value*>(opaque(std::malloc(sizeof(key_value))));
  *value = {key, round};
  REQUIRE(pthread_setspecific(keys[key], value) == 0);
}

void end_key(void* p) {
  const key_value value = *static_cast<key_value*>(p);
  std::free(p);
  use_malloc(static_cast<std::uint64_t>(value.key));
  std::free(left_behind.exchange(opaque(std::malloc(1000))));
  ++rounds;
  if (value.round < 3) set_key(value.key, value.round + 1);
}

struct at_thread_end {
  std::string text = std::string(500, 'x');
  std::vector<int> numbers = std::vector<int>(1000, 7);
  ~at_thread_end() {
    REQUIRE(text.size() == 500 && numbers.back() == 7);
    use_malloc(99);
    for (int i = 0; i < key_count; i += 2) {
      if (pthread_getspecific(keys[i]) == nullptr) set_key(i, 2);
    }
  }
};

void* live(void*) {
  thread_local at_thread_end object;
  REQUIRE(object.text.size() == 500);
  for (int i = 1; i < key_count; i += 2) set_key(i, 1);
  use_malloc(1);
  return nullptr;
}

/// Does not use malloc at all before its destructors do.
void* live_late(void*) {
  static char value[sizeof(key_value)];
  *reinterpret_cast<key_value*>(value) = {0, 3};
  REQUIRE(pthread_setspecific(keys[0], std::malloc(sizeof(key_value))) == 0);
  *static_cast<key_value*>(pthread_getspecific(keys[0])) = {0, 1};
  return nullptr;
}

void run_threads(int n) {
  for (int i = 0; i < n; ++i) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, nullptr, i % 3 == 2 ? live_late : live, nullptr) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
  }
}

}  // namespace

int main() {
  // Half of the keys come before ours (which is made with the first block of a thread), if malloc
  // has not been used by then.
  for (pthread_key_t& key : keys) REQUIRE(pthread_key_create(&key, end_key) == 0);
  run_threads(150);
  const std::size_t warm = resident_bytes();
  run_threads(600);
  REQUIRE(resident_bytes() < warm + (2U << 20) && "threads that end leave memory behind");
  REQUIRE(rounds > 1500);
  std::free(left_behind);
}
