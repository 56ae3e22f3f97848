// States what the documentation says of arena and stack_arena. Written without the code.
#include <heapwright/allocator/arena.hpp>
#include <heapwright/allocator/stack_arena.hpp>
#include <heapwright/source/upstream.hpp>

#include <array>
#include <cstring>
#include <optional>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;
using strict = upstream<strict_source>;

// "Blocks of any layout."
TEST(Arena, BlocksOfAnyLayout) {
  strict_source source;
  arena<strict> a(source);
  walk_all(refer_to(a), any_layout(20'000, 64 * KiB));
  EXPECT_NE(a.allocate({0, 1}), nullptr);  // "A size of zero is a size like any other"
}

// "Frees in the exact reverse order of the allocations, of any sizes and alignments, end with 0
// bytes in use."
TEST(Arena, FreesInReverseOrderGiveEverythingBack) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    strict_source source;
    odd_buffer buffer(seed * 37, seed % 16);
    arena<strict> a(buffer.span(), source);
    random_bits random(seed);
    live_blocks live;
    const auto next = any_layout(9000, 64 * KiB);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 40; ++i) {
        const layout l = next(random);
        live.add(a.allocate(l), l);
      }
      while (!live.empty()) {
        const auto b = live.remove(live.size() - 1);
        a.deallocate(b.at, b.asked);
      }
      EXPECT_EQ(a.stats().in_use, 0u) << "seed " << seed;
    }
  }
}

// "Uses the caller's buffer, of any size and alignment, before it draws from `source`." "sizes are
// rounded up to [8]; smaller alignments cost nothing"
TEST(Arena, UsesABufferOfAnySizeAndAlignment) {
  for (std::size_t size = 0; size <= 130; ++size) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      odd_buffer buffer(size, offset);
      arena<no_source> a(buffer.span());
      live_blocks live;
      while (void* const p = a.allocate({1, 1})) {
        ASSERT_TRUE(buffer.contains(p, 1));
        EXPECT_TRUE(a.in_buffer(p));
        EXPECT_TRUE(a.owns(p));
        live.add(p, {1, 1});
      }
      EXPECT_LE(live.size(), size / 8 + 1);
      EXPECT_GE(live.size() + 1, size / 8) << "a buffer of " << size << " bytes at " << offset;
      EXPECT_LE(a.stats().in_use, a.stats().held);
      EXPECT_EQ(a.stats().held, size);  // "the buffer and all chunks"
      EXPECT_EQ(a.stats().chunks, 0u);
    }
  }
}

// As above, with blocks that fill the buffer exactly, and more than the buffer.
TEST(Arena, ABufferIsUsedToItsLastByte) {
  odd_buffer buffer(96, 0);
  arena<no_source> a(buffer.span());
  EXPECT_EQ(a.allocate({97, 1}), nullptr);
  EXPECT_NE(a.allocate({96, 64}), nullptr);
  EXPECT_EQ(a.allocate({1, 1}), nullptr);
}

// "Null when the source has no more memory; the arena is then as it was."
TEST(Arena, IsAsItWasWhenTheSourceHasNoMore) {
  strict_source source(2);
  arena<strict> a(source, 256);
  live_blocks live;
  random_bits random(7);
  for (int i = 0; i < 200; ++i) {
    const layout l = any_layout(400)(random);
    const auto before = a.stats();
    if (void* const p = a.allocate(l)) {
      live.add(p, l);
    } else {
      EXPECT_EQ(a.stats().in_use, before.in_use);
      EXPECT_EQ(a.stats().held, before.held);
      EXPECT_EQ(a.stats().chunks, before.chunks);
      if (void* const again = a.allocate({1, 1})) live.add(again, {1, 1});
    }
  }
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX / 2 + 1, SIZE_MAX - 64 * KiB}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{8}, 64 * KiB}) {
      EXPECT_EQ(a.allocate({huge, alignment}), nullptr);
    }
  }
  EXPECT_EQ(a.allocate({1, std::size_t{1} << 63}), nullptr);
  while (!live.empty()) {  // also the last free finds the arena as it was
    const auto b = live.remove(live.size() - 1);
    a.deallocate(b.at, b.asked);
  }
  EXPECT_EQ(a.stats().in_use, 0u);
}

// "A block that is freed in another order stays in use until a reset or a rewind, and so do the
// blocks allocated before it."
TEST(Arena, ABlockThatIsNotTheLatestStaysInUse) {
  arena<> a;
  void* const first = a.allocate({32, 8});
  void* const second = a.allocate({32, 8});
  void* const third = a.allocate({32, 8});
  const auto before = a.stats().in_use;
  a.deallocate(second, {32, 8});
  EXPECT_EQ(a.stats().in_use, before);
  a.deallocate(third, {32, 8});
  EXPECT_EQ(a.stats().in_use, before - 32);
  a.deallocate(first, {32, 8});
  EXPECT_GE(a.stats().in_use, 32u);
  a.deallocate(nullptr, {32, 8});  // "Null does nothing."
  a.reset();
  EXPECT_EQ(a.stats().in_use, 0u);
}

// take_back::nothing: "two comparisons less per free", which give nothing back.
TEST(Arena, TakesNothingBackIfToldSo) {
  arena<upstream_malloc, take_back::nothing> a;
  void* const p = a.allocate({100, 4});
  const auto before = a.stats().in_use;
  a.deallocate(p, {100, 4});
  EXPECT_EQ(a.stats().in_use, before);
  walk_all(refer_to(a), any_layout(3000, 4096));
}

// "The latest block grows up to the end of its chunk, or gives back what it no longer needs. Any
// other block only gets smaller"; "false leaves the block as it was"
TEST(Arena, TryResizeAsAModelSays) {
  random_bits random(3);
  for (int round = 0; round < 20; ++round) {
    strict_source source;
    arena<strict> a(source, 1024);
    live_blocks live;
    for (int i = 0; i < 150; ++i) {
      if (live.size() < 2 || random() % 3 == 0) {
        const layout l = any_layout(300)(random);
        live.add(a.allocate(l), l);
        continue;
      }
      const bool latest = random() % 2 == 0;
      const std::size_t which = latest ? live.size() - 1 : random() % (live.size() - 1);
      const layout from = live[which].asked;
      const layout to{random() % 4 == 0 ? random() % 5000 : random() % (from.size + 20), from.alignment};
      const auto before = a.stats().in_use;
      const bool fits = a.try_resize(live[which].at, from, to);
      if (to.size <= from.size) {
        EXPECT_TRUE(fits) << from.size << " to " << to.size;
      }
      if (to.size >= 5000) {
        EXPECT_FALSE(fits);
      }
      if (!latest && to.size > round_up(from.size, 8)) {
        EXPECT_FALSE(fits);
      }
      if (!fits) {
        EXPECT_EQ(a.stats().in_use, before);
      }
      if (fits) live.resized(which, to);
    }
    for (std::size_t i = 0; i < live.size(); ++i) live.look_at(i);
  }
}

TEST(Arena, TheLatestBlockGrowsToTheEndOfItsChunkAndShrinks) {
  alignas(16) std::array<std::byte, 256> memory;
  arena<no_source> a{std::span<std::byte>(memory)};
  void* const p = a.allocate({16, 8});
  EXPECT_FALSE(a.try_resize(p, {16, 8}, {257, 8}));
  EXPECT_FALSE(a.try_resize(p, {16, 8}, {SIZE_MAX, 8}));
  EXPECT_FALSE(a.try_resize(p, {16, 8}, {SIZE_MAX - 8, 8}));
  EXPECT_TRUE(a.try_resize(p, {16, 8}, {256, 8}));
  EXPECT_EQ(a.allocate({1, 1}), nullptr);
  EXPECT_TRUE(a.try_resize(p, {256, 8}, {40, 8}));
  EXPECT_EQ(a.stats().in_use, 40u);
  EXPECT_NE(a.allocate({200, 8}), nullptr);
}

// "changes the size in place" (concept can_resize): a block that is not aligned for the new layout
// cannot stay in place.
TEST(Arena, TryResizeToAnAlignmentThatTheBlockDoesNotHave) {
  alignas(4096) std::array<std::byte, 4096> memory;
  arena<no_source> a{std::span<std::byte>(memory)};
  (void)a.allocate({8, 8});
  void* const p = a.allocate({16, 8});
  EXPECT_FALSE(a.try_resize(p, {16, 8}, {8, 1024}));
}

// "owns(p): true for the address of each live block"; "A size of zero is a size like any other".
TEST(Arena, OwnsABlockOfNoBytes) {
  for (std::size_t before = 0; before <= 64; ++before) {
    odd_buffer buffer(64, 0);
    arena<no_source> a(buffer.span());
    (void)a.allocate({before, 1});
    if (void* const p = a.allocate({0, 1})) {
      EXPECT_TRUE(a.owns(p)) << "behind a block of " << before;
    }
  }
}

// "Whether p points into memory that was handed out since the last reset."
TEST(Arena, OwnsWhatItHasHandedOut) {
  arena<> a;
  int foreign = 0;
  EXPECT_FALSE(a.owns(&foreign));
  EXPECT_FALSE(a.owns(nullptr));
  EXPECT_FALSE(a.owns(reinterpret_cast<void*>(UINTPTR_MAX)));
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 50; ++i) {
    blocks.push_back(static_cast<std::byte*>(a.allocate({1000, 8})));
    for (std::byte* const p : blocks) EXPECT_TRUE(a.owns(p) && a.owns(p + 999));
  }
  a.reset();
  for (std::byte* const p : blocks) EXPECT_FALSE(a.owns(p));
}

// "Frees all blocks allocated since the mark, and what older blocks have grown by in place since.
// Gives all chunks drawn since back to the source. The mark stays valid. Void are marks made since"
TEST(Arena, RewindsToAMark) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    strict_source source;
    odd_buffer buffer(seed * 50, seed % 8);
    arena<strict> a(buffer.span(), source);
    random_bits random(seed);
    live_blocks live;
    struct level {
      arena<strict>::mark_type mark;
      std::size_t blocks, in_use, at_source;
    };
    std::vector<level> levels;
    const auto next = any_layout(3000, 4096);
    for (int i = 0; i < 300; ++i) {
      const auto kind = random() % 12;
      if (kind == 0) {
        const auto mark = a.mark();
        levels.push_back({mark, live.size(), a.stats().in_use, source.live()});
      } else if (kind == 1 && !levels.empty()) {
        levels.resize(random() % levels.size() + 1, levels[0]);
        const level& to = levels.back();
        for (std::size_t k = to.blocks; k < live.size(); ++k) live.look_at(k);
        live.forget_from(to.blocks);
        a.rewind(to.mark);
        EXPECT_EQ(a.stats().in_use, to.in_use);
        EXPECT_LE(source.live(), to.at_source);
      } else if (kind < 5 && live.size() > (levels.empty() ? 0 : levels.back().blocks)) {
        const auto b = live.remove(live.size() - 1);
        a.deallocate(b.at, b.asked);
      } else {
        const layout l = next(random);
        live.add(a.allocate(l), l);
      }
    }
    for (std::size_t k = 0; k < live.size(); ++k) live.look_at(k);
  }
}

TEST(Arena, ARewindTakesBackWhatAnOlderBlockHasGrownBy) {
  arena<> a;
  void* const p = a.allocate({16, 8});
  const auto mark = a.mark();
  ASSERT_TRUE(a.try_resize(p, {16, 8}, {500, 8}));
  a.rewind(mark);
  EXPECT_EQ(a.stats().in_use, 16u);
  void* const next = a.allocate({8, 8});
  EXPECT_EQ(static_cast<std::byte*>(next), static_cast<std::byte*>(p) + 16);
}

// "Frees everything. Of the chunks the largest stays."
TEST(Arena, AResetKeepsTheLargestChunk) {
  strict_source source;
  arena<strict> a(source, 1024);
  for (int i = 0; i < 100; ++i) (void)a.allocate({500, 8});
  ASSERT_GT(source.live(), 1u);
  const std::size_t largest = source.largest_live();
  a.reset();
  EXPECT_EQ(source.live(), 1u);
  EXPECT_EQ(source.live_bytes(), largest);
  EXPECT_EQ(a.stats().in_use, 0u);
  EXPECT_EQ(a.stats().held, largest);
  EXPECT_EQ(a.stats().chunks, 1u);
  const auto requests = source.requests.size();
  EXPECT_NE(a.allocate({500, 8}), nullptr);
  EXPECT_EQ(source.requests.size(), requests);
}

// "If blocks lay in chunks, that one is used from now on in place of the buffer, which was too
// small."
TEST(Arena, AfterAResetTheChunkStandsInForTheBuffer) {
  strict_source source;
  alignas(16) std::array<std::byte, 256> memory;
  arena<strict> a(std::span<std::byte>(memory), source);
  EXPECT_TRUE(a.in_buffer(a.allocate({200, 8})));
  a.reset();
  EXPECT_TRUE(a.in_buffer(a.allocate({200, 8})));  // no block lay in a chunk
  EXPECT_FALSE(a.in_buffer(a.allocate({200, 8})));
  a.reset();
  void* const p = a.allocate({8, 8});
  EXPECT_FALSE(a.in_buffer(p));
  EXPECT_TRUE(a.owns(p));
}

// "Gives chunks without blocks back to the source: the one that a reset kept, and the one that
// frees have left. Returns the bytes given back."
TEST(Arena, TrimGivesBackChunksWithoutBlocks) {
  strict_source source;
  arena<strict> a(source, 1024);
  for (int i = 0; i < 50; ++i) (void)a.allocate({500, 8});
  a.reset();
  const auto held = a.stats().held;
  EXPECT_EQ(a.trim(), held);
  EXPECT_EQ(source.live(), 0u);
  EXPECT_EQ(a.stats().held, 0u);
  EXPECT_EQ(a.trim(), 0u);
  EXPECT_NE(a.allocate({10, 1}), nullptr);

  strict_source other;
  arena<strict> b(other, 1024);
  void* const p = b.allocate({500, 8});
  void* const q = b.allocate({5000, 8});
  b.deallocate(q, {5000, 8});
  const auto before = other.live_bytes();
  const auto given_back = b.trim();
  EXPECT_EQ(given_back, before - other.live_bytes());
  std::memset(p, 1, 500);
  b.deallocate(p, {500, 8});
  (void)b.trim();
  EXPECT_EQ(b.stats().in_use, 0u);
  EXPECT_EQ(other.live(), 0u);
}

// "Draws its memory from `source`, at first `first_chunk` bytes." "[largest_chunk] chunks stop
// doubling here; larger ones serve one large block"
TEST(Arena, ChunksDoubleUpToTheLargest) {
  strict_source source;
  arena<strict> a(source, 2 * KiB);
  for (int i = 0; i < 6000; ++i) (void)a.allocate({1000, 8});
  ASSERT_FALSE(source.requests.empty());
  EXPECT_EQ(source.requests[0].size, 2 * KiB);
  for (const layout& l : source.requests) EXPECT_LE(l.size, arena<>::largest_chunk);
  EXPECT_EQ(source.requests.back().size, arena<>::largest_chunk);
  EXPECT_NE(a.allocate({3 * MiB, 8}), nullptr);
  EXPECT_GE(source.requests.back().size, 3 * MiB);
}

TEST(Arena, AFirstChunkOfAnySize) {
  for (std::size_t first = 0; first < 100; ++first) {
    strict_source source;
    arena<strict> a(source, first);
    EXPECT_GT(walk(refer_to(a), any_layout(500), order::random, 100), 0u) << first;
  }
}

// "in_use: blocks at their rounded sizes, with the padding between them"
TEST(Arena, InUseCountsRoundedSizesAndPadding) {
  alignas(64) std::array<std::byte, 512> memory;
  arena<no_source> a{std::span<std::byte>(memory)};
  (void)a.allocate({1, 1});
  EXPECT_EQ(a.stats().in_use, 8u);
  (void)a.allocate({9, 1});
  EXPECT_EQ(a.stats().in_use, 24u);
  (void)a.allocate({8, 64});
  EXPECT_EQ(a.stats().in_use, 72u);
}

// "`Bytes` of its own, then chunks from `source`."
TEST(StackArena, UsesItsOwnBytesFirst) {
  strict_source source;
  {
    stack_arena<1000, strict> a(source);
    void* const p = a.allocate({1000 - 8, 8});
    EXPECT_TRUE(a.in_buffer(p));
    const auto* const begin = reinterpret_cast<const std::byte*>(&a);
    EXPECT_TRUE(p >= begin && p < begin + sizeof a);  // "carries its first memory within itself"
    EXPECT_EQ(source.live(), 0u);
    EXPECT_FALSE(a.in_buffer(a.allocate({100, 8})));
    EXPECT_EQ(source.live(), 1u);
    a.deallocate(p, {992, 8});
    walk_all(refer_to(a), any_layout(3000, 4096));
  }
}

// "Neither copied nor moved: blocks lie in it."
static_assert(!std::is_copy_constructible_v<stack_arena<64>> && !std::is_move_constructible_v<stack_arena<64>>);
static_assert(!std::is_copy_assignable_v<stack_arena<64>> && !std::is_move_assignable_v<stack_arena<64>>);

template <std::size_t... Bytes>
void try_sizes(std::index_sequence<Bytes...>) {
  const auto try_one = []<std::size_t N>() {
    stack_arena<N + 1, no_source> a;
    std::size_t blocks = 0;
    while (void* const p = a.allocate({1, 1})) {
      EXPECT_TRUE(a.in_buffer(p));
      std::memset(p, 0xff, 1);
      ++blocks;
    }
    EXPECT_LE(blocks, N / 8 + 1);
  };
  (try_one.template operator()<Bytes>(), ...);
}

TEST(StackArena, HasAnySize) { try_sizes(std::make_index_sequence<40>()); }

TEST(StackArena, WithoutASourceHasItsOwnBytesAlone) {
  stack_arena<64, no_source> a;
  EXPECT_EQ(a.allocate({65, 1}), nullptr);
  EXPECT_NE(a.allocate({64, 1}), nullptr);
  EXPECT_EQ(a.allocate({1, 1}), nullptr);
  a.reset();
  EXPECT_NE(a.allocate({64, 1}), nullptr);
}

}  // namespace
