#include "function_patterns.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "failure.hpp"

namespace {

using namespace heapwright::tool;

bool fits(const std::string& pattern, const std::string& function) {
  function_patterns all;
  all.add(pattern);
  return all.find(function) != nullptr;
}

TEST(FunctionPatterns, AWholeName) {
  EXPECT_TRUE(fits("make", "make"));
  EXPECT_FALSE(fits("make", "make_all"));
  EXPECT_FALSE(fits("make", "remake"));
  EXPECT_FALSE(fits("", "make"));
}

TEST(FunctionPatterns, WithAndWithoutParameters) {
  EXPECT_TRUE(fits("store::add", "store::add(int, char const*)"));
  EXPECT_TRUE(fits("store::add(int, char const*)", "store::add(int, char const*)"));
  EXPECT_FALSE(fits("store::add(int)", "store::add(int, char const*)"));
  EXPECT_TRUE(fits("store::operator()", "store::operator()(int)"));
}

TEST(FunctionPatterns, Wildcards) {
  EXPECT_TRUE(fits("*", "make"));
  EXPECT_TRUE(fits("make*", "make_all"));
  EXPECT_TRUE(fits("*_all", "make_all"));
  EXPECT_TRUE(fits("m*_*l", "make_all_all"));
  EXPECT_TRUE(fits("mak?", "make"));
  EXPECT_FALSE(fits("make?", "make"));
  EXPECT_FALSE(fits("m*x", "make"));
  EXPECT_TRUE(fits("*operator[]*", "table::operator[](int)"));
}

TEST(FunctionPatterns, AFile) {
  const auto path = std::filesystem::temp_directory_path() / ("function-patterns-" + std::to_string(getpid()));
  std::ofstream(path) << "# known\n\n  make_*  \r\nother";
  function_patterns all;
  all.add_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(all.patterns(), (std::vector<std::string>{"make_*", "other"}));
  ASSERT_NE(all.find("make_node"), nullptr);
  EXPECT_EQ(*all.find("make_node"), "make_*");
}

TEST(FunctionPatterns, AFileThatCannotBeRead) {
  function_patterns all;
  EXPECT_THROW(all.add_file("/no/such/file"), failure);
  EXPECT_THROW(all.add_file("/"), failure);
}

}  // namespace
