// States what the documentation says of the combinators that look for mistakes: poisoned, guarded,
// leak_checked. Written without the code.
#include <cstring>
#include <optional>

#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;
using strict = upstream<strict_source>;

// All three are allocators, of whatever part, and pass on what it can do.
template <template <class> class Combinator>
void is_an_allocator() {
  strict_source source;
  {
    Combinator<strict> a{source};
    walk_all(refer_to(a), any_layout(5000, 64 * KiB));
    EXPECT_EQ(a.allocate({SIZE_MAX, 1}), nullptr);
    EXPECT_EQ(a.allocate({SIZE_MAX - 40, 64}), nullptr);
    EXPECT_EQ(a.allocate({SIZE_MAX / 2 + 1, 64 * KiB}), nullptr);
    source.limit = 0;
    EXPECT_EQ(a.allocate({1, 1}), nullptr);  // "Null when the part has no memory"
  }
  Combinator<upstream_malloc> of_malloc;
  walk_all(refer_to_unsized(of_malloc), any_layout(5000, 64 * KiB));
  odd_buffer buffer(128 * KiB, 3);
  Combinator<best_fit<>> a{buffer.span()};
  walk_all(refer_to(a), any_layout(1000, 256));
  random_bits random(2);
  live_blocks live;
  for (int i = 0; i < 500; ++i) {
    if (live.size() < 20) {
      const layout l = any_layout(500)(random);
      if (void* const p = a.allocate(l)) live.add(p, l);
      continue;
    }
    const std::size_t which = random() % live.size();
    const layout from = live[which].asked;
    const layout to{random() % 600, from.alignment};
    EXPECT_GE(a.usable_size(live[which].at), from.size);
    if (random() % 2 == 0) {  // "as realloc of C"
      const auto old = live.remove(which);
      auto* const p = static_cast<std::byte*>(a.reallocate(old.at, to.size));
      if (to.size == 0) {
        EXPECT_EQ(p, nullptr);
        continue;
      }
      if (p == nullptr) {  // "no memory, and p is as it was"
        live.add(old.at, old.asked);
        continue;
      }
      for (std::size_t k = 0; k < std::min(from.size, to.size); ++k) ASSERT_EQ(p[k], std::byte{old.mark});
      live.add(p, {to.size, default_alignment});
    } else if (a.try_resize(live[which].at, from, to)) {
      live.resized(which, to);
    }
    if (random() % 3 == 0) {
      const auto b = live.remove(0);
      a.deallocate(b.at, b.asked);
    }
  }
  EXPECT_EQ(a.reallocate(nullptr, SIZE_MAX), nullptr);
  a.reset();
  EXPECT_EQ(a.part().stats().in_use, 0u);
  a.deallocate(nullptr);
}

TEST(Poisoned, IsAnAllocator) { is_an_allocator<poisoned>(); }
TEST(Guarded, IsAnAllocator) { is_an_allocator<guarded>(); }
TEST(LeakChecked, IsAnAllocator) { is_an_allocator<leak_checked>(); }

// "`guarded`, `leak_checked` of a pool or slab: the layout they are made with is that of the block,
// which the part's blocks are larger than"
template <template <class> class Combinator>
void takes_a_part_of_one_layout() {
  for (const layout block : {layout{0, 1}, layout{1, 1}, layout{24, 8}, layout{33, 64}, layout{100, 4096}}) {
    Combinator<pool<>> a{block};
    Combinator<slab<>> b{block};
    EXPECT_EQ(a.allocate({a.part().usable_size(nullptr) + 1, 1}), nullptr);
    live_blocks live;
    for (int i = 0; i < 100; ++i) {
      live.add(a.allocate(), block);
      live.add(b.allocate(), block);
      EXPECT_GE(a.usable_size(live[0].at), block.size);
    }
    while (!live.empty()) {
      a.deallocate(live.remove(0).at);
      const auto of_slab = live.remove(0);
      b.deallocate(of_slab.at, block);
    }
    EXPECT_EQ(a.part().stats().in_use, 0u);
    EXPECT_EQ(b.part().stats().in_use, 0u);
  }
}

TEST(Poisoned, TakesAPartOfOneLayout) { takes_a_part_of_one_layout<poisoned>(); }
TEST(Guarded, TakesAPartOfOneLayout) { takes_a_part_of_one_layout<guarded>(); }
TEST(LeakChecked, TakesAPartOfOneLayout) { takes_a_part_of_one_layout<leak_checked>(); }

// guarded: "Bytes that were asked for: the canary lies directly behind them."
TEST(Guarded, UsableSizeIsWhatWasAskedFor) {
  guarded<upstream_malloc> a;
  for (const std::size_t size : {0u, 1u, 15u, 16u, 100u}) {
    for (std::size_t alignment = 1; alignment <= 64 * KiB; alignment *= 4) {
      void* const p = a.allocate({size, alignment});
      EXPECT_EQ(a.usable_size(p), size);
      a.check(p, {size, alignment});
      a.deallocate(p);
    }
  }
}

// "Looks at the canaries, and ends the process with a message where one was overwritten, the layout
// is not that of the request, or the block is free already." "in any build"
TEST(GuardedDeathTest, EndsTheProcessInAnyBuild) {
  guarded<upstream_malloc> a;
  for (const layout l : {layout{0, 1}, layout{5, 1}, layout{100, 16}, layout{100, 4096}}) {
    auto* const p = static_cast<std::byte*>(a.allocate(l));
    EXPECT_DEATH((p[l.size] ^= std::byte{1}, a.deallocate(p, l)), "heapwright: write past the end of a block: 0x");
    EXPECT_DEATH((p[l.size] ^= std::byte{1}, a.deallocate(p)), "heapwright: write past the end of a block: 0x");
    EXPECT_DEATH((p[l.size] ^= std::byte{1}, a.check(p, l)), "heapwright: write past the end of a block: 0x");
    EXPECT_DEATH((p[-1] ^= std::byte{1}, a.deallocate(p, l)), "heapwright: write before the beginning of a block: 0x");
    EXPECT_DEATH(a.deallocate(p, {l.size + 1, l.alignment}), "heapwright: free with a wrong layout: 0x");
    EXPECT_DEATH(a.deallocate(p, {l.size, l.alignment * 2}), "heapwright: free with a wrong layout: 0x");
    a.deallocate(p, l);
  }
  guarded<pool<>> b{layout{64, 8}};
  void* const q = b.allocate();
  if (!FROM_DOCS_ASAN) {
    EXPECT_DEATH((b.deallocate(q), b.deallocate(q)), "heapwright: double free: 0x");
  }
  b.deallocate(q);
}

TEST(GuardedDeathTest, LooksAtTheCanariesBeforeAResize) {
  odd_buffer buffer(4 * KiB, 0);
  guarded<best_fit<>> a{buffer.span()};
  auto* const p = static_cast<std::byte*>(a.allocate({20, 16}));
  EXPECT_DEATH((p[20] ^= std::byte{1}, (void)a.try_resize(p, {20, 16}, {10, 16})),
               "heapwright: write past the end of a block: 0x");
  EXPECT_DEATH((p[20] ^= std::byte{1}, (void)a.reallocate(p, 50)), "heapwright: write past the end of a block: 0x");
  a.deallocate(p);
}

// "False [...] where another alignment would move the block; it is as it was then."
TEST(Guarded, AnotherAlignmentIsNotInPlace) {
  odd_buffer buffer(64 * KiB, 0);
  guarded<best_fit<>> a{buffer.span()};
  void* const p = a.allocate({20, 16});
  EXPECT_FALSE(a.try_resize(p, {20, 16}, {20, 4096}));
  a.check(p, {20, 16});
  a.deallocate(p, {20, 16});
}

// poisoned: "a free block, and the bytes just behind a live one, may not be touched"
TEST(PoisonedDeathTest, AddressSanitizerSeesATouch) {
  if (!FROM_DOCS_ASAN) GTEST_SKIP() << "needs AddressSanitizer";
  alignas(16) static std::byte memory[4096];
  buffer_source source{std::span<std::byte>(memory)};
  poisoned<upstream<buffer_source>> a{source};
  auto* volatile p = static_cast<char*>(a.allocate({104, 8}));
  p[103] = 1;
  EXPECT_DEATH(p[104] = 1, "AddressSanitizer");
  a.deallocate(p, {104, 8});
  EXPECT_DEATH(p[16] = 1, "AddressSanitizer");  // "but for its first 16 bytes"
  EXPECT_DEATH(p[103] = 1, "AddressSanitizer");
}

// docs/concepts.md: "AddressSanitizer sees the kit's free memory as poisoned without more."
TEST(PoisonedDeathTest, TheKitsFreeMemoryIsPoisoned) {
  if (!FROM_DOCS_ASAN) GTEST_SKIP() << "needs AddressSanitizer";
  const auto dies_after_free = [](auto& a) {
    auto* volatile p = static_cast<char*>(a.allocate({64, 8}));
    p[63] = 1;
    a.deallocate(p, {64, 8});
    EXPECT_DEATH(p[40] = 1, "AddressSanitizer");
  };
  pool<> a(layout{64, 8});
  dies_after_free(a);
  slab<> b(layout{64, 8});
  dies_after_free(b);
  arena<> c;
  dies_after_free(c);
  odd_buffer buffer(4 * KiB, 0);
  best_fit<> d(buffer.span());
  dies_after_free(d);
}

// docs/concepts.md: checked builds name "double free, foreign pointer, wrong layout".
// goes through.
TEST(LeakCheckedDeathTest, NamesMisuseInCheckedBuilds) {
  if (!checks_callers) GTEST_SKIP() << "needs HEAPWRIGHT_CHECKS=1";
  leak_checked<upstream_malloc> a;
  void* const p = a.allocate({100, 16});
  // AddressSanitizer watches malloc's blocks itself, and is first.
  EXPECT_DEATH((a.deallocate(p), a.deallocate(p)), "heapwright: double free: 0x|AddressSanitizer: heap-use-after-free");
  EXPECT_DEATH(a.deallocate(p, {99, 16}), "heapwright: free with a wrong layout: 0x");
  a.deallocate(p);
}

// A combinator of combinators is an allocator, too, whatever the order.
TEST(Watched, CombineWithWhatRoutesAndCounts) {
  strict_source source;
  {
    guarded<fallback<arena<no_source>, strict>> a{from(std::span<std::byte>{}), from(source)};
    walk_all(refer_to(a), any_layout(3000, 4096));
    leak_checked<segregate<128, bucketed<pool<>, 512, 64>, strict>> b{from(), from(source)};
    walk_all(refer_to(b), any_layout(1000, 64));
    poisoned<metered<guarded<leak_checked<strict>>>> c{source};
    walk_all(refer_to(c), any_layout(1000, 4096));
    bucketed<guarded<pool<>>, 64> d;
    walk_all(refer_to(d), any_layout(64, 16));
    bucketed<leak_checked<slab<>>, 64> e;
    walk_all(refer_to(e), any_layout(64, 16));
  }
  EXPECT_EQ(source.live(), 0u);
}

// leak_checked: "Writes to stderr each live block with its call stack, newest first". "Returns how
// many there are. 0 in release builds."
TEST(LeakChecked, ReportsWhatIsLive) {
  leak_checked<upstream_malloc> a;
  EXPECT_EQ(a.report(), 0u);
  void* const p = a.allocate({123, 8});
  void* const q = a.allocate({4567, 8});
  testing::internal::CaptureStderr();
  const std::size_t live = a.report();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(live, checks_callers ? 2u : 0u);
  if (checks_callers) {
    const auto newest = said.find("4567");
    const auto oldest = said.find("123");
    EXPECT_NE(newest, said.npos) << said;
    EXPECT_NE(oldest, said.npos) << said;
    EXPECT_LT(newest, oldest) << said;
    EXPECT_NE(said.find("watch_test.cpp"), said.npos) << said;  // "names the program's line"
  } else {
    EXPECT_EQ(said, "");
  }
  a.deallocate(p, {123, 8});
  a.deallocate(q);
  EXPECT_EQ(a.report(), 0u);
}

// "Reports what is live" when it is destroyed. "[reset] What was live is freed, and no leak."
// "[part] What is allocated there directly is not reported."
TEST(LeakChecked, ReportsAtItsEnd) {
  const auto said_at_end_of = [](auto&& use) {
    testing::internal::CaptureStderr();
    {
      leak_checked<arena<>> a;
      use(a);
    }
    return testing::internal::GetCapturedStderr();
  };
  const std::string leaked = said_at_end_of([](auto& a) { (void)a.allocate({321, 8}); });
  EXPECT_EQ(leaked.find("321") != leaked.npos, checks_callers) << leaked;
  EXPECT_EQ(said_at_end_of([](auto& a) {
              (void)a.allocate({321, 8});
              a.reset();
            }),
            "");
  EXPECT_EQ(said_at_end_of([](auto& a) { (void)a.part().allocate({321, 8}); }), "");
}

}  // namespace
