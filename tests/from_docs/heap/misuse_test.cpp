// States what the documentation says of a program's mistakes: the docstrings of heap.hpp and of
// recipe.hardening, "Checked builds" in docs/concepts.md. Written without the code.
#include "model.hpp"

#include <pthread.h>

#include <memory>
#include <thread>

namespace {

using namespace from_docs;
using heapwright::checks_callers;
using heapwright::heap;

constexpr heapwright::recipe checking{.hardening = {.check_callers = true}};
constexpr heapwright::recipe checking_locally{.concurrency = heapwright::concurrency_mode::single_threaded,
                                              .hardening = {.check_callers = true}};
constexpr heapwright::recipe guarding{.hardening = {.guard_large = true}};

/// "The messages" of docs/recipes.md, for blocks of this size.
template <class Heap>
void dies_of_mistakes(std::size_t size) {
  SCOPED_TRACE(size);
  Heap h("mine"), other("other");
  auto* const p = static_cast<std::byte*>(h.allocate(size));
  // "a block of more than 32 KiB that was freed before is a foreign pointer"
  EXPECT_DEATH(
      {
        h.deallocate(p);
        h.deallocate(p);
      },
      size > 32 * KiB ? "free of a foreign pointer" : "double free");
  EXPECT_DEATH(
      {
        h.deallocate(p);
        (void)h.reallocate(p, 2 * size + 1);
      },
      size > 32 * KiB ? "foreign pointer" : "double free");
  EXPECT_DEATH(h.deallocate(p + 8), "free of a (pointer into a block|foreign pointer)");
  void* const foreign = other.allocate(size);
  EXPECT_DEATH(h.deallocate(foreign), "free of a foreign pointer");
  EXPECT_DEATH((void)h.reallocate(foreign, 2 * size), "foreign pointer");
  // Nothing has happened to either in this process.
  other.deallocate(foreign);
  h.deallocate(p);
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// "double free, foreign pointers and pointers into blocks end the program with a message, in every
// build"
TEST(Misuse, EndsTheProcessWhereTheRecipeSaysSo) {
  for (const std::size_t size : {1u, 100u, 10000u, 100000u, 500000u}) dies_of_mistakes<heap<checking>>(size);
  dies_of_mistakes<heap<checking_locally>>(100);
}

// "or ends the process in checked builds"
TEST(Misuse, EndsTheProcessInCheckedBuilds) {
  if (!checks_callers) GTEST_SKIP() << "not a checked build";
  for (const std::size_t size : {1u, 100u, 10000u, 100000u, 500000u}) dies_of_mistakes<heap<>>(size);
  dies_of_mistakes<heapwright::local_heap<>>(100);
}

TEST(Misuse, OfMemoryThatIsNoHeapsEndsTheProcess) {
  heap<checking> h;
  int local = 0;
  static int global = 0;
  EXPECT_DEATH(h.deallocate(&local), "heapwright");
  EXPECT_DEATH(h.deallocate(&global), "heapwright");
  EXPECT_DEATH(h.deallocate(reinterpret_cast<void*>(64)), "heapwright");
  EXPECT_DEATH(h.deallocate(reinterpret_cast<void*>(UINTPTR_MAX)), "heapwright");
  h.deallocate(nullptr);
}

TEST(Misuse, OfReallocateOfAFreedBlockEndsTheProcess) {
  heap<checking> h;
  for (const std::size_t size : {16u, 100u, 10000u, 31000u}) {
    void* const p = h.allocate(size);
    EXPECT_DEATH(
        {
          h.deallocate(p);
          (void)h.reallocate(p, size);
        },
        "heapwright")
        << size;
  }
}

TEST(Misuse, OfReallocateOfAPointerIntoABlockEndsTheProcess) {
  heap<checking> h;
  for (const std::size_t size : {100u, 10000u, 31000u, 100000u}) {
    auto* const p = static_cast<std::byte*>(h.allocate(size));
    EXPECT_DEATH((void)h.reallocate(p + 16, size), "heapwright") << size;
  }
}

TEST(Misuse, OfABlockThatWasNeverHandedOutEndsTheProcess) {
  heap<checking> h;
  auto* const p = static_cast<std::byte*>(h.allocate(16));
  EXPECT_DEATH(h.deallocate(p + 16), "heapwright");
}

TEST(Misuse, IsNotFoundWhereThereIsNone) {
  std::vector<std::unique_ptr<heap<checking>>> heaps;
  for (int i = 0; i < 66; ++i) heaps.push_back(std::make_unique<heap<checking>>());
  auto& h = *heaps.back();
  for (int i = 0; i < 4; ++i) h.deallocate(h.allocate(40000));
}

// Frees in a thread that is ending, whose cache is closed.
void free_in_key(void* of) {
  for (int i = 0; i < 4; ++i)
    static_cast<heap<checking>*>(of)->deallocate(static_cast<heap<checking>*>(of)->allocate(40000));
}
TEST(Misuse, IsNotFoundInAThreadThatEnds) {
  heap<checking> h;
  std::thread([&] {
    h.deallocate(h.allocate(100));  // it has a cache, whose key is the earlier one
    pthread_key_t key{};
    pthread_key_create(&key, free_in_key);
    pthread_setspecific(key, &h);
  }).join();
}

// A double free is found as well when others have been freed in between, or the block was trimmed
// away.
TEST(Misuse, IsFoundLater) {
  heap<checking> h;
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(h.allocate(200));
  for (void* const p : blocks) h.deallocate(p);
  for (const std::size_t i : {0u, 3u, 700u, 1500u, 1999u}) EXPECT_DEATH(h.deallocate(blocks[i]), "heapwright");
  h.trim();
  for (const std::size_t i : {0u, 1999u}) EXPECT_DEATH(h.deallocate(blocks[i]), "heapwright");
}

// "a page that cannot be touched lies behind each block of more than 255 KiB, which ends there"
TEST(GuardLarge, StopsWhoWritesBehindALongBlock) {
  heap<guarding> h;
  for (const std::size_t size : {256 * KiB + 16, 1 * MiB, 3 * MiB + 4096}) {
    auto* const p = static_cast<volatile char*>(h.allocate(size));
    ASSERT_NE(p, nullptr);
    p[0] = 1;
    p[size - 1] = 1;
    EXPECT_LT(h.usable_size(const_cast<char*>(p)), size + 16);
    EXPECT_DEATH(p[size + 15] = 1, "");
    auto* const q = static_cast<char*>(h.reallocate(const_cast<char*>(p), size + 100000));
    ASSERT_NE(q, nullptr);
    EXPECT_NE(q, p);  // "realloc always copies"
    EXPECT_EQ(q[size - 1], 1);
    h.deallocate(q);
  }
  void* const zeroed = h.allocate_zeroed(1 * MiB);
  EXPECT_EQ(static_cast<char*>(zeroed)[1 * MiB - 1], 0);
  void* const aligned = h.allocate(layout{1 * MiB, 64 * KiB});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % (64 * KiB), 0u);
  h.deallocate(zeroed);
  h.deallocate(aligned);
  behaves_as_documented(h, {}, 600);
}

}  // namespace
