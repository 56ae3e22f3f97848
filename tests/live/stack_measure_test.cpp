// What one stack contributes to a question, and which of its frames is the site.
#include "stack_measure.hpp"
#include "places.hpp"

#include <gtest/gtest.h>

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
  const auto since = std::make_shared<baseline>();
  since->stacks.emplace(before.id, counted_by(before));
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

TEST(site_among, is_the_first_function_that_does_not_allocate_for_others) {
  using enum frame_kind;
  EXPECT_EQ(site_among({wrapper, wrapper, other, other}), 2U);
  EXPECT_EQ(site_among({wrapper, other, wrapper, other}), 1U) << "a wrapper further out does not count";
  EXPECT_EQ(site_among({wrapper, wrapper}), 0U);
  EXPECT_EQ(site_among({}), 0U);
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
