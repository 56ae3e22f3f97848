// `recipes_bench ROW [own]` does one of four measurements once, in a process that has done nothing
// before, and prints one line of JSON. Times are in nanoseconds per block. `own`: with a heap of
// one's own for one thread instead of malloc, where the row is for one thread.
//
//   locality   1,024,000 blocks of 32 bytes; the processor's caches emptied; written and read: only
//              that is timed
//   local      37 sizes from 8 to 2048 bytes, 1000 blocks of each, mixed: allocated, written,
//              verified (not timed), freed, half in order and half in reverse. Told with the writes
//              and without: a malloc that leaves first touches to the program is charged for them
//              in the writes only
//   threads    4 threads, 50 times 8142 blocks of 16 to 2048 bytes each, written and read whole,
//              freed by the next thread
//   memory     the same with 16 threads and 25 times; what is resident and mapped when all is free
//              and all threads are gone
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <heapwright/heap.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

double nanoseconds(clock_type::time_point since) {
  return std::chrono::duration<double, std::nano>(clock_type::now() - since).count();
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "recipes_bench: %s\n", what);
  std::exit(1);
}

struct by_malloc {
  void* allocate(std::size_t size) { return std::malloc(size); }
  void deallocate(void* p) { std::free(p); }
};

constexpr heapwright::recipe one_thread_ahead{
    .concurrency = heapwright::concurrency_mode::single_threaded,
    .pages = {.growth = 64 * heapwright::MiB,
              .give_back = heapwright::give_back_policy::when_asked,
              .huge = heapwright::huge_page_use::transparent,
              .prefault = true},
};

void flush(const void* p) {
#if defined(__x86_64__)
  _mm_clflush(p);
#else
  (void)p;
#endif
}

/// Not inlined: `script/bench recipes --misses` asks cachegrind what it costs.
[[gnu::noinline]] std::uint64_t write_and_read(const std::vector<std::uint64_t*>& objects, std::size_t size) {
  for (std::size_t i = 0; i < objects.size(); ++i) std::fill_n(objects[i], size / 8, i);
  std::uint64_t sum = 0;
  for (const auto* object : objects) sum += object[0] + object[1] + object[2] + object[3];
  return sum;
}

template <class Memory>
void locality(Memory& memory) {
  constexpr std::size_t count = 1'024'000, size = 32;
  std::vector<std::uint64_t*> objects(count);
  for (auto& object : objects) object = static_cast<std::uint64_t*>(memory.allocate(size));
  for (const auto* object : objects) {
    flush(object);
    flush(reinterpret_cast<const char*>(object) + size - 1);
  }
#if defined(__x86_64__)
  _mm_mfence();
#endif
  const auto begin = clock_type::now();
  const std::uint64_t sum = write_and_read(objects, size);
  const double time = nanoseconds(begin);
  must(sum == std::uint64_t{4} * count * (count - 1) / 2, "what was written was not read");
  for (auto* object : objects) memory.deallocate(object);
  std::printf("{\"ns\": %.3f}\n", time / count);
}

template <class Memory>
void local(Memory& memory) {
  constexpr std::array<std::size_t, 37> sizes{8,   16,  24,  32,   40,   48,   56,   64,   80,   96,   112, 128, 144,
                                              160, 192, 224, 256,  288,  320,  384,  448,  512,  576,  640, 704, 768,
                                              832, 896, 960, 1024, 1152, 1280, 1408, 1536, 1664, 1792, 2048};
  constexpr std::size_t each = 1000, count = sizes.size() * each;
  std::vector<std::pair<unsigned char*, std::size_t>> blocks(count);
  for (std::size_t i = 0; i < count; ++i) blocks[i].second = sizes[i * 17 % sizes.size()];
  const auto begin = clock_type::now();
  for (auto& [p, size] : blocks) p = static_cast<unsigned char*>(memory.allocate(size));
  const double allocating = nanoseconds(begin);
  const auto writing_since = clock_type::now();
  for (std::size_t i = 0; i < count; ++i) std::memset(blocks[i].first, static_cast<int>(i), blocks[i].second);
  const double writing = nanoseconds(writing_since);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [p, size] = blocks[i];
    must(p[0] == static_cast<unsigned char>(i) && std::memcmp(p, p + 1, size - 1) == 0, "a block was overwritten");
  }
  const auto freeing_since = clock_type::now();
  for (std::size_t i = 0; i < count / 2; ++i) memory.deallocate(blocks[i].first);
  for (std::size_t i = count; i-- > count / 2;) memory.deallocate(blocks[i].first);
  const double freeing = nanoseconds(freeing_since);
  std::printf("{\"ns\": %.3f, \"unwritten_ns\": %.3f, \"allocate_ns\": %.3f, \"write_ns\": %.3f, \"free_ns\": %.3f}\n",
              (allocating + writing + freeing) / count, (allocating + freeing) / count, allocating / count,
              writing / count, freeing / count);
}

/// Where one thread leaves blocks for the next.
class hatch {
 public:
  void put(std::vector<unsigned char*>&& blocks) {
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return empty_; });
    blocks_.swap(blocks);
    empty_ = false;
    changed_.notify_all();
  }

  void take(std::vector<unsigned char*>& blocks) {
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return !empty_; });
    blocks_.swap(blocks);
    empty_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<unsigned char*> blocks_;
  bool empty_ = true;
};

constexpr std::array<std::pair<std::size_t, std::size_t>, 8> lot{
    {{4089, 16}, {2044, 32}, {1022, 64}, {511, 128}, {255, 256}, {127, 512}, {63, 1024}, {31, 2048}}};
constexpr std::size_t lot_blocks = 8142;

void make_and_pass_on(hatch& mine, hatch& previous, int times) {
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < times; ++i) {
    blocks.clear();
    blocks.reserve(lot_blocks);
    for (const auto& [count, size] : lot) {
      for (std::size_t k = 0; k < count; ++k) {
        auto* const p = static_cast<unsigned char*>(std::malloc(size));
        std::memset(p, static_cast<int>(k), size);
        must(p[0] == static_cast<unsigned char>(k) && std::memcmp(p, p + 1, size - 1) == 0, "a block was overwritten");
        blocks.push_back(p);
      }
    }
    mine.put(std::move(blocks));
    previous.take(blocks);
    for (auto* p : blocks) std::free(p);
  }
}

double on_threads(unsigned n, int times) {
  std::vector<hatch> hatches(n);
  std::vector<std::thread> threads;
  const auto begin = clock_type::now();
  for (unsigned t = 0; t < n; ++t)
    threads.emplace_back([&, t] { make_and_pass_on(hatches[t], hatches[(t + n - 1) % n], times); });
  for (auto& t : threads) t.join();
  return nanoseconds(begin);
}

void memory_after() {
  (void)on_threads(16, 25);
  long pages = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  must(file != nullptr && std::fscanf(file, "%ld %ld", &pages, &resident) == 2, "/proc/self/statm cannot be read");
  std::printf("{\"resident_bytes\": %ld, \"virtual_bytes\": %ld}\n", resident * ::sysconf(_SC_PAGESIZE),
              pages * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view row = argc > 1 ? argv[1] : "";
  const bool own = argc > 2 && std::string_view(argv[2]) == "own";
  by_malloc by_process;
  heapwright::heap<one_thread_ahead> by_own("one thread's");
  if (own)
    by_own.deallocate(
        by_own.allocate(1));  // it has its memory from now on, as a malloc has from the start of the process
  if (row == "locality") {
    own ? locality(by_own) : locality(by_process);
  } else if (row == "local") {
    own ? local(by_own) : local(by_process);
  } else if (row == "threads") {
    std::printf("{\"ns\": %.3f}\n", on_threads(4, 50) / (4 * 50 * lot_blocks));
  } else if (row == "memory") {
    memory_after();
  } else {
    std::fprintf(stderr, "usage: recipes_bench locality|local|threads|memory [own]\n");
    return 2;
  }
}
