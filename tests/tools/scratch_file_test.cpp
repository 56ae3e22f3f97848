// Outputs compared, and their ends quoted.
#include "scratch_file.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

scratch_file holding(std::string_view text) {
  scratch_file file;
  EXPECT_EQ(write(file.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

TEST(scratch_file, equal_texts_do_not_differ) {
  EXPECT_FALSE(first_difference(holding(""), holding("")));
  EXPECT_FALSE(first_difference(holding("a\nb\n"), holding("a\nb\n")));
}

TEST(scratch_file, the_first_differing_line_is_quoted) {
  const auto found = first_difference(holding("one\ntwo\nthree\n"), holding("one\ntoo\nthree\n"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 2u);
  EXPECT_EQ(found->expected, "\"two\"");
  EXPECT_EQ(found->found, "\"too\"");
}

TEST(scratch_file, a_missing_end_is_a_difference) {
  const auto found = first_difference(holding("one\ntwo\n"), holding("one\n"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 2u);
  EXPECT_EQ(found->found, "(the output ends here)");
}

TEST(scratch_file, control_characters_cannot_reach_the_terminal) {
  const auto found = first_difference(holding("a"), holding("\033[31m"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "\"\\x1b[31m\"");
}

TEST(scratch_file, the_tail_is_the_last_lines) {
  EXPECT_EQ(holding("one\ntwo\n\nthree\n").tail(2), "two | three");
  EXPECT_EQ(holding("").tail(2), "");
  EXPECT_EQ(holding("one\rtwo  \r   \r\nthree\n").tail(2), "two | three");
}

TEST(scratch_file, each_reader_starts_at_the_start) {
  const scratch_file file = holding("text");
  for (int i = 0; i < 2; ++i) {
    char buffer[8] = {};
    const descriptor reader = file.reopen();
    EXPECT_EQ(read(reader.get(), buffer, sizeof buffer), 4);
    EXPECT_STREQ(buffer, "text");
  }
}

}  // namespace
}  // namespace heapwright::tool
