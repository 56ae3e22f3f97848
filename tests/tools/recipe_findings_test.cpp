// What each rule finds, from which size on, and that the documentation has the same rules.
#include "recipe_findings.hpp"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

std::vector<std::string> rules_of(const recipe_evidence& evidence) {
  std::vector<std::string> names;
  for (const recipe_finding& f : find_in(evidence)) names.emplace_back(f.rule);
  return names;
}

std::vector<std::string> fields_of(const recipe_finding& f) { return {f.fields.begin(), f.fields.end()}; }

/// A process with so much of one figure, and nothing else.
recipe_evidence with(std::uint64_t recipe_evidence::*figure, std::uint64_t bytes, std::uint64_t rss) {
  recipe_evidence e;
  e.rss = rss;
  e.*figure = bytes;
  return e;
}

recipe_evidence free_in_spans(std::uint64_t bytes, std::uint64_t rss, std::vector<recipe_evidence::room> classes) {
  recipe_evidence e = with(&recipe_evidence::free_in_spans, bytes, rss);
  e.classes = std::move(classes);
  return e;
}

TEST(recipe_findings, free_memory_in_the_spans_of_one_class) {
  const auto found = find_in(free_in_spans(64 * MiB, 100 * MiB, {{32, 4 * MiB}, {240, 60 * MiB}}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_STREQ(found[0].rule, "free_in_spans_of_one_class");
  EXPECT_EQ(found[0].text, "64 % of RSS, 64.0 MiB, is free in spans, 60.0 MiB of it in spans of blocks of 240 bytes");
  EXPECT_EQ(fields_of(found[0]), std::vector<std::string>{"spans"});
  EXPECT_EQ(found[0].line(), found[0].text + "; see spans of the recipe, " + rules_page);
}

TEST(recipe_findings, free_memory_in_the_spans_of_many_classes) {
  const auto found =
      find_in(free_in_spans(40 * MiB, 100 * MiB, {{32, 0}, {64, 15 * MiB}, {1024, 19 * MiB}, {4096, 6 * MiB}}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_STREQ(found[0].rule, "free_in_spans_of_many_classes");
  EXPECT_EQ(found[0].text,
            "40 % of RSS, 40.0 MiB, is free in spans of 3 size classes; spans of blocks of 1 KiB have the most, "
            "19.0 MiB");
  EXPECT_EQ(fields_of(found[0]), (std::vector<std::string>{"classes.steps_per_doubling", "spans"}));
}

TEST(recipe_findings, a_class_with_half_of_it_is_one_class) {
  const auto classes = [](std::uint64_t most) {
    return std::vector<recipe_evidence::room>{{64, 40 * MiB - most}, {240, most}};
  };
  EXPECT_EQ(rules_of(free_in_spans(40 * MiB, 100 * MiB, classes(20 * MiB))),
            std::vector<std::string>{"free_in_spans_of_one_class"});
  EXPECT_EQ(rules_of(free_in_spans(40 * MiB, 100 * MiB, {{64, 19 * MiB}, {240, 19 * MiB}, {256, 2 * MiB}})),
            std::vector<std::string>{"free_in_spans_of_many_classes"});
}

TEST(recipe_findings, memory_that_was_never_touched_is_not_found) {
  recipe_evidence e = free_in_spans(40 * MiB, 100 * MiB, {{240, 40 * MiB}});
  e.not_resident = 20 * MiB;
  const auto found = find_in(e);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, 20 * MiB);
  EXPECT_NE(found[0].text.find("20.0 MiB of it in spans"), std::string::npos) << found[0].text;
  e.not_resident = 40 * MiB;
  EXPECT_TRUE(find_in(e).empty());
}

/// A block of 45 MiB is freed, of which 6 MiB were touched.
TEST(recipe_findings, free_pages_that_were_never_touched_are_not_found) {
  heap_reading heap;
  heap.free_resident = 36 * MiB;
  heap.metadata = 64 * 1024;
  EXPECT_TRUE(find_in(evidence_of(heap, 7 * MiB, 6 * MiB)).empty());
  const auto found = find_in(evidence_of(heap, 30 * MiB, 25 * MiB));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_STREQ(found[0].rule, "free_pages");
  EXPECT_LE(found[0].bytes, 25 * MiB);
  heap.large = 10 * MiB;  // in use: so much less can be free pages
  EXPECT_TRUE(find_in(evidence_of(heap, 30 * MiB, 25 * MiB)).empty());
}

TEST(recipe_findings, no_finding_is_more_than_there_is) {
  const auto found = find_in(with(&recipe_evidence::rounding, 40 * MiB, 30 * MiB));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, 30 * MiB);
  EXPECT_EQ(found[0].text.substr(0, found[0].text.find(", is")), "100 % of RSS, 30.0 MiB");
}

TEST(recipe_findings, free_spans_of_a_command_that_has_freed_nearly_all_are_not_found) {
  for (const bool one_class : {true, false}) {
    recipe_evidence e = free_in_spans(60 * MiB, 100 * MiB, {{32, 20 * MiB}, {64, 20 * MiB}, {240, 20 * MiB}});
    if (one_class) e.classes = {{240, 60 * MiB}};
    e.in_use = 25 * MiB - 1;
    EXPECT_EQ(find_in(e).size(), 1U) << "a server goes on";
    e.ends_by_itself = true;
    EXPECT_TRUE(find_in(e).empty());
    e.in_use = 25 * MiB;
    EXPECT_EQ(find_in(e).size(), 1U);
  }
}

TEST(recipe_findings, the_other_rules_have_a_sentence_and_fields) {
  struct expectation {
    std::uint64_t recipe_evidence::*figure;
    const char* rule;
    const char* text;
    std::vector<std::string> fields;
  };
  const expectation all[] = {
      {&recipe_evidence::thread_caches,
       "thread_caches",
       "30 % of RSS, 30.0 MiB, is freed blocks in the caches of 16 threads",
       {"thread_cache"}},
      {&recipe_evidence::free_kept,
       "free_pages",
       "30 % of RSS, 30.0 MiB, is free pages that the heap has not given back to the system",
       {"pages.give_back"}},
      {&recipe_evidence::rounding,
       "rounding",
       "30 % of RSS, 30.0 MiB, is rounding: the live blocks are so much longer than the program has asked for",
       {"classes.exact", "classes.steps_per_doubling"}},
      {&recipe_evidence::huge_excess,
       "huge_pages",
       "30 % of RSS, 30.0 MiB, is memory that the heap does not use, kept by the huge pages that it lies in",
       {"pages.huge"}},
      {&recipe_evidence::records,
       "records",
       "30 % of RSS, 30.0 MiB, is the heap's own records; 16 threads have a cache",
       {"classes.steps_per_doubling"}},
  };
  for (const expectation& expected : all) {
    recipe_evidence e = with(expected.figure, 30 * MiB, 100 * MiB);
    e.threads = 16;
    const auto found = find_in(e);
    ASSERT_EQ(found.size(), 1U) << expected.rule;
    EXPECT_STREQ(found[0].rule, expected.rule);
    EXPECT_EQ(found[0].text, expected.text);
    EXPECT_EQ(fields_of(found[0]), expected.fields);
  }
}

TEST(recipe_findings, a_rule_needs_its_share_and_its_bytes) {
  struct threshold {
    std::uint64_t recipe_evidence::*figure;
    std::uint64_t percent, bytes;
  };
  const threshold all[] = {
      {&recipe_evidence::free_in_spans, 15, 8 * MiB}, {&recipe_evidence::thread_caches, 15, 8 * MiB},
      {&recipe_evidence::free_kept, 25, 16 * MiB},    {&recipe_evidence::rounding, 10, 8 * MiB},
      {&recipe_evidence::huge_excess, 15, 8 * MiB},   {&recipe_evidence::records, 10, 4 * MiB},
  };
  for (std::size_t i = 0; i < std::size(all); ++i) {
    const auto& [figure, percent, bytes] = all[i];
    const auto found = [&, f = figure](std::uint64_t of_it, std::uint64_t rss) {
      recipe_evidence e = with(f, of_it, rss);
      if (f == &recipe_evidence::free_in_spans) e.classes = {{240, of_it}};
      return find_in(e).size();
    };
    EXPECT_EQ(found(percent * MiB, 100 * MiB), 1U) << i;
    EXPECT_EQ(found(percent * MiB - 1, 100 * MiB), 0U) << i;
    EXPECT_EQ(found(bytes, bytes), 1U) << i;
    EXPECT_EQ(found(bytes - 1, bytes), 0U) << i << ": a small program";
  }
}

TEST(recipe_findings, at_most_three_the_largest_first) {
  recipe_evidence e = free_in_spans(20 * MiB, 150 * MiB, {{240, 20 * MiB}});
  // A share of 23 MiB is 15 % of RSS, and 20 MiB is not.
  e.free_in_spans = 23 * MiB;
  e.thread_caches = 30 * MiB;
  e.free_kept = 40 * MiB;
  e.rounding = 25 * MiB;
  EXPECT_EQ(rules_of(e), (std::vector<std::string>{"free_pages", "thread_caches", "rounding"}));
}

TEST(recipe_findings, a_recipe_is_not_told_what_it_says_already) {
  const auto advice = [](recipe_evidence e, const recipe_values& values) {
    e.recipe = values;
    return std::string(find_in(e).at(0).advice);
  };
  recipe_values near{4096, 4, 256 * 1024, 4 * MiB, 8 * MiB, give_back_policy::at_once};
  const recipe_values far{32 * 1024, 8, MiB, 32 * MiB, 64 * MiB, give_back_policy::over_time};
  const recipe_evidence all[] = {free_in_spans(64 * MiB, 100 * MiB, {{240, 60 * MiB}}),
                                 free_in_spans(40 * MiB, 100 * MiB, {{32, 15 * MiB}, {64, 15 * MiB}, {128, 10 * MiB}}),
                                 with(&recipe_evidence::thread_caches, 30 * MiB, 100 * MiB),
                                 with(&recipe_evidence::free_kept, 30 * MiB, 100 * MiB),
                                 with(&recipe_evidence::records, 30 * MiB, 100 * MiB)};
  for (const recipe_evidence& e : all) {
    const std::string usual = find_in(e).at(0).advice;
    EXPECT_EQ(advice(e, far), usual);
    EXPECT_NE(usual.find("Try "), std::string::npos) << usual;
    EXPECT_NE(advice(e, near).find(" already"), std::string::npos) << advice(e, near);
    EXPECT_EQ(advice(e, near).find("Try "), std::string::npos) << advice(e, near);
  }
  near.give_back = give_back_policy::over_time;
  EXPECT_EQ(advice(all[3], near), find_in(all[3]).at(0).advice);
  const recipe_evidence rounded = with(&recipe_evidence::rounding, 30 * MiB, 100 * MiB);
  near.steps_per_doubling = 16;
  EXPECT_EQ(advice(rounded, near).find("steps_per_doubling"), std::string::npos);
}

TEST(recipe_findings, nothing_of_a_process_of_which_nothing_is_known) { EXPECT_TRUE(find_in({}).empty()); }

TEST(recipe_findings, a_reading_of_a_heap_is_evidence) {
  heap_reading heap;
  heap.spans = 50 * MiB;
  heap.large = 10 * MiB;
  heap.free_resident = 3 * MiB;
  heap.metadata = 2 * MiB;
  heap.threads = 7;
  heap.classes = {{1024, 10 * 1024, 40 * MiB}, {2048, 5 * 1024, 10 * MiB}};  // 10 MiB each outside
  const recipe_evidence e = evidence_of(heap, 70 * MiB, 60 * MiB);
  EXPECT_EQ(e.in_use, 30 * MiB);
  EXPECT_EQ(e.free_in_spans, 30 * MiB);
  EXPECT_EQ(e.free_kept, 3 * MiB);
  EXPECT_EQ(e.records, 2 * MiB);
  EXPECT_EQ(e.threads, 7U);
  // 30 outside, 30 free in spans, 3 and 2: 65, of which 60 are in memory.
  EXPECT_EQ(e.not_resident, 5 * MiB);
  ASSERT_EQ(e.classes.size(), 2U);
  EXPECT_EQ(e.classes[0].free, 30 * MiB);
  EXPECT_EQ(e.classes[1].free, 0U);
}

TEST(recipe_findings, the_documentation_has_the_same_rules) {
  std::ifstream file(HEAPWRIGHT_DOCS "/recipes.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(rules_as_markdown()), std::string::npos) << "docs/recipes.md is to have this table:\n"
                                                               << rules_as_markdown();
  EXPECT_STREQ(rules_page, "docs/recipes.md#what-live-and-compare-point-to");
  EXPECT_NE(page.find("\n## What live and compare point to\n"), std::string::npos);
}

}  // namespace
}  // namespace heapwright::tool
