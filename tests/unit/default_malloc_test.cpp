// Heaps of one's own where every block is the process's malloc's: they do what heaps do, and tools see each block.
#define HEAPWRIGHT_DEFAULT_MALLOC
#include <heapwright/heap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace heapwright {
namespace {

static_assert(std::is_same_v<heap<default_recipe>, malloc_heap<default_recipe>>);

TEST(DefaultMalloc, DoesWhatHeapsDo) {
  heap<default_recipe> h("name", 1 * MiB);
  EXPECT_STREQ(h.name(), "name");
  void* const p = h.allocate(100);
  void* const q = h.allocate({200, 4096});
  EXPECT_TRUE(is_aligned(q, 4096));
  EXPECT_TRUE(h.owns(p) && !h.owns(&h));
  EXPECT_EQ(h.usable_size(q), 200u);
  EXPECT_EQ(h.allocate(1 * MiB), nullptr);
  EXPECT_EQ(h.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(h.statistics().in_use, 300u);
  std::memset(p, 7, 100);
  auto* const moved = static_cast<unsigned char*>(h.reallocate(p, 300));
  EXPECT_EQ(moved[99], 7);
  std::size_t blocks = 0;
  EXPECT_TRUE(h.for_each_block([&](const void*, std::size_t) { ++blocks; }));
  EXPECT_EQ(blocks, 2u);
  h.deallocate(q);
  h.deallocate(nullptr);
  h.set_limit(2 * MiB);
  EXPECT_NE(h.allocate_zeroed(1 * MiB), nullptr) << "and it is freed with the heap";
}

[[gnu::noinline]] void* forget_some(heap<default_recipe>& h) {
  void* last = nullptr;
  volatile int left = 3;  // or the compiler makes it three calls in a row
  while (left > 0) {
    last = h.allocate(1000);
    left = left - 1;
  }
  return last;
}

TEST(DefaultMalloc, KnowsWhereABlockWasAskedFor) {
  heap<default_recipe> h("forgetful");
  h.deallocate(h.allocate(500));
  void* const volatile last = forget_some(h);  // not a tail call
  void* const one_more = h.allocate(10);
  ASSERT_TRUE(last != nullptr && one_more != nullptr);
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("heapwright: forgetful: 3 blocks, 2.9 KiB in use, asked for at ", 0), 0u) << text;
  EXPECT_NE(text.find("\nheapwright: forgetful: 1 blocks, 10 B in use, asked for at "), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("+0x"), std::string::npos) << "object and offset";
}

TEST(DefaultMallocDeathTest, ReportsWhatIsForgottenAtTheEnd) {
  const auto forget_and_end = [](const char* asked) {
    if (asked != nullptr) ::setenv("HEAPWRIGHT_LEAKS", asked, 1);
    static heap<default_recipe> h("forgetful");
    void* const volatile last = forget_some(h);
    std::exit(last == nullptr ? 1 : 0);
  };
  EXPECT_EXIT(forget_and_end("1"), ::testing::ExitedWithCode(0),
              "heapwright: forgetful: 3 blocks, 2.9 KiB in use, asked for at .*\\+0x");
  EXPECT_EXIT(forget_and_end("0"), ::testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(forget_and_end(nullptr), ::testing::ExitedWithCode(0), "^$");
}

TEST(DefaultMalloc, ServesThreads) {
  heap<default_recipe> h;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 1; i < 1000; ++i) h.deallocate(h.allocate(i));
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(h.statistics().in_use, 0u);
}

#ifdef __SANITIZE_ADDRESS__
TEST(DefaultMallocDeathTest, ASanitizerSeesEveryBlock) {
  heap<default_recipe> h;
  auto* const p = static_cast<volatile char*>(h.allocate(100));
  EXPECT_DEATH(p[100] = 1, "heap-buffer-overflow");
  h.deallocate(const_cast<char*>(p));
  EXPECT_DEATH(p[0] = 1, "heap-use-after-free");
}
#endif

}  // namespace
}  // namespace heapwright
