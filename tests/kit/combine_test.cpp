#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/allocator/best_fit.hpp>
#include <heapwright/allocator/pool.hpp>
#include <heapwright/allocator/stack_arena.hpp>
#include <heapwright/combine/bucketed.hpp>
#include <heapwright/combine/fallback.hpp>
#include <heapwright/combine/guarded.hpp>
#include <heapwright/combine/leak_checked.hpp>
#include <heapwright/combine/metered.hpp>
#include <heapwright/combine/poisoned.hpp>
#include <heapwright/combine/segregate.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>

#include "support/model.hpp"
#include "support/strict_source.hpp"

extern "C" {
using callback = void(void*);
void stripped_library_exported(callback*, void*);
void (*stripped_library_other())(callback*, void*);
}

// The program, whose functions the messages have to name.
using numbers = std::list<int, heapwright::std_allocator<int, heapwright::leak_checked<heapwright::upstream_malloc>>>;

constexpr int line_of_the_list = __LINE__ + 3;

[[gnu::noinline]] void fill_a_list(numbers& list) {
  for (int i = 0; i < 7; ++i) list.push_back(i);
}

namespace heapwright {
namespace {

using testing::model;
using testing::strict_source;
using shared = upstream<strict_source>;

// Capabilities follow from the parts.
using arena_then_malloc = fallback<stack_arena<256>, upstream_malloc>;
using arena_then_pool = fallback<stack_arena<256, no_source>, pool<>>;
static_assert(allocator<arena_then_malloc> && !can_own<arena_then_malloc> && !can_reset<arena_then_malloc> &&
              can_resize<arena_then_malloc> && can_trim<arena_then_malloc> && !has_usable_size<arena_then_malloc>);
static_assert(can_own<arena_then_pool> && can_reset<arena_then_pool> && can_trim<arena_then_pool>);
static_assert(!can_deallocate_unsized<arena_then_pool>, "an arena must be told the size");
using by_size = segregate<64, pool<>, upstream_malloc>;
static_assert(allocator<by_size> && !can_own<by_size> && can_trim<by_size>);
static_assert(can_deallocate_unsized<by_size> == can_deallocate_unsized<upstream_malloc>, "on Windows it is not");
static_assert(can_own<bucketed<pool<>>> && can_reset<bucketed<pool<>>> && can_trim<bucketed<pool<>>>);
static_assert(can_own<metered<pool<>>> && !can_resize<metered<pool<>>> && can_resize<metered<arena<>>>);

/// Hidden from the compiler, which would warn.
std::size_t beyond_all_memory(std::size_t less) {
  static volatile std::size_t most = SIZE_MAX;
  return most - less;
}

void churn(auto& a, std::size_t largest, std::size_t alignments = 5, unsigned seed = 1) {
  model m(a, seed);
  for (int i = 0; i < 5000; ++i) {
    switch (m.random(5)) {
      case 0:
      case 1: m.deallocate_any(); break;
      case 2:
        if constexpr (can_resize<std::remove_reference_t<decltype(a)>>) {
          m.resize_any(1 + m.random(largest));
          break;
        }
        [[fallthrough]];
      default: ASSERT_NE(m.allocate({m.random(largest + 1), std::size_t{1} << m.random(alignments)}), nullptr);
    }
  }
  m.deallocate_all();
}

TEST(Fallback, TheSecondServesWhatTheFirstCannot) {
  strict_source source;
  fallback<stack_arena<256, no_source>, shared> a{from(), from(source)};
  void* const small = a.allocate({200, 8});
  void* const more = a.allocate({100, 8});
  EXPECT_TRUE(a.first().owns(small));
  EXPECT_FALSE(a.first().owns(more));
  EXPECT_EQ(source.held(), 100U);
  a.deallocate(more, {100, 8});
  EXPECT_EQ(source.held(), 0U);
  a.deallocate(small, {200, 8});
  EXPECT_TRUE(a.first().owns(a.allocate({256, 8}))) << "the first got its block back";
}

TEST(Fallback, AnyMix) {
  strict_source source;
  for (unsigned seed = 1; seed < 4; ++seed) {
    fallback<stack_arena<5000, no_source>, shared> a{from(), from(source)};
    churn(a, 300, 5, seed);
  }
}

TEST(Fallback, ResizesWhereTheBlockIs) {
  arena_then_malloc a;
  void* const p = a.allocate({10, 8});
  EXPECT_TRUE(a.try_resize(p, {10, 8}, {200, 8}));
  void* const q = a.allocate({1000, 8});
  EXPECT_EQ(a.first().in_buffer(q), false);
  a.deallocate(q, {1000, 8});
  a.deallocate(p, {200, 8});
}

TEST(Segregate, SizeDecides) {
  strict_source small, large;
  segregate<64, pool<shared>, shared> a{from(layout{64, 16}, shared(small)), from(large)};
  void* const p = a.allocate({64, 8});
  void* const q = a.allocate({65, 8});
  EXPECT_TRUE(a.small().owns(p));
  EXPECT_FALSE(a.small().owns(q));
  EXPECT_EQ(large.held(), 65U);
  a.deallocate(q, {65, 8});
  a.deallocate(p, {64, 8});
  churn(a, 200);
  EXPECT_EQ(large.held(), 0U);
  EXPECT_GT(a.trim(), 0U);
  EXPECT_EQ(small.held(), 0U);
}

TEST(Bucketed, EachSizeHasItsOwn) {
  strict_source source;
  bucketed<pool<shared>, 128> a{shared(source)};
  for (std::size_t size = 0; size <= 128; ++size) {
    void* const p = a.allocate({size, 16});
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(a.owns(p));
    EXPECT_TRUE(a.bucket_for(size).owns(p));
    EXPECT_LT(a.bucket_for(size).usable_size(p), std::max<std::size_t>(size, 1) + 16);
    a.deallocate(p, {size, 16});
  }
  EXPECT_EQ(a.allocate({129, 8}), nullptr);
  EXPECT_EQ(a.allocate({8, 32}), nullptr);
  EXPECT_EQ(a.allocate({beyond_all_memory(0), 8}), nullptr);
  churn(a, 128);
  EXPECT_GT(a.trim(), 0U);
  EXPECT_EQ(source.held(), 0U);
}

TEST(Metered, CountsToTheLastByte) {
  strict_source source;
  metered<shared> a{source};
  EXPECT_EQ(a.reading().peak, 0U);
  void* const p = a.allocate({100, 8});
  void* const q = a.allocate({3, 1});
  a.deallocate(p, {100, 8});
  EXPECT_EQ(a.reading().in_use, 3U);
  EXPECT_EQ(a.reading().peak, 103U);
  EXPECT_EQ(a.reading().total_bytes, 103U);
  EXPECT_EQ(a.reading().live_blocks(), 1U);
  EXPECT_EQ(a.reading().sizes[7], 1U);
  EXPECT_EQ(a.reading().sizes[2], 1U);
  a.deallocate(q, {3, 1});
  source.allow(0);
  EXPECT_EQ(a.allocate({8, 8}), nullptr);
  EXPECT_EQ(a.reading().failures, 1U);
  EXPECT_EQ(a.reading().in_use, 0U);
}

TEST(Metered, AddsUpWithAModel) {
  metered<arena<>> a;
  {
    model m(a);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t choice = m.random(4);
      if (choice == 0) {
        m.deallocate_any();
      } else if (choice == 1) {
        m.resize_any(1 + m.random(100));
      } else {
        m.allocate({1 + m.random(100), 8});
      }
      ASSERT_EQ(a.reading().in_use, m.bytes());
      ASSERT_EQ(a.reading().live_blocks(), m.blocks());
    }
    m.forget_all();
  }
  a.reset();
  EXPECT_EQ(a.reading().in_use, 0U);
  EXPECT_EQ(a.reading().live_blocks(), 0U);
}

TEST(Poisoned, IsTheAllocatorItself) {
  poisoned<upstream_malloc> a;
  churn(a, 300);
  poisoned<bucketed<pool<>>> b;
  churn(b, 400);
  EXPECT_EQ(a.allocate({beyond_all_memory(4), 8}), nullptr);
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(Poisoned, BytesBehindTheBlockAndFreeBlocks) {
  alignas(16) static std::byte memory[4096];
  struct bump {
    std::byte* next = memory;
    void* allocate(layout l) noexcept { return std::exchange(next, next + align_up(l.size, 16)); }
    void deallocate(void*, layout) noexcept {}
  };
  poisoned<bump> a;
  auto* const p = static_cast<std::byte*>(a.allocate({40, 8}));
  EXPECT_FALSE(__asan_address_is_poisoned(p + 39));
  EXPECT_TRUE(__asan_address_is_poisoned(p + 40));
  a.deallocate(p, {40, 8});
  EXPECT_TRUE(__asan_address_is_poisoned(p + 16));
  unpoison(memory, sizeof memory);
}

/// A block of one layout has no room to note what was asked for: all that usable_size tells may be
/// touched.
TEST(Poisoned, TheWholeBlockOfAPartOfOneLayoutMayBeTouched) {
  poisoned<pool<>> a{layout{64, 8}};
  auto* const p = static_cast<std::byte*>(a.allocate({40, 8}));
  EXPECT_EQ(a.usable_size(p), 64U);
  EXPECT_FALSE(__asan_address_is_poisoned(p + 40));
  EXPECT_FALSE(__asan_address_is_poisoned(p + 63));
  a.deallocate(p, {40, 8});
  EXPECT_TRUE(__asan_address_is_poisoned(p + 40));
}
#endif

TEST(Guarded, IsTransparentToGoodPrograms) {
  strict_source source;
  guarded<shared> a{source};
  churn(a, 300, 8);
  EXPECT_EQ(a.allocate({beyond_all_memory(20), 8}), nullptr);
  EXPECT_EQ(source.held(), 0U);
}

/// The latest block of an arena, or the last of a heap, grows and gets smaller where it is.
template <class A>
void resize_in_place(A&& a) {
  static_assert(can_resize<A>);
  const layout small{20, 8};
  const layout large{300, 8};
  auto* const p = static_cast<char*>(a.allocate(small));
  std::fill_n(p, small.size, 's');
  ASSERT_TRUE(a.try_resize(p, small, large));
  EXPECT_EQ(std::count(p, p + small.size, 's'), 20);
  std::fill_n(p, large.size, 'l');
  ASSERT_TRUE(a.try_resize(p, large, small));
  EXPECT_EQ(std::count(p, p + small.size, 'l'), 20);
  EXPECT_FALSE(a.try_resize(p, small, {beyond_all_memory(20), 8}));
  EXPECT_FALSE(a.try_resize(p, small, {20, 1 * MiB}));
  a.deallocate(p, small);
  void* const other = a.allocate(large);
  a.deallocate(other, large);
}

TEST(Capabilities, PassThroughWhatWatches) {
  resize_in_place(guarded<arena<>>());
  resize_in_place(poisoned<arena<>>());
  resize_in_place(leak_checked<arena<>>());
  resize_in_place(metered<guarded<poisoned<arena<>>>>());
  alignas(16) std::byte memory[8 * KiB];
  resize_in_place(guarded<best_fit<>>(memory));
  static_assert(!can_resize<guarded<pool<>>> && !can_reset<poisoned<upstream_malloc>>);
  static_assert(can_trim<guarded<pool<>>> && can_trim<poisoned<pool<>>> && can_trim<leak_checked<pool<>>>);
  static_assert(can_deallocate_unsized<guarded<arena<>>> && has_usable_size<guarded<arena<>>>);
}

TEST(Capabilities, AResetIsNoLeak) {
  leak_checked<arena<>> a;
  static_cast<void>(a.allocate({100, 8}));
  a.reset();
  EXPECT_EQ(a.report(), 0U);
}

TEST(Guarded, KnowsTheLayout) {
  guarded<upstream_malloc> a;
  void* const p = a.allocate({100, 256});
  EXPECT_EQ(a.usable_size(p), 100U);
  a.deallocate(p);
}

TEST(GuardedDeathTest, FindsWhoWritesWhereHeShouldNot) {
  // The memory stays readable after it is freed.
  guarded<arena<>> a;
  auto* const p = static_cast<char*>(a.allocate({20, 8}));
  auto* const other = static_cast<char*>(a.allocate({20, 8}));
  p[20] = 'x';
  EXPECT_DEATH(a.deallocate(p, {20, 8}), "heapwright: write past the end of a block: 0x");
  other[-1] ^= 1;
  EXPECT_DEATH(a.deallocate(other, {20, 8}), "heapwright: write before the beginning of a block: 0x");
  other[-1] ^= 1;
  EXPECT_DEATH(a.deallocate(other, {21, 8}), "heapwright: free with a wrong layout: 0x");
  a.deallocate(other, {20, 8});
  if constexpr (!poisons) {
    EXPECT_DEATH(a.deallocate(other, {20, 8}), "heapwright: double free: 0x");
  }
}

TEST(LeakChecked, NamesTheCallSiteOfWhatIsAlive) {
  leak_checked<upstream_malloc> a;
  const auto line = std::to_string(__LINE__ + 1);
  void* const p = a.allocate({24, 8});
  void* const q = a.allocate({50, 64});
  ::testing::internal::CaptureStderr();
  const std::size_t alive = a.report();
  const std::string said = ::testing::internal::GetCapturedStderr();
  if constexpr (checks_callers) {
    EXPECT_EQ(alive, 2U);
    EXPECT_NE(said.find("heapwright: leak: 24 bytes at 0x"), std::string::npos) << said;
    EXPECT_NE(said.find("combine_test.cpp:" + line), std::string::npos) << said;
  } else {
    EXPECT_EQ(said, "");
  }
  a.deallocate(p, {24, 8});
  a.deallocate(q, {50, 64});
  EXPECT_EQ(a.report(), 0U);
}

TEST(NamedFrame, IsTheProgramsOwnByItsFunctionOrItsLine) {
  const auto is_own = [](const char* function, const char* line, bool is_inlined = false) {
    return named_frame{function, line, is_inlined}.is_own();
  };
  EXPECT_TRUE(is_own("load(char const*)", "/src/load.cpp:8"));
  EXPECT_TRUE(is_own("load(char const*)", "??:0"));
  EXPECT_FALSE(is_own("std::vector<int>::reserve(unsigned long)", "/usr/include/c++/12/bits/vector.tcc:70"));
  EXPECT_FALSE(is_own("std::vector<int>::reserve(unsigned long)", "??:?"));
  EXPECT_FALSE(is_own("std::string::reserve()", "../src/libstdc++-v3/basic_string.tcc:9"));
  EXPECT_FALSE(is_own("operator new(unsigned long)", "/src/new.cpp:3"));
  EXPECT_FALSE(is_own("/lib/x86_64-linux-gnu/libstdc++.so.6+0xd44a2", ""));
  EXPECT_TRUE(is_own("/opt/libplugin.so+0x4a2", ""));
  // A lambda of the program, inlined into what runs a thread.
  EXPECT_TRUE(is_own("std::thread::_State_impl<main::{lambda()#1}>::_M_run()", "/src/load.cpp:8", true));
}

TEST(NamedFrame, TakesNoLineOfAnotherFileForOneOfTheStandardLibrary) {
  const auto corrected_line = [](const char* function, const char* line, bool is_inlined = false) {
    return std::string(named_frame{function, line, is_inlined}.corrected().line);
  };
  EXPECT_EQ(corrected_line("std::_Sp_counted_ptr<widget*>::_M_dispose()", "/src/load.cpp:428"), "??:0");
  EXPECT_EQ(
      corrected_line("std::_Sp_counted_ptr<widget*>::_M_dispose()", "/usr/include/c++/12/bits/shared_ptr_base.h:428"),
      "/usr/include/c++/12/bits/shared_ptr_base.h:428");
  EXPECT_EQ(corrected_line("std::sort<main::{lambda()#1}>()", "/src/load.cpp:8", true), "/src/load.cpp:8");
  EXPECT_EQ(corrected_line("load(char const*)", "/src/load.cpp:8"), "/src/load.cpp:8");
}

TEST(CallStack, TakesNoExportedFunctionForAnotherThatIsBehindIt) {
  std::string exported, other;
  const auto append_names = [](void* to) {
    call_stack::here().for_each_named(
        [&](const named_frame& frame) { *static_cast<std::string*>(to) += std::string(frame.function) + "\n"; });
  };
  ::stripped_library_exported(append_names, &exported);
  ::stripped_library_other()(append_names, &other);
  if (exported.find("stripped_library_exported\n") == std::string::npos) GTEST_SKIP() << "no addr2line";
  EXPECT_EQ(other.find("stripped_library_"), std::string::npos) << other;
  EXPECT_NE(other.find("stripped_library.so+0x"), std::string::npos) << other;
}

TEST(LeakChecked, NamesTheProgramsOwnFrameOfABlockThatAContainerAskedFor) {
  if constexpr (!checks_callers) GTEST_SKIP() << "not a checked build";
  if (!call_stack::here().for_each_named([](const named_frame&) {})) GTEST_SKIP() << "no addr2line";
  leak_checked<upstream_malloc> a;
  numbers list(a);
  fill_a_list(list);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(a.report(), 7U);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("combine_test.cpp:" + std::to_string(line_of_the_list) + " (fill_a_list"), std::string::npos)
      << said;
  EXPECT_NE(said.find("\n    #1 fill_a_list"), std::string::npos) << said;
  EXPECT_NE(said.find("\n    #2 "), std::string::npos) << "the stack" << said;
  EXPECT_EQ(said.find("std_allocator.hpp"), std::string::npos) << said;
}

TEST(LeakChecked, AnyMix) {
  strict_source source;
  leak_checked<shared> a{source};
  churn(a, 300, 8);
  EXPECT_EQ(a.allocate({beyond_all_memory(20), 8}), nullptr);
}

}  // namespace
}  // namespace heapwright
