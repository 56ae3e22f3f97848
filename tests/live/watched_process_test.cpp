// How old the figures of a watched process may be.
#include "watched_process.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "../segment/segment_builder.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

TEST(watched_process, pss_is_not_older_than_ten_seconds_whatever_else_looks) {
  const segment::scratch_folder folder;
  segment::segment_builder built(folder / "segment");
  built.header().process_id = static_cast<std::uint32_t>(getpid());
  built.header().process_start = segment::process_start(static_cast<std::uint32_t>(getpid()));
  watched_process process(segment::segment_reader(built.path()), false);
  ASSERT_TRUE(process.now()->memory);
  const std::uint64_t before = process.now()->memory->pss;

  std::vector<char> grown(64 << 20);
  std::memset(grown.data(), 1, grown.size());
  // Each look with details comes right behind one without, whose figures are still fresh.
  const auto end = std::chrono::steady_clock::now() + 11s;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(60ms);
    (void)process.now(false);
    (void)process.now(true);
  }
  EXPECT_GE(process.now()->memory->pss, before + (60 << 20));
  process.stop();
}

}  // namespace
}  // namespace heapwright::tool
