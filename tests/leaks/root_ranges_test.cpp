// What of a process's memory is looked at, by its mappings.
#include "root_ranges.hpp"

#include <gtest/gtest.h>

namespace {

using namespace heapwright::tool;
using ranges = std::vector<address_range>;

scanned_process with(const std::string& maps) {
  scanned_process p;
  p.mappings = mappings_in_text(maps);
  return p;
}

TEST(RootRanges, DataOfProgramsAndLibraries) {
  const scanned_process p = with(
      "1000-2000 r-xp 00000000 08:01 5 /bin/program\n"
      "2000-3000 r--p 00001000 08:01 5 /bin/program\n"
      "3000-4000 rw-p 00002000 08:01 5 /bin/program\n"
      "4000-6000 rw-p 00000000 00:00 0 \n"
      "7000-8000 ---p 00000000 00:00 0 \n");
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x3000, 0x6000}}));
}

TEST(RootRanges, SharedMemoryButNeitherFilesNorTheSegment) {
  scanned_process p = with(
      "1000-2000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n"
      "3000-4000 rw-s 00000000 08:01 5 /var/data/file\n"
      "5000-6000 rw-s 00000000 00:01 6 /dev/shm/x/1-2-0.segment\n"
      "7000-8000 rw-s 00000000 00:01 7 /memfd:shared (deleted)\n"
      "9000-a000 rw-s 00000000 00:01 7 /dev/dri/card0\n");
  p.segment = "/dev/shm/x/1-2-0.segment";
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x1000, 0x2000}, {0x7000, 0x8000}}));
}

TEST(RootRanges, TheMallocsAndTheProbesDataAreNotLookedAt) {
  scanned_process p = with(
      "1000-2000 rw-p 00000000 08:01 5 /lib/malloc.so\n"
      "2000-3000 rw-p 00000000 00:00 0 \n"
      "5000-6000 rw-p 00000000 08:01 5 /lib/other.so\n");
  p.observers = {"/lib/malloc.so"};
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x5000, 0x6000}}));
}

TEST(RootRanges, StacksFromTheStackPointerOn) {
  scanned_process p = with(
      "10000-11000 ---p 00000000 00:00 0 \n"
      "11000-20000 rw-p 00000000 00:00 0 \n"
      "30000-40000 rw-p 00000000 00:00 0 [stack]\n");
  p.threads = {{.stack_pointer = 0x18000, .kept = {7}}, {.stack_pointer = 0x3f000}};
  const root_set roots = roots_of(p);
  EXPECT_EQ(roots.ranges, (ranges{{0x18000 - red_zone_bytes(), 0x20000}, {0x3f000 - red_zone_bytes(), 0x40000}}));
  EXPECT_EQ(roots.words, (std::vector<std::uint64_t>{7}));
}

TEST(RootRanges, StacksOfThreadsThatHaveEndedAreDead) {
  scanned_process p = with(
      "10000-11000 ---p 00000000 00:00 0 \n"
      "11000-20000 rw-p 00000000 00:00 0 \n"
      "30000-40000 rw-p 00000000 00:00 0 \n");
  p.old_stacks = {0x1f000, 0x3f000};  // the second place is used for something else now: no guard page is below
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x1f000, 0x20000}, {0x30000, 0x40000}}));
}

TEST(RootRanges, WhatGlibcHasForBlocks) {
  scanned_process p = with(
      "50000-60000 rw-p 00000000 00:00 0 [heap]\n"
      "7f0004000000-7f0004100000 rw-p 00000000 00:00 0 \n"
      "7f0004100000-7f0008000000 ---p 00000000 00:00 0 \n"
      "7f0010000000-7f0010100000 rw-p 00000000 00:00 0 \n");
  const heap_block blocks[] = {{0x50010, 24}, {0x7f0010010010, 0x1fff0}};
  p.is_glibc = p.knows_heap = true;
  p.blocks = blocks;
  p.heap = {{0x7f0010010000, 0x7f0010030000}};
  // The heap of 64 MiB is known without a live block in it; beside a block's own mapping is the
  // program's memory.
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x7f0010000000, 0x7f0010010000}, {0x7f0010030000, 0x7f0010100000}}));
}

TEST(RootRanges, BetweenBlocksOfAnotherMallocOnlyLongGaps) {
  scanned_process p = with("1000000-1100000 rw-p 00000000 00:00 0 \n");
  const heap_block blocks[] = {{0x1000100, 64}, {0x1001000, 64}, {0x1080000, 64}};
  p.blocks = blocks;
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x1001040, 0x1080000}, {0x1080040, 0x1100000}}));
}

TEST(RootRanges, WhatAMallocHasMapped) {
  scanned_process p = with(
      "50000-60000 rw-p 00000000 00:00 0 [heap]\n"
      "1000000-1100000 rw-p 00000000 00:00 0 \n");
  const heap_block blocks[] = {{0x50010, 0x100}, {0x1000100, 64}};
  p.blocks = blocks;
  p.knows_heap = true;
  p.heap = {{0x1000000, 0x1080000}};
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x1080000, 0x1100000}}));
}

TEST(RootRanges, ThreadLocalStorageBesideBlocks) {
  scanned_process p = with("1000000-1020000 rw-p 00000000 00:00 0 \n");
  const heap_block blocks[] = {{0x1000100, 64}};
  p.blocks = blocks;
  p.threads = {{.thread_pointer = 0x101f000}};
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x101b000, 0x1020000}}));
}

TEST(RootRanges, AllOfTheHeapButTheBlocksWhereBlocksMayBeUnknown) {
  scanned_process p = with("50000-60000 rw-p 00000000 00:00 0 [heap]\n");
  const heap_block blocks[] = {{0x50010, 0x100}};
  p.is_glibc = p.knows_heap = p.is_heap_root = true;
  p.blocks = blocks;
  EXPECT_EQ(roots_of(p).ranges, (ranges{{0x50000, 0x50010}, {0x50110, 0x60000}}));
}

TEST(GlibcPlace, InTheProgramBreak) {
  const glibc_place place = place_of({0x50010, 24}, {0, 32 | 1});
  EXPECT_TRUE(place.is_glibcs);
  EXPECT_EQ(place.at, address_range());
}

TEST(GlibcPlace, InAnotherHeap) {
  EXPECT_EQ(place_of({0x7f0004000a10, 24}, {0, 32 | 5}).at, (address_range{0x7f0004000000, 0x7f0008000000}));
}

TEST(GlibcPlace, InAMappingOfItsOwn) {
  const glibc_place place = place_of({0x7f0010000010, 0x20ff0}, {0, 0x21000 | 2});
  EXPECT_TRUE(place.has_own_mapping);
  EXPECT_EQ(place.at, (address_range{0x7f0010000000, 0x7f0010021000}));
}

TEST(GlibcPlace, AlignedInAMappingOfItsOwn) {
  EXPECT_EQ(place_of({0x7f0010010000, 0x20000}, {0xfff0, 0x20010 | 2}).at,
            (address_range{0x7f0010000000, 0x7f0010030000}));
}

TEST(GlibcPlace, WhatDoesNotFitTheBlockIsNotGlibcs) {
  EXPECT_FALSE(place_of({0x50010, 24}, {0, 48 | 1}).is_glibcs);
  EXPECT_FALSE(place_of({0x50010, 24}, {0, 40 | 2}).is_glibcs);
  EXPECT_FALSE(place_of({0x50010, 24}, {~std::uint64_t{0}, 40 | 2}).is_glibcs);
}

}  // namespace
