// Words that people mistype, and what they meant.
#include "nearest_word.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

const std::string words[] = {"run", "compare", "build", "live", "top", "diff", "leaks", "info"};

TEST(nearest_word, one_slip_is_forgiven) {
  EXPECT_EQ(nearest_word("comapre", words), "compare") << "swapped";
  EXPECT_EQ(nearest_word("comare", words), "compare") << "left out";
  EXPECT_EQ(nearest_word("compaare", words), "compare") << "put in";
  EXPECT_EQ(nearest_word("lave", words), "live") << "replaced";
  EXPECT_EQ(nearest_word("leak", words), "leaks");
  EXPECT_EQ(nearest_word("rum", words), "run");
  EXPECT_EQ(nearest_word("run", words), "run");
}

TEST(nearest_word, another_word_is_none) {
  EXPECT_EQ(nearest_word("status", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word("xyz", words), "");
  EXPECT_EQ(nearest_word("run", {}), "");
  EXPECT_EQ(nearest_word(std::string(10'000, 'r'), words), "");
}

}  // namespace
}  // namespace heapwright::tool
