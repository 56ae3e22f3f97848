// Checked builds name the caller's mistake and die.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <heapwright/heap/heap_core.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

using heap_type = heap_core<default_recipe, native_os>;

class MisuseDeathTest : public ::testing::Test, protected testing::single_threaded<heap_type> {};

TEST_F(MisuseDeathTest, DoubleFree) {
  void* const p = allocate(40);
  free(p);
  EXPECT_DEATH(free(p), "heapwright: double free: 0x");
}

TEST_F(MisuseDeathTest, DoubleFreeOfALargeBlock) {
  void* const p = allocate(1 * MiB);
  free(p);
  EXPECT_DEATH(free(p), "heapwright: free of a foreign pointer: 0x.*freed already");
}

TEST_F(MisuseDeathTest, DoubleFreeOfAPageRunBlock) {
  void* const p = allocate(100'000);
  free(p);
  EXPECT_DEATH(free(p), "heapwright: free of a foreign pointer: 0x.*freed already") << "given back";
  for (int i = 0; i < 3; ++i) free(allocate(100'000));
  void* const kept = allocate(100'000);
  free(kept);
  EXPECT_DEATH(free(kept), "heapwright: double free: 0x") << "in the cache";
}

TEST_F(MisuseDeathTest, PointerIntoAPageRunBlock) {
  auto* const p = static_cast<char*>(allocate(100'000));
  EXPECT_DEATH(free(p + 16), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(free(p + 50'000), "heapwright: free of a foreign pointer: 0x");
  free(p);
}

TEST_F(MisuseDeathTest, PointerIntoABlock) {
  auto* const p = static_cast<char*>(allocate(100));
  EXPECT_DEATH(free(p + 16), "heapwright: free of a pointer into a block: 0x");
  free(p);
}

TEST_F(MisuseDeathTest, PointerBeforeTheFirstBlockOfASpan) {
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(static_cast<char*>(allocate(16 * KiB)));
  const auto first = std::find_if(blocks.begin(), blocks.end(), [](char* p) {
    return address_of(p) % heap_page >= cache_line;  // the page begins with what is left over
  });
  ASSERT_NE(first, blocks.end());
  char* const page = *first - address_of(*first) % heap_page;
  EXPECT_DEATH(free(page), "heapwright: free of a pointer into a block: 0x");
  for (char* p : blocks) free(p);
}

TEST_F(MisuseDeathTest, ForeignPointers) {
  int local = 0;
  EXPECT_DEATH(free(&local), "heapwright: free of a foreign pointer: 0x");
  EXPECT_DEATH(free(reinterpret_cast<void*>(0xDEADBEEFDEADBEE0)),
               "heapwright: free of a foreign pointer: 0xdeadbeefdeadbee0");
}

}  // namespace
}  // namespace heapwright
