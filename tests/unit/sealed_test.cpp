// Blocks with a seal: what a heap gives out is as long, as aligned and as clean as it says, and
// what a program does wrong ends it by name. What the malloc adds (new and free, all sizes) is in
// tests/malloc/misuse.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <heapwright/heap.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

constexpr recipe seals_alone{.hardening = {.sealed = true}};
constexpr recipe of_one_thread{.concurrency = concurrency_mode::single_threaded,
                               .hardening = hardened_recipe.hardening};

template <class Heap>
class Sealed : public ::testing::Test {
 protected:
  Heap heap{"sealed"};

  char* block_of(std::size_t size) { return static_cast<char*>(heap.allocate(size)); }
};

using heaps = ::testing::Types<basic_heap<seals_alone, native_os>, basic_heap<hardened_recipe, native_os>,
                               basic_heap<of_one_thread, native_os>>;
TYPED_TEST_SUITE(Sealed, heaps);

constexpr std::array<std::size_t, 12> some_sizes{1, 8, 9, 16, 24, 100, 1000, 4096, 30'000, 100'000, 262'000, 3'000'000};

TYPED_TEST(Sealed, BlocksAreAsLongAsWasAskedFor) {
  for (const std::size_t size : some_sizes) {
    char* const p = this->block_of(size);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(this->heap.usable_size(p), size);
    std::memset(p, 0x5a, size);
    EXPECT_EQ(this->heap.usable_size(p), size);
    this->heap.deallocate(p, layout{size});
  }
}

TYPED_TEST(Sealed, BlocksAreAligned) {
  for (std::size_t alignment = 16; alignment <= 1 << 20; alignment *= 2) {
    for (const std::size_t size : some_sizes) {
      void* const p = this->heap.allocate(layout{size, alignment});
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(address_of(p) % alignment, 0u) << size;
      std::memset(p, 1, size);
      this->heap.deallocate(p, layout{size, alignment});
    }
  }
}

TYPED_TEST(Sealed, ContentsMoveWithReallocate) {
  char* p = this->block_of(1);
  p[0] = 'a';
  std::size_t had = 1;
  for (const std::size_t size : {5, 30, 31, 2000, 1999, 400'000, 399'000, 500'000, 100, 3}) {
    p = static_cast<char*>(this->heap.reallocate(p, size));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(this->heap.usable_size(p), size);
    for (std::size_t i = 0; i < std::min<std::size_t>(had, size); ++i) ASSERT_EQ(p[i], 'a') << i;
    std::memset(p, 'a', size);
    had = size;
  }
  this->heap.deallocate(p);
}

TYPED_TEST(Sealed, ZeroedMemoryIsZero) {
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : some_sizes) {
      auto* const p = static_cast<char*>(this->heap.allocate_zeroed(size));
      EXPECT_TRUE(std::all_of(p, p + size, [](char c) { return c == 0; })) << size;
      std::memset(p, 1, size);
      this->heap.deallocate(p);
    }
  }
}

TYPED_TEST(Sealed, AllThatIsFreedCanGoBack) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < 20'000; ++i) blocks.push_back(this->heap.allocate(i % 5000));
    for (void* p : blocks) this->heap.deallocate(p);
    this->heap.trim();
  }
  EXPECT_EQ(this->heap.statistics().in_use, 0u);
}

using Hardened = Sealed<basic_heap<hardened_recipe, native_os>>;

TEST_F(Hardened, NoOldContentIsThere) {
  for (const std::size_t size : {16, 100, 5000, 100'000, 400'000}) {
    for (int i = 0; i < 100; ++i) {
      auto* const p = this->block_of(size);
      EXPECT_TRUE(std::all_of(p, p + size, [](char c) { return c != 0x5a; })) << size;
      std::memset(p, 0x5a, size);
      this->heap.deallocate(p);
    }
  }
}

TEST_F(Hardened, AFreedBlockIsNotTheNext) {
  for (const std::size_t size : {16, 100, 5000, 100'000, 400'000}) {
    void* const p = this->block_of(size);
    this->heap.deallocate(p);
    void* const q = this->block_of(size);
    EXPECT_NE(p, q) << size;
    this->heap.deallocate(q);
  }
}

TEST_F(Hardened, ThreadsFreeEachOthersBlocks) {
  constexpr std::size_t threads = 4, each = 2000;
  std::vector<std::vector<void*>> of(threads);
  const auto all = [&](auto f) {
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t) running.emplace_back(f, t);
    for (std::thread& t : running) t.join();
  };
  for (int round = 0; round < 3; ++round) {
    all([&](std::size_t t) {
      for (std::size_t i = 0; i < each; ++i) of[t].push_back(this->heap.allocate(i % 700 + t));
    });
    all([&](std::size_t t) {
      for (void* p : of[(t + 1) % threads]) this->heap.deallocate(p);
    });
    for (auto& blocks : of) blocks.clear();
  }
  this->heap.trim();
}

TEST_F(Hardened, FreshBlocksComeInRandomOrder) {
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(this->block_of(40));
  int in_order = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i) in_order += blocks[i] - blocks[i - 1] == 48 ? 1 : 0;
  EXPECT_LT(in_order, 20);
  for (char* p : blocks) this->heap.deallocate(p);
}

TEST_F(Hardened, SpansLieInRandomPlaces) {
  int higher = 0, lower = 0;
  const char* last = nullptr;
  for (int i = 0; i < 400; ++i) {
    const char* const p = this->block_of(100'000);
    ASSERT_NE(p, nullptr);
    (p > last ? higher : lower) += 1;
    last = p;
  }
  EXPECT_GT(higher, 100);
  EXPECT_GT(lower, 100);
}

bool can_be_read(const std::byte* p) {
#ifdef _WIN32
  detail::memory_region region;
  return detail::find_region(p, region) && region.state == detail::memory_state::committed &&
         region.access != detail::memory_access::none;
#else
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool is_read = ::syscall(SYS_write, ends[1], p, 1) == 1;  // AddressSanitizer would look at what write reads
  ::close(ends[0]);
  ::close(ends[1]);
  return is_read;
#endif
}

/// Of a block of 1024 bytes, its seal included.
bool is_before_guard(const void* p) { return !can_be_read(static_cast<const std::byte*>(p) + 1024); }

TEST_F(Hardened, GuardPagesLieBehindSpans) {
  std::vector<void*> blocks;
  for (int i = 0; i < 4000; ++i) blocks.push_back(this->heap.allocate(1000));
  const auto guards = std::count_if(blocks.begin(), blocks.end(), is_before_guard);
  EXPECT_GT(guards, 5) << "of some 130 spans one in four has one";
  for (void* p : blocks) this->heap.deallocate(p);
}

TEST_F(Hardened, GuardPagesLieOnBothSidesOfALargeBlock) {
  std::mt19937_64 random(3);
  std::vector<char*> blocks;
  const auto has_guards = [](const char* p, std::size_t size) {
    const auto* const first = reinterpret_cast<const std::byte*>(align_down(address_of(p), 4096));
    const auto* const end =
        reinterpret_cast<const std::byte*>(align_up(address_of(p) + size + block_seal::bytes, 4096));
    return !can_be_read(first - 1) && can_be_read(first) && can_be_read(end - 1) && !can_be_read(end);
  };
  for (int i = 0; i < 2000; ++i) {
    const std::size_t size = 300'000 + random() % 3'000'000;
    char* p = this->block_of(size);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(has_guards(p, size)) << i;
    const std::size_t other = 300'000 + random() % 3'000'000;
    p = static_cast<char*>(this->heap.reallocate(p, other));
    // One that becomes a little shorter keeps its pages.
    EXPECT_TRUE(has_guards(p, std::max(size, other)) || has_guards(p, other)) << i;
    blocks.push_back(p);
    if (blocks.size() > 20) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      this->heap.deallocate(blocks.back());
      blocks.pop_back();
    }
  }
  for (char* p : blocks) this->heap.deallocate(p);
  this->heap.trim();
  const heap_statistics s = this->heap.statistics();
  EXPECT_EQ(s.mapped, s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
}

TEST_F(Hardened, ALargeBlockThatGrowsSeldomMoves) {
  std::vector<char*> others;
  char* p = block_of(300'000);
  std::memset(p, 'a', 300'000);
  std::size_t size = 300'000, moves = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t longer = size + 4096;
    char* const resized = static_cast<char*>(heap.reallocate(p, longer));
    ASSERT_NE(resized, nullptr);
    moves += resized != p ? 1 : 0;
    p = resized;
    EXPECT_EQ(std::count(p + size, p + longer, '\0'), 4096) << "old contents";
    EXPECT_FALSE(can_be_read(reinterpret_cast<std::byte*>(align_up(address_of(p) + longer + block_seal::bytes, 4096))));
    std::memset(p + size, 'a', 4096);
    size = longer;
    if (i % 50 == 0) {
      others.push_back(block_of(300'000 + static_cast<std::size_t>(i) * 500));
      std::memset(others.back(), 'b', 300'000);
    }
  }
  EXPECT_LE(moves, 6u);
  EXPECT_EQ(std::count(p, p + size, 'a'), static_cast<std::ptrdiff_t>(size));
  heap.deallocate(p);
  for (char* const other : others) {
    EXPECT_EQ(std::count(other, other + 300'000, 'b'), 300'000);
    heap.deallocate(other);
  }
  heap.trim();
  const heap_statistics s = heap.statistics();
  EXPECT_EQ(s.mapped, s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
}

using counted_os = testing::fake_os<4 * KiB>;

/// A block that has grown, and may grow more without being moved.
char* grown_block(basic_heap<hardened_recipe, counted_os>& heap, std::size_t size) {
  return static_cast<char*>(heap.reallocate(heap.reallocate(nullptr, size - 100'000), size));
}

TEST(Room, IsGivenUpWhereTheSystemHasNoMore) {
  basic_heap<hardened_recipe, counted_os> heap;
  char* const p = grown_block(heap, 8 * MiB);
  ASSERT_NE(p, nullptr);
  EXPECT_GE(heap.statistics().free_decommitted, 8 * MiB) << "there is no room";
  counted_os::fail_from = counted_os::calls.load();
  while (heap.allocate(300'000) != nullptr) {
  }
  counted_os::fail_from = counted_os::never;
  EXPECT_LT(heap.statistics().free_decommitted, 1 * MiB);
  heap.deallocate(p);
}

TEST(Room, AFailedCallOfTheSystemLosesNothing) {
  const auto grow = [] {
    basic_heap<hardened_recipe, counted_os> heap;
    char* p = grown_block(heap, 500'000);
    for (std::size_t size = 500'000; size < 6 * MiB; size += size / 5) {
      if (p == nullptr) p = grown_block(heap, size);
      if (p == nullptr) continue;
      std::memset(p, 'a', size);
      if (char* const longer = static_cast<char*>(heap.reallocate(p, size + size / 5))) {
        EXPECT_EQ(std::count(longer, longer + size, 'a'), static_cast<std::ptrdiff_t>(size));
        p = longer;
      } else {
        EXPECT_EQ(std::count(p, p + size, 'a'), static_cast<std::ptrdiff_t>(size));
        heap.deallocate(p);
        p = nullptr;
      }
    }
    heap.deallocate(p);
    heap.trim();
    const heap_statistics s = heap.statistics();
    EXPECT_EQ(s.mapped, s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
  };
  const std::uint64_t before = counted_os::calls;
  grow();
  const std::uint64_t calls = counted_os::calls - before;
  ASSERT_GT(calls, 5u);
  for (std::uint64_t n = 0; n < calls; ++n) {
    counted_os::fail_from = counted_os::calls + n;
    counted_os::fail_until = counted_os::calls + n + 1;
    grow();
  }
  counted_os::fail_from = counted_os::fail_until = counted_os::never;
}

/// Blocks of all sizes come and go, all of them are freed now and then, and memory is trimmed. 0 is
/// the class of blocks without one.
TEST_F(Hardened, PagesOfAClassNeverHaveBlocksOfAnother) {
  std::map<std::uintptr_t, unsigned> class_of_page;
  std::mt19937_64 random(7);
  std::vector<char*> live;
  std::size_t used_again = 0;
  for (int round = 0; round < 60; ++round) {
    // Few sizes in each round, others in the next one.
    const std::size_t base = std::size_t{16} << random() % 16;
    for (int i = 0; i < 200; ++i) {
      std::size_t size = base + random() % base;
      const unsigned c = class_table<hardened_recipe>::index(size + block_seal::bytes);
      char* p = block_of(size);
      ASSERT_NE(p, nullptr);
      p[0] = p[size - 1] = 'x';
      if (c == 0 && random() % 2 == 0) {
        size += random() % size;
        p = static_cast<char*>(heap.reallocate(p, size));
        ASSERT_NE(p, nullptr);
      }
      for (std::uintptr_t page = address_of(p) / 4096; page <= address_of(p + size - 1) / 4096; ++page) {
        const auto [known, is_new] = class_of_page.emplace(page, c);
        EXPECT_EQ(known->second, c) << size;
        used_again += is_new ? 0 : 1;
      }
      live.push_back(p);
    }
    std::ranges::shuffle(live, random);
    const std::size_t kept = round % 5 == 4 ? 0 : live.size() / 4;
    for (; live.size() > kept; live.pop_back()) heap.deallocate(live.back());
    heap.trim();
  }
  EXPECT_GT(used_again, class_of_page.size()) << "nothing was used again";
}

constexpr recipe separate{.hardening = {.guard_large = true, .separate_classes = true}};

/// Where pages of the system are longer than a span, what is left of one in memory is counted so.
TEST(SeparateClasses, FiguresAreTrueWherePagesAreLong) {
  using os = testing::fake_os<64 * KiB>;
  basic_heap<separate, os> heap;
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(std::memset(heap.allocate(1000), 1, 1000));
  for (void* const p : blocks) heap.deallocate(p);
  heap.trim();
  const heap_statistics before = heap.statistics();
  EXPECT_GT(before.free_decommitted, 0U);
  for (void*& p : blocks) p = std::memset(heap.allocate(1000), 1, 1000);
  EXPECT_EQ(heap.statistics().mapped, before.mapped) << "the class has its pages again";
  for (void* const p : blocks) heap.deallocate(p);
  heap.trim();
  EXPECT_EQ(heap.statistics().free_decommitted, before.free_decommitted);
}

/// A system with 64 MiB of address space.
struct short_of_addresses : testing::fake_os<4 * KiB> {
  static inline std::size_t available = 64 * MiB;

  static void* map(std::size_t bytes) noexcept {
    if (bytes > available) return nullptr;
    available -= bytes;
    return fake_os::map(bytes);
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    available += bytes;
    return fake_os::unmap(p, bytes);
  }
};

TEST(SeparateClasses, GiveFreedLargeBlocksToOthersBeforeThereIsNoMemory) {
  basic_heap<separate, short_of_addresses> heap;
  void* const large = heap.allocate(50 * MiB);
  ASSERT_NE(large, nullptr);
  heap.deallocate(large);
  EXPECT_LT(short_of_addresses::available, 20 * MiB) << "its address space is for such blocks";
  for (int i = 0; i < 400; ++i) ASSERT_NE(heap.allocate(100'000), nullptr) << i;
  EXPECT_EQ(heap.allocate(50 * MiB), nullptr);
}

#ifndef _WIN32  // no limit of mappings is there
TEST_F(Hardened, AMillionLargeBlocksLeaveMappingsToTheProgram) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
  };
  const std::size_t before = mappings();
  std::vector<void*> live(20'000);
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    void*& p = live[i % live.size()];
    if (p != nullptr) this->heap.deallocate(p);
    p = this->heap.allocate(263'000 + i % 7 * 1000);
    ASSERT_NE(p, nullptr);
  }
  EXPECT_LT(mappings(), before + 3 * 65'530 / 4);
  for (void* p : live) this->heap.deallocate(p);
}
#endif

TEST_F(Hardened, FreedLargeBlocksCountAsGivenBack) {
  const heap_statistics before = this->heap.statistics();
  for (const std::size_t size : {700'000, 3'000'000}) this->heap.deallocate(this->block_of(size));
  const heap_statistics s = this->heap.statistics();
  EXPECT_EQ(s.mapped, s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
  EXPECT_GE(s.decommitted_total - before.decommitted_total, 3'700'000U);
  EXPECT_GE(s.free_decommitted, 3'700'000U);
}

TEST(BlockLinks, LeadToTheNextBlockAndToNothingOnceWrittenTo) {
  using links = block_links<hardened_recipe>;
  link_key::set(0x123456789ABCDEF1);
  struct alignas(16) {
    block link;
  } blocks[2];
  block* const first = links::make(&blocks[0], &blocks[1].link);
  EXPECT_EQ(links::next(first), &blocks[1].link);
  EXPECT_TRUE(links::is_whole(first));
  EXPECT_EQ(links::next(links::make(&blocks[1], nullptr)), nullptr);
  EXPECT_TRUE(links::is_whole(&blocks[1].link));
  EXPECT_NE(blocks[1].link.link, 0u) << "a link that is overwritten with zeros is no end of the list";
  const std::uintptr_t link = first->link;
  for (unsigned byte = 0; byte < 8; ++byte) {
    for (std::uintptr_t change = 1; change < 256; ++change) {
      first->link = link ^ change << 8 * byte;
      ASSERT_FALSE(links::is_whole(first)) << byte << " " << change;
      ASSERT_EQ(links::next(first), nullptr);
    }
  }
  first->link = 0;
  EXPECT_FALSE(links::is_whole(first));
  first->link = address_of(&blocks[1]);
  EXPECT_FALSE(links::is_whole(first)) << "nobody can make a link who does not know the key";
  blocks[1].link.link = link;
  EXPECT_FALSE(links::is_whole(&blocks[1].link)) << "a link is that of its own block";
}

#ifndef _WIN32  // it has no fork
/// What `f()` writes to a pipe in a child of fork.
template <class F>
std::uint64_t in_child(F f) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t word = f();
    ::_exit(::write(ends[1], &word, sizeof word) == sizeof word ? 0 : 1);
  }
  std::uint64_t word = 0;
  EXPECT_EQ(::read(ends[0], &word, sizeof word), static_cast<ssize_t>(sizeof word));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return word;
}

TEST_F(Hardened, AChildOfForkHasAKeyOfItsOwn) {
  char* const p = this->block_of(104);
  char* const to_free = this->block_of(104);
  const auto seal_anew = [&] {
    EXPECT_EQ(this->heap.reallocate(p, 100), p);
    std::uint64_t seal = 0;
    std::memcpy(&seal, p + 104, sizeof seal);
    return seal;
  };
  const std::uint64_t in_first = in_child([&] {
    this->heap.deallocate(to_free);  // with the parent's key
    return seal_anew();
  });
  const std::uint64_t in_second = in_child(seal_anew);
  const std::uint64_t in_grandchild = in_child([&] { return in_child(seal_anew); });
  const std::uint64_t here = seal_anew();
  EXPECT_NE(in_first, here);
  EXPECT_NE(in_first, in_second);
  EXPECT_NE(in_second, in_grandchild);
  this->heap.deallocate(p);
  this->heap.deallocate(to_free);
}
#endif

TEST_F(Hardened, LargeBlocksKeepTheirContentsAsTheyGrowAndShrink) {
  std::size_t had = 300'000;
  char* p = this->block_of(had);
  std::memset(p, 'a', had);
  for (const std::size_t size :
       {310'000, 900'000, 5'000'000, 40'000'000, 39'000'000, 20'000'000, 400'000, 20'000'000}) {
    p = static_cast<char*>(this->heap.reallocate(p, size));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(this->heap.usable_size(p), size);
    const std::size_t kept = std::min(had, size);
    EXPECT_TRUE(std::all_of(p, p + kept, [](char c) { return c == 'a'; })) << size;
    EXPECT_TRUE(std::all_of(p + kept, p + size, [](char c) { return c == 0; })) << size;
    std::memset(p, 'a', size);
    had = size;
  }
  this->heap.deallocate(p);
}

using HardenedDeathTest = Hardened;

TEST_F(HardenedDeathTest, AWriteBeyondIsFoundFromOneByteOn) {
  for (const std::size_t size : {1, 8, 16, 24, 100, 1000, 5000, 100'000, 400'000}) {
    char* const p = this->block_of(size);
    const char was = p[size];
    p[size] = static_cast<char>(was + 1);
    EXPECT_DEATH(this->heap.deallocate(p), "heapwright: write beyond a block: 0x") << size;
    p[size] = was;
    this->heap.deallocate(p);
  }
}

TEST_F(HardenedDeathTest, AWriteBeforeALongBlock) {
  for (const std::size_t size : {100'000, 400'000}) {
    char* const p = this->block_of(size);
    p[-1] = static_cast<char>(p[-1] + 1);
    EXPECT_DEATH(this->heap.deallocate(p), "heapwright: write before a block: 0x") << size;
  }
}

TEST_F(HardenedDeathTest, AWriteAfterFreeIsFoundWhenTheBlockIsUsedAgain) {
  for (const std::size_t at : {0, 8, 50, 99}) {
    char* const p = this->block_of(100);
    this->heap.deallocate(p);
    p[at] = 1;
    const auto use_others = [&] {
      std::vector<char*> others;
      for (int i = 0; i < 1000; ++i) others.push_back(this->block_of(100));
      for (char* o : others) this->heap.deallocate(o);
      for (int i = 0; i < 3000; ++i) (void)this->block_of(100);
    };
    EXPECT_DEATH(use_others(), "heapwright: write after free: 0x") << at;
    EXPECT_DEATH(this->heap.trim(), "heapwright: write after free: 0x") << at;
    p[at] = 0;
  }
}

TEST_F(HardenedDeathTest, APointerIntoTheLastBlockBeforeAGuardPageIsNamed) {
  std::vector<char*> blocks;
  for (int i = 0; i < 4000; ++i) blocks.push_back(this->block_of(1000));
  const auto last = std::find_if(blocks.begin(), blocks.end(), is_before_guard);
  ASSERT_NE(last, blocks.end());
  EXPECT_DEATH(this->heap.deallocate(*last + 16), "heapwright: free of a pointer into a block: 0x");
}

TEST_F(HardenedDeathTest, ALargeBlockThatIsFreedTwiceIsNamedAsLongAsItIsHidden) {
  std::array<char*, 16> blocks;
  for (char*& p : blocks) p = this->block_of(400'000);
  for (char* const p : blocks) this->heap.deallocate(p);
  for (char* const p : blocks) EXPECT_DEATH(this->heap.deallocate(p), "heapwright: double free: 0x");
}

TEST_F(HardenedDeathTest, AWriteToAFreedLargeBlockIsAFault) {
  char* const p = this->block_of(400'000);
  this->heap.deallocate(p);
  EXPECT_DEATH(p[100] = 1, "");
}

TEST_F(HardenedDeathTest, FreeOfWhatIsNoLiveBlock) {
  char* const p = this->block_of(100);
  EXPECT_DEATH(this->heap.deallocate(p + 16), "heapwright: free of a pointer into a block: 0x");
  EXPECT_DEATH(this->heap.deallocate(&p[1]), "heapwright: free of a pointer into a block: 0x");
  int local = 0;
  EXPECT_DEATH(this->heap.deallocate(&local), "heapwright: free of a foreign pointer: 0x");
  this->heap.deallocate(p);
  EXPECT_DEATH(this->heap.deallocate(p), "heapwright: double free: 0x.*free already");
  EXPECT_DEATH((void)this->heap.reallocate(p, 10), "heapwright: double free: 0x");
}

TEST_F(HardenedDeathTest, AWrongSize) {
  void* const p = this->block_of(100);
  for (const std::size_t size : {99, 101, 200})
    EXPECT_DEATH(this->heap.deallocate(p, layout{size}),
                 "heapwright: free with a wrong size: 0x.*100 bytes, .* size of ");
  this->heap.deallocate(p, layout{100});
}

}  // namespace
}  // namespace heapwright
