// Many threads on one heap: the thread that has a block writes and checks it, blocks travel
// between threads, threads end with blocks still out. ThreadSanitizer sees the heap's own accesses;
// overlap shows as a broken pattern without it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <heapwright/heap/heap_core.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

using OS = testing::fake_os<4 * KiB>;
constinit heap_core<default_recipe, OS> shared_heap;

struct parcel {
  std::uint32_t size;
  unsigned char pattern;
};

class worker {
 public:
  explicit worker(unsigned seed) : random_(seed) {}
  ~worker() { shared_heap.close_cache(cache_); }

  parcel* make() {
    const std::uint32_t r = static_cast<std::uint32_t>(random_());
    std::uint32_t size = sizeof(parcel) + r % (r % 100 == 0 ? 200'000 : r % 10 == 0 ? 5000 : 300);
    void* raw = nullptr;
    if (r % 17 == 0) {
      raw = shared_heap.allocate_aligned(*cache_, size, std::size_t{16} << (r % 6));
    } else {
      raw = cache_->pop(size);
      if (raw == nullptr) raw = shared_heap.allocate_slow(*cache_, size);
    }
    return fill(raw, size);
  }

  parcel* resize(parcel* p) {
    check(p);
    const std::uint32_t size = static_cast<std::uint32_t>(sizeof(parcel) + random_() % (2 * p->size));
    return fill(shared_heap.reallocate(*cache_, p, size), size);
  }

  void destroy(parcel* p) {
    check(p);
    std::memset(static_cast<void*>(p), 0xDD, sizeof *p);
    if (!cache_->push(p)) shared_heap.deallocate_slow(*cache_, p);
  }

  std::uint32_t pick(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }

 private:
  parcel* fill(void* raw, std::uint32_t size) {
    if (raw == nullptr) throw std::runtime_error("out of memory");
    const auto pattern = static_cast<unsigned char>(random_());
    std::memset(raw, pattern, size);
    auto* const p = static_cast<parcel*>(raw);
    *p = {size, pattern};
    return p;
  }

  static void check(const parcel* p) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(p);
    for (std::size_t i = sizeof(parcel); i < p->size; ++i) {
      if (bytes[i] != p->pattern) throw std::runtime_error("a block was written by somebody else");
    }
  }

  std::minstd_rand random_;
  heap_core<default_recipe, OS>::cache* cache_ = shared_heap.open_cache();
};

void exchange(unsigned threads, int steps) {
  std::mutex shelf_lock;
  std::vector<parcel*> shelf;
  std::atomic<int> failures{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      try {
        worker w(t + 1);
        std::vector<parcel*> mine;
        for (int i = 0; i < steps; ++i) {
          switch (w.pick(8)) {
            case 0:
            case 1:
            case 2: mine.push_back(w.make()); break;
            case 3:
            case 4:
              if (!mine.empty()) {
                std::swap(mine[w.pick(mine.size())], mine.back());
                w.destroy(mine.back());
                mine.pop_back();
              }
              break;
            case 5:
              if (!mine.empty()) mine.back() = w.resize(mine.back());
              break;
            case 6: {
              std::lock_guard hold(shelf_lock);
              shelf.insert(shelf.end(), mine.begin() + static_cast<std::ptrdiff_t>(mine.size() / 2), mine.end());
              mine.resize(mine.size() / 2);
              break;
            }
            default: {
              std::vector<parcel*> taken;
              {
                std::lock_guard hold(shelf_lock);
                const std::size_t n = shelf.size() / 2;
                taken.assign(shelf.end() - static_cast<std::ptrdiff_t>(n), shelf.end());
                shelf.resize(shelf.size() - n);
              }
              for (parcel* p : taken) w.destroy(p);
            }
          }
        }
        std::lock_guard hold(shelf_lock);
        shelf.insert(shelf.end(), mine.begin(), mine.end());
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
        failures.fetch_add(1);
      }
    });
  }
  for (auto& t : all) t.join();
  worker last(0);
  for (parcel* p : shelf) last.destroy(p);
  EXPECT_EQ(failures, 0);
}

TEST(HeapThreads, OneThread) { exchange(1, 100'000); }
TEST(HeapThreads, TwoThreads) { exchange(2, 60'000); }
TEST(HeapThreads, EightThreads) { exchange(8, 20'000); }

TEST(HeapThreads, EverythingComesBack) {
  exchange(4, 20'000);
  auto* const cache = shared_heap.open_cache();
  shared_heap.trim(*cache);
  shared_heap.close_cache(cache);
  const heap_figures& f = shared_heap.figures();
  EXPECT_EQ(f.spans, 0u);
  EXPECT_EQ(f.large, 0u);
  EXPECT_EQ(f.free_resident, 0u);
  EXPECT_EQ(f.threads, 0u);
}

TEST(HeapThreads, AProducerAndAConsumerStayBounded) {
  constexpr int rounds = 400, batch = 1000;
  std::vector<parcel*> box;
  std::mutex lock;
  std::atomic<bool> done{false};
  std::thread consumer([&] {
    worker w(1);
    while (!done || !box.empty()) {
      std::vector<parcel*> taken;
      {
        std::lock_guard hold(lock);
        taken.swap(box);
      }
      for (parcel* p : taken) w.destroy(p);
      std::this_thread::yield();
      std::lock_guard hold(lock);
      if (done && box.empty()) break;
    }
  });
  std::uint64_t early_peak = 0;
  {
    worker w(2);
    for (int r = 0; r < rounds; ++r) {
      std::vector<parcel*> made;
      for (int i = 0; i < batch; ++i) made.push_back(w.make());
      for (;;) {
        std::lock_guard hold(lock);
        if (!box.empty()) continue;
        box.swap(made);
        break;
      }
      if (r == rounds / 10) early_peak = shared_heap.figures().mapped_peak;
    }
    done = true;
  }
  consumer.join();
  EXPECT_LE(shared_heap.figures().mapped_peak, early_peak + early_peak / 2 + 8 * MiB);
}

}  // namespace
}  // namespace heapwright
