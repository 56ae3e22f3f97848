// The heap's policies, told numbers and a clock: no heap, no system.
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <heapwright/heap/cache_limits.hpp>
#include <heapwright/heap/purge_policy.hpp>
#include <heapwright/heap/scavenger.hpp>

namespace heapwright {
namespace {

// --- purge_policy

using purging = purge_policy<default_recipe>;

constexpr std::uint64_t worth = purging::worth_a_call;

TEST(PurgePolicy, AtAWindowsEndGoesBackWhatWasFreeAllAlong) {
  struct row {
    const char* what;
    std::vector<std::uint64_t> free_resident;  // at the window's beginning, and after each request
    std::uint64_t unused;
  };
  const row rows[] = {
      {"a program that uses all of it", {10 * MiB, 0, 10 * MiB}, 0},
      {"a program that uses a part", {10 * MiB, 4 * MiB, 9 * MiB}, 4 * MiB},
      {"a quiet program", {10 * MiB}, 10 * MiB},
      {"more free at the end than at the beginning", {1 * MiB, 20 * MiB}, 1 * MiB},
  };
  for (const row& r : rows) {
    purging p;
    p.begin_window(1000, r.free_resident[0]);
    for (const std::uint64_t level : r.free_resident) p.note_free(level);
    EXPECT_EQ(p.unused_in_window(), r.unused) << r.what;
  }
}

TEST(PurgePolicy, AWindowIsAsLongAsTheRecipeSaysUntilItIsSet) {
  purging p;
  EXPECT_TRUE(p.is_due(0)) << "the first window begins with the first look";
  p.begin_window(1000, 0);
  EXPECT_FALSE(p.is_due(1000 + default_recipe.pages.purge_window_ms - 1));
  EXPECT_TRUE(p.is_due(1000 + default_recipe.pages.purge_window_ms));
  p.set_window(5);
  EXPECT_TRUE(p.is_due(1000)) << "a new length ends the current window";
  p.begin_window(1000, 0);
  EXPECT_FALSE(p.is_due(1004));
  EXPECT_TRUE(p.is_due(1005));
  p.set_window(0);
  EXPECT_EQ(p.window_ms(), 0u);
}

TEST(PurgePolicy, FreeMemoryBeyondThePeakGoesBack) {
  struct row {
    std::uint64_t peak, in_use, free_resident, goes_back;
  };
  constexpr std::uint64_t allowed = 32 * MiB + 32 * MiB / 32;  // the peak and its headroom
  const row rows[] = {
      {32 * MiB, 32 * MiB, 0, 0},
      {32 * MiB, 16 * MiB, 16 * MiB, 0},                    // no more than at the peak
      {32 * MiB, 16 * MiB, allowed - 16 * MiB + worth, 0},  // too little for a system call
      {32 * MiB, 16 * MiB, allowed - 16 * MiB + worth + 1, worth + 1},
      {32 * MiB, 32 * MiB, 8 * MiB, 32 * MiB + 8 * MiB - allowed},
      {32 * MiB, 0, 40 * MiB, 40 * MiB - allowed},
  };
  for (const row& r : rows) {
    purging p;
    p.note_in_use(r.peak);
    EXPECT_EQ(p.beyond_peak({.in_use = r.in_use, .free_resident = r.free_resident}), r.goes_back)
        << r.in_use << " in use, " << r.free_resident << " free";
  }
}

TEST(PurgePolicy, FreeMemoryBeyondUseAndBeyondAFixedAmountGoesBackAtOnce) {
  const purging p;
  constexpr std::uint64_t fixed = default_recipe.pages.max_free_resident;
  EXPECT_EQ(p.beyond_need({.in_use = 0, .free_resident = fixed}), 0u);
  EXPECT_EQ(p.beyond_need({.in_use = 0, .free_resident = fixed + worth + 1}), worth + 1);
  EXPECT_EQ(p.beyond_need({.in_use = 2 * fixed, .free_resident = 2 * fixed}), 0u);
  EXPECT_EQ(p.beyond_need({.in_use = 2 * fixed, .free_resident = 5 * fixed}), 3 * fixed);
  EXPECT_EQ(p.beyond_need_of_one_thread({.in_use = 1 * MiB, .free_resident = 9 * MiB}), 8 * MiB);
  EXPECT_EQ(p.beyond_need_of_one_thread({.in_use = 0, .free_resident = 2 * worth}), 0u);
}

constexpr recipe gives_back_at_once{.pages = {.max_free_resident = 8 * MiB, .give_back = give_back_policy::at_once}};

TEST(PurgePolicy, AtOnceLooksAtNothingButTheFixedAmount) {
  const purge_policy<gives_back_at_once> p;
  EXPECT_EQ(p.beyond_need({.in_use = 100 * MiB, .free_resident = 10 * MiB}), 2 * MiB);
  EXPECT_EQ(p.beyond_need_of_one_thread({.in_use = 0, .free_resident = 10 * MiB}), 0u);
}

TEST(PurgePolicy, WhatWasGivenBackTooEarlyStaysNextTimeUntilThatFades) {
  purging p;
  p.note_in_use(32 * MiB);
  const purging::levels now{.in_use = 32 * MiB, .free_resident = 8 * MiB};
  const std::uint64_t at_first = p.beyond_peak(now);
  p.note_purged_early(at_first);
  p.note_refaulted(4 * MiB);
  EXPECT_EQ(p.beyond_peak(now), at_first - 4 * MiB);
  p.note_refaulted(1 * GiB);
  EXPECT_EQ(p.beyond_peak(now), 0u)
      << "no more than was given back early counts: 7 MiB may stay, and 1 MiB is the headroom";
  p.begin_window(0, 0);
  p.begin_window(0, 0);
  EXPECT_GT(p.beyond_peak(now), 0u) << "an eighth fades in each window";
  for (int i = 0; i < 200; ++i) p.begin_window(0, 0);
  EXPECT_NEAR(static_cast<double>(p.beyond_peak(now)), static_cast<double>(at_first), 16);
}

TEST(PurgePolicy, RefaultsOfWhatWentBackAtAWindowsEndCountForNothing) {
  purging p;
  p.note_in_use(32 * MiB);
  const purging::levels now{.in_use = 32 * MiB, .free_resident = 8 * MiB};
  const std::uint64_t at_first = p.beyond_peak(now);
  p.note_purged_early(at_first);
  p.begin_window(0, 0);
  p.note_refaulted(4 * MiB);
  EXPECT_EQ(p.beyond_peak(now), at_first);
}

TEST(PurgePolicy, MoreThanThreeQuartersOfThePeakNeverStay) {
  purging p;
  p.note_in_use(32 * MiB);
  p.note_purged_early(1 * GiB);
  p.note_refaulted(1 * GiB);
  EXPECT_EQ(p.beyond_peak({.in_use = 0, .free_resident = 100 * MiB}), 100 * MiB - 32 * MiB - 24 * MiB);
}

// --- cache_limits

using table = class_table<default_recipe>;

struct fake_lists {
  std::array<std::int32_t, table::count> limits{};
  std::array<std::uint32_t, table::count> lengths{};

  fake_lists() {
    for (unsigned c = 1; c < table::count; ++c) limits[c] = cache_limits<default_recipe>::first_limit(c);
  }
  [[nodiscard]] std::int32_t limit(unsigned c) const { return limits[c]; }
  [[nodiscard]] std::uint32_t length(unsigned c) const { return lengths[c]; }
  void set_limit(unsigned c, std::int32_t to) { limits[c] = to; }

  [[nodiscard]] std::int64_t growth() const {
    std::int64_t sum = 0;
    for (unsigned c = 1; c < table::count; ++c)
      sum += (limits[c] - cache_limits<default_recipe>::first_limit(c)) * std::int64_t{table::of(c).size};
    return sum;
  }
};

constexpr std::int64_t plenty = 1 << 30;

TEST(CacheLimits, DoubleUpToTheMostOfTheClass) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  const unsigned c = table::index(64);
  std::int32_t expected = lists.limit(c);
  while (l.raise(c, plenty, lists)) {
    expected = std::min<std::int32_t>(2 * expected, table::of(c).max_kept);
    ASSERT_EQ(lists.limit(c), expected);
  }
  EXPECT_EQ(lists.limit(c), table::of(c).max_kept);
  EXPECT_EQ(l.growth(), lists.growth());
}

TEST(CacheLimits, LongBlocksBeginWithNone) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  const unsigned c = table::first_long;
  ASSERT_EQ(lists.limit(c), 0);
  EXPECT_TRUE(l.raise(c, plenty, lists));
  EXPECT_EQ(lists.limit(c), 1);
}

TEST(CacheLimits, StayWithinTheShare) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  const std::int64_t share = default_recipe.thread_cache.share_bytes;
  for (int round = 0; round < 100; ++round) {
    l.allow_raises();
    for (unsigned c = 1; c < table::first_long; ++c) {
      lists.lengths[c] = static_cast<std::uint32_t>(lists.limit(c));  // every class needs all of its own
      (void)l.raise(c, share, lists);
      ASSERT_LE(lists.growth(), share);
      ASSERT_EQ(l.growth(), lists.growth());
    }
  }
  EXPECT_GT(lists.growth(), share - 64 * std::int64_t{KiB}) << "most of the share is used";
}

TEST(CacheLimits, AClassThatKeepsLittleMakesRoomForAnother) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  const unsigned quiet = 1;
  const unsigned busy = table::index(64);
  while (l.raise(quiet, plenty, lists)) {
  }
  const std::int64_t full = l.growth();
  l.allow_raises();
  EXPECT_TRUE(l.raise(busy, full, lists)) << "nobody keeps a block of the quiet class";
  EXPECT_LT(lists.limit(quiet), table::of(quiet).max_kept);
}

TEST(CacheLimits, AClassThatUsesItsOwnMakesNoRoomUntilTheNextLook) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  const unsigned busy = 1;
  while (l.raise(busy, plenty, lists)) {
  }
  lists.lengths[busy] = static_cast<std::uint32_t>(lists.limit(busy));
  const unsigned other = table::index(64);
  EXPECT_FALSE(l.raise(other, l.growth(), lists));
  EXPECT_FALSE(l.raise(other, plenty, lists)) << "no more tries before the next look at the clock";
  l.allow_raises();
  EXPECT_TRUE(l.raise(other, plenty, lists));
}

TEST(CacheLimits, FixedLimitsStay) {
  cache_limits<default_recipe> l;
  fake_lists lists;
  l.fix();
  l.allow_raises();
  EXPECT_FALSE(l.raise(1, plenty, lists));
  EXPECT_EQ(l.growth(), 0);
}

TEST(CacheLimits, TheShareOfLongBlocksGrowsWithTheProgramAndShrinksWithItsThreads) {
  using limits = cache_limits<default_recipe>;
  constexpr auto& plan = default_recipe.thread_cache;
  EXPECT_EQ(limits::share(false, 100 * GiB, 1), std::int64_t{plan.share_bytes});
  EXPECT_EQ(limits::share(true, 0, 0), std::int64_t{plan.share_bytes});
  EXPECT_EQ(limits::share(true, 64 * MiB, 1), std::int64_t{16 * MiB});
  EXPECT_EQ(limits::share(true, 64 * MiB, 8), std::int64_t{2 * MiB});
  EXPECT_EQ(limits::share(true, 100 * GiB, 1), std::int64_t{plan.max_long_bytes});
}

TEST(CacheLimits, SixteenKibAndTwoBlocksOfAClassWaitForTheirOwner) {
  using limits = cache_limits<default_recipe>;
  EXPECT_EQ(limits::most_in_inbox(table::index(16)), 1026U);
  EXPECT_EQ(limits::most_in_inbox(table::index(1 * KiB)), 18U);
  EXPECT_EQ(limits::most_in_inbox(table::index(64 * KiB)), 2U);
}

// --- scavenger

TEST(Scavenger, LooksAtTheClockAfterSoManyBlocks) {
  scavenger s(10);
  EXPECT_FALSE(s.count(scavenger::blocks_per_look - 1));
  EXPECT_TRUE(s.count(1));
  s.end_look();
  s.count_ahead(scavenger::blocks_per_look - 1);
  EXPECT_TRUE(s.count(1));
}

TEST(Scavenger, APassGoesOverEachClassOnceAWindow) {
  constexpr unsigned classes = 5;
  scavenger s(classes);
  EXPECT_FALSE(s.is_in_pass());
  ASSERT_TRUE(s.begin_pass(1000, 400));
  for (unsigned c = 1; c < classes; ++c) {
    ASSERT_TRUE(s.is_in_pass());
    EXPECT_EQ(s.current_class(), c);
    s.go_on();
    s.end_look();
    if (s.is_in_pass()) {
      EXPECT_TRUE(s.count(scavenger::blocks_per_step)) << "looks of a pass follow soon";
    }
  }
  EXPECT_FALSE(s.is_in_pass());
  EXPECT_FALSE(s.count(scavenger::blocks_per_step));
  EXPECT_FALSE(s.begin_pass(1399, 400));
  EXPECT_TRUE(s.begin_pass(1400, 400));
}

TEST(Scavenger, WhatAPassDoesFollowsFromTheUseOfTheClass) {
  struct row {
    class_use before;
    bool is_sparse;
    scavenge_step step;
    class_use after;
  };
  const row rows[] = {
      {{.is_used = true}, false, scavenge_step::keep, {.was_used = true}},
      {{.is_used = true, .is_sparse = true}, false, scavenge_step::keep, {.was_used = true}},
      {{.is_used = true}, true, scavenge_step::drain, {.was_used = true, .is_sparse = true}},
      {{.was_used = true}, false, scavenge_step::flush, {.was_used = true}},
      {{}, true, scavenge_step::flush, {}},
  };
  for (const row& r : rows) {
    class_use use = r.before;
    bool asked = false;
    EXPECT_EQ(scavenger::step(use, [&] { return asked = true, r.is_sparse; }), r.step);
    EXPECT_EQ(use.is_used, r.after.is_used);
    EXPECT_EQ(use.was_used, r.after.was_used);
    EXPECT_EQ(use.is_sparse, r.after.is_sparse);
    EXPECT_EQ(asked, r.before.is_used) << "the question takes a lock";
  }
}

TEST(Scavenger, WhatIsRememberedFadesEverySoManyLooks) {
  scavenger s(3);
  unsigned fadings = 0;
  for (unsigned i = 0; i < 10 * scavenger::looks_per_fading; ++i) fadings += s.is_time_to_fade();
  EXPECT_EQ(fadings, 10u);
}

}  // namespace
}  // namespace heapwright
