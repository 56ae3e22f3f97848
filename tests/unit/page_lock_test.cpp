// Pages that are locked in memory and unlocked at run time: ranges of the system's pages, and whole
// heaps.
//
// `quota_os` keeps a set of locked pages and treats them as Linux does, so that each page can be
// looked at, under sanitizers too (they make mlock do nothing). The tests named Linux* look at
// VmLck of the process itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <unordered_set>
#include <vector>

#ifndef _WIN32
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <heapwright/heap.hpp>
#include <heapwright/heap/malloc_heap.hpp>
#include <heapwright/source/os_pages.hpp>

#include "fake_os.hpp"

namespace heapwright::testing {

// --- a platform that shows which pages are locked
template <std::size_t PageSize>
class quota_os : public fake_os<PageSize> {
  using base = fake_os<PageSize>;

 public:
  static bool lock_pages(void* p, std::size_t bytes) noexcept {
    std::size_t more = 0;
    for_each_page(p, bytes, [&](std::uintptr_t page) { more += !locked.contains(page); });
    if ((locked.size() + more) * PageSize > quota) return false;
    for_each_page(p, bytes, [](std::uintptr_t page) { locked.insert(page); });
    return true;
  }

  static bool unlock_pages(void* p, std::size_t bytes) noexcept {
    for_each_page(p, bytes, [](std::uintptr_t page) { locked.erase(page); });
    return true;
  }

  static bool unmap(void* p, std::size_t bytes) noexcept { return unlock_pages(p, bytes) && base::unmap(p, bytes); }

  static bool discard(void* p, std::size_t bytes) noexcept { return !any_locked(p, bytes) && base::discard(p, bytes); }

  static void* remap(void* p, std::size_t from, std::size_t to) noexcept {
    const bool was_locked = all_locked(p, from);
    if (!was_locked && any_locked(p, from)) return nullptr;
    void* const moved = base::remap(p, from, to);
    if (moved == nullptr) return nullptr;
    unlock_pages(p, from);
    return !was_locked || lock_pages(moved, from) ? moved : nullptr;
  }

  static bool all_locked(const void* p, std::size_t bytes) {
    bool all = true;
    for_each_page(p, bytes, [&](std::uintptr_t page) { all &= locked.contains(page); });
    return all;
  }

  static bool any_locked(const void* p, std::size_t bytes) {
    bool any = false;
    for_each_page(p, bytes, [&](std::uintptr_t page) { any |= locked.contains(page); });
    return any;
  }

  static void begin(std::size_t with_quota = SIZE_MAX) {
    locked.clear();
    quota = with_quota;
  }

  static inline std::unordered_set<std::uintptr_t> locked;
  static inline std::size_t quota = SIZE_MAX;  ///< bytes

 private:
  template <class F>
  static void for_each_page(const void* p, std::size_t bytes, F f) {
    for (std::uintptr_t page = align_down(address_of(p), PageSize); page < address_of(p) + bytes; page += PageSize)
      f(page);
  }
};

}  // namespace heapwright::testing

namespace heapwright {

using quota_4k = testing::quota_os<4 * KiB>;
using quota_64k = testing::quota_os<64 * KiB>;

// GCC 12 refuses thread-locals that it happens to instantiate in two goes ("redefinition of
// __tls_guard").
template class heap_slots<quota_4k>;
template class heap_slots<quota_64k>;
template class heap_slots<native_os>;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
[[maybe_unused]] constexpr bool mlock_does_nothing = true;
#elif defined(__has_feature)
[[maybe_unused]] constexpr bool mlock_does_nothing =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
[[maybe_unused]] constexpr bool mlock_does_nothing = false;
#endif

template <class Heap>
std::vector<void*> filled_blocks(Heap& h, std::size_t count, std::size_t size) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(std::memset(h.allocate(size), 1, size));
  return blocks;
}

template <class OS, class Heap>
void expect_blocks_locked(Heap& h) {
  ASSERT_TRUE(
      h.for_each_block([](const void* p, std::size_t bytes) { EXPECT_TRUE(OS::all_locked(p, bytes)) << bytes; }));
}

constexpr recipe with_guards{.hardening = {.guard_large = true}};
constexpr recipe separate{.hardening = {.guard_large = true, .separate_classes = true}};
constexpr recipe at_once{.pages = {.max_free_resident = 256 * KiB, .give_back = give_back_policy::at_once}};
constexpr recipe unmerged{.pages = {.coalesce = false}};
constexpr recipe locked_by_recipe{.pages = {.give_back = give_back_policy::when_asked, .locked = true}};
constexpr recipe one_lock{.concurrency = concurrency_mode::central};

// --- whole heaps

template <class Heap, class Os>
struct on {
  using heap_type = Heap;
  using os = Os;
};

template <class T>
class LockedHeap : public ::testing::Test {};

using heaps =
    ::testing::Types<on<basic_heap<default_recipe, quota_4k>, quota_4k>,
                     on<basic_heap<default_recipe, quota_64k>, quota_64k>,
                     on<basic_heap<with_guards, quota_4k>, quota_4k>, on<basic_heap<with_guards, quota_64k>, quota_64k>,
                     on<basic_heap<separate, quota_4k>, quota_4k>, on<basic_heap<separate, quota_64k>, quota_64k>,
                     on<basic_heap<at_once, quota_4k>, quota_4k>, on<basic_heap<unmerged, quota_4k>, quota_4k>,
                     on<basic_heap<unmerged, quota_64k>, quota_64k>, on<basic_heap<one_lock, quota_4k>, quota_4k>,
                     on<basic_heap<locked_by_recipe, quota_4k>, quota_4k>,
                     on<basic_heap<for_one_thread<default_recipe>, quota_64k>, quota_64k>>;
TYPED_TEST_SUITE(LockedHeap, heaps);

TEST(LockedHeapWithGuards, LocksWhatGuardedAFreedBlock) {
  quota_4k::begin();
  basic_heap<with_guards, quota_4k> h;
  void* const freed = h.allocate(300 * KiB);
  ASSERT_NE(h.allocate(300 * KiB), nullptr) << "behind it, so that its run stays as it is";
  h.deallocate(freed);
  ASSERT_TRUE(h.lock_pages());
  for (int i = 0; i < 300; ++i) ASSERT_NE(h.allocate(2 * KiB), nullptr);
  expect_blocks_locked<quota_4k>(h);
  ASSERT_TRUE(h.unlock_pages());
  EXPECT_TRUE(quota_4k::locked.empty());
}

TYPED_TEST(LockedHeap, HasEachBlockLockedHoweverItComes) {
  using OS = typename TypeParam::os;
  for (unsigned seed = 0; seed < 3; ++seed) {
    OS::begin();
    typename TypeParam::heap_type h;
    std::minstd_rand random(seed);
    std::vector<void*> held(100);
    const auto work = [&](int times) {
      for (int i = 0; i < times; ++i) {
        void*& p = held[random() % held.size()];
        const std::size_t size = std::size_t{1} << random() % 21;
        if (random() % 4 == 0 && p != nullptr) {
          p = h.reallocate(p, size + random() % size);
          ASSERT_NE(p, nullptr);
        } else {
          h.deallocate(p);
          p = random() % 2 == 0 ? h.allocate(size) : h.allocate_zeroed(size);
          ASSERT_NE(p, nullptr);
        }
        if (random() % 200 == 0) h.trim();
        OS::now += 50;
      }
    };
    work(1000);
    ASSERT_TRUE(h.lock_pages());
    expect_blocks_locked<OS>(h);
    for (int round = 0; round < 10; ++round) {
      work(100);
      expect_blocks_locked<OS>(h);
    }
    ASSERT_TRUE(h.unlock_pages());
    EXPECT_TRUE(OS::locked.empty());
    work(500);
    EXPECT_TRUE(OS::locked.empty());
    for (void* const p : held) h.deallocate(p);
    EXPECT_EQ(h.statistics().in_use, 0U);
    EXPECT_TRUE(h.lock_pages());
    EXPECT_TRUE(h.lock_pages()) << "a second time";
    EXPECT_TRUE(h.unlock_pages());
    EXPECT_TRUE(h.unlock_pages());
  }
}

TYPED_TEST(LockedHeap, TrimGivesLockedMemoryBack) {
  using OS = typename TypeParam::os;
  OS::begin();
  typename TypeParam::heap_type h;
  ASSERT_TRUE(h.lock_pages());
  void* const stays = h.allocate(100);
  for (void* const p : filled_blocks(h, 40, 200'000)) h.deallocate(p);
  h.trim();
  EXPECT_EQ(h.statistics().free_resident, 0U);
  EXPECT_LE(OS::locked.size() * OS::page_size(), 2 * MiB) << "of 8 MB";
  EXPECT_TRUE(OS::all_locked(stays, 100));
}

TEST(PageLocks, RefusedAfterTheFirstRangesLeavesNoneLocked) {
  quota_4k::begin(600 * KiB);
  basic_heap<default_recipe, quota_4k> h;
  std::vector<void*> blocks = filled_blocks(h, 10, 300'000);
  for (std::size_t i = 0; i < blocks.size(); i += 2) h.deallocate(blocks[i]);
  h.trim();  // holes between the others: several ranges to lock
  EXPECT_FALSE(h.lock_pages());
  EXPECT_TRUE(quota_4k::locked.empty());
  EXPECT_EQ(h.statistics().locked_total, 0U);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    const auto* const p = static_cast<unsigned char*>(blocks[i]);
    EXPECT_EQ(std::count(p, p + 300'000, 1), 300'000);
  }
  ASSERT_NE(h.allocate(100'000), nullptr);
  EXPECT_TRUE(quota_4k::locked.empty()) << "the heap is not locked";
  quota_4k::quota = SIZE_MAX;
  EXPECT_TRUE(h.lock_pages());
  EXPECT_EQ(h.statistics().locked_total, quota_4k::locked.size() * 4 * KiB);
}

TEST(PageLocks, OfALockedHeapAreKeptWhenMoreIsRefused) {
  quota_4k::begin();
  basic_heap<default_recipe, quota_4k> h;
  void* const locked = h.allocate(300'000);
  ASSERT_TRUE(h.lock_pages());
  quota_4k::quota = quota_4k::locked.size() * 4 * KiB;
  void* const refused = h.allocate(1'000'000);
  ASSERT_NE(refused, nullptr) << "no quota is no reason to fail";
  EXPECT_FALSE(quota_4k::all_locked(refused, 1'000'000));
  EXPECT_FALSE(h.lock_pages()) << "not all is locked";
  EXPECT_TRUE(quota_4k::all_locked(locked, 300'000));
  quota_4k::quota = SIZE_MAX;
  EXPECT_TRUE(h.lock_pages());
  EXPECT_TRUE(quota_4k::all_locked(refused, 1'000'000));
}

TEST(PageLocks, KeepMemoryThatTimeWouldGiveBack) {
  quota_4k::begin();
  basic_heap<default_recipe, quota_4k> h;
  ASSERT_TRUE(h.lock_pages());
  const auto make_a_peak = [&](std::size_t blocks) {
    for (void* const p : filled_blocks(h, blocks, 300'000)) h.deallocate(p);
  };
  make_a_peak(700);
  for (int i = 0; i < 10; ++i) {
    quota_4k::now += 1000;
    make_a_peak(1);
  }
  EXPECT_EQ(h.statistics().decommitted_total, 0U);
  ASSERT_TRUE(h.unlock_pages());
  for (int i = 0; i < 10; ++i) {
    quota_4k::now += 1000;
    make_a_peak(1);
  }
  EXPECT_GT(h.statistics().decommitted_total, 190 * MiB);
}

TEST(PageLocks, GiveWayToTheLimit) {
  quota_4k::begin();
  basic_heap<default_recipe, quota_4k> h("", 4 * MiB);
  ASSERT_TRUE(h.lock_pages());
  for (void* const p : filled_blocks(h, 100, 30'000)) h.deallocate(p);
  void* const p = h.allocate(3 * MiB);
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(quota_4k::all_locked(p, 3 * MiB));
  EXPECT_LE(quota_4k::locked.size() * 4 * KiB, 4 * MiB);
}

TEST(PageLocks, OfCallersMemoryEndWithTheHeap) {
  quota_4k::begin();
  constexpr std::size_t bytes = 256 * KiB;
  void* const memory = native_os::map(bytes);
  {
    basic_heap<default_recipe, quota_4k> h(memory, bytes);
    ASSERT_NE(h.allocate(1000), nullptr);
    ASSERT_TRUE(h.lock_pages());
    EXPECT_TRUE(quota_4k::all_locked(memory, bytes));
  }
  EXPECT_TRUE(quota_4k::locked.empty());
  native_os::unmap(memory, bytes);
}

TEST(PageLocks, OfNewMemoryTakeOneCallForAllOfIt) {
  quota_4k::begin();
  basic_heap<default_recipe, quota_4k> h;
  ASSERT_TRUE(h.lock_pages());
  ASSERT_NE(h.allocate(100), nullptr);
  EXPECT_EQ(quota_4k::locked.size() * 4 * KiB, h.statistics().mapped);
}

TEST(PageLocks, OfARecipeCanBeUndone) {
  quota_4k::begin();
  basic_heap<locked_by_recipe, quota_4k> h;
  void* const p = h.allocate(10'000);
  EXPECT_TRUE(quota_4k::all_locked(p, 10'000));
  ASSERT_TRUE(h.unlock_pages());
  EXPECT_TRUE(quota_4k::locked.empty());
  ASSERT_NE(h.allocate(5'000'000), nullptr);
  EXPECT_TRUE(quota_4k::locked.empty());
  ASSERT_TRUE(h.lock_pages());
  EXPECT_TRUE(quota_4k::all_locked(p, 10'000));
}

// --- Linux itself
#ifndef _WIN32

using system_pages = os_pages<linux_os>;

/// Bytes that the system counts as locked.
std::size_t locked_bytes() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  std::size_t kib = SIZE_MAX;
  char line[256];
  while (status != nullptr && kib == SIZE_MAX && std::fgets(line, sizeof line, status) != nullptr)
    (void)std::sscanf(line, "VmLck: %zu kB", &kib);
  if (status != nullptr) std::fclose(status);
  return kib * KiB;
}

/// In this process, from now on, no more than `bytes` can be locked, also by root.
bool limit_locks(std::size_t bytes) {
  __user_cap_header_struct self{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &self, sets) != 0) return false;
  sets[0].effective &= ~(1U << CAP_IPC_LOCK);
  if (::syscall(SYS_capset, &self, sets) != 0) return false;
  const rlimit limit{bytes, bytes};
  return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

/// What went wrong in `f`, run in a child process: the line of the first failed check, or 0.
template <class F>
int failed_line_in_child(F f) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f() % 256);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define HOLDS(condition) \
  if (!(condition)) return __LINE__

class LinuxPageLocks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mlock_does_nothing) GTEST_SKIP() << "sanitizers make mlock do nothing";
    rlimit quota{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &quota), 0);
    if (quota.rlim_cur < 256 * KiB && ::geteuid() != 0) GTEST_SKIP() << "this user may not lock enough memory";
  }

  const std::size_t before = locked_bytes();
};

TEST_F(LinuxPageLocks, OfARangeAreItsWholePages) {
  const std::size_t page = linux_os::page_size();
  system_pages source;
  auto* const p = static_cast<std::byte*>(source.allocate({16 * page, page}));
  ASSERT_NE(p, nullptr);
  ASSERT_TRUE(system_pages::lock(p + page - 1, 2));
  EXPECT_EQ(locked_bytes() - before, 2 * page);
  ASSERT_TRUE(system_pages::lock(p, 16 * page));
  EXPECT_EQ(locked_bytes() - before, 16 * page);
  EXPECT_EQ(linux_os::resident(p, 16 * page), 16 * page);
  ASSERT_TRUE(system_pages::unlock(p + page + 100, 1));
  EXPECT_EQ(locked_bytes() - before, 15 * page);
  EXPECT_TRUE(system_pages::lock(p + page, 0));
  EXPECT_TRUE(system_pages::unlock(p, 0));
  EXPECT_EQ(locked_bytes() - before, 15 * page) << "no bytes have no pages";
  EXPECT_FALSE(system_pages::lock(p, SIZE_MAX)) << "beyond the address space";
  EXPECT_EQ(locked_bytes() - before, 15 * page);
  ASSERT_TRUE(system_pages::unlock(p, 16 * page));
  EXPECT_EQ(locked_bytes(), before);
  source.deallocate(p, {16 * page, page});
}

TEST_F(LinuxPageLocks, RefusedForARangeChangeNothing) {
  EXPECT_EQ(failed_line_in_child([]() -> int {
              const std::size_t page = linux_os::page_size();
              auto* const p = static_cast<std::byte*>(linux_os::map(16 * page));
              std::memset(p, 7, 16 * page);
              HOLDS(limit_locks(8 * page));
              HOLDS(system_pages::lock(p, 4 * page));
              errno = 0;
              HOLDS(!system_pages::lock(p, 9 * page));
              HOLDS(errno == 0);
              HOLDS(locked_bytes() == 4 * page);
              HOLDS(std::count(p, p + 16 * page, std::byte{7}) == static_cast<std::ptrdiff_t>(16 * page));
              HOLDS(limit_locks(0));
              HOLDS(!system_pages::lock(p + 8 * page, 1));
              HOLDS(system_pages::unlock(p, 4 * page));
              HOLDS(locked_bytes() == 0);
              return 0;
            }),
            0);
}

// By their own names, also where HEAPWRIGHT_DEFAULT_MALLOC makes heap<> another.
using linux_heap = basic_heap<default_recipe, linux_os>;

TEST_F(LinuxPageLocks, OfAHeapAreWhatItHasInMemory) {
  {
    linux_heap h;
    const std::vector<void*> blocks = filled_blocks(h, 30, 1000);
    ASSERT_TRUE(h.lock_pages());
    const heap_statistics s = h.statistics();
    EXPECT_EQ(locked_bytes() - before, s.mapped - s.free_decommitted);
    EXPECT_EQ(s.locked_total, s.mapped - s.free_decommitted);
    void* const later = h.allocate(100'000);
    EXPECT_GE(locked_bytes() - before, 100'000U);
    h.deallocate(later);
    ASSERT_TRUE(h.unlock_pages());
    EXPECT_EQ(locked_bytes(), before);
    ASSERT_TRUE(h.lock_pages());
  }
  EXPECT_EQ(locked_bytes(), before) << "nothing stays locked when the heap ends";
}

TEST_F(LinuxPageLocks, OfAHeapLeaveGuardPagesOut) {
  basic_heap<with_guards, linux_os> h;
  std::vector<void*> blocks = filled_blocks(h, 3, 300'000);
  ASSERT_TRUE(h.lock_pages());
  EXPECT_GE(locked_bytes() - before, 900'000U);
  for (void* const p : blocks) h.deallocate(p);
  const heap_statistics s = h.statistics();
  EXPECT_EQ(locked_bytes() - before, s.mapped - s.free_decommitted) << "what guarded a block is locked when it is free";
}

TEST_F(LinuxPageLocks, RefusedForAHeapLeaveItAsItWas) {
  EXPECT_EQ(failed_line_in_child([]() -> int {
              linux_heap h;
              const std::vector<void*> blocks = filled_blocks(h, 20, 50'000);
              for (const std::size_t quota : {100'000U, 0U}) {
                HOLDS(limit_locks(quota));
                HOLDS(!h.lock_pages());
                HOLDS(locked_bytes() == 0);
                HOLDS(h.allocate(60'000) != nullptr);
                HOLDS(locked_bytes() == 0);
                HOLDS(h.unlock_pages());
              }
              for (void* const p : blocks) {
                const auto* const bytes = static_cast<unsigned char*>(p);
                HOLDS(std::count(bytes, bytes + 50'000, 1) == 50'000);
                h.deallocate(p);
              }
              HOLDS(h.trim() > 0);
              return 0;
            }),
            0);
}

TEST_F(LinuxPageLocks, OfAHeapAreNotInherited) {
  linux_heap h;
  ASSERT_NE(h.allocate(1000), nullptr);
  ASSERT_TRUE(h.lock_pages());
  EXPECT_EQ(failed_line_in_child([&]() -> int {
              HOLDS(locked_bytes() == 0);
              HOLDS(h.allocate(100'000) != nullptr);
              HOLDS(locked_bytes() == 0);
              HOLDS(h.lock_pages());
              HOLDS(locked_bytes() >= 101'000);
              return 0;
            }),
            0);
  EXPECT_TRUE(h.unlock_pages());
  EXPECT_EQ(locked_bytes(), before);
}
#endif

TEST(DefaultMallocLocks, AreRefusedButInMemoryOfTheCaller) {
  quota_4k::begin();
  std::vector<std::byte> memory(300'000);
  malloc_heap<basic_heap<default_recipe, quota_4k>> of_malloc;
  malloc_heap<basic_heap<default_recipe, quota_4k>> of_caller(memory.data(), memory.size());
  EXPECT_FALSE(of_malloc.lock_pages());
  EXPECT_TRUE(of_malloc.unlock_pages());
  EXPECT_TRUE(of_caller.lock_pages());
  EXPECT_FALSE(quota_4k::locked.empty());
  EXPECT_TRUE(of_caller.unlock_pages());
  EXPECT_TRUE(quota_4k::locked.empty());
}

}  // namespace
}  // namespace heapwright
