// What one stack contributes to a question, and which of its frames is the site.
#include "stack_measure.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>

#include "../../probe/poisson.hpp"
#include "allocation_wrappers.hpp"
#include "sample_weight.hpp"

namespace heapwright::tool {
namespace {

/// By samples of 1 KiB each, of which each adds 100 to the variance.
segment::stack_figures sampled(unsigned allocated, unsigned freed) {
  segment::stack_figures s;
  s.id = 1;
  s.allocations = allocated;
  s.allocated_bytes = allocated * std::uint64_t{1024};
  s.frees = freed;
  s.freed_bytes = freed * std::uint64_t{1024};
  s.allocated_variance = allocated * 100.0;
  s.freed_variance = freed * 100.0;
  return s;
}

measured grown(const segment::stack_figures& before, const segment::stack_figures& after) {
  const auto since = std::make_shared<const baseline>(baseline_of({before}, 0));
  stack_question question;
  question.value = stack_value::live;
  question.since = since;
  return measure(after, question);
}

TEST(stack_measure, growth_has_the_error_of_what_was_sampled_since) {
  const measured m = grown(sampled(1000, 0), sampled(1010, 0));
  EXPECT_EQ(m.grown, 10 * 1024);
  EXPECT_EQ(m.variance, 10 * 100);
}

TEST(stack_measure, what_has_not_changed_has_no_error) {
  const measured m = grown(sampled(1000, 500), sampled(1000, 500));
  EXPECT_EQ(m.grown, 0);
  EXPECT_EQ(m.variance, 0);
}

TEST(stack_measure, growth_of_what_comes_and_goes_has_at_most_the_errors_of_both_moments) {
  const measured m = grown(sampled(1000, 990), sampled(9000, 8980));
  EXPECT_EQ(m.grown, 10 * 1024);
  EXPECT_EQ(m.variance, (10 + 20) * 100);
}

/// A site whose blocks are sampled as the probe does it.
class sampled_site {
 public:
  explicit sampled_site(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15 | 1) {}

  void allocate(std::uint64_t bytes, std::uint64_t interval) {
    live_.push_back({bytes, 0});
    truth_ += static_cast<double>(bytes);
    if (probe::bytes_to_next_sample(interval, random_) >= static_cast<std::int64_t>(bytes)) return;
    live_.back().interval = interval;
    const auto w = segment::weight_of(bytes, interval);
    ++seen_.samples;
    seen_.allocations += static_cast<double>(w.blocks) / 1024;
    seen_.allocated_bytes += w.bytes;
    seen_.allocated_variance += w.variance;
  }

  void free_oldest() {
    const block b = live_.front();
    live_.pop_front();
    truth_ -= static_cast<double>(b.bytes);
    if (b.interval == 0) return;
    const auto w = segment::weight_of(b.bytes, b.interval);
    seen_.frees += static_cast<double>(w.blocks) / 1024;
    seen_.freed_bytes += w.bytes;
    seen_.freed_variance += w.variance;
  }

  [[nodiscard]] const segment::stack_figures& seen_at(std::uint64_t interval) {
    seen_.interval = interval;
    return seen_;
  }
  [[nodiscard]] double truth() const { return truth_; }

 private:
  struct block {
    std::uint64_t bytes, interval;
  };
  std::deque<block> live_;
  segment::stack_figures seen_;
  double truth_ = 0;
  std::uint64_t random_;
};

struct judged {
  double within = 0;  ///< of the sites that a viewer shows: those of which there was a sample
  double error = 0;   ///< on average, to the truth
};

/// Of many sites, each sampled anew; `run` returns the interval at the end, or the mean one.
judged judge(const std::function<std::uint64_t(sampled_site&)>& run) {
  constexpr std::uint64_t sites = 1000;
  double within = 0, shown = 0, errors = 0;
  for (std::uint64_t seed = 1; seed <= sites; ++seed) {
    sampled_site site(seed);
    const std::uint64_t interval = run(site);
    const segment::stack_figures& seen = site.seen_at(interval);
    if (seen.samples == 0) continue;
    const measured m = measure(seen, {});
    within += std::abs(m.value - site.truth()) <= error_of(m) ? 1 : 0;
    errors += error_of(m) / site.truth();
    ++shown;
  }
  return {within / shown, errors / shown};
}

TEST(error_of, holds_for_95_of_100_sites_with_few_samples_or_many) {
  constexpr std::uint64_t interval = 110 * 1024;
  for (const std::uint64_t block : {1000U, 5000U, 100'000U}) {
    for (const double samples : {1.0, 3.0, 10.0, 30.0, 100.0}) {
      const judged j = judge([&](sampled_site& site) {
        const auto blocks = static_cast<int>(samples * interval / static_cast<double>(block)) + 1;
        // As many again have been freed: sites without any sample are not shown.
        for (int i = 0; i < 2 * blocks; ++i) site.allocate(block, interval);
        for (int i = 0; i < blocks; ++i) site.free_oldest();
        return interval;
      });
      EXPECT_GE(j.within, 0.94) << block << ' ' << samples;
      if (samples >= 100) {
        EXPECT_LT(j.error, 0.25) << block << ": says less than it knows";
      }
    }
  }
}

// The walk of a fresh user: a cache that is filled while the interval is fine, and renewed while it
// is coarse. What is left of most sites is one sample of the fine interval, or none.
TEST(error_of, holds_after_the_interval_has_grown) {
  for (const std::uint64_t coarse : {110U * 1024, 900U * 1024}) {
    for (const std::uint64_t block : {72U, 1000U}) {
      const judged j = judge([&](sampled_site& site) {
        for (int i = 0; i < 300; ++i) site.allocate(block, 4096);
        for (int i = 0; i < 290; ++i) {
          site.allocate(block, coarse);
          site.free_oldest();
        }
        return coarse;
      });
      EXPECT_GE(j.within, 0.94) << coarse << ' ' << block;
    }
  }
}

TEST(error_of, holds_for_leaks_while_the_interval_grows_and_falls) {
  for (const bool grows : {true, false}) {
    const judged j = judge([&](sampled_site& site) {
      std::uint64_t interval = grows ? 4096 : 256 * 1024, sum = 0;
      for (int step = 0; step < 7; ++step) {
        if (step > 0) interval = grows ? interval * 2 : interval / 2;
        for (int i = 0; i < 100; ++i) site.allocate(104, interval);
        sum += interval;
      }
      return std::max(interval, sum / 7);
    });
    EXPECT_GE(j.within, 0.94) << grows;
  }
}

// Of the paths of a program one is rare. The others are frequent, so that a sample in two, four or
// eight is taken of them, which stands for as many.
TEST(error_of, holds_for_a_process_whose_frequent_paths_are_thinned) {
  constexpr std::uint64_t interval = 100 * 1024, runs = 2000, block = 5000;
  constexpr int blocks = 1000;
  double within = 0, too_low = 0, errors = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    std::vector<segment::stack_figures> stacks;
    double truth = 0, live = 0, variance = 0;
    for (const unsigned path : {0U, 1U, 2U, 3U}) {
      sampled_site site(4 * seed + path);
      for (int i = 0; i < blocks; ++i) {
        site.allocate(block, interval << path);
        if (i >= blocks / 10) site.free_oldest();
      }
      stacks.push_back(site.seen_at(interval));
      truth += site.truth();
      live += static_cast<double>(stacks.back().live_bytes());
      variance += stacks.back().live_variance();
    }
    segment::process_figures process;
    process.unseen_interval = interval;
    const double error = error_of(variance, unseen_of_all(process, stacks));
    within += std::abs(live - truth) <= error ? 1 : 0;
    too_low += truth > live + error ? 1 : 0;
    errors += error / truth;
  }
  EXPECT_GE(within / runs, 0.95);
  EXPECT_LE(too_low / runs, 0.025) << "the lower of two bounds is never far";
  EXPECT_LT(errors / runs, 1.6) << "says less than it knows";
}

TEST(unseen_of_all, is_the_interval_where_nothing_was_sampled) {
  segment::process_figures process;
  process.unseen_interval = 4096;
  EXPECT_EQ(unseen_of_all(process, {}), 4096);
  process.unseen_interval = 1;
  EXPECT_EQ(unseen_of_all(process, {}), 0);
}

TEST(error_of, is_zero_where_every_block_is_sampled) {
  sampled_site site(1);
  for (int i = 0; i < 10; ++i) site.allocate(100, 1);
  EXPECT_EQ(error_of(measure(site.seen_at(1), {})), 0);
  EXPECT_GT(error_of(measure(site.seen_at(4096), {})), 3 * 4096) << "blocks of now are sampled by the new interval";
}

// What a table shows: "up to 105 KiB, up to 48 KiB, 19 KiB ±67 %" would look unsorted.
TEST(shown_size, figures_come_before_upper_bounds) {
  std::vector<shown_size> all{{1000, 104'000}, {900, 47'000}, {19'000, 12'000}, {800, 107'000}, {30'000, 0}};
  std::ranges::sort(all, std::ranges::greater{});
  std::vector<double> shown;
  for (const shown_size& s : all) shown.push_back(s.bytes);
  EXPECT_EQ(shown, (std::vector<double>{30'000, 19'000, 107'800, 105'000, 47'900}));
}

TEST(site_among, is_the_first_function_that_does_not_allocate_for_others) {
  using enum frame_kind;
  EXPECT_EQ(site_among({wrapper, wrapper, other, other}), 2U);
  EXPECT_EQ(site_among({wrapper, other, wrapper, other}), 1U) << "a wrapper further out does not count";
  EXPECT_EQ(site_among({wrapper, wrapper}), 0U);
  EXPECT_EQ(site_among({}), 0U);
}

TEST(known_allocation_wrappers, have_their_names_within_glibc_too) {
  for (const char* const name : {"strdup", "__strdup", "__GI___strdup", "__GI___libc_malloc", "__vasprintf_internal"})
    EXPECT_NE(known_allocation_wrappers().find(qualified_name(name)), nullptr) << name;
  EXPECT_EQ(known_allocation_wrappers().find(qualified_name("__GI_puts")), nullptr);
}

TEST(site_among, passes_over_functions_without_a_name_that_a_wrapper_calls) {
  using enum frame_kind;
  EXPECT_EQ(site_among({wrapper, nameless, wrapper, other}), 3U) << "AllocSetAlloc below palloc, stripped";
  EXPECT_EQ(site_among({nameless, nameless, wrapper, nameless, other}), 3U);
  EXPECT_EQ(site_among({wrapper, nameless, other}), 1U);
  EXPECT_EQ(site_among({nameless}), 0U);
}

}  // namespace
}  // namespace heapwright::tool
