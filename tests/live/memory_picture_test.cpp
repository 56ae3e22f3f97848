// What smaps and the heap say, put together: the parts are the whole, whatever each of them is.
#include "memory_picture.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t KiB = 1024;

constexpr const char* smaps =
    "00400000-00500000 r-xp 00000000 fe:00 12    /usr/bin/with space\n"
    "Size:               1024 kB\nRss:                 100 kB\nPss:                  50 kB\nPrivate_Dirty:         4 "
    "kB\n"
    "VmFlags: rd ex mr mw me \n"
    "00600000-00700000 rw-p 00000000 00:00 0    [heap]\n"
    "Size:               1024 kB\nRss:                 600 kB\nLazyFree:             40 kB\nSwap:                 20 "
    "kB\n"
    "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
    "Size:               1024 kB\nRss:                  16 kB\n"
    "7f0000200000-7f0000900000 rw-p 00000000 00:00 0 \n"
    "Size:               7168 kB\nRss:                2000 kB\nAnonHugePages:      2048 kB\n"
    "7f0001000000-7f0001100000 rw-s 00000000 00:1a 5    /dev/shm/x (deleted)\n"
    "Size:               1024 kB\nRss:                  64 kB\n"
    "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]\n"
    "Size:                132 kB\nRss:                  24 kB\n"
    "7ffd00030000-7ffd00032000 r-xp 00000000 00:00 0    [vdso]\n"
    "Size:                  8 kB\nRss:                   8 kB\n";

const std::vector<std::uint64_t> stacks{0x7f0000080000, 0x7ffd00010000};

std::uint64_t sum_of(const memory_parts& p) {
  return p.requested.value_or(0) + p.rounding.value_or(0) + p.outside.value_or(0) + p.thread_caches.value_or(0) +
         p.free_in_spans.value_or(0) + p.free_kept.value_or(0) + p.records.value_or(0) + p.lazily_freed +
         p.other_anonymous - p.not_resident + p.stacks + p.files + p.shared;
}

TEST(memory_picture, mappings_are_told_apart_by_what_they_are_for) {
  const auto mappings = mappings_in(smaps, stacks);
  std::map<std::string, mapping_group> by_name;
  for (const mapping_group& m : mappings)
    by_name[m.name.empty() ? (m.kind == mapping_kind::stack ? "a stack" : "anonymous") : m.name] = m;
  EXPECT_EQ(by_name.at("/usr/bin/with space").kind, mapping_kind::file);
  EXPECT_EQ(by_name.at("/usr/bin/with space").private_dirty, 4 * KiB);
  EXPECT_EQ(by_name.at("[heap]").kind, mapping_kind::program_break);
  EXPECT_EQ(by_name.at("[heap]").swap, 20 * KiB);
  EXPECT_EQ(by_name.at("a stack").rss, 16 * KiB);
  EXPECT_EQ(by_name.at("anonymous").rss, 2000 * KiB);
  EXPECT_EQ(by_name.at("anonymous").huge, 2048 * KiB);
  EXPECT_EQ(by_name.at("/dev/shm/x (deleted)").kind, mapping_kind::shared);
  EXPECT_EQ(by_name.at("[stack]").kind, mapping_kind::stack);
  EXPECT_EQ(by_name.at("[vdso]").kind, mapping_kind::kernel);
  EXPECT_EQ(mappings.front().rss, 2000 * KiB) << "the largest first";
}

TEST(memory_picture, a_long_mapping_is_no_stack_though_one_is_in_it) {
  const auto mappings =
      mappings_in("7f0000000000-7f1000000000 rw-p 00000000 00:00 0 \nRss:                  16 kB\n", {0x7f0000080000});
  ASSERT_EQ(mappings.size(), 1U);
  EXPECT_EQ(mappings[0].kind, mapping_kind::anonymous);
}

TEST(memory_picture, of_a_malloc_that_says_nothing_the_rest_is_one_part) {
  const live_blocks live{500 * KiB, 50 * KiB};
  const memory_parts p = parts_of(mappings_in(smaps, stacks), nullptr, &live);
  EXPECT_EQ(p.rss, (100 + 600 + 16 + 2000 + 64 + 24 + 8) * KiB);
  EXPECT_EQ(p.requested, 450 * KiB);
  EXPECT_EQ(p.rounding, 50 * KiB);
  EXPECT_EQ(p.lazily_freed, 40 * KiB);
  EXPECT_EQ(p.other_anonymous, (2600 - 500 - 40) * KiB);
  EXPECT_EQ(p.stacks, 40 * KiB);
  EXPECT_FALSE(p.thread_caches || p.free_kept || p.outside);
  EXPECT_EQ(sum_of(p), p.rss);
}

TEST(memory_picture, the_heaps_own_figures_divide_what_it_holds) {
  heap_reading heap;
  heap.spans = 1000 * KiB;
  heap.large = 400 * KiB;
  heap.free_resident = 100 * KiB;
  heap.metadata = 6 * 1024 * KiB + 64 * KiB;
  heap.page_map = 6 * 1024 * KiB;
  heap.page_map_of_spans = 3 * KiB;
  heap.classes = {{16 * 1024, 40, 1000 * KiB}};  // 640 KiB outside
  const live_blocks live{1000 * KiB, 0};
  const memory_parts p = parts_of(mappings_in(smaps, stacks), &heap, &live);
  EXPECT_EQ(p.thread_caches, 40 * KiB);
  EXPECT_EQ(p.free_in_spans, 360 * KiB);
  EXPECT_EQ(p.free_kept, 100 * KiB);
  EXPECT_EQ(p.records, 67 * KiB);
  EXPECT_EQ(p.not_resident, 0U);
  EXPECT_EQ(sum_of(p), p.rss);
  const memory_parts alone = parts_of(mappings_in(smaps, stacks), &heap, nullptr);
  EXPECT_EQ(alone.outside, 1040 * KiB);
  EXPECT_FALSE(alone.requested || alone.thread_caches);
  EXPECT_EQ(sum_of(alone), alone.rss);
}

TEST(memory_picture, whatever_the_figures_are_the_parts_are_the_whole) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto some = [&] { return random() % (6000 * KiB); };
    heap_reading heap;
    heap.spans = some();
    heap.large = some();
    heap.free_resident = some();
    heap.metadata = some();
    heap.page_map = some();
    heap.page_map_of_spans = some();
    heap.classes = {{64, some() / 64, heap.spans}};
    const std::uint64_t bytes = some();
    const live_blocks live{bytes, bytes / 10};
    for (const live_blocks* l : {static_cast<const live_blocks*>(nullptr), &live}) {
      const memory_parts p = parts_of(mappings_in(smaps, stacks), &heap, l);
      EXPECT_EQ(sum_of(p), p.rss);
    }
  }
}

TEST(memory_picture, this_process_can_be_read) {
  const std::size_t bytes = 32 << 20;
  const std::unique_ptr<char, decltype(&std::free)> touched(static_cast<char*>(std::malloc(bytes)), &std::free);
  std::memset(touched.get(), 1, bytes);
  const memory_parts p = parts_of(read_mappings(getpid(), {reinterpret_cast<std::uint64_t>(&p)}), nullptr, nullptr);
  EXPECT_GE(p.other_anonymous, bytes);
  EXPECT_GT(p.files, 0U);
  EXPECT_EQ(sum_of(p), p.rss);
  EXPECT_TRUE(read_mappings(0x7fffffff, {}).empty());
}

}  // namespace
}  // namespace heapwright::tool
