#include "utf8.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

TEST(utf8, text_stays_as_it_is) {
  for (const char* text :
       {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(as_utf8(text), text);
  EXPECT_EQ(as_utf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(utf8, each_byte_that_is_none_is_replaced) {
  const std::string odd = "\xEF\xBF\xBD";
  EXPECT_EQ(as_utf8("a\xff!"), "a" + odd + "!");
  EXPECT_EQ(as_utf8("\x80"), odd);
  EXPECT_EQ(as_utf8("\xc3"), odd) << "cut off";
  EXPECT_EQ(as_utf8("\xe2\x82z"), odd + odd + "z") << "cut off within a text";
  EXPECT_EQ(as_utf8("\xc0\xaf"), odd + odd) << "overlong";
  EXPECT_EQ(as_utf8("\xe0\x9f\x80"), odd + odd + odd) << "overlong";
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), odd + odd + odd) << "half of a pair of UTF-16";
  EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), odd + odd + odd + odd) << "beyond the last character";
}

TEST(utf8, a_long_text_is_shortened_in_its_middle) {
  EXPECT_EQ(shortened("void f<first, second, third>()", 30), "void f<first, second, third>()");
  EXPECT_EQ(shortened("void f<first, second, third>()", 28), "void f<first, seco… third>()");
  EXPECT_EQ(shortened("void f<fürst, second, thürd>()", 28), "void f<fürst, seco… thürd>()");
  EXPECT_EQ(shortened("void f<first, second, third>()", 24), "void f<first, second, t…");
}

TEST(utf8, text_is_clipped_between_characters) {
  EXPECT_EQ(clipped("plain", 5), "plain");
  EXPECT_EQ(clipped("plain", 4), "pla…");
  EXPECT_EQ(clipped("12 ±3", 5), "12 ±3");
  EXPECT_EQ(clipped("12 ±34", 5), "12 ±…");
  EXPECT_EQ(clipped("12 ±34", 4), "12 …");
  EXPECT_EQ(clipped("\xff\xff\xff", 2), "\xff…") << "a byte that is no UTF-8 is a character";
  EXPECT_EQ(clipped("plain", 1), "…");
  EXPECT_EQ(clipped("plain", 0), "");
  EXPECT_EQ(clipped("", 0), "");
}

}  // namespace
}  // namespace heapwright::tool
