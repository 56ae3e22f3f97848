// States what the documentation says of heap<>: the docstrings of heap.hpp and heap_statistics.hpp,
// "Heaps for parts of a program" in docs/recipes.md, docs/memory-return.md. Written without the
// code.
#include "model.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include <heapwright/adapt/memory_resource.hpp>
#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/source/upstream.hpp>

namespace {

using namespace from_docs;
using heapwright::checks_callers;
using heapwright::heap_statistics;
using heap = heapwright::heap<>;

/// Pages of this process: {address space, in memory}.
std::pair<long, long> pages_of_process() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0;
  statm >> size >> resident;
  return {size, resident};
}

constexpr long pages_in(std::size_t bytes) { return static_cast<long>(bytes / 4096); }

// "A heap is an allocator of the kit (concepts.md)"; the table of capabilities there names heap in
// these rows.
TEST(Heap, IsAnAllocatorWithTheCapabilitiesThatTheTableNames) {
  static_assert(heapwright::allocator<heap>);
  static_assert(heapwright::can_own<heap>);
  static_assert(heapwright::can_deallocate_unsized<heap>);
  static_assert(heapwright::has_usable_size<heap>);
  static_assert(heapwright::can_reallocate<heap>);
  static_assert(heapwright::can_trim<heap>);
  static_assert(!heapwright::has_one_layout<heap>);
  static_assert(!std::is_copy_constructible_v<heap> &&
                !std::is_move_constructible_v<heap>);  // "Neither copied nor moved"
}

TEST(Heap, DoesWhatTheModelSays) {
  heap h("model");
  for (unsigned seed = 1; seed <= 2; ++seed) behaves_as_documented(h, {}, 1000, seed);
}

// "Nulls when ... the limit is reached": the model again, in a heap that is short of memory all the
// time.
TEST(Heap, DoesWhatTheModelSaysWhileItsLimitIsReached) {
  heap h("short", 3 * MiB);
  behaves_as_documented(h, {.may_be_exhausted = true}, 3000, 7);
  const auto s = h.statistics();
  EXPECT_LE(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, s.limit);
}

// "null when there is no memory, the limit is reached, or beyond PTRDIFF_MAX"
TEST(Heap, HasNothingBeyondPtrdiffMax) {
  heap h;
  const std::size_t most = PTRDIFF_MAX;
  for (const std::size_t size : {most - 4096, most, most + 1, SIZE_MAX - 4096, SIZE_MAX - 16, SIZE_MAX}) {
    EXPECT_EQ(h.allocate(size), nullptr) << size;
    EXPECT_EQ(h.allocate_zeroed(size), nullptr) << size;
    EXPECT_EQ(h.reallocate(nullptr, size), nullptr) << size;
    for (const std::size_t alignment : {8u, 4096u, 65536u, 1u << 30})
      EXPECT_EQ(h.allocate(layout{size, alignment}), nullptr);
    void* const p = h.allocate(100);
    std::memset(p, 7, 100);
    EXPECT_EQ(h.reallocate(p, size), nullptr);  // "Null: no memory, p is as it was"
    EXPECT_TRUE(h.owns(p));
    EXPECT_EQ(static_cast<char*>(p)[99], 7);
    h.deallocate(p);
  }
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// "`l.size` bytes, aligned to `l.alignment`."
TEST(Heap, AlignsToWhateverPowerOfTwoIsAskedFor) {
  heap h;
  std::vector<void*> blocks;
  for (std::size_t alignment = 1; alignment <= 16 * MiB; alignment *= 2)
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, alignment, 3 * alignment + 1}) {
      void* const p = h.allocate(layout{size, alignment});
      ASSERT_NE(p, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u) << size << " at " << alignment;
      ASSERT_GE(h.usable_size(p), size);
      std::memset(p, 1, std::min<std::size_t>(size, 64));
      blocks.push_back(p);
    }
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_EQ(h.allocate(layout{1, std::size_t{1} << 62}), nullptr);  // nothing has that much room
  for (void* const p : blocks) h.deallocate(p);
  EXPECT_EQ(h.statistics().in_use, 0u);
}

// "A size of zero is a size like any other: the pointer is not null, is not to be used, and is
// given back."
TEST(Heap, GivesEachRequestForNothingABlockOfItsOwn) {
  heap h;
  std::set<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.insert(i % 2 == 0 ? h.allocate(0) : h.allocate_zeroed(0));
  EXPECT_EQ(blocks.size(), 1000u);
  EXPECT_EQ(blocks.count(nullptr), 0u);
  for (void* const p : blocks) h.deallocate(p);
}

// "reallocate(p, size): as realloc of C. Null allocates. A size of zero frees and returns null."
// (concepts.hpp)
TEST(Heap, ReallocatesToNothingByFreeing) {
  heap h;
  for (const std::size_t size : {1u, 100u, 40000u, 1u << 20}) {
    void* const p = h.allocate(size);
    EXPECT_EQ(h.reallocate(p, 0), nullptr);
    EXPECT_EQ(h.statistics().in_use, 0u);
  }
}

// "with the contents of p", over many sizes up and down; "aligned to default_alignment"
TEST(Heap, ReallocatesWithTheContents) {
  heap h;
  std::minstd_rand random(3);
  auto* p = static_cast<unsigned char*>(h.allocate(layout{1, 4096}));
  std::size_t size = 1;
  *p = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t to = 1 + random() % (i % 3 == 0 ? 3 * MiB : i % 3 == 1 ? 100 * KiB : 300);
    auto* const q = static_cast<unsigned char*>(h.reallocate(p, to));
    ASSERT_NE(q, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(q) % 16, 0u);
    const std::size_t kept = std::min(size, to);
    for (std::size_t at = 0; at < kept; at += at + 200 < kept && at > 200 ? 127 : 1)
      ASSERT_EQ(q[at], at % 251) << size << " to " << to;
    for (std::size_t at = kept; at < to; ++at) q[at] = static_cast<unsigned char>(at % 251);
    p = q;
    size = to;
  }
  EXPECT_EQ(count_blocks(h), 1u);
  h.deallocate(p);
}

// "read as zero", also where blocks were used before
TEST(Heap, ZeroesWhatWasUsedBefore) {
  heap h;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t size : {1u, 15u, 100u, 4000u, 33000u, 200000u, 300000u, 5u << 20}) {
      auto* const p = static_cast<unsigned char*>(h.allocate_zeroed(size));
      ASSERT_NE(p, nullptr);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], 0) << i << " of " << size;
      std::memset(p, 0xee, h.usable_size(p));
      h.deallocate(p);
    }
}

// "Any pointer value will do." "false for memory that is not this heap's"; "0 for a pointer that is
// no block of this heap"
TEST(Heap, OwnsItsOwnBlocksAlone) {
  heap h, other;
  int local = 0;
  static int global = 0;
  const auto from_malloc = std::make_unique<int>(0);
  void* const untouchable = mmap(nullptr, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const p = h.allocate(100);
  void* const q = other.allocate(100);
  void* const large = h.allocate(10 * MiB);
  const std::uintptr_t odd[] = {0, 1, 8, 4096, 0x7fffffffffff, 0x800000000000, 0xffff800000000000, UINTPTR_MAX};
  for (const auto value : odd) {
    EXPECT_FALSE(h.owns(reinterpret_cast<void*>(value))) << value;
    EXPECT_EQ(h.usable_size(reinterpret_cast<void*>(value)), 0u) << value;
  }
  for (const void* const foreign : {static_cast<const void*>(&local), static_cast<const void*>(&global),
                                    static_cast<const void*>(from_malloc.get()), static_cast<const void*>(untouchable),
                                    static_cast<const void*>(q), static_cast<const void*>(&h)}) {
    EXPECT_FALSE(h.owns(foreign));
    EXPECT_EQ(h.usable_size(foreign), 0u);
  }
  for (void* const own : {p, large}) {
    EXPECT_TRUE(h.owns(own));
    EXPECT_FALSE(other.owns(own));
    EXPECT_GE(h.usable_size(own), 100u);
  }
  h.deallocate(large);
  h.trim();
  munmap(untouchable, 65536);
  other.deallocate(q);
  h.deallocate(p);
}

// "Null is ignored. A pointer that is no block of this heap is ignored, or ends the process in
// checked builds"
TEST(Heap, IgnoresPointersThatAreNotItsOwn) {
  if (checks_callers) GTEST_SKIP() << "ends the process in checked builds: Misuse";
  heap h, other;
  void* const q = other.allocate(100);
  void* const untouchable = mmap(nullptr, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int local = 0;
  const auto before = h.statistics();
  for (void* const foreign : {q, untouchable, static_cast<void*>(&local), reinterpret_cast<void*>(16),
                              reinterpret_cast<void*>(UINTPTR_MAX)}) {
    h.deallocate(foreign);
    h.deallocate(foreign, layout{100});
    EXPECT_EQ(h.reallocate(foreign, 200), nullptr);  // "Null: ... or p is no block of this heap"
  }
  h.deallocate(nullptr);
  h.deallocate(nullptr, layout{100});
  EXPECT_EQ(h.statistics().in_use, before.in_use);
  EXPECT_TRUE(other.owns(q));
  munmap(untouchable, 65536);
  other.deallocate(q);
}

// "As given to the constructor." "name: of the heap"
TEST(Heap, HasTheNameThatItWasGiven) {
  heap named("parser"), nameless;
  EXPECT_STREQ(named.name(), "parser");
  EXPECT_STREQ(named.statistics().name, "parser");
  EXPECT_STREQ(nameless.name(), "");
  EXPECT_TRUE(named.attached());
  EXPECT_TRUE(nameless.attached());
}

// "`limit`: bytes in memory for blocks" "that in_use, in_caches, free_in_spans and free_resident
// together may reach"
TEST(Limit, IsNotPassedAndIsNearlyReached) {
  for (const std::size_t limit : {1 * MiB, 5 * MiB, 32 * MiB})
    for (const std::size_t size : {32u, 1000u, 5000u, 40000u, 300000u}) {
      heap h("limited", limit);
      std::uint64_t had = 0;
      std::vector<void*> blocks;
      while (void* const p = h.allocate(size)) {
        had += h.usable_size(p);
        blocks.push_back(p);
        ASSERT_LE(had, limit);
      }
      const auto s = h.statistics();
      EXPECT_EQ(s.limit, limit);
      EXPECT_LE(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, limit);
      EXPECT_GE(had + 64 * KiB + size, limit / 2) << size;
      for (void* const p : blocks) h.deallocate(p);
      // "free ones included": what one size had is there for another.
      void* const other = h.allocate(limit / 2);
      EXPECT_NE(other, nullptr) << size << " of " << limit;
      h.deallocate(other);
    }
}

TEST(Limit, OfNothingGivesNothing) {
  heap h("none", 0);
  EXPECT_EQ(h.allocate(1), nullptr);
  EXPECT_EQ(h.allocate_zeroed(1), nullptr);
  EXPECT_EQ(h.allocate(MiB), nullptr);
  EXPECT_EQ(h.reallocate(nullptr, 1), nullptr);
  EXPECT_EQ(count_blocks(h), 0u);
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_EQ(h.trim(), 0u);
}

// "Bytes in memory for blocks from now on. Blocks in use stay; new ones are had as soon as there is
// room."
TEST(Limit, CanBeChangedAtAnyTime) {
  heap h("limited", 8 * MiB);
  void* const p = h.allocate(4 * MiB);
  ASSERT_NE(p, nullptr);
  h.set_limit(1 * MiB);
  EXPECT_EQ(h.statistics().limit, 1 * MiB);
  std::memset(p, 1, 4 * MiB);
  EXPECT_EQ(h.allocate(512 * KiB), nullptr);
  EXPECT_EQ(h.reallocate(p, 6 * MiB), nullptr);
  h.deallocate(p);
  void* const q = h.allocate(512 * KiB);
  EXPECT_NE(q, nullptr);
  EXPECT_EQ(h.allocate(2 * MiB), nullptr);
  h.set_limit(UINT64_MAX);
  void* const r = h.allocate(64 * MiB);
  EXPECT_NE(r, nullptr);
  h.deallocate(q);
  h.deallocate(r);
}

// "Gives all memory back." "all memory goes back, whatever is still in use"
TEST(Lifetime, OfHeapsInALoopTakesNoMemory) {
  const auto live_and_end = [] {
    heap h("one of many");
    for (int i = 0; i < 300; ++i) std::memset(h.allocate(16u << (i % 12)), 1, 16);
    std::memset(h.allocate(1 * MiB), 1, 1 * MiB);
  };
  for (int i = 0; i < 10; ++i) live_and_end();
  const auto before = pages_of_process();
  for (int i = 0; i < 60; ++i) live_and_end();
  const auto after = pages_of_process();
  EXPECT_LT(after.first - before.first, pages_in(16 * MiB));  // sixty heaps had two MiB each
  EXPECT_LT(after.second - before.second, pages_in(4 * MiB));
}

// "A heap without blocks takes a few KiB of memory, and a MiB of address space."
TEST(Lifetime, OfAHeapWithoutBlocksCostsFewKiB) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "its records of the sanitizer's own count as memory";
#endif
  constexpr int n = 40;
  {
    std::vector<std::unique_ptr<heap>> warm;
    for (int i = 0; i < n; ++i) warm.push_back(std::make_unique<heap>());
  }
  std::vector<std::unique_ptr<heap>> heaps;
  heaps.reserve(n);
  const auto before = pages_of_process();
  for (int i = 0; i < n; ++i) heaps.push_back(std::make_unique<heap>());
  const auto after = pages_of_process();
  EXPECT_LE(after.first - before.first, n * pages_in(1 * MiB + 512 * KiB));
  EXPECT_LE(after.second - before.second, n * pages_in(32 * KiB));
}

// "Up to 64 heaps at a time have a cache for each thread; beyond that they work with a lock per
// call."
TEST(Lifetime, OfAHundredHeapsAtATime) {
  std::vector<std::unique_ptr<heap>> heaps;
  for (int i = 0; i < 100; ++i) heaps.push_back(std::make_unique<heap>("one of a hundred"));
  std::vector<void*> blocks;
  for (auto& h : heaps)
    for (int i = 0; i < 20; ++i) blocks.push_back(h->allocate(100));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (std::size_t j = 0; j < heaps.size(); j += 7) ASSERT_EQ(heaps[j]->owns(blocks[i]), j == i / 20);
  for (std::size_t i = 0; i < blocks.size(); ++i) heaps[i / 20]->deallocate(blocks[i]);
  for (auto& h : heaps) {
    const auto s = h->statistics();
    EXPECT_EQ(s.in_use, 0u);
    EXPECT_EQ(s.mapped, sum_of_parts(s));
  }
  behaves_as_documented(*heaps.back(), {}, 500);
}

// "Gives back to the system what is free and not in another thread's cache. Returns the bytes."
TEST(Trim, GivesBackWhatIsFree) {
  heap h("trimmed");
  std::vector<void*> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(h.allocate(500));
  for (void* const p : blocks) std::memset(p, 1, 500);
  for (void* const p : blocks) h.deallocate(p);
  const auto before = h.statistics();
  const std::size_t bytes = h.trim();
  const auto after = h.statistics();
  EXPECT_EQ(after.in_use, 0u);
  EXPECT_EQ(after.in_caches, 0u);
  EXPECT_EQ(after.free_in_spans, 0u);
  EXPECT_EQ(after.free_resident, 0u);
  EXPECT_EQ(bytes, after.decommitted_total - before.decommitted_total);
  EXPECT_GE(after.mapped_peak, 20000u * 500);
  EXPECT_EQ(h.trim(), 0u);
  void* const p = h.allocate_zeroed(500);
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
}

// docs/memory-return.md: the pages are really gone.
TEST(Trim, LowersWhatIsResident) {
  heap h("trimmed");
  void* const p = h.allocate(32 * MiB);
  std::memset(p, 1, 32 * MiB);
  const long with = pages_of_process().second;
  h.deallocate(p);
  h.trim();
  EXPECT_LT(pages_of_process().second, with - pages_in(24 * MiB));
}

// "in_use: with the program, rounded up to their classes"; "from 8 KiB on a block may have up to 64
// bytes more" (docs/memory-return.md)
TEST(Statistics, CountBlocksAtTheSizeOfTheirClass) {
  constexpr heapwright::size_class_plan plan = heapwright::default_recipe.classes;
  heap h;
  for (std::size_t size = 1; size <= 32 * KiB; size += size < 40 ? 1 : size / 16) {
    const auto before = h.statistics().in_use;
    void* const p = h.allocate(size);
    const std::size_t usable = h.usable_size(p);
    EXPECT_GE(usable, plan.size(plan.index(size))) << size;
    EXPECT_LE(usable, plan.size(plan.index(size)) + (size > 7 * KiB ? 64 : 0)) << size;
    EXPECT_EQ(h.statistics().in_use - before, usable) << size;
    h.deallocate(p);
  }
}

// "huge_excess is what only huge pages keep in memory", "requested ... where recipe.notes_requests
// says so", and the totals
TEST(Statistics, OfWhatTheRecipeDoesNotAskForAreZero) {
  heap h;
  void* const p = h.allocate(3 * MiB);
  const auto s = h.statistics();
  EXPECT_EQ(s.requested, 0u);
  EXPECT_EQ(s.huge_excess, 0u);
  EXPECT_EQ(s.huge_reserved_total, 0u);
  EXPECT_EQ(s.huge_transparent_total, 0u);
  EXPECT_EQ(s.locked_total, 0u);
  EXPECT_EQ(s.bound_total, 0u);
  EXPECT_EQ(s.limit, UINT64_MAX);
  EXPECT_EQ(s.threads, 1u);
  EXPECT_EQ(s.threads_total, 1u);
  EXPECT_GT(s.metadata, 0u);
  EXPECT_LE(s.metadata_resident, s.metadata);
  h.deallocate(p);
}

// "One JSON object, as the members are called here."
TEST(Statistics, AreWrittenAsJson) {
  heap h("a \"quoted\" \\ name\n");
  void* const p = h.allocate(100);
  heapwright::text<4000> to;
  h.statistics().write_json(to);
  const std::string json = to.c_str();
  for (const char* const member : {"name",
                                   "mapped",
                                   "in_use",
                                   "requested",
                                   "in_caches",
                                   "free_in_spans",
                                   "free_resident",
                                   "free_decommitted",
                                   "metadata",
                                   "metadata_resident",
                                   "mapped_peak",
                                   "decommitted_total",
                                   "limit",
                                   "huge_reserved_total",
                                   "huge_transparent_total",
                                   "locked_total",
                                   "bound_total",
                                   "huge_excess",
                                   "threads",
                                   "threads_total"})
    EXPECT_NE(json.find('"' + std::string(member) + '"'), std::string::npos) << member;
  EXPECT_EQ(json.front(), '{');
  EXPECT_NE(json.find(R"(a \"quoted\" \\ name)"), std::string::npos) << json;
  EXPECT_EQ(json.find("name\n\""), std::string::npos) << "a line break in a JSON string: " << json;
  h.deallocate(p);
}

// "for what each thread keeps for its next requests"
TEST(ThreadCaches, AreWhatTheThreadKeeps) {
  heap h;
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(h.allocate(64));
  for (void* const p : blocks) h.deallocate(p);
  std::uint64_t kept = 0;
  int caches = 0;
  h.for_each_cache([&](std::uint32_t, std::uint64_t bytes) {
    kept += bytes;
    ++caches;
  });
  EXPECT_EQ(caches, 1);
  EXPECT_EQ(kept, h.statistics().in_caches);
  EXPECT_GT(kept, 0u);
  h.trim();
  kept = 0;
  h.for_each_cache([&](std::uint32_t, std::uint64_t bytes) { kept += bytes; });
  EXPECT_EQ(kept, 0u);
}

// "Writes what is in use to a file descriptor, a line for each class of sizes and one for all that
// is longer"
TEST(WriteBlocks, WritesALineForEachClassAndOneForAllThatIsLonger) {
  heap h("forgetful");
  const auto lines = [&] {
    std::FILE* const file = std::tmpfile();
    h.write_blocks(fileno(file));
    std::rewind(file);
    int n = 0;
    for (int c; (c = std::fgetc(file)) != EOF;) n += c == '\n';
    std::fclose(file);
    return n;
  };
  const int none = lines();
  for (int i = 0; i < 3; ++i) (void)h.allocate(100);
  const int one = lines();
  (void)h.allocate(1000);
  EXPECT_EQ(lines(), one + 1);
  (void)h.allocate(1 * MiB);
  (void)h.allocate(2 * MiB);
  EXPECT_EQ(lines(), one + 2);
  EXPECT_GT(one, none);
  h.write_blocks(-1);  // nobody to tell
}

// A heap "serves containers, std::pmr and combinators"
TEST(Heap, ServesContainersAndPmr) {
  heap h;
  {
    std::map<int, int, std::less<>, heapwright::std_allocator<std::pair<const int, int>, heap>> numbers(h);
    for (int i = 0; i < 1000; ++i) numbers[i] = i;
    EXPECT_EQ(count_blocks(h), 1000u);
    heapwright::resource<heapwright::upstream<heap>> resource(h);
    std::pmr::vector<int> more(1000, 1, &resource);
    EXPECT_EQ(count_blocks(h), 1001u);
  }
  EXPECT_EQ(count_blocks(h), 0u);
}

}  // namespace
