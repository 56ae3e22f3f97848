#include "printable.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

TEST(printable, what_a_terminal_would_obey_is_shown_instead) {
  EXPECT_EQ(printable("a\x1b[2J\tb\x7f\n"), "a\\x1b[2J b\\x7f\\x0a");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a\\xc2\\x9b2J")
      << "the same control character, as UTF-8 has it";
  EXPECT_EQ(printable("caf\xc3\xa9 \xc2\xb5s"), "caf\xc3\xa9 \xc2\xb5s");
  EXPECT_EQ(printable(""), "");
}

TEST(printable, it_is_cut_between_characters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("abc\xe2\x82\xac!", 5), "abc...");
  EXPECT_EQ(printable("abc\xe2\x82\xac!", 6), "abc\xe2\x82\xac...");
}

}  // namespace
}  // namespace heapwright::tool
