// States what the documentation says of heaps on several threads: "From any thread", what threads
// that end leave behind, fork, figures "also while threads go on". Written without the code.
#include "model.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include <heapwright/adapt/recycler.hpp>

namespace {

using namespace from_docs;
using heapwright::heap;

constexpr heapwright::recipe central{.concurrency = heapwright::concurrency_mode::central};
constexpr heapwright::recipe keeping{.thread_cache = {.max_parked = 0, .keep_remote = true}};
constexpr heapwright::recipe when_asked{.pages = {.give_back = heapwright::give_back_policy::when_asked}};

#ifdef __SANITIZE_THREAD__
constexpr int steps = 200;
#else
constexpr int steps = 8000;
#endif

/// Blocks that threads leave for each other, under a lock.
class exchange {
 public:
  void* swap(void* p, std::size_t at) {
    const std::lock_guard lock(mutex_);
    return std::exchange(places_[at % places_.size()], p);
  }
  std::vector<void*> take_all() { return std::exchange(places_, {}); }

 private:
  std::mutex mutex_;
  std::vector<void*> places_ = std::vector<void*>(256);
};

void fill(void* p, std::size_t size) {
  std::memcpy(p, &size, sizeof size);
  static_cast<char*>(p)[size - 1] = static_cast<char>(size);
}

/// Whether a block is as fill has left it.
bool is_filled(const void* p) {
  std::size_t size = 0;
  std::memcpy(&size, p, sizeof size);
  return static_cast<const char*>(p)[size - 1] == static_cast<char>(size);
}

/// Threads free each other's blocks; others come and go meanwhile.
template <class Heap>
void threads_share(Heap& h) {
  exchange blocks;
  std::atomic<int> wrong = 0;
  const auto work = [&](unsigned seed, int n) {
    std::minstd_rand random(seed);
    for (int i = 0; i < n; ++i) {
      const std::size_t kind = random() % 64;
      const std::size_t size = kind == 0  ? 8 + random() % (400 * KiB)
                               : kind < 8 ? 8 + random() % (40 * KiB)
                                          : 9 + random() % 600;
      void* p = kind % 3 == 0   ? h.allocate_zeroed(size)
                : kind % 3 == 1 ? h.allocate(size)
                                : h.allocate(layout{size, 128});
      if (p == nullptr) {
        ++wrong;
        continue;
      }
      fill(p, size);
      p = blocks.swap(p, random());
      if (p == nullptr) continue;
      wrong += !is_filled(p) || !h.owns(p);
      if (random() % 8 == 0) p = h.reallocate(p, 100);
      h.deallocate(p);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= 3; ++t) threads.emplace_back(work, t, steps);
  for (unsigned t = 0; t < 20; ++t) std::thread(work, 100 + t, steps / 40).join();
  // "mapped = ..., always, also while threads go on"
  for (int i = 0; i < 20; ++i) {
    const auto s = h.statistics();
    EXPECT_EQ(s.mapped, sum_of_parts(s));
    h.for_each_cache([](std::uint32_t, std::uint64_t) {});
    h.trim();
    EXPECT_TRUE(h.for_each_block([](const void*, std::size_t) {}));
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (void* const p : blocks.take_all()) h.deallocate(p);
  const auto s = h.statistics();
  EXPECT_EQ(s.in_use, 0u);
  EXPECT_EQ(s.mapped, sum_of_parts(s));
  EXPECT_EQ(count_blocks(h), 0u);
}

// "allocate ... From any thread" "deallocate: From any thread."
TEST(Threads, FreeEachOthersBlocks) {
  heap<> h;
  threads_share(h);
}
TEST(Threads, FreeEachOthersBlocksInACentralHeap) {
  heap<central> h;
  threads_share(h);
}
TEST(Threads, FreeEachOthersBlocksWhereTheyAreKept) {
  heap<keeping> h;
  threads_share(h);
}
TEST(Threads, FreeEachOthersBlocksInCallersMemory) {
  std::vector<std::byte> memory(48 * MiB);
  heap<> h(memory.data(), memory.size());
  threads_share(h);
}

// "beyond that they work with a lock per call"
TEST(Threads, ShareAHeapThatHasNoCacheForThem) {
  std::vector<std::unique_ptr<heap<>>> heaps;
  for (int i = 0; i < 66; ++i) heaps.push_back(std::make_unique<heap<>>());
  threads_share(*heaps.back());
}

// "threads: that have a cache", "threads_total: that ever had one"; "the same, of threads that have
// ended ... 8 threads"
TEST(Threads, ThatEndLeaveLittleBehind) {
  heap<> h;
  std::uint64_t most = 0;
  for (int i = 0; i < 25; ++i) {
    std::thread([&] {
      std::vector<void*> blocks;
      for (int n = 0; n < 2000; ++n) blocks.push_back(h.allocate(16 + static_cast<std::size_t>(n) % 1000));
      for (void* const p : blocks) h.deallocate(p);
    }).join();
    const auto s = h.statistics();
    EXPECT_EQ(s.in_use, 0u);
    if (i == 10) most = s.mapped;
  }
  const auto s = h.statistics();
  EXPECT_LE(s.mapped, most + 2 * MiB);  // twenty-five threads take no more than ten
  EXPECT_LE(s.threads, 1u);
  EXPECT_GE(s.threads_total, 1u);
  std::uint64_t kept = 0;
  h.for_each_cache([&](std::uint32_t, std::uint64_t bytes) { kept += bytes; });
  EXPECT_LE(kept, s.in_caches);
}

TEST(Threads, AreCountedWhileTheyLive) {
  heap<> h;
  h.deallocate(h.allocate(10));
  std::atomic<int> ready = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      h.deallocate(h.allocate(10));
      ++ready;
      while (!done) std::this_thread::yield();
    });
  while (ready != 3) std::this_thread::yield();
  EXPECT_EQ(h.statistics().threads, 4u);
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(h.statistics().threads, 1u);
  EXPECT_GE(h.statistics().threads_total, 4u);
}

// "other threads' blocks on their way back ... one batch": one makes, another frees, and memory
// does not grow
TEST(Threads, ThatMakeAndFreeForEachOtherTakeNoMoreAndMore) {
  heap<> h;
  for (int round = 0; round < 30; ++round) {
    std::vector<void*> blocks;
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) blocks.push_back(h.allocate(1000));
    }).join();
    for (void* const p : blocks) h.deallocate(p);
  }
  EXPECT_LT(h.statistics().mapped_peak, 12 * MiB);
}

// A thread outlives heaps that it has used; another takes the place of each. "Gives all memory
// back. No thread may be in the heap"
TEST(Threads, OutliveTheHeapsThatTheyUse) {
  alignas(heap<>) static std::byte place[sizeof(heap<>)];
  heap<>* h = nullptr;
  std::atomic<int> turn = 0;
  constexpr int rounds = 10;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (turn != 2 * i + 1) std::this_thread::yield();
      for (int n = 0; n < 200; ++n) {
        void* const p = h->allocate(static_cast<std::size_t>(n));
        EXPECT_TRUE(h->owns(p));
        if (n % 3 != 0) h->deallocate(p);  // the rest is left to the heap's end
      }
      turn = 2 * i + 2;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    h = new (place) heap<>("one after the other");
    void* const p = h->allocate(10);
    turn = 2 * i + 1;
    while (turn != 2 * i + 2) std::this_thread::yield();
    h->deallocate(p);
    EXPECT_EQ(count_blocks(*h), 67u);
    std::destroy_at(h);
  }
  other.join();
}

// "What still allocates in that thread afterwards ... goes without a cache"
// (docs/how-malloc-works.md)
struct frees_late {
  heap<>* from = nullptr;
  void* block = nullptr;
  ~frees_late() {
    if (from == nullptr) return;
    from->deallocate(block);
    from->deallocate(from->allocate(500));
  }
};
thread_local frees_late late;
void free_in_key(void* of) {
  auto& h = *static_cast<heap<>*>(of);
  for (int i = 0; i < 100; ++i) h.deallocate(h.allocate(300));
}
TEST(Threads, UseAHeapToTheirVeryEnd) {
  heap<> h;
  for (int i = 0; i < 20; ++i)
    std::thread([&] {
      pthread_key_t key{};
      pthread_key_create(&key, free_in_key);
      pthread_setspecific(key, &h);
      late.from = &h;
      late.block = h.allocate(100);
      h.deallocate(h.allocate(100));
    }).join();
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_EQ(h.statistics().threads, 0u);
}

// "`fork` takes all locks first, so that the child finds nothing half done"
TEST(Fork, LeavesTheChildAHeapThatWorks) {
  heap<> h, other("other");
  heap<central> c;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      while (!done) {
        h.deallocate(h.allocate(random() % 50000));
        c.deallocate(c.allocate(random() % 5000));
        (void)other.statistics();
      }
    });
  void* const own = h.allocate(1000);
  std::memset(own, 5, 1000);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool is_right = static_cast<char*>(own)[999] == 5 && h.owns(own);
      for (std::size_t n = 0; n < 300; ++n) {
        void* const p = h.allocate(n * 50);
        void* const q = c.allocate(n);
        is_right = is_right && p != nullptr && q != nullptr;
        h.deallocate(p);
        c.deallocate(q);
      }
      h.deallocate(own);
      h.trim();
      const auto s = h.statistics();
      is_right = is_right && s.mapped == sum_of_parts(s) && other.statistics().in_use == 0;
      _exit(is_right ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "of child " << i;
  }
  done = true;
  for (auto& thread : threads) thread.join();
  h.deallocate(own);
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// "that in_use, in_caches, free_in_spans and free_resident together may reach", with threads that
// all want more
TEST(Limit, IsNotPassedByThreadsTogether) {
  heap<> h("limited", 8 * MiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      std::vector<void*> blocks;
      for (int round = 0; round < 3; ++round) {
        while (void* const p = h.allocate(60000)) blocks.push_back(p);
        for (void* const p : blocks) h.deallocate(p);
        blocks.clear();
      }
    });
  for (int i = 0; i < 50; ++i) {
    const auto s = h.statistics();
    EXPECT_LE(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, 8 * MiB);
  }
  for (auto& thread : threads) thread.join();
  void* const p = h.allocate(7 * MiB);  // all have ended: nearly all can be had again
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
}

// "`recycler gives_back(h, ...)` does it from a thread of its own" (docs/recipes.md)
TEST(Recycler, GivesBackWhatOnlyATrimWould) {
  heap<when_asked> h;
  h.deallocate(h.allocate(20 * MiB));
  EXPECT_EQ(h.statistics().decommitted_total, 0u);
  heapwright::recycler gives_back(h, std::chrono::milliseconds(1));
  for (int i = 0; i < 5000 && h.statistics().decommitted_total < 20 * MiB; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(h.statistics().decommitted_total, 20 * MiB);
}

}  // namespace
