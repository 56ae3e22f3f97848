// Threads add samples and take them, while one of them thins: each sample that was added is taken
// once, dropped once, or there at the end. Runs under ThreadSanitizer, where the probe as a whole
// cannot.
#include "../../probe/next_malloc.hpp"
#include "../../probe/samples.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

// No malloc is below this probe.
constinit heapwright::probe::next_malloc heapwright::probe::next{};

namespace {

using namespace heapwright::probe;
using heapwright::segment::sampling_interval;

constexpr std::size_t blocks = 4000;
constexpr std::uint64_t most = 500;

std::atomic<std::uint64_t> dropped{0};

void note_thinned(const void*, const taken_sample&, const sampling_interval* is) noexcept {
  if (is == nullptr) ++dropped;
}

std::string make_folder() {
  std::string folder = ::testing::TempDir() + "sample-table-XXXXXX";
  return ::mkdtemp(folder.data()) != nullptr ? folder : "";
}

TEST(SampleTable, EachSampleIsTakenOnceOrDroppedOnceOrThere) {
  const std::string folder = make_folder();
  heapwright::segment::segment_header* const segment = create_segment({.directory = folder.c_str()});
  ASSERT_NE(segment, nullptr);
  static sample_table table;
  table.reset(*segment);

  std::array<std::atomic<void*>, blocks> all{};
  std::atomic<std::uint64_t> added{0}, taken{0};
  std::atomic<int> thinning_passes{0};
  const auto replace_blocks = [&](std::uint64_t state, bool thins) {
    sample_table::spare_record spare = 0;
    for (int i = 0; i < 30'000; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      void* const p = std::malloc(16);
      if (state >> 63 != 0) {
        const auto stack = static_cast<heapwright::segment::reference>(1 + (state >> 50) % 20);
        added += table.add(p, {stack, sampling_interval(4096), 1000, 1}, spare);
      }
      void* const old = all[(state >> 33) % blocks].exchange(p);
      if (old != nullptr && table.may_have(old)) taken += table.take(old).at_stack != 0;
      std::free(old);
      if (!thins || i % 500 != 0) continue;
      table.thin(most, state, note_thinned);
      ++thinning_passes;
    }
    table.give_back(spare);
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back(replace_blocks, t + 1, t == 0);
  for (std::thread& t : threads) t.join();

  std::uint64_t there = 0;
  for (auto& block : all) {
    void* const p = block.load();
    if (p != nullptr && table.may_have(p)) there += table.take(p).at_stack != 0;
    std::free(p);
  }
  EXPECT_GT(dropped, 1000U);
  EXPECT_EQ(added, taken + dropped + there);
  EXPECT_EQ(thinning_passes, 60);
  std::filesystem::remove_all(folder);
}

TEST(SampleTable, NoTwoThreadsHaveNewRecordsInACacheLine) {
  using heapwright::segment::sample;
  const std::string folder = make_folder();
  heapwright::segment::segment_header* const segment = create_segment({.directory = folder.c_str()});
  ASSERT_NE(segment, nullptr);
  static sample_table table;
  table.reset(*segment);
  std::array<sample_table::spare_record, 2> spares{};
  std::uintptr_t address = 1 << 20;
  const auto add = [&](std::size_t thread) {
    const auto stack = static_cast<heapwright::segment::reference>(thread + 1);  // says whose it is
    address += 4096;
    return table.add(reinterpret_cast<void*>(address), {stack, sampling_interval(4096), 16, 1}, spares[thread]);
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add(0) && add(1));

  const auto* const records = at_offset<sample>(segment, segment->samples_at);
  ASSERT_EQ(table.records(), 12U);
  for (std::size_t i = 0; i < 10; i += 2) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&records[i]) % 64, 0U);
    const auto second = records[i + 1].at_stack.load();
    EXPECT_TRUE(second == 0 || second == records[i].at_stack.load()) << "line " << i / 2;
  }

  // What threads that have ended had left is used first.
  for (const auto spare : spares) table.give_back(spare);
  spares = {};
  ASSERT_TRUE(add(0) && add(1));
  EXPECT_EQ(table.records(), 12U);
  std::filesystem::remove_all(folder);
}

}  // namespace
