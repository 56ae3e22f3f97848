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
    for (int i = 0; i < 30'000; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      void* const p = std::malloc(16);
      if (state >> 63 != 0) {
        const auto stack = static_cast<heapwright::segment::reference>(1 + (state >> 50) % 20);
        added += table.add(p, {stack, sampling_interval(4096), 1000, 1});
      }
      void* const old = all[(state >> 33) % blocks].exchange(p);
      if (old != nullptr && table.may_have(old)) taken += table.take(old).at_stack != 0;
      std::free(old);
      if (!thins || i % 500 != 0) continue;
      table.thin(most, state, note_thinned);
      ++thinning_passes;
    }
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

}  // namespace
