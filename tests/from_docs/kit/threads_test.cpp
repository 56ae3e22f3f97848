// States what the documentation says of the parts that threads share: locked, cached, sharded, and
// the recycler. Written without the code.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include <heapwright/adapt/recycler.hpp>
#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;

/// Blocks on their way from a thread to another.
class exchange {
 public:
  struct block {
    void* at = nullptr;
    layout asked;
    unsigned char mark = 0;
  };
  block swap(block b, std::size_t slot) {
    const std::lock_guard hold(mutex_);
    std::swap(b, slots_[slot]);
    return b;
  }

 private:
  std::mutex mutex_;
  std::array<block, 64> slots_;
};

/// Each thread allocates, writes, hands over to whom it meets, and frees what it gets. In the end
/// everything is free.
void threads_share(const any_allocator& a, const layouts& next, int threads = 3, int steps = 1500) {
  exchange blocks;
  std::atomic<int> damaged = 0;
  const auto free_one = [&](const exchange::block& b) {
    if (b.at == nullptr) return;
    const auto* const bytes = static_cast<const unsigned char*>(b.at);
    for (std::size_t i = 0; i < b.asked.size; ++i) damaged += bytes[i] != b.mark;
    a.deallocate(b.at, b.asked);
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      random_bits random(static_cast<unsigned>(t));
      for (int i = 0; i < steps; ++i) {
        exchange::block b{nullptr, next(random), static_cast<unsigned char>(random())};
        b.at = a.allocate(b.asked);
        if (b.at != nullptr) std::memset(b.at, b.mark, b.asked.size);
        free_one(blocks.swap(b, random() % 64));
      }
    });
  }
  for (std::thread& t : all) t.join();
  for (std::size_t slot = 0; slot < 64; ++slot) free_one(blocks.swap({}, slot));
  EXPECT_EQ(damaged, 0);
}

// locked: "A for any number of threads." "From any thread."
TEST(LockedThreads, ShareAnAllocator) {
  odd_buffer buffer(256 * KiB, 5);
  shared<best_fit<>> a{buffer.span()};
  threads_share(refer_to(a), any_layout(500, 256));
  threads_share(refer_to_unsized(a), any_layout(500, 256));
  EXPECT_EQ(a.stats().in_use, 0u);
  shared<metered<pool<>>> b{layout{64, 8}};  // "a meter for several threads is `locked<metered<A>, ...>`"
  threads_share(refer_to(b), always({64, 8}));
  EXPECT_EQ(b.with([](auto& part) { return part.reading().live_blocks(); }), 0u);
}

// cached: "A, made for blocks of one layout, for any number of threads." "From any thread,
// whichever allocated the block." "stats() counts blocks in the threads' caches as in use." "Null
// for a layout that does not fit the blocks."
template <class A>
void caches_per_thread(A& a, layout block) {
  walk_all(refer_to(a), always(block));
  threads_share(refer_to(a), always(block));
  threads_share(refer_to_unsized(a), always(block), 8, 300);
  EXPECT_TRUE(a.fits(block));
  EXPECT_FALSE(a.fits({block.size + 4096, block.alignment}));
  EXPECT_EQ(a.allocate({block.size + 4096, block.alignment}), nullptr);
  EXPECT_EQ(a.allocate({SIZE_MAX, 1}), nullptr);
  a.deallocate(nullptr);
  a.deallocate(nullptr, block);
  void* const p = a.allocate();
  EXPECT_TRUE(a.owns(p));
  EXPECT_GE(a.usable_size(p), block.size);
  EXPECT_GE(a.stats().in_use, a.usable_size(p));
  a.reset();  // "Frees all blocks."
  EXPECT_EQ(a.stats().in_use, 0u);
  const auto held = a.stats().held;
  const auto given = a.trim();  // "returns the bytes that it gave back"
  EXPECT_EQ(given, held - a.stats().held);
  EXPECT_NE(a.allocate(), nullptr);
}

TEST(Cached, ConcurrentPoolAndSlab) {
  for (const layout block : {layout{1, 1}, layout{64, 8}, layout{33, 64}, layout{100, 4096}}) {
    concurrent_pool<> pools(block);
    caches_per_thread(pools, block);
    concurrent_slab<> slabs(block);
    caches_per_thread(slabs, block);
  }
}

// cached_plan: "blocks moved at once between a cache and the part"; "caches": more threads than
// caches still work.
TEST(Cached, HasAnyPlan) {
  cached<pool<>, system_lock, cached_plan{.batch = 1, .threads = 1}> smallest(layout{64, 8});
  caches_per_thread(smallest, {64, 8});
  cached<slab<>, system_lock, cached_plan{.batch = 3, .threads = 2}> small(layout{64, 8});
  caches_per_thread(small, {64, 8});
}

// "[~cached] Gives all caches back to the part." "Null when the part has no more". "[trim] Gives
// the calling thread's cache back to the part, and trims that".
TEST(Cached, GivesCachesBack) {
  strict_source source(2);
  {
    concurrent_pool<upstream<strict_source>> a(layout{64, 8}, source, 1 * KiB);
    std::vector<void*> all;
    while (void* const p = a.allocate()) all.push_back(p);
    EXPECT_GE(all.size(), 16u);
    for (void* const p : all) a.deallocate(p);
    const auto held = a.stats().held;
    EXPECT_EQ(a.trim(), held);
    EXPECT_EQ(source.live(), 0u);
    source.limit = 4;
    void* const p = a.allocate();
    std::thread([&] { a.deallocate(p); }).join();
  }
  EXPECT_EQ(source.live(), 0u);
}

// sharded: "N instances of A, a best_fit for example, for any number of threads."
TEST(Sharded, ThreadsShareARange) {
  std::vector<std::byte> memory(2 * MiB);
  concurrent_best_fit<> a{std::span<std::byte>(memory)};
  ASSERT_TRUE(a.attached());
  walk_all(refer_to(a), any_layout(1000, 4096));
  threads_share(refer_to(a), any_layout(1000, 256));
  threads_share(refer_to_unsized(a), any_layout(1000, 256), 8, 300);
  std::size_t live = 0;
  a.for_each_live([&](const void*, std::size_t) { ++live; });
  EXPECT_EQ(live, 0u);
  EXPECT_EQ(a.stats().in_use, 0u);
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0u);
}

// "attached() tells whether the range was large enough"; "Takes the range, of any alignment";
// "False: it is too small, or there is one already."; "the largest block is smaller than an Nth of
// the range"
TEST(Sharded, ARangeOfAnySize) {
  concurrent_best_fit<> none;
  EXPECT_FALSE(none.attached());
  EXPECT_EQ(none.allocate({1, 1}), nullptr);
  none.deallocate(nullptr);
  bool is_enough = false;
  for (std::size_t bytes = 0; bytes < 20'000; bytes += 157) {
    odd_buffer buffer(bytes, bytes % 16);
    sharded<best_fit<>, system_lock, 4> a;
    const bool attached = a.attach(buffer.span());
    EXPECT_EQ(a.attached(), attached);
    EXPECT_TRUE(attached || !is_enough) << bytes;
    is_enough = attached;
    EXPECT_EQ(a.allocate({bytes / 4 + 1, 1}), nullptr);
    EXPECT_EQ(a.allocate({SIZE_MAX, 64}), nullptr);
    EXPECT_FALSE(attached && a.attach(buffer.span()));
    if (!attached) continue;
    void* const p = a.allocate({1, 1});
    ASSERT_NE(p, nullptr) << bytes;
    EXPECT_TRUE(buffer.contains(p, 1) && a.owns(p));
    EXPECT_FALSE(a.owns(&buffer) || a.owns(nullptr) || a.owns(reinterpret_cast<void*>(UINTPTR_MAX)));
    walk_all(refer_to(a), any_layout(40, 16), 60);
  }
  EXPECT_TRUE(is_enough);
}

// "As realloc of C. In place where the block's shard has room behind it; otherwise a new block of
// this thread's". "`reallocate` goes to another shard where its own is full"
TEST(Sharded, Reallocates) {
  std::vector<std::byte> memory(256 * KiB);
  sharded<best_fit<>, system_lock, 4> a{std::span<std::byte>(memory)};
  auto* p = static_cast<unsigned char*>(a.reallocate(nullptr, 10));
  std::memset(p, 7, 10);
  for (std::size_t size = 20; size < 40'000; size *= 2) {
    std::thread([&] { p = static_cast<unsigned char*>(a.reallocate(p, size)); }).join();
    ASSERT_NE(p, nullptr);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(p[i], 7);
    EXPECT_GE(a.usable_size(p), size);
  }
  EXPECT_EQ(a.reallocate(p, 64 * KiB), nullptr);  // "the largest block is smaller than an Nth of the range"
  EXPECT_EQ(p[0], 7);
  EXPECT_EQ(a.reallocate(p, 0), nullptr);
  EXPECT_EQ(a.stats().in_use, 0u);
}

// All threads together can have what all shards have: "Null when no shard has a block that is large
// enough".
TEST(Sharded, OneThreadCanUseAllShards) {
  std::vector<std::byte> memory(256 * KiB);
  sharded<best_fit<>, system_lock, 4> a{std::span<std::byte>(memory)};
  std::vector<void*> all;
  while (void* const p = a.allocate({1000, 16})) all.push_back(p);
  EXPECT_GT(all.size() * 1000, 200 * KiB);
  std::thread([&] {
    for (void* const p : all) a.deallocate(p);
  }).join();
  std::size_t again = 0;
  while (a.allocate({1000, 16}) != nullptr) ++again;
  EXPECT_EQ(again, all.size());
}

// "Takes all locks. For fork"
TEST(Sharded, LocksAll) {
  std::vector<std::byte> memory(256 * KiB);
  sharded<best_fit<>, system_lock, 4> a{std::span<std::byte>(memory)};
  std::atomic<bool> got = false;
  a.lock_all();
  std::thread other([&] { got = a.allocate({10, 1}) != nullptr; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(got);
  a.unlock_all();
  other.join();
  EXPECT_TRUE(got);
}

// lock: "A mutex. Not recursive. Owned by no thread: another one may release it." "[try_acquire]
// false if it is not. Does not wait."
TEST(Lock, IsAMutex) {
  system_lock l;
  int counter = 0;
  const auto count = [&] {
    for (int i = 0; i < 5000; ++i) {
      const holding<system_lock> hold(l);
      ++counter;
    }
  };
  std::thread a(count), b(count);
  a.join();
  b.join();
  EXPECT_EQ(counter, 10'000);
  EXPECT_TRUE(l.try_acquire());
  EXPECT_FALSE(l.try_acquire());
  std::thread([&] { l.release(); }).join();
  EXPECT_TRUE(l.try_acquire());
  l.reset_after_fork();  // "free again, with nobody sleeping"
  EXPECT_TRUE(l.try_acquire());
  l.release();
}

struct trimmed {
  std::atomic<int> times = 0;
  std::atomic<bool> is_under_way = false;
  std::size_t trim() noexcept {
    is_under_way = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ++times;
    is_under_way = false;
    return 0;
  }
};

// recycler: "Calls memory.trim() [...] every so often until it is destroyed, which waits for a call
// under way." "the first trim comes after `every`"
TEST(Recycler, TrimsEverySoOften) {
  trimmed memory;
  {
    recycler gives_back(memory, std::chrono::milliseconds(1));
    while (memory.times < 3) std::this_thread::yield();
  }
  EXPECT_FALSE(memory.is_under_way);
  const int times = memory.times;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(memory.times, times);
  trimmed never;
  { recycler gives_back(never, std::chrono::hours(1)); }  // its end does not wait for the hour
  EXPECT_EQ(never.times, 0);
  concurrent_pool<> pools(layout{64, 8});
  recycler gives_back(pools, std::chrono::milliseconds(1));
  threads_share(refer_to(pools), always({64, 8}), 2, 1000);
}

}  // namespace
