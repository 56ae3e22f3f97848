// What a recipe says is what happens: sizes, policies, limits, hardening.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <heapwright/heap.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

using OS = testing::fake_os<4 * KiB>;

std::uint64_t resident(const heap_statistics& s) { return s.in_use + s.in_caches + s.free_in_spans + s.free_resident; }

// --- sizes

constexpr recipe three_sizes{.classes = {.exact = {24, 40, 96}}};
constexpr recipe powers_of_two{.classes = {.steps_per_doubling = 1}};

TEST(ExactSizes, EachIsAClassAndStepsFollow) {
  constexpr size_class_plan plan = three_sizes.classes;
  EXPECT_EQ(plan.granule(), 8u);
  const std::size_t expected[] = {24, 40, 96, 112, 128, 144};
  for (unsigned c = 1; c <= 6; ++c) EXPECT_EQ(plan.size(c), expected[c - 1]);
  for (std::size_t size = 1; size <= plan.largest; ++size) {
    const unsigned c = plan.index(size);
    ASSERT_GE(plan.size(c), size);
    // A size that is a multiple of 16, or rounds to one, may be that of an object with this
    // alignment.
    if (align_up(size, 8) % 16 == 0) {
      ASSERT_EQ(plan.size(c) % 16, 0u) << size;
    } else if (c > 1) {
      ASSERT_LT(plan.size(c - 1), size);
    }
  }
  EXPECT_EQ(plan.size(plan.count()), plan.largest);
}

template <class Heap>
void fill_and_check(Heap& h) {
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  for (std::size_t size = 0; size < 3000; ++size) {
    for (const std::size_t alignment : {8, 16, 32, 64, 256, 4096}) {
      if (alignment > 16 && size % 37 != 0) continue;
      auto* const p = static_cast<unsigned char*>(h.allocate({size, alignment}));
      ASSERT_TRUE(p != nullptr && is_aligned(p, alignment)) << size << " aligned to " << alignment;
      ASSERT_GE(h.usable_size(p), size);
      std::memset(p, static_cast<int>(size), size);
      blocks.emplace_back(p, size);
    }
  }
  for (const auto& [p, size] : blocks) {
    ASSERT_TRUE(std::all_of(p, p + size, [&, n = static_cast<unsigned char>(size)](unsigned char c) { return c == n; }))
        << size;
    h.deallocate(p);
  }
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// `first_bytes` need be no size class: between two, below the first, or beside an odd one.
constexpr recipe first_between{.classes = {.exact = {304, 4096}}};
constexpr recipe first_of_none{.thread_cache = {.first_bytes = 0}};
constexpr recipe first_is_odd{.classes = {.exact = {24, 40, 64}}, .thread_cache = {.first_bytes = 24}};

TEST(FirstBytes, SplitShortFromLongClasses) {
  static_assert(class_table<default_recipe>::of(class_table<default_recipe>::first_long - 1).size == 2 * KiB);
  static_assert(class_table<first_between>::first_long == 2, "4096 bytes are long");
  static_assert(class_table<first_of_none>::first_long == 1, "all are");
  static_assert(class_table<first_is_odd>::first_long == 2, "40 bytes are");
}

TEST(FirstBytes, MayBeNoSizeClass) {
  heap<first_between> between;
  fill_and_check(between);
  heap<first_of_none> none;
  fill_and_check(none);
  heap<first_is_odd> odd;
  fill_and_check(odd);
}

TEST(ExactSizes, BlocksAreWhatTheyShouldBe) {
  heap<three_sizes> h;
  EXPECT_EQ(h.usable_size(h.allocate(33)), 40u);
  EXPECT_EQ(h.usable_size(h.allocate(24)), 24u);
  EXPECT_EQ(h.usable_size(h.allocate(32)), 96u) << "40 is no multiple of 16";
  EXPECT_EQ(h.usable_size(h.allocate({40, 16})), 96u);
  void* const odd = h.allocate(40);
  void* const next = h.allocate(40);
  for (void* const p : {odd, next})
    EXPECT_TRUE(is_aligned(h.reallocate(p, 32), 16)) << "40 to 32 bytes: it fits, and may not be aligned";
  heap<three_sizes> fresh;
  fill_and_check(fresh);
}

// Pages of a database with a record in front of each; buffers with a header.
constexpr recipe longer_than_pages{.classes = {.exact = {16, 64, 4368, 5120, 8208, 12304, 16384}}};

TEST(ExactSizes, MayBeLongerThanPages) {
  heap<longer_than_pages> h;
  EXPECT_EQ(h.usable_size(h.allocate(4368)), 4368u);
  EXPECT_EQ(h.usable_size(h.allocate(4369)), 5120u);
  EXPECT_EQ(h.usable_size(h.allocate(8208)), 8272u) << "longer by a line, as others of two pages and more";
  EXPECT_EQ(h.usable_size(h.allocate(65)), 4368u);
  EXPECT_EQ(h.usable_size(h.allocate(16385)), 18432u + 64);
  heap<longer_than_pages> fresh;
  fill_and_check(fresh);
  for (const std::size_t alignment : {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    std::vector<std::byte*> blocks;
    for (std::size_t size = 3000; size < 40'000; size += 500) {
      auto* const p = static_cast<std::byte*>(fresh.allocate({size, alignment}));
      ASSERT_TRUE(p != nullptr && is_aligned(p, alignment)) << size << " aligned to " << alignment;
      ASSERT_GE(fresh.usable_size(p), size);
      std::memset(p, 1, size);
      blocks.push_back(p);
    }
    std::ranges::sort(blocks);
    for (std::size_t i = 1; i < blocks.size(); ++i)
      ASSERT_LE(blocks[i - 1] + fresh.usable_size(blocks[i - 1]), blocks[i]);
    for (std::byte* const p : blocks) fresh.deallocate(p);
  }
  EXPECT_EQ(fresh.statistics().in_use, 0u);
}

TEST(ExactSizes, PowersOfTwo) {
  heap<powers_of_two> h;
  EXPECT_EQ(h.usable_size(h.allocate(33)), 64u);
  EXPECT_EQ(h.usable_size(h.allocate(1025)), 2048u);
  heap<powers_of_two> fresh;
  fill_and_check(fresh);
}

// --- when memory goes back

constexpr recipe asked{.pages = {.give_back = give_back_policy::when_asked}};
constexpr recipe at_once{.pages = {.max_free_resident = 1 * MiB, .give_back = give_back_policy::at_once}};

template <class Heap>
void make_a_peak(Heap& h, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < bytes / 50'000; ++i) blocks.push_back(std::memset(h.allocate(50'000), 1, 50'000));
  for (void* p : blocks) h.deallocate(p);
}

TEST(GiveBack, WhenAskedNothingGoesBefore) {
  basic_heap<asked, OS> h;
  make_a_peak(h, 200 * MiB);
  OS::now += 10'000;
  make_a_peak(h, 1 * MiB);
  EXPECT_EQ(h.statistics().decommitted_total, 0u);
  EXPECT_GT(h.statistics().free_resident, 190 * MiB);
  EXPECT_GT(h.trim(), 190 * MiB);
  EXPECT_EQ(resident(h.statistics()), 0u);
}

TEST(GiveBack, AtOnceBeyondAThreshold) {
  basic_heap<at_once, OS> h;
  make_a_peak(h, 200 * MiB);
  EXPECT_LE(h.statistics().free_resident, 2 * MiB);
  const std::uint64_t before = h.statistics().decommitted_total;
  OS::now += 10'000;
  make_a_peak(h, 500'000);
  EXPECT_EQ(h.statistics().decommitted_total, before) << "time is no reason";
}

constexpr recipe unmerged{.pages = {.coalesce = false}};

TEST(GiveBack, RunsNeedNotBeMerged) {
  basic_heap<unmerged, OS> h;
  std::minstd_rand random(1);
  std::vector<void*> held(200);
  for (int i = 0; i < 20'000; ++i) {
    void*& p = held[random() % held.size()];
    h.deallocate(p);
    p = h.allocate(random() % 300'000);
    ASSERT_NE(p, nullptr);
  }
  for (void* p : held) h.deallocate(p);
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// --- how memory is had

constexpr recipe ahead{.pages = {.growth = 4 * MiB, .give_back = give_back_policy::when_asked, .prefault = true}};

class touch_counting : public native_os {
 public:
  static void touch(void* p, std::size_t bytes) noexcept {
    touched += bytes;
    native_os::touch(p, bytes);
  }
  static inline std::size_t touched = 0;
};

TEST(Pages, ArePrefaulted) {
  basic_heap<ahead, touch_counting> h;
  ASSERT_NE(h.allocate(1000), nullptr);
  EXPECT_EQ(touch_counting::touched, 4 * MiB);
  auto* const zeroed = static_cast<unsigned char*>(h.allocate_zeroed(1 * MiB));
  EXPECT_TRUE(std::all_of(zeroed, zeroed + 1 * MiB, [](unsigned char c) { return c == 0; }));
  make_a_peak(h, 10 * MiB);
  EXPECT_EQ(touch_counting::touched, h.statistics().mapped);
  EXPECT_EQ(h.statistics().free_decommitted, 0u);
}

TEST(Pages, ThatOnlyAnAlignmentNeedsAreNotPrefaulted) {
  basic_heap<ahead, touch_counting> h;
  ASSERT_NE(h.allocate(1000), nullptr);
  touch_counting::touched = 0;
  void* const p = h.allocate({1 * MiB, 1 * GiB});
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(touch_counting::touched, 1 * MiB);
}

TEST(Pages, ThatWereGivenBackArePrefaultedAgain) {
  basic_heap<ahead, touch_counting> h;
  ASSERT_NE(h.allocate(3 * MiB + 512 * KiB), nullptr);  // what is left of the 4 MiB is too short to be unmapped
  h.trim();
  ASSERT_EQ(h.statistics().free_resident, 0u);
  touch_counting::touched = 0;
  ASSERT_NE(h.allocate(300 * KiB), nullptr);
  EXPECT_GE(touch_counting::touched, 300 * KiB);
  EXPECT_LT(touch_counting::touched, 512 * KiB);
}

TEST(Pages, KeepTheirContentsWhenTouched) {
  constexpr std::size_t bytes = 64 * KiB;
  void* const p = native_os::map(bytes);
  std::memset(p, 7, bytes / 2);
  native_os::touch(p, bytes);
  const auto* const contents = static_cast<unsigned char*>(p);
  EXPECT_EQ(std::count(contents, contents + bytes, 7), bytes / 2);
  native_os::unmap(p, bytes);
}

class no_quota : public native_os {
 public:
  static bool lock_pages(void*, std::size_t) noexcept { return false; }
};

constexpr recipe locked{.pages = {.growth = 1 * MiB, .give_back = give_back_policy::when_asked, .locked = true}};

TEST(Pages, AreLockedAsFarAsTheQuotaGoes) {
  basic_heap<locked, no_quota> refused;
  ASSERT_NE(refused.allocate(1000), nullptr);
  EXPECT_EQ(refused.statistics().locked_total, 0u);
  heap<locked> h;
  ASSERT_NE(h.allocate(1000), nullptr);
  const heap_statistics s = h.statistics();
  EXPECT_TRUE(s.locked_total == 0 || s.locked_total == s.mapped) << "the quota of this machine decides";
}

class two_nodes : public native_os {
 public:
  static bool bind(void*, std::size_t, int node) noexcept { return node == 1; }
};

constexpr recipe on_node_0{.pages = {.numa_node = 0}};
constexpr recipe on_node_1{.pages = {.numa_node = 1}};

TEST(Pages, AreBoundToANodeThatIsThere) {
  basic_heap<on_node_1, two_nodes> there;
  ASSERT_NE(there.allocate(1000), nullptr);
  EXPECT_EQ(there.statistics().bound_total, there.statistics().mapped);
  basic_heap<on_node_0, two_nodes> not_there;
  ASSERT_NE(not_there.allocate(1000), nullptr);
  EXPECT_EQ(not_there.statistics().bound_total, 0u);
  heap<on_node_0> really;
  ASSERT_NE(really.allocate(1000), nullptr);
}

/// So many bytes of huge pages are set aside; none are transparent.
template <std::size_t Reserved>
class few_huge_pages : public native_os {
 public:
  static void* map_huge(std::size_t bytes) noexcept {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return os_pages<native_os>{}.allocate({bytes, 2 * MiB});
  }
  static bool advise_huge(void*, std::size_t) noexcept { return false; }

 private:
  static inline std::size_t left_ = Reserved;
};

constexpr recipe reserved{.pages = {.growth = 2 * MiB, .huge = huge_page_use::reserved}};
constexpr recipe transparent{.pages = {.huge = huge_page_use::transparent}};

TEST(Pages, AreHugeAsFarAsThereAreAny) {
  basic_heap<reserved, few_huge_pages<6 * MiB>> h;
  make_a_peak(h, 40 * MiB);
  fill_and_check(h);
  EXPECT_EQ(h.statistics().huge_reserved_total, 6 * MiB);
  EXPECT_EQ(h.statistics().huge_transparent_total, 0u);
  EXPECT_EQ(h.statistics().mapped % (2 * MiB), 0u);
  h.trim();
  EXPECT_EQ(h.statistics().free_resident, 0u) << "whole huge pages go back";

  basic_heap<transparent, few_huge_pages<0>> refused;
  ASSERT_NE(refused.allocate(1000), nullptr);
  EXPECT_EQ(refused.statistics().huge_transparent_total, 0u);
  heap<transparent> really;
  make_a_peak(really, 10 * MiB);
  EXPECT_EQ(really.statistics().mapped % (2 * MiB), 0u);
}

TEST(Pages, OfWholeHugePagesAreUnmappedFromWithinARun) {
  basic_heap<reserved, few_huge_pages<0>> h;
  void* const before = h.allocate(100);
  ASSERT_NE(before, nullptr);
  h.deallocate(h.allocate(100 * MiB + 12 * KiB));  // begins and ends within a huge page
  h.trim();
  EXPECT_LT(h.statistics().mapped, 10 * MiB);
  EXPECT_EQ(h.statistics().mapped % (2 * MiB), 0u);
  make_a_peak(h, 40 * MiB);
  h.deallocate(before);
  fill_and_check(h);
}

// --- no more memory

void* spare = nullptr;
int times_asked = 0;

bool give_spare(std::size_t) noexcept;
constexpr out_of_memory_handler gives_spare{give_spare};
constexpr recipe with_callback{.pages = {.limit = 8 * MiB}, .out_of_memory = &gives_spare};
heap<with_callback>* asking = nullptr;

bool give_spare(std::size_t bytes) noexcept {
  ++times_asked;
  EXPECT_GT(bytes, 0u);
  if (spare == nullptr) return false;
  asking->deallocate(spare);
  spare = nullptr;
  return true;
}

TEST(OutOfMemory, SomebodyIsAskedWhoMayFreeSomething) {
  heap<with_callback> h;
  asking = &h;
  spare = h.allocate(5 * MiB);
  ASSERT_NE(spare, nullptr);
  times_asked = 0;
  EXPECT_NE(h.allocate(6 * MiB), nullptr);
  EXPECT_EQ(times_asked, 1);
  EXPECT_EQ(h.allocate(6 * MiB), nullptr);
  EXPECT_EQ(times_asked, 2);

  spare = h.allocate(1 * MiB);
  for (int i = 0; i < 100'000 && spare != nullptr; ++i) ASSERT_NE(h.allocate(100), nullptr);
  EXPECT_EQ(spare, nullptr) << "short blocks ask as well";
  while (h.allocate(40'000) != nullptr) {
  }
  EXPECT_EQ(h.allocate(std::size_t{1} << 63), nullptr);
}

// --- other threads' blocks

constexpr recipe generous{.thread_cache = {.keep_remote = true}};

/// Whether a thread that frees another's block is given it for its next request.
template <const recipe& R>
bool gets_what_it_frees() {
  heap<R> h;
  void* const others = h.allocate(100);
  bool same = false;
  std::thread([&] {
    std::vector<void*> own;
    for (int i = 0; i < 10'000; ++i) own.push_back(h.allocate(100));
    for (void* p : own) h.deallocate(p);
    h.deallocate(others);
    for (int i = 0; i < 10'000; ++i) same = h.allocate(100) == others || same;
  }).join();
  return same;
}

TEST(RemoteFrees, StayInTheCacheWhereKeepRemoteIsSet) {
  EXPECT_TRUE(gets_what_it_frees<generous>());
  EXPECT_FALSE(gets_what_it_frees<default_recipe>()) << "it would lie among the other thread's blocks";
  fill_and_check(*std::make_unique<heap<generous>>());
}

// --- hardening

constexpr recipe forgetful{.hardening = {.zero_freed = true}};

TEST(Hardening, WhatWasInAFreedBlockIsGone) {
  heap<forgetful> h;
  for (const std::size_t size : {16, 100, 3000, 40'000, 300'000}) {
    auto* const p = static_cast<unsigned char*>(h.allocate(size));
    std::memset(p, 0x5A, size);
    h.deallocate(p);
    if (size > 200'000) continue;  // its pages may have gone back
    EXPECT_EQ(std::count(p + 16, p + size, 0x5A), 0) << size;
  }
  fill_and_check(h);
}

constexpr recipe fenced{.hardening = {.guard_large = true}};

TEST(HardeningDeathTest, WhoWritesBeyondALongBlockIsStopped) {
  heap<fenced> h;
  constexpr std::size_t size = 300'000;
  auto* const p = static_cast<volatile char*>(h.allocate(size));
  p[size - 1] = 1;
  EXPECT_EQ(h.usable_size(const_cast<char*>(p)), size);
  EXPECT_DEATH(p[size] = 1, "");
  auto* const longer = static_cast<volatile char*>(h.reallocate(const_cast<char*>(p), size + 16));
  EXPECT_EQ(longer[size - 1], 1);
  longer[size + 15] = 1;
  EXPECT_DEATH(longer[size + 16] = 1, "");
  h.deallocate(const_cast<char*>(longer));
}

TEST(Hardening, GuardsAreLiftedWhenTheirBlockIsFreed) {
  heap<fenced> h;
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks;
    for (std::size_t size = 262'000; size < 3 * MiB; size += size / 3) {
      for (const std::size_t alignment : {16, 256, 4096, 65'536}) {
        void* const p = h.allocate({size + static_cast<std::size_t>(round) * 1000, alignment});
        ASSERT_TRUE(p != nullptr && is_aligned(p, alignment));
        std::memset(p, round, h.usable_size(p));
        blocks.push_back(p);
      }
    }
    void* const zeroed = h.allocate_zeroed(5 * MiB + 1);
    EXPECT_EQ(static_cast<char*>(zeroed)[5 * MiB], 0);
    blocks.push_back(zeroed);
    for (void* p : blocks) h.deallocate(p);
  }
  fill_and_check(h);
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.mapped, s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
}

constexpr recipe watchful{.hardening = {.check_callers = true}};

TEST(HardeningDeathTest, MistakesAreNamedInEveryBuild) {
  heap<watchful> h;
  fill_and_check(h);
  auto* const p = static_cast<char*>(h.allocate(40));
  EXPECT_DEATH(h.deallocate(p + 8), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(
      {
        h.deallocate(p);
        h.deallocate(p);
      },
      "heapwright: double free: 0x");
  int local = 0;
  EXPECT_DEATH(h.deallocate(&local), "heapwright: free of a foreign pointer: 0x");
}

constexpr recipe noting{.notes_requests = true};

TEST(Requests, AreNotedWhereTheRecipeSaysSo) {
  basic_heap<noting, native_os> h;
  std::minstd_rand random(3);
  std::map<void*, std::size_t> blocks;
  const auto check = [&] {
    std::size_t requested = 0;
    for (const auto& [p, size] : blocks) requested += size;
    const heap_statistics s = h.statistics();
    EXPECT_EQ(s.requested, requested);
    EXPECT_LE(s.requested, s.in_use);
  };
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = random() % 5 == 0 ? random() % 600'000 : random() % 3'000;
    void* p = nullptr;
    switch (random() % 4) {
      case 0: p = h.allocate({size, std::size_t{1} << random() % 14}); break;
      case 1: p = h.allocate_zeroed(size); break;
      case 2:
        if (!blocks.empty()) {
          p = h.reallocate(blocks.begin()->first, size);
          blocks.erase(blocks.begin());
          break;
        }
        [[fallthrough]];
      default: p = h.allocate(size); break;
    }
    ASSERT_NE(p, nullptr);
    ASSERT_GE(h.usable_size(p), size);
    std::memset(p, 0xA5, h.usable_size(p));  // all that may be used is the program's
    blocks[p] = size;
    if (random() % 2 == 0) {
      h.deallocate(blocks.begin()->first);
      blocks.erase(blocks.begin());
    }
    if (i % 500 == 0) check();
  }
  check();
  EXPECT_EQ(h.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(h.allocate(SIZE_MAX - 4), nullptr);
  for (const auto& block : blocks) h.deallocate(block.first);
  EXPECT_EQ(h.statistics().requested, 0u);
}

TEST(Requests, StayPlausibleUnderLoad) {
  basic_heap<noting, native_os> h;
  std::atomic<bool> enough{false};
  std::vector<std::thread> busy;
  for (unsigned t = 0; t < 3; ++t) {
    busy.emplace_back([&, t] {
      std::minstd_rand random(t);
      std::array<void*, 100> held{};
      while (!enough) {
        void*& p = held[random() % held.size()];
        h.deallocate(p);
        p = h.allocate(random() % 2'000);
      }
      for (void* p : held) h.deallocate(p);
    });
  }
  for (int i = 0; i < 50; ++i) {
    const heap_statistics s = h.statistics();
    EXPECT_LE(s.requested, s.in_use);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  enough = true;
  for (auto& t : busy) t.join();
  EXPECT_EQ(h.statistics().requested, 0u);
}

}  // namespace
}  // namespace heapwright
