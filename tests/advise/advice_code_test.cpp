// The lines of each advice compile against the kit, and do what they say.
#include "advice_code.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heapwright::tool {
namespace {

bool compiles(const std::string& code) {
  const std::string file = testing::TempDir() + "heapwright-advice-" + std::to_string(getpid()) + ".cpp";
  std::ofstream(file) << code;
  const std::string command =
      std::string(COMPILER) + " -std=c++20 -Wall -Wextra -fsyntax-only -I '" HEADERS "' '" + file + "'";
  const bool is_well = std::system(command.c_str()) == 0;
  (void)unlink(file.c_str());
  return is_well;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

constexpr advice_kind kinds[] = {advice_kind::small_buffer, advice_kind::reserve, advice_kind::stack_arena,
                                 advice_kind::arena,        advice_kind::pool,    advice_kind::shared_pool,
                                 advice_kind::hand_over};

class AdviceCode : public testing::TestWithParam<advice_kind> {};

constexpr const char* containers[] = {
    "", "std::vector", "std::string", "std::list", "std::deque", "std::map or set", "std::unordered_map or set"};

program_site site_of(const std::string& container, const std::string& file = "/src/tree.cpp") {
  return {.function = "grow()",
          .file = file,
          .line = 12,
          .module = "/bin/some",
          .through = container.empty() ? "" : container + "<int>::insert",
          .is_container = !container.empty(),
          .container = container,
          .types = ""};
}

TEST_P(AdviceCode, CompilesForCallsAndForContainers) {
  for (const std::string container : containers) {
    for (const std::uint64_t threads : {1U, 4U}) {
      const program_site site = site_of(container, "/src/some \"tree\".cpp");
      advice what{.kind = GetParam(), .site = 1, .bytes = 48};
      std::string code = text_of(code_for(what, site, threads));
      SCOPED_TRACE(code);
      EXPECT_LE(code_for(what, site, threads).size(), 6U);
      if (const std::size_t use = code.rfind("// some"); site.is_container && use != std::string::npos) {
        // Its last line is how the container is made.
        if (code.find("kit_allocator") != std::string::npos)
          code +=
              "#include <deque>\n#include <list>\n#include <set>\n#include <string>\n#include <unordered_set>\n"
              "#include <vector>\nint main() {\n" +
              code.substr(code.find(": ", use) + 2) + "}\n";
      }
      EXPECT_TRUE(compiles(code));
    }
  }
}

TEST(AdviceCode, NamesTheContainerOfTheSite) {
  const program_site site = site_of("std::list");
  const std::string pool = text_of(code_for({.kind = advice_kind::pool, .site = 1, .bytes = 48}, site, 1));
  EXPECT_NE(pool.find("tree.cpp:12: std::list<int, kit_allocator<int>> l(memory);"), std::string::npos) << pool;
}

TEST(AdviceCode, MakesASharedObjectWithTheAllocator) {
  program_site site = site_of("");
  site.is_container = true;
  site.through = "std::make_shared<node, int>";
  for (const advice_kind kind : {advice_kind::pool, advice_kind::arena}) {
    const std::string code = text_of(code_for({.kind = kind, .site = 1, .bytes = 48}, site, 1));
    EXPECT_NE(code.find("std::allocate_shared<"), std::string::npos) << code;
    EXPECT_EQ(code.find("std::vector"), std::string::npos) << code;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdviceCode, testing::ValuesIn(kinds));

TEST(AdviceCode, SaysWhereAndHowMuch) {
  const program_site site = site_of("");
  const std::string pool = text_of(code_for({.kind = advice_kind::pool, .site = 1, .bytes = 48}, site, 1));
  EXPECT_NE(pool.find("static heapwright::pool<> blocks(heapwright::layout{48, 8})"), std::string::npos) << pool;
  EXPECT_NE(pool.find("tree.cpp:12"), std::string::npos) << pool;
  const std::string of_threads = text_of(code_for({.kind = advice_kind::pool, .site = 1, .bytes = 48}, site, 2));
  EXPECT_NE(of_threads.find("thread_local"), std::string::npos) << of_threads;
}

TEST(AdviceCode, WhatDoesNotCompileIsFound) { EXPECT_FALSE(compiles("heapwright::pool<> blocks;")); }

}  // namespace
}  // namespace heapwright::tool
