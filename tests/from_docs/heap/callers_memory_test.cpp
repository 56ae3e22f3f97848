// docs/recipes.md and the docstrings of heapwright/heap.hpp: a heap in memory of the caller's,
// sentence by sentence.
#include "model.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace {

using namespace from_docs;
using heap = heapwright::heap<>;

class CallersMemory : public ::testing::Test {
 protected:
  static constexpr std::size_t all = 4 * MiB;
  CallersMemory()
      : memory(static_cast<std::byte*>(mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  }
  ~CallersMemory() override { munmap(memory, all); }
  std::byte* const memory;
};

// "Has its blocks in this memory, whole pages of it, and nowhere else"; "attached() tells whether
// it was large enough"
TEST_F(CallersMemory, OfEverySmallSizeIsUsedOrRefusedAndNeverLeft) {
  int attached = 0;
  for (const std::size_t offset : {0u, 1u, 100u, 4095u})
    for (std::size_t bytes = 0; bytes <= 80 * KiB; bytes += bytes < 4200 ? 433 : 2993) {
      constexpr std::byte untouched{0xa5};
      std::memset(memory, 0xa5, 128 * KiB);
      std::byte* const begin = memory + 4096 + offset;
      {
        heap h(begin, bytes, "small");
        std::size_t blocks = 0;
        for (const std::size_t size : {1u, 16u, 100u, 1000u, 4096u, 20000u, 70000u, 300000u})
          while (auto* const p = static_cast<std::byte*>(h.allocate(size))) {
            ++blocks;
            ASSERT_GE(p, begin);
            ASSERT_LE(p + h.usable_size(p), begin + bytes);
            std::memset(p, 1, h.usable_size(p));
          }
        // "False: every request gets null, as ... the caller's memory has no room for a block."
        ASSERT_EQ(h.attached(), blocks != 0) << bytes << " bytes at " << offset;
        attached += h.attached();
        const auto s = h.statistics();
        ASSERT_EQ(s.mapped, sum_of_parts(s));
        ASSERT_LE(s.mapped, bytes);
        ASSERT_EQ(count_blocks(h), blocks);
        h.trim();
      }
      // nothing outside of it is written to, during its life and at its end
      for (std::byte* p = memory; p < begin; ++p) ASSERT_EQ(*p, untouched) << begin - p << " before " << bytes;
      for (std::byte* p = begin + bytes; p < memory + 128 * KiB; ++p)
        ASSERT_EQ(*p, untouched) << p - begin << " of " << bytes;
    }
  EXPECT_GT(attached, 0);
}

TEST_F(CallersMemory, OfAnySizeDoesWhatTheModelSays) {
  for (const std::size_t bytes : {300 * KiB, 1 * MiB, all}) {
    heap h(memory, bytes, "in an array");
    ASSERT_TRUE(h.attached());
    behaves_as_documented(h, {.may_be_exhausted = true}, 1500, 5);
    // Once all is free, most of it can be had in one piece again.
    h.trim();
    void* const p = h.allocate(bytes / 2);
    EXPECT_NE(p, nullptr);
    h.deallocate(p);
  }
}

// "The memory must outlive the heap, and is then as the blocks have left it."
TEST_F(CallersMemory, IsAsTheBlocksHaveLeftIt) {
  char* text = nullptr;
  {
    heap h(memory, 1 * MiB, "left");
    text = static_cast<char*>(h.allocate(1000));
    std::strcpy(text, "what a block holds");
  }
  EXPECT_STREQ(text, "what a block holds");
}

// "memory that other processes see": "one process allocates, the others read and write what it has
// allocated"
TEST_F(CallersMemory, IsSeenByOtherProcesses) {
  heap h(memory, 1 * MiB, "shared");
  int* const from = static_cast<int*>(h.allocate(sizeof(int)));
  int* const to = static_cast<int*>(h.allocate_zeroed(sizeof(int)));
  *from = 42;
  const pid_t child = fork();
  if (child == 0) {
    *to = *from + 1;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(*to, 43);
  h.deallocate(from);
  h.deallocate(to);
}

// "Has its blocks in this memory ... and nowhere else", with a heap beside it that has its own
TEST_F(CallersMemory, OfTwoHeapsIsKeptApart) {
  heap a(memory, 1 * MiB, "a"), b(memory + 1 * MiB, 1 * MiB, "b"), c("c");
  std::minstd_rand random(1);
  std::vector<std::pair<heap*, void*>> blocks;
  for (int i = 0; i < 3000; ++i) {
    heap* const h = std::array{&a, &b, &c}[random() % 3];
    if (void* const p = h->allocate(random() % 500)) blocks.emplace_back(h, p);
  }
  for (const auto& [owner, p] : blocks)
    for (heap* const h : {&a, &b, &c}) ASSERT_EQ(h->owns(p), h == owner);
  for (const auto& [owner, p] : blocks) owner->deallocate(p);
  for (heap* const h : {&a, &b, &c}) EXPECT_EQ(h->statistics().in_use, 0u);
}

// The limit of recipe.pages holds in it too, and can be changed.
TEST_F(CallersMemory, CanBeLimitedFurther) {
  heap h(memory, all, "limited");
  h.set_limit(512 * KiB);
  EXPECT_EQ(h.allocate(1 * MiB), nullptr);
  h.set_limit(UINT64_MAX);
  EXPECT_NE(h.allocate(1 * MiB), nullptr);
}

// A second heap in memory that a first one had.
TEST_F(CallersMemory, ServesOneHeapAfterTheOther) {
  for (int i = 0; i < 50; ++i) {
    heap h(memory, 512 * KiB);
    ASSERT_TRUE(h.attached());
    auto* const p = static_cast<unsigned char*>(h.allocate_zeroed(100 * KiB));
    ASSERT_NE(p, nullptr);
    for (std::size_t at = 0; at < 100 * KiB; ++at) ASSERT_EQ(p[at], 0);  // whatever the last one left there
    std::memset(p, 0xff, 100 * KiB);
  }
}

TEST(Attached, IsFalseWithoutMemory) {
  heap none(nullptr, 0, "nothing");
  EXPECT_FALSE(none.attached());
  EXPECT_EQ(none.allocate(1), nullptr);
  EXPECT_EQ(none.trim(), 0u);
  EXPECT_EQ(count_blocks(none), 0u);
  EXPECT_STREQ(none.name(), "nothing");
}

}  // namespace
