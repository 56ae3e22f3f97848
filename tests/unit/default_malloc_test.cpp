// Heaps of one's own where every block is the process's malloc's: they do what heaps do, and tools
// see each block.
#define HEAPWRIGHT_DEFAULT_MALLOC
#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/core/poison.hpp>
#include <heapwright/heap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <new>
#include <string>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#ifdef HEAPWRIGHT_HAS_ASAN
#include <sanitizer/lsan_interface.h>
#endif

using heapwright::heap;

// The program, whose functions the reports have to name.
/// Three blocks, of which the caller need not know.
[[gnu::noinline]] std::array<void*, 3> forget_some(heap<>& h) {
  std::array<void*, 3> blocks{};
  for (void* volatile& b : reinterpret_cast<std::array<void* volatile, 3>&>(blocks)) b = h.allocate(1000);
  return blocks;
}

using numbers = std::list<int, heapwright::std_allocator<int, heap<>>>;

[[gnu::noinline]] void fill_a_list(numbers& list) {
  for (int i = 0; i < 7; ++i) list.push_back(i);
}

namespace heapwright {
namespace {

/// Where code of another processor is emulated, nothing here may know it.
bool can_name_frames() {
  return call_stack::here().for_each_named([](const named_frame&) {});
}

static_assert(std::is_same_v<heap<>, malloc_heap<basic_heap<default_recipe, native_os>>>);

TEST(DefaultMalloc, DoesWhatHeapsDo) {
  heap<> h("name", 1 * MiB);
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
  void* const zeroed = h.allocate_zeroed(1 * MiB);
  EXPECT_NE(zeroed, nullptr);
  h.deallocate(zeroed);
  h.deallocate(moved);
}

TEST(DefaultMalloc, AReallocationToNothingFrees) {
  heap<> h;
  EXPECT_EQ(h.reallocate(h.allocate(100), 0), nullptr);
  EXPECT_EQ(h.statistics().in_use, 0U);
}

TEST(DefaultMalloc, BlocksInMemoryOfTheCallerLieThere) {
  alignas(64) static std::byte memory[1 * MiB];
  heap<> h(memory, sizeof memory, "mine");
  ASSERT_TRUE(h.attached());
  for (const std::size_t size : {1, 100, 5000, 100'000}) {
    auto* const p = static_cast<std::byte*>(h.allocate(size));
    EXPECT_TRUE(p >= memory && p + size <= memory + sizeof memory) << size;
    EXPECT_TRUE(h.owns(p));
    auto* const q = static_cast<std::byte*>(h.reallocate(p, 2 * size));
    EXPECT_TRUE(q >= memory && q + 2 * size <= memory + sizeof memory) << size;
    h.deallocate(q);
  }
  EXPECT_EQ(h.allocate(2 * MiB), nullptr);
  heap<> too_small(memory, 10);
  EXPECT_FALSE(too_small.attached());
  EXPECT_EQ(too_small.allocate(1), nullptr);
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(DefaultMallocDeathTest, ASanitizerReportsWhatAHeapThatEndedHasNotFreed) {
  const auto forget_and_end = [] {
    {
      heap<> h("forgetful");
      std::array<void*, 3> volatile blocks = forget_some(h);
      const_cast<std::array<void*, 3>&>(blocks) = {};
    }
    __lsan_do_leak_check();
    std::exit(0);
  };
  EXPECT_DEATH(forget_and_end(), "LeakSanitizer: detected memory leaks(.*\n)*.*forget_some");
}
#endif

TEST(DefaultMalloc, KnowsWhereABlockWasAskedFor) {
  if (!can_name_frames()) GTEST_SKIP() << "no addr2line";
  heap<> h("forgetful");
  h.deallocate(h.allocate(500));
  const auto blocks = forget_some(h);
  void* const one_more = h.allocate(10);
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("heapwright: forgetful: 3 blocks, 2.9 KiB in use, asked for at ", 0), 0u) << text;
  EXPECT_LT(text.find("(forget_some"), text.find('\n')) << text;
  EXPECT_NE(text.find("\nheapwright: forgetful: 1 block, 10 B in use, asked for at "), std::string::npos) << text;
  for (void* const p : blocks) h.deallocate(p);
  h.deallocate(one_more);
}

TEST(DefaultMalloc, TellsOfBlocksOfAHeapWithoutAName) {
  heap<> h;
  void* const p = h.allocate(10);
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr().rfind("heapwright: (no name): 1 block, 10 B in use", 0), 0u);
  h.deallocate(p);
}

TEST(DefaultMalloc, NamesTheProgramsOwnFrameOfABlockThatAContainerAskedFor) {
  if (!can_name_frames()) GTEST_SKIP() << "no addr2line";
  heap<> h("forgetful");
  numbers list(h);
  fill_a_list(list);
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::size_t nodes = text.find("heapwright: forgetful: 7 blocks");
  ASSERT_NE(nodes, std::string::npos) << text;
  const std::string line = text.substr(nodes, text.find('\n', nodes) - nodes);
  EXPECT_NE(line.find("default_malloc_test.cpp:"), std::string::npos) << line;
  EXPECT_NE(line.find("(fill_a_list"), std::string::npos) << line;
  EXPECT_EQ(line.find("std_allocator.hpp"), std::string::npos) << line;
}

void set_variable(const char* name, const char* value) {
#ifdef _WIN32
  ::_putenv_s(name, value);
#else
  ::setenv(name, value, 1);
#endif
}

TEST(DefaultMallocDeathTest, ReportsWhatIsForgottenAtTheEnd) {
  if (!can_name_frames()) GTEST_SKIP() << "no addr2line";
  if constexpr (poisons) GTEST_SKIP() << "LeakSanitizer would report it too, and change the exit code";
  const auto forget_and_end = [](const char* asked) {
    if (asked != nullptr) set_variable("HEAPWRIGHT_LEAKS", asked);
    static heap<> h("forgetful");
    std::exit(forget_some(h)[0] == nullptr ? 1 : 0);
  };
  EXPECT_EXIT(forget_and_end("1"), ::testing::ExitedWithCode(0),
              "heapwright: forgetful: 3 blocks, 2.9 KiB in use, asked for at .*\\(forget_some");
  EXPECT_EXIT(forget_and_end("0"), ::testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(forget_and_end(nullptr), ::testing::ExitedWithCode(0), "^$");
}

TEST(DefaultMalloc, ServesThreads) {
  heap<> h;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 1; i < 1000; ++i) h.deallocate(h.allocate(i));
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(h.statistics().in_use, 0u);
}

#ifndef _WIN32  // it has no fork
TEST(DefaultMalloc, LeavesAChildOfForkAHeapThatWorks) {
  heap<> h, other;
  std::atomic<bool> is_done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!is_done) {
        h.deallocate(h.allocate(100));
        other.deallocate(other.allocate(100));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      for (std::size_t size = 1; size < 100; ++size) {
        h.deallocate(h.allocate(size));
        other.deallocate(other.allocate(size));
      }
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (status != 0) break;
  }
  is_done = true;
  for (auto& t : threads) t.join();
}
#endif

TEST(DefaultMalloc, AnotherHeapMayBeCalledForEachBlock) {
  heap<> h, other;
  void* const p = h.allocate(100);
  EXPECT_TRUE(h.for_each_block([&](const void*, std::size_t size) { other.deallocate(other.allocate(size)); }));
  h.deallocate(p);
}

#ifdef __SANITIZE_ADDRESS__
TEST(DefaultMallocDeathTest, ASanitizerSeesEveryBlock) {
  heap<> h;
  auto* const p = static_cast<volatile char*>(h.allocate(100));
  EXPECT_DEATH(p[100] = 1, "heap-buffer-overflow");
  h.deallocate(const_cast<char*>(p));
  EXPECT_DEATH(p[0] = 1, "heap-use-after-free");
}
#endif

}  // namespace
}  // namespace heapwright
