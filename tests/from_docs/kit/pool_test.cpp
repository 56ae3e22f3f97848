// States what the documentation says of pool, object_pool and slab. Written without the code.
#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;
using strict = upstream<strict_source>;

const std::vector<layout> block_layouts = {{0, 1},   {1, 1},   {7, 1},     {8, 8},       {9, 8},         {24, 16},
                                           {100, 4}, {33, 64}, {5000, 16}, {1, 4 * KiB}, {10, 64 * KiB}, {100'001, 8}};

template <class A>
void holds_its_blocks(A& a, layout block) {
  for (const order frees : {order::last_first, order::first_first, order::random}) {
    EXPECT_GT(walk(refer_to(a), always(block), frees, 70), 0u);
    EXPECT_GT(walk(refer_to_unsized(a), always(block), frees, 70), 0u);
    EXPECT_EQ(a.stats().in_use, 0u);
  }
  live_blocks live;
  for (int i = 0; i < 30; ++i) {
    void* const p = a.allocate();
    EXPECT_GE(a.usable_size(p), block.size);
    EXPECT_TRUE(a.owns(p));
    live.add(p, {a.usable_size(p), block.alignment});  // all of it "may be used"
    EXPECT_EQ(a.stats().in_use, live.size() * a.usable_size(p));
    EXPECT_LE(a.stats().in_use, a.stats().held);
  }
  for (std::size_t i = 0; i < live.size(); ++i) live.look_at(i);
  a.reset();  // "Frees all blocks"
  EXPECT_EQ(a.stats().in_use, 0u);
  EXPECT_FALSE(a.owns(nullptr) || a.owns(&live) || a.owns(reinterpret_cast<void*>(UINTPTR_MAX)));
  // "Null for a layout that does not fit the blocks." "Whether the blocks are large enough, and
  // aligned enough"
  EXPECT_TRUE(a.fits(block) && a.fits({0, 1}));
  const std::size_t usable = a.usable_size(nullptr);
  EXPECT_FALSE(a.fits({usable + 1, 1}) || a.fits({SIZE_MAX, 1}) || a.fits({1, std::size_t{1} << 62}));
  EXPECT_EQ(a.allocate({usable + 1, block.alignment}), nullptr);
  EXPECT_EQ(a.allocate({SIZE_MAX, 1}), nullptr);
  for (std::size_t alignment = 1; alignment <= 256 * KiB; alignment *= 2) {
    const layout l{block.size, alignment};
    void* const p = a.allocate(l);
    EXPECT_EQ(p != nullptr, a.fits(l));
    EXPECT_TRUE(lies_at(p, alignment));
    if (p != nullptr) a.deallocate(p, l);
    if (alignment <= block.alignment) {
      EXPECT_TRUE(a.fits(l));
    }
  }
  a.deallocate(nullptr);
  a.deallocate(nullptr, block);
}

// pool: "Blocks of one layout." "[usable_size] the layout's size, rounded up to its alignment and
// to at least 8." "The source is asked for ranges of `chunk_bytes`, a power of two, aligned to
// their size; of more if fewer than eight blocks would fit."
TEST(Pool, BlocksOfEachLayout) {
  for (const layout block : block_layouts) {
    strict_source source;
    pool<strict> a(block, source, 4 * KiB);
    holds_its_blocks(a, block);
    EXPECT_GE(a.usable_size(nullptr), std::max<std::size_t>(block.size, 8));
    EXPECT_LE(a.usable_size(nullptr), round_up(std::max<std::size_t>(block.size, checks_callers ? 16 : 8),
                                               std::max<std::size_t>(block.alignment, 8)));
    for (const layout& l : source.requests) {
      EXPECT_EQ(l.size, l.alignment);
      EXPECT_EQ(l.size & (l.size - 1), 0u);
      EXPECT_GE(l.size, std::max(4 * KiB, 8 * a.usable_size(nullptr)));
    }
    EXPECT_EQ(a.stats().held, source.live_bytes());
    EXPECT_EQ(a.stats().chunks, source.live());
    // "Gives chunks whose blocks are all free back to the source; returns the bytes."
    const auto held = a.stats().held;
    EXPECT_EQ(a.trim(), held);
    EXPECT_EQ(source.live(), 0u);
    EXPECT_EQ(a.trim(), 0u);
    EXPECT_NE(a.allocate(), nullptr);
  }
}

// "Gives chunks whose blocks are all free back": no other chunk.
TEST(Pool, TrimLeavesChunksWithBlocks) {
  strict_source source;
  pool<strict> a(layout{64, 8}, source, 4 * KiB);
  random_bits random(1);
  live_blocks live;
  for (int i = 0; i < 1000; ++i) live.add(a.allocate(), {64, 8});
  while (!live.empty()) {
    const auto b = live.remove(random() % live.size());
    a.deallocate(b.at);
    if (live.size() % 97 != 0) continue;
    const auto held = a.stats().held;
    const auto given = a.trim();
    EXPECT_EQ(held - a.stats().held, given);
    EXPECT_EQ(a.stats().held, source.live_bytes());
    std::set<std::uintptr_t> chunks;
    for (std::size_t k = 0; k < live.size(); ++k)
      chunks.insert(reinterpret_cast<std::uintptr_t>(live[k].at) / (4 * KiB));
    EXPECT_EQ(a.stats().chunks, chunks.size());
    live.add(a.allocate(), {64, 8});
    const auto last = live.remove(live.size() - 1);
    a.deallocate(last.at);
  }
}

// "Null when the source has no more."
TEST(Pool, IsExhausted) {
  strict_source source(2);
  pool<strict> a(layout{64, 8}, source, 1 * KiB);
  live_blocks live;
  while (void* const p = a.allocate()) live.add(p, {64, 8});
  EXPECT_LE(a.stats().held, 2 * KiB);
  EXPECT_GE(live.size(), 16u);
  EXPECT_EQ(a.allocate({1, 1}), nullptr);
  const auto b = live.remove(5);
  a.deallocate(b.at);
  EXPECT_EQ(a.allocate(), b.at);
}

TEST(Pool, ABlockBeyondAllMemoryIsRefused) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 8, SIZE_MAX / 16 + 1, std::size_t{1} << 59}) {
    strict_source source;
    pool<strict> a(layout{size, 8}, source);
    EXPECT_EQ(a.allocate(), nullptr) << size;
    EXPECT_EQ(a.allocate({size, 8}), nullptr) << size;
    EXPECT_EQ(a.stats().in_use, 0u);
  }
}

// "Null does nothing."
template <class A>
void frees_null() {
  A a(layout{64, 8});
  a.deallocate(nullptr, {65, 8});
  a.deallocate(nullptr, {1, 4096});
  a.deallocate(nullptr, {SIZE_MAX, 1});
}
TEST(Pool, AFreeOfNullDoesNothingWhateverTheLayout) { frees_null<pool<>>(); }
TEST(Slab, AFreeOfNullDoesNothingWhateverTheLayout) { frees_null<slab<>>(); }

// "Neither copied nor moved."
static_assert(!std::is_copy_constructible_v<pool<>> && !std::is_move_constructible_v<pool<>>);
static_assert(!std::is_copy_constructible_v<slab<>> && !std::is_move_constructible_v<slab<>>);

// "So pools that draw from a pool of chunks hand memory on to each other"
TEST(Pool, PoolsHandMemoryOnToEachOther) {
  strict_source source(1);
  pool<strict> chunks(layout{4 * KiB, 4 * KiB}, source, 32 * KiB);
  pool<upstream<pool<strict>>> trees(layout{24, 8}, chunks, 4 * KiB);
  pool<upstream<pool<strict>>> names(layout{48, 8}, chunks, 4 * KiB);
  std::vector<void*> all;
  while (void* const p = trees.allocate()) all.push_back(p);
  EXPECT_EQ(names.allocate(), nullptr);
  for (void* const p : all) trees.deallocate(p);
  EXPECT_GT(trees.trim(), 0u);
  EXPECT_NE(names.allocate(), nullptr);
}

struct alignas(64) counted {
  static inline int alive = 0;
  explicit counted(bool fails = false) {
    if (fails) throw std::runtime_error("from the constructor");
    ++alive;
  }
  ~counted() { --alive; }
  char text[100];
};

// object_pool: "A new T; null when the source has no more. What its constructor throws goes on to
// the caller, and the block is free again."
TEST(ObjectPool, MakesAndDestroys) {
  strict_source source(1);
  {
    object_pool<counted, strict> a(source, 4 * KiB);
    std::vector<counted*> all;
    for (int i = 0; i < 10'000; ++i) EXPECT_THROW((void)a.make(true), std::runtime_error);
    EXPECT_EQ(a.stats().in_use, 0u);
    while (counted* const c = a.make()) {
      EXPECT_TRUE(lies_at(c, 64));
      EXPECT_TRUE(a.owns(c));
      all.push_back(c);
    }
    EXPECT_EQ(counted::alive, static_cast<int>(all.size()));
    EXPECT_EQ(a.make(true), nullptr);
    a.destroy(nullptr);  // "null is ignored"
    a.destroy(all.back());
    all.pop_back();
    EXPECT_EQ(counted::alive, static_cast<int>(all.size()));
    EXPECT_EQ(a.stats().in_use, all.size() * 128);
    // "[reset] Frees the memory of all objects. Does not destroy them. The chunks stay."
    const auto held = a.stats().held;
    a.reset();
    EXPECT_EQ(counted::alive, static_cast<int>(all.size()));
    EXPECT_EQ(a.stats().in_use, 0u);
    EXPECT_EQ(a.stats().held, held);
    EXPECT_EQ(a.trim(), held);  // "Gives chunks without objects back to the source; returns the bytes."
    source.limit = 2;
    const int before = counted::alive;
    (void)a.make();
    EXPECT_EQ(counted::alive, before + 1);
  }  // "Objects that are alive when the pool is destroyed lose their memory without being destroyed"
  EXPECT_GT(counted::alive, 0);
  counted::alive = 0;
  static_assert(noexcept(std::declval<object_pool<int>&>().make(1)));
  static_assert(!noexcept(std::declval<object_pool<counted>&>().make(true)));
}

// slab: "Blocks of one layout." "[size] rounded up to a multiple of its alignment" "[bytes] Per
// slab; rounded up to a power of two, and further if fewer than eight blocks would fit." "The
// source is asked for ranges aligned to their size"
TEST(Slab, BlocksOfEachLayout) {
  for (const layout block : block_layouts) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3000}, 16 * KiB}) {
      strict_source source;
      slab<strict> a(block, {.bytes = bytes}, source);
      holds_its_blocks(a, block);
      if (block.size > 0) {
        EXPECT_EQ(a.usable_size(nullptr), round_up(block.size, block.alignment));
      }
      for (const layout& l : source.requests) {
        EXPECT_EQ(l.size, l.alignment);
        EXPECT_EQ(l.size & (l.size - 1), 0u);
        EXPECT_GE(l.size, std::max(bytes, 8 * a.usable_size(nullptr)));
      }
      EXPECT_EQ(a.stats().held, source.live_bytes());
      EXPECT_EQ(a.stats().slabs, source.live());
      const auto held = a.stats().held;
      EXPECT_EQ(a.trim(), held);  // "Gives all empty slabs back to the source; returns the bytes."
      EXPECT_EQ(source.live(), 0u);
      EXPECT_EQ(a.stats().held, 0u);
    }
    slab<> b(block);
    holds_its_blocks(b, block);
    slab<system_pages> c(block);
    holds_its_blocks(c, block);
  }
}

// "[keep_empty] Empty slabs that are kept. One more goes back to the source at once; with SIZE_MAX
// none does before a trim." "[reset] At most keep_empty slabs stay."
TEST(Slab, KeepsSomeEmptySlabs) {
  for (const std::size_t keep : {std::size_t{0}, std::size_t{1}, std::size_t{3}, SIZE_MAX}) {
    for (const bool by_reset : {false, true}) {
      strict_source source;
      slab<strict> a(layout{64, 8}, {.bytes = 1 * KiB, .keep_empty = keep}, source);
      std::vector<void*> all;
      while (source.live() < 10) all.push_back(a.allocate());
      if (by_reset) {
        a.reset();
        EXPECT_LE(source.live(), keep);
      } else {
        for (void* const p : all) a.deallocate(p);
        EXPECT_EQ(source.live(), std::min<std::size_t>(keep, 10));
      }
      EXPECT_EQ(a.stats().in_use, 0u);
      (void)a.trim();
      EXPECT_EQ(source.live(), 0u);
      EXPECT_NE(a.allocate(), nullptr);
    }
  }
}

TEST(Slab, IsExhausted) {
  strict_source source(3);
  slab<strict> a(layout{100, 4}, {.bytes = 1 * KiB}, source);
  live_blocks live;
  while (void* const p = a.allocate()) live.add(p, {100, 4});
  EXPECT_GE(live.size(), 24u);
  random_bits random(1);
  for (int i = 0; i < 500; ++i) {
    const auto b = live.remove(random() % live.size());
    a.deallocate(b.at, b.asked);
    void* const p = a.allocate();
    EXPECT_EQ(p, b.at);  // the only free block
    live.add(p, {100, 4});
    EXPECT_EQ(a.allocate(), nullptr);
  }
}

// "a free block is never touched"
TEST(Slab, DoesNotTouchAFreeBlock) {
  if (FROM_DOCS_ASAN) GTEST_SKIP() << "AddressSanitizer does not let a test read free blocks";
  slab<upstream_malloc> a(layout{64, 8});
  std::vector<unsigned char*> all;
  for (int i = 0; i < 100; ++i) all.push_back(static_cast<unsigned char*>(a.allocate()));
  for (unsigned char* const p : all) std::memset(p, 0x5a, 64);
  for (std::size_t i = 0; i < all.size(); i += 2) a.deallocate(all[i]);
  for (std::size_t i = 0; i < all.size(); i += 2) (void)a.allocate();
  for (unsigned char* const p : all) EXPECT_TRUE(std::all_of(p, p + 64, [](unsigned char c) { return c == 0x5a; }));
}

// "A double free, and a pointer that is not the beginning of a block, end the process with a
// message in every build."
TEST(SlabDeathTest, NamesMisuseInEveryBuild) {
  slab<> a(layout{64, 8});
  auto* const p = static_cast<std::byte*>(a.allocate());
  EXPECT_DEATH((a.deallocate(p), a.deallocate(p)), "double free: 0x");
  EXPECT_DEATH((a.deallocate(p, {64, 8}), a.deallocate(p, {64, 8})), "double free: 0x");
  EXPECT_DEATH(a.deallocate(p + 8), "foreign pointer: 0x.*not the beginning of a block");
  EXPECT_DEATH(a.deallocate(p + 1), "foreign pointer: 0x.*not the beginning of a block");
}

// "Checked builds look the slab up first, in O(slabs), and name every such pointer." Checked builds
// name "double free, foreign pointer, wrong layout" (docs/concepts.md).
template <class A>
void names_misuse(A& a) {
  auto* const p = static_cast<std::byte*>(a.allocate());
  (void)a.allocate();
  alignas(64) std::byte foreign[64];
  EXPECT_DEATH((a.deallocate(p), a.deallocate(p)), "heapwright: double free: 0x");
  EXPECT_DEATH(a.deallocate(foreign), "heapwright: free of a foreign pointer: 0x");
  EXPECT_DEATH(a.deallocate(p + 8), "heapwright: free of a foreign pointer: 0x");
  EXPECT_DEATH(a.deallocate(p, {65, 8}), "heapwright: free with a wrong layout: 0x");
  EXPECT_DEATH(a.deallocate(p, {64, 4096}), "heapwright: free with a wrong layout: 0x");
}

TEST(SlabDeathTest, NamesMisuseInCheckedBuilds) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  slab<> a(layout{64, 8});
  names_misuse(a);
  EXPECT_DEATH(a.deallocate(reinterpret_cast<void*>(0x123450)), "heapwright: free of a foreign pointer: 0x123450");
}

TEST(PoolDeathTest, NamesMisuseInCheckedBuilds) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  pool<> a(layout{64, 8});
  names_misuse(a);
}

TEST(CachedDeathTest, NamesMisuseInCheckedBuilds) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  concurrent_pool<> a(layout{64, 8});
  names_misuse(a);
}

TEST(BucketedDeathTest, NamesALayoutThatFitsNoBucket) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  bucketed<pool<>, 64> a;
  void* const p = a.allocate({8, 8});
  EXPECT_DEATH(a.deallocate(p, {60, 8}), "heapwright: free");
  EXPECT_DEATH(a.deallocate(p, {600, 8}), "heapwright: free with a wrong layout: 0x");
}

}  // namespace
