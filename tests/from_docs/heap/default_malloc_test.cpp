// States what the documentation says of heaps that are compiled with HEAPWRIGHT_DEFAULT_MALLOC
// ("Heaps for parts of a program" in docs/recipes.md). Written without the code.
#include "model.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#ifndef HEAPWRIGHT_DEFAULT_MALLOC
#error "this file is compiled with HEAPWRIGHT_DEFAULT_MALLOC"
#endif

namespace {

using namespace from_docs;
using heapwright::heap;

constexpr heapwright::recipe limited{.pages = {.limit = 4 * MiB}};

TEST(DefaultMalloc, DoesWhatTheModelSays) {
  heap<> h("malloc's");
  EXPECT_TRUE(h.attached());
  EXPECT_STREQ(h.name(), "malloc's");
  behaves_as_documented(h, {.notes_requests = true}, 800);  // "requested is always told"
}

TEST(DefaultMalloc, HasAHeapForOneThreadToo) {
  heapwright::local_heap<> h;
  behaves_as_documented(h, {.notes_requests = true}, 500);
}

// "limit: bytes in memory for blocks"
TEST(DefaultMalloc, KeepsTheLimit) {
  heap<limited> h;
  EXPECT_EQ(h.allocate(5 * MiB), nullptr);
  void* const p = h.allocate(3 * MiB);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(h.allocate(3 * MiB), nullptr);
  h.deallocate(p);
}

TEST(DefaultMalloc, HasNothingBeyondPtrdiffMax) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends a process that asks malloc for so much";
#endif
  heap<> h;
  for (const std::size_t size : {std::size_t{PTRDIFF_MAX}, std::size_t{SIZE_MAX}}) {
    EXPECT_EQ(h.allocate(size), nullptr);
    EXPECT_EQ(h.allocate_zeroed(size), nullptr);
    EXPECT_EQ(h.reallocate(nullptr, size), nullptr);
    EXPECT_EQ(h.allocate(layout{size, 4096}), nullptr);
  }
}

// "True for each live block, false for memory that is not this heap's", of malloc's blocks too
TEST(DefaultMalloc, OwnsItsOwnBlocksAlone) {
  heap<> h, other;
  void* const p = h.allocate(100);
  void* const q = other.allocate(100);
  void* const m = std::malloc(100);
  EXPECT_TRUE(h.owns(p));
  EXPECT_FALSE(h.owns(q));
  EXPECT_FALSE(h.owns(m));
  EXPECT_FALSE(h.owns(nullptr));
  EXPECT_EQ(h.usable_size(m), 0u);
  std::free(m);
  other.deallocate(q);
  h.deallocate(p);
}

/// What is written to stderr while f runs in a process of its own, which must end with 0.
template <class F>
std::string said_by(F f) {
  ::testing::internal::CaptureStderr();
  f();
  return ::testing::internal::GetCapturedStderr();
}

[[gnu::noinline]] void* asks_for_one(heap<>& h) { return h.allocate(777); }

// "`write_blocks` says then which line asked for a block"
TEST(DefaultMalloc, SaysWhoAskedForABlock) {
  heap<> h("forgetful");
  void* const p = asks_for_one(h);
  const std::string said = said_by([&] { h.write_blocks(2); });
  EXPECT_NE(said.find("777"), std::string::npos) << said;
  EXPECT_NE(said.find("default_malloc_test.cpp"), std::string::npos) << said;
  h.deallocate(p);
}

// "with `HEAPWRIGHT_LEAKS=1` in the environment a heap says so itself at its end"
TEST(DefaultMalloc, SaysAtItsEndWhatIsNotFreed) {
  // "What is not freed at a heap's end stays with malloc, so that the tools report it."
  void* forgotten = nullptr;
  const auto live_and_end = [&] {
    std::free(forgotten);
    heap<> h("forgetful");
    forgotten = asks_for_one(h);
  };
  unsetenv("HEAPWRIGHT_LEAKS");
  EXPECT_EQ(said_by(live_and_end), "");
  setenv("HEAPWRIGHT_LEAKS", "1", 1);
  const std::string said = said_by(live_and_end);
  EXPECT_NE(said.find("forgetful"), std::string::npos) << said;
  EXPECT_NE(said.find("777"), std::string::npos) << said;
  std::free(forgotten);
  EXPECT_EQ(said_by([] {
              heap<> h("tidy");
              h.deallocate(h.allocate(777));
            }),
            "");
  unsetenv("HEAPWRIGHT_LEAKS");
}

// "each block is a block of the process's malloc", so "the tools see all of them": AddressSanitizer
// for one
TEST(DefaultMalloc, IsSeenByAddressSanitizer) {
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(
      {
        heap<> h;
        auto* const p = static_cast<volatile char*>(h.allocate(100));
        h.deallocate(const_cast<char*>(p));
        p[10] = 1;
      },
      "heap-use-after-free");
  EXPECT_DEATH(
      {
        heap<> h;
        static_cast<volatile char*>(h.allocate(100))[100] = 1;
      },
      "heap-buffer-overflow");
#else
  GTEST_SKIP() << "no AddressSanitizer";
#endif
}

// "Has its blocks in this memory": in memory of the caller's they are not malloc's
TEST(DefaultMalloc, LeavesHeapsInCallersMemoryThere) {
  std::vector<std::byte> memory(1 * MiB);
  heap<> h(memory.data(), memory.size());
  auto* const p = static_cast<std::byte*>(h.allocate(100));
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(p >= memory.data() && p + 100 <= memory.data() + memory.size());
  h.deallocate(p);
}

}  // namespace
