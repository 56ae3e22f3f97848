// <malloc.h>: the figures are true. 100 MiB that are allocated can be seen, and seen to go;
// malloc_trim gives memory back and says whether it did; parameters are accepted or refused as in
// glibc.
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

namespace {

constexpr std::size_t MiB = 1 << 20;

std::size_t in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Figures : public testing::TestWithParam<std::size_t> {};

TEST_P(Figures, ShowWhatIsAllocatedAndFreed) {
  const std::size_t size = GetParam();
  std::vector<void*> blocks(100 * MiB / size);
  const std::size_t before = in_use();
  std::size_t rounded = 0;
  for (void*& p : blocks) rounded += ::malloc_usable_size(p = std::malloc(size));
  EXPECT_GE(in_use(), before + 100 * MiB);
  const std::size_t of_seals = blocks.size() * 16;  // bytes of a block that may be the malloc's own
  EXPECT_LE(in_use(), before + rounded + of_seals + 15 * MiB);
  EXPECT_GE(::mallinfo2().arena + ::mallinfo2().hblkhd, 100 * MiB);
  for (void* p : blocks) std::free(p);
  EXPECT_LE(in_use(), before + 5 * MiB);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Figures, testing::Values(64, 1000, 20'000, 1 * MiB, 25 * MiB));

TEST(Mallinfo, BlocksThatOtherThreadsKeepAreFree) {
  constexpr int threads = 4;
  const std::size_t before = in_use();
  std::barrier freed(threads + 1);
  std::barrier looked(threads + 1);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {  // so that the thread is let to keep many
        std::vector<void*> blocks(10'000);
        for (void*& p : blocks) p = std::malloc(64);
        for (void* p : blocks) std::free(p);
      }
      freed.arrive_and_wait();
      looked.arrive_and_wait();
    });
  }
  freed.arrive_and_wait();
  const std::size_t kept = ::mallinfo2().fsmblks;
  EXPECT_GT(kept, std::size_t{threads} * 16 * 1024) << "there is something to tell";
  EXPECT_LT(in_use(), before + kept / 4);
  looked.arrive_and_wait();
  for (std::thread& t : all) t.join();
}

TEST(Mallinfo, TheNarrowOneSaysTheSame) {
  void* const p = std::malloc(10 * MiB);
  const struct mallinfo2 wide = ::mallinfo2();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = ::mallinfo();
#pragma GCC diagnostic pop
  EXPECT_EQ(static_cast<std::size_t>(narrow.uordblks), wide.uordblks);
  EXPECT_EQ(static_cast<std::size_t>(narrow.hblkhd), wide.hblkhd);
  EXPECT_EQ(static_cast<std::size_t>(narrow.arena), wide.arena);
  std::free(p);
}

TEST(MallocTrim, SaysWhetherItGaveSomethingBack) {
  std::vector<void*> blocks(10'000);
  for (void*& p : blocks) std::memset(p = std::malloc(3000), 1, 3000);
  for (void* p : blocks) std::free(p);
  EXPECT_EQ(::malloc_trim(0), 1);
  EXPECT_EQ(::malloc_trim(0), 0) << "there was nothing left to give";
}

TEST(Mallopt, KnownParametersAreAcceptedUnknownRefused) {
  EXPECT_EQ(::mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
  EXPECT_EQ(::mallopt(M_TRIM_THRESHOLD, 1 << 20), 1);
  EXPECT_EQ(::mallopt(M_ARENA_MAX, 2), 1);
  EXPECT_EQ(::mallopt(M_MXFAST, 80), 1);
  EXPECT_EQ(::mallopt(M_MXFAST, 1 << 20), 0);
  EXPECT_EQ(::mallopt(12'345, 1), 0);
}

TEST(MallocStats, WritesToStderr) {
  testing::internal::CaptureStderr();
  ::malloc_stats();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("heapwright"), std::string::npos);
}

TEST(MallocInfo, RefusesOptions) { EXPECT_NE(::malloc_info(1, stdout), 0); }

}  // namespace
