// How old the figures of a watched process may be.
#include "watched_process.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "../segment/segment_builder.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

/// A segment that says that it is of this process.
struct own_segment {
  own_segment() {
    built.header().process_id = static_cast<std::uint32_t>(getpid());
    built.header().process_start = segment::process_start(static_cast<std::uint32_t>(getpid()));
  }
  const segment::scratch_folder folder;
  segment::segment_builder built{folder / "segment"};
};

/// A look at all mappings costs the more the more of them there are, and at most a hundredth of the
/// time goes to such looks. With a sanitizer one takes 0.1 s, so the wait is long.
constexpr auto patience = 240s;

TEST(watched_process, pss_is_not_forgotten_whatever_else_looks) {
  const own_segment own;
  watched_process process(segment::segment_reader(own.built.path()), false);
  ASSERT_TRUE(process.now()->memory);
  const std::uint64_t before = process.now()->memory->pss;

  std::vector<char> grown(3 << 20);  // less than what brings a look early
  std::memset(grown.data(), 1, grown.size());
  // Each look with details comes right behind one without, whose figures are still fresh. What PSS
  // has become depends on other processes too: on how many have the same files mapped.
  const auto end = std::chrono::steady_clock::now() + patience;
  while (process.now(true)->memory->pss == before) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(60ms);
    (void)process.now(false);
  }
  process.stop();
}

TEST(watched_process, details_follow_rss_though_nobody_looks) {
  const own_segment own;
  watched_process process(segment::segment_reader(own.built.path()), false);
  const resident_memory before = *process.now(false)->memory;
  std::vector<char> grown((64 << 20) + before.rss / 4);  // RSS has to move by an eighth
  std::memset(grown.data(), 1, grown.size());
  // What it has anonymously is looked at with PSS, and does not depend on what others share. A
  // malloc may give back meanwhile what was freed before, as that of AddressSanitizer does: so it
  // is asked for each time.
  const auto is_followed = [&] {
    const resident_memory seen = *process.now(false)->memory;
    const std::uint64_t is = proc_bytes(getpid(), "smaps_rollup", "Anonymous");
    return seen.anonymous + std::max<std::uint64_t>(seen.rss / 8, 4 << 20) >= is;
  };
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!is_followed()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(60ms);
  }
  process.stop();
}

TEST(watched_process, a_peak_that_was_not_published_is_no_later_than_the_end) {
  own_segment own;
  segment::segment_header& h = own.built.header();
  h.process_start = 1;  // another process, which was killed
  h.started_ns = 1000;
  own.built.add_thread(1, 1);
  own.built.slot(1).classes[3].allocated_bytes = 200;
  {
    watched_process process(segment::segment_reader(own.built.path()), false);
    const auto seen = process.now();
    EXPECT_EQ(seen->state, life::killed);
    EXPECT_EQ(seen->figures.process.peak, 200U);
    EXPECT_EQ(seen->figures.process.peak_at_ns, 1000U);
  }
  process_past past;
  past.state = life::killed;
  past.at_ns = 2000;
  watched_process saved(segment::segment_reader(own.built.path()), past, {});
  EXPECT_EQ(saved.now()->figures.process.peak_at_ns, 2000U);
}

TEST(watched_process, the_last_figures_of_one_that_was_killed_are_from_its_life) {
  own_segment own;
  own.built.header().started_ns = 1000;
  own.built.add_thread(1, 1);
  watched_process process(segment::segment_reader(own.built.path()), false);
  const std::uint64_t last_seen_running = process.now()->figures.at_ns;
  own.built.slot(1).classes[3].allocated_bytes = 200;
  own.built.header().process_start = 1;  // another process, which was killed
  std::this_thread::sleep_for(200ms);
  const auto seen = process.now();
  EXPECT_EQ(seen->state, life::killed);
  EXPECT_EQ(seen->figures.process.peak, 200U);
  EXPECT_EQ(seen->figures.process.peak_at_ns, last_seen_running);
  EXPECT_EQ(seen->figures.at_ns, last_seen_running);
}

constexpr std::uint64_t second = 1'000'000'000, mib = 1 << 20;

/// A program that has made a million short strings, holds none of them, and holds a table.
TEST(moment, rounding_of_what_lives_is_not_that_of_what_was_freed) {
  segment::thread_figures thread;
  const std::uint64_t strings = 1'000'000, table = 1 << 20;
  thread.classes[segment::size_scale::index(32)] = {strings, strings * 32, strings * 17, strings, strings * 32};
  thread.classes[segment::size_scale::index(table)] = {1, table, table - 1024, 0, 0};
  moment m;
  m.figures.threads = {thread};
  m.figures.process.started_ns = m.figures.process.counting_since_ns = 1;
  m.total = m.figures.total();
  const auto parts = m.live_parts();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->bytes, table);
  EXPECT_EQ(parts->rounding, 1024u);
}

TEST(detailed_looks, are_every_ten_seconds_where_somebody_looks) {
  detailed_looks looks;
  looks.looked(second, 1000, 100 * mib);
  EXPECT_FALSE(looks.are_due(2 * second, 100 * mib, true));
  EXPECT_TRUE(looks.are_due(11 * second, 100 * mib, true));
  EXPECT_FALSE(looks.are_due(11 * second, 100 * mib, false));
}

TEST(detailed_looks, come_early_when_rss_moves_by_an_eighth_and_4_mib) {
  detailed_looks looks;
  looks.looked(second, 1000, 100 * mib);
  EXPECT_FALSE(looks.are_due(2 * second, 112 * mib, false));
  EXPECT_TRUE(looks.are_due(2 * second, 113 * mib, false));
  EXPECT_TRUE(looks.are_due(2 * second, 87 * mib, false));
  looks.looked(second, 1000, mib);
  EXPECT_FALSE(looks.are_due(2 * second, 5 * mib, false));
  EXPECT_TRUE(looks.are_due(2 * second, 6 * mib, false));
}

TEST(detailed_looks, take_a_hundredth_of_the_time_at_most) {
  detailed_looks looks;
  looks.looked(second, second / 10, 1000 * mib);
  EXPECT_FALSE(looks.are_due(10 * second, 8000 * mib, false));
  EXPECT_TRUE(looks.are_due(11 * second, 8000 * mib, false));
}

}  // namespace
}  // namespace heapwright::tool
