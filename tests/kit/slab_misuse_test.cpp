// What a slab says of the caller's mistakes. Unlike other allocators it says most of it in every
// build.
#include <heapwright/allocator/slab.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <heapwright/core/check.hpp>

namespace heapwright {
namespace {

class SlabDeathTest : public ::testing::Test {
 protected:
  slab<> s{{48, 16}};
  std::byte* p = static_cast<std::byte*>(s.allocate());
  std::byte* q = static_cast<std::byte*>(s.allocate());
};

TEST_F(SlabDeathTest, DoubleFree) {
  s.deallocate(p);
  EXPECT_DEATH(s.deallocate(p), "heapwright: double free: 0x");
}

TEST_F(SlabDeathTest, DoubleFreeOfEveryBlockOfASlab) {
  std::vector<void*> blocks;
  for (int i = 0; i < 150; ++i) blocks.push_back(s.allocate());
  for (void* const b : blocks) s.deallocate(b);
  for (const std::size_t i : {0U, 63U, 64U, 149U}) EXPECT_DEATH(s.deallocate(blocks[i]), "double free");
}

TEST_F(SlabDeathTest, FreeOfABlockThatWasNeverHandedOut) { EXPECT_DEATH(s.deallocate(q + 48), "double free"); }

TEST_F(SlabDeathTest, FreeAfterReset) {
  s.reset();
  EXPECT_DEATH(s.deallocate(p), "double free");
}

TEST_F(SlabDeathTest, PointerIntoABlock) {
  for (const int offset : {1, 8, 16, 47}) EXPECT_DEATH(s.deallocate(p + offset), "free of a foreign pointer");
}

TEST_F(SlabDeathTest, PointerIntoTheHeader) {
  auto* const header = reinterpret_cast<std::byte*>(align_down(address_of(p), 16 * KiB));
  EXPECT_DEATH(s.deallocate(header), "free of a foreign pointer");
  EXPECT_DEATH(s.deallocate(p - 48), "free of a foreign pointer") << "where a block would be";
}

TEST_F(SlabDeathTest, PointerBehindTheLastBlock) {
  auto* const end = reinterpret_cast<std::byte*>(align_down(address_of(p), 16 * KiB) + 16 * KiB);
  std::byte* behind = p;
  while (behind + 48 <= end - (poisons ? 64 : 0)) behind += 48;
  EXPECT_DEATH(s.deallocate(behind), "free of a foreign pointer");
}

TEST_F(SlabDeathTest, BlockOfAnotherSlab) {
  slab<> other{{48, 16}};
  void* const others = other.allocate();
  EXPECT_DEATH(s.deallocate(others), "free of a foreign pointer");
}

TEST_F(SlabDeathTest, MappedMemoryThatIsNoSlab) {
  static std::byte memory[64 * KiB];
  auto* const range = reinterpret_cast<std::byte*>(align_up(address_of(memory), 16 * KiB));
  EXPECT_DEATH(s.deallocate(range + (p - reinterpret_cast<std::byte*>(align_down(address_of(p), 16 * KiB)))),
               "free of a foreign pointer")
      << "all zero";
  for (std::size_t i = 0; i < 16 * KiB; i += 8) std::memcpy(range + i, &range, 8);
  EXPECT_DEATH(s.deallocate(range + 480), "free of a foreign pointer") << "full of addresses";
}

TEST_F(SlabDeathTest, MemoryThatWasASlabOnce) {
  static std::byte memory[32 * KiB];
  struct fixed {
    void* allocate(layout l) noexcept { return reinterpret_cast<void*>(align_up(address_of(memory), l.alignment)); }
    void deallocate(void*, layout) noexcept {}
  };
  slab<fixed> once{{48, 16}, {.keep_empty = 0}};
  void* const gone = once.allocate();
  once.deallocate(gone);
  EXPECT_DEATH(once.deallocate(gone), "free of a foreign pointer");
}

TEST_F(SlabDeathTest, AnyPointerValueInCheckedBuilds) {
  if constexpr (!checks_callers) GTEST_SKIP() << "only checked builds look the slab up first";
  for (const std::uintptr_t value : {std::uintptr_t{16}, ~std::uintptr_t{15}, std::uintptr_t{1} << 62}) {
    EXPECT_DEATH(s.deallocate(reinterpret_cast<void*>(value)), "free of a foreign pointer");
  }
}

TEST_F(SlabDeathTest, WrongLayout) {
  if constexpr (!checks_callers) GTEST_SKIP() << "not seen in this build";
  EXPECT_DEATH(s.deallocate(p, {49, 16}), "free with a wrong layout");
  EXPECT_DEATH(s.deallocate(p, {48, 32}), "free with a wrong layout");
}

}  // namespace
}  // namespace heapwright
