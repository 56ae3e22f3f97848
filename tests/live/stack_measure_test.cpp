// The errors of what one stack contributes to a question.
#include "stack_measure.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

/// By samples of 1 KiB each, of which each adds 100 to the variance.
trace::stack_figures sampled(unsigned allocated, unsigned freed) {
  trace::stack_figures s;
  s.id = 1;
  s.allocations = allocated;
  s.allocated_bytes = allocated * std::uint64_t{1024};
  s.frees = freed;
  s.freed_bytes = freed * std::uint64_t{1024};
  s.allocated_variance = allocated * 100.0;
  s.freed_variance = freed * 100.0;
  return s;
}

measured grown(const trace::stack_figures& before, const trace::stack_figures& after) {
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

}  // namespace
}  // namespace heapwright::tool
