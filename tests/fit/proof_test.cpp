// What counts as a proof: rounds with known figures in, a verdict out.
#include "proof.hpp"

#include <random>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

/// A row whose figures are those of the default times a factor, with some noise.
struct contestant {
  std::string name;
  double wall = 1, peak = 1, noise = 0.003;
};

comparison measured(const std::vector<contestant>& rows, unsigned rounds = 7, unsigned seed = 1) {
  std::mt19937 random(seed);
  comparison all;
  all.rounds = rounds;
  all.tolerance = 0.03;
  for (const contestant& c : rows) {
    std::normal_distribution<double> noise(1, c.noise);
    comparison_row& row = all.rows.emplace_back();
    row.who = {c.name, ""};
    for (unsigned i = 0; i < rounds; ++i) {
      measurement m{};
      m.wall_seconds = c.wall * noise(random);
      m.user_seconds = m.wall_seconds;
      m.peak_rss = static_cast<std::uint64_t>(1e8 * c.peak * noise(random));
      m.end_rss = m.peak_rss;
      row.rounds.push_back(m);
    }
    if (c.name == default_row) all.baseline = all.rows.size() - 1;
  }
  return all;
}

fit_answer answered(const std::vector<contestant>& rows, fit_goal goal) {
  return answer_of({measured(rows)}, true, goal);
}

TEST(proof, a_gain_is_told_with_its_interval) {
  const fit_answer a = answered({{"glibc"}, {default_row}, {fitted_row, 1, 0.86}}, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::fitted);
  EXPECT_TRUE(a.sentence.starts_with("peak RSS -14 %")) << a.sentence;
  EXPECT_NE(a.sentence.find("wall time same"), std::string::npos) << a.sentence;
}

TEST(proof, an_interval_has_the_sign_of_its_figure) {
  const fit_answer a = answered({{"glibc"}, {default_row, 1, 1, 0.05}, {fitted_row, 1, 0.7, 0.05}}, fit_goal::memory);
  EXPECT_TRUE(std::regex_search(a.sentence, std::regex(R"(peak RSS -\d+ % \(-\d+ to -\d+ %\))"))) << a.sentence;
}

TEST(proof, less_than_two_per_cent_is_no_gain) {
  const fit_answer a = answered({{"glibc"}, {default_row}, {fitted_row, 1, 0.985, 0.0001}}, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::keep_default);
  EXPECT_TRUE(a.sentence.starts_with("keep the default: no recipe gained more than 2 %")) << a.sentence;
}

TEST(proof, a_gain_that_noise_may_have_made_is_none) {
  const fit_answer a = answered({{"glibc"}, {default_row, 1, 1, 0.1}, {fitted_row, 0.97, 1, 0.1}}, fit_goal::time);
  EXPECT_EQ(a.verdict, fit_verdict::keep_default);
}

TEST(proof, a_gain_that_harms_another_figure_is_none) {
  EXPECT_EQ(answered({{"glibc"}, {default_row}, {fitted_row, 1.04, 0.8}}, fit_goal::memory).verdict,
            fit_verdict::keep_default);
  EXPECT_EQ(answered({{"glibc"}, {default_row}, {fitted_row, 0.9, 1.1}}, fit_goal::both).verdict,
            fit_verdict::keep_default);
}

TEST(proof, a_gain_of_another_figure_than_the_goal_is_none) {
  EXPECT_EQ(answered({{"glibc"}, {default_row}, {fitted_row, 0.8, 1}}, fit_goal::memory).verdict,
            fit_verdict::keep_default);
}

TEST(proof, another_malloc_that_is_better_is_named) {
  const fit_answer a =
      answered({{"glibc"}, {default_row}, {fitted_row, 1, 0.95}, {"jemalloc", 1, 0.85}}, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::other_allocator);
  EXPECT_EQ(a.malloc, "jemalloc");
  EXPECT_TRUE(a.sentence.starts_with("for this program jemalloc is better than the best recipe")) << a.sentence;
}

TEST(proof, glibc_may_be_the_better_one) {
  const fit_answer a = answered({{"glibc", 1, 0.9}, {default_row}, {fitted_row}}, fit_goal::memory);
  EXPECT_EQ(a.malloc, "glibc");
  EXPECT_TRUE(a.sentence.starts_with("for this program glibc is better than the default: peak RSS -10 %"))
      << a.sentence;
  EXPECT_NE(a.sentence.find("; the best recipe, on fresh rounds: "), std::string::npos) << a.sentence;
}

TEST(proof, all_inputs_must_agree) {
  const comparison gains = measured({{"glibc"}, {default_row}, {fitted_row, 1, 0.86}});
  const comparison harms = measured({{"glibc"}, {default_row}, {fitted_row, 1, 1.1}});
  EXPECT_EQ(answer_of({gains, gains}, true, fit_goal::memory).verdict, fit_verdict::fitted);
  const fit_answer mixed = answer_of({gains, harms}, true, fit_goal::memory);
  EXPECT_EQ(mixed.verdict, fit_verdict::keep_default);
  EXPECT_TRUE(mixed.sentence.starts_with(
      "keep the default: the best recipe gains on the command, but not on input 1: peak RSS -14 %"))
      << mixed.sentence;
  EXPECT_NE(mixed.sentence.find("; there wall time same, peak RSS +10 %"), std::string::npos) << mixed.sentence;
}

TEST(proof, a_recipe_that_gains_and_harms_is_told_so) {
  const fit_answer a = answered({{"glibc"}, {default_row}, {fitted_row, 1.04, 0.8}}, fit_goal::memory);
  EXPECT_TRUE(a.sentence.starts_with("keep the default: the best recipe gains, but does harm as well: peak RSS -20 %"))
      << a.sentence;
}

TEST(proof, noise_is_not_called_the_lack_of_a_gain) {
  const fit_answer a = answered({{"glibc"}, {default_row, 1, 1, 0.3}, {fitted_row, 1, 1, 0.3}}, fit_goal::time);
  EXPECT_TRUE(a.sentence.starts_with("keep the default: no recipe was shown to gain more than 2 %")) << a.sentence;
}

TEST(proof, another_malloc_whose_figure_looks_better_is_noted) {
  const fit_answer a = answered({{"glibc", 1.1, 0.8}, {default_row}, {fitted_row, 1, 0.9}}, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::fitted);
  ASSERT_EQ(a.notes.size(), 1U);
  EXPECT_TRUE(a.notes[0].starts_with("glibc beside the recipe: peak RSS -11 %")) << a.notes[0];
  EXPECT_NE(a.notes[0].find("wall time +10 %"), std::string::npos) << a.notes[0];
  EXPECT_TRUE(a.notes[0].ends_with("; it is not the answer, because it does harm as well")) << a.notes[0];
}

TEST(proof, a_malloc_that_is_better_but_harms_is_noted_where_the_default_is_kept) {
  for (const char* const name : {"glibc", "jemalloc"}) {
    std::vector<contestant> rows{{"glibc"}, {default_row}, {fitted_row}};
    if (rows[0].name != name) rows.push_back({name});
    contestant& better = rows[0].name == name ? rows[0] : rows.back();
    better.wall = 1.1;
    better.peak = 0.61;
    const fit_answer a = answered(rows, fit_goal::memory);
    EXPECT_EQ(a.verdict, fit_verdict::keep_default);
    ASSERT_EQ(a.notes.size(), 1U) << name;
    EXPECT_TRUE(a.notes[0].starts_with(std::string(name) + " beside the default: peak RSS -39 %")) << a.notes[0];
    EXPECT_TRUE(a.notes[0].ends_with("; it is not the answer, because it does harm as well")) << a.notes[0];
  }
}

TEST(proof, a_recipe_that_gains_too_little_is_told_as_that) {
  comparison all = measured({{"glibc"}, {default_row}, {fitted_row, 1, 0.9}});
  for (comparison_row& row : all.rows)
    for (measurement& m : row.rounds) m.peak_rss /= 100;
  const fit_answer a = answer_of({all}, true, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::keep_default);
  EXPECT_TRUE(
      a.sentence.starts_with("keep the default: no recipe gained more than 2 % and 512 KiB; the best recipe, on "
                             "fresh rounds: "))
      << a.sentence;
}

TEST(proof, a_small_program_can_gain) {
  comparison all = measured({{"glibc"}, {default_row}, {fitted_row, 1, 0.9}});
  for (comparison_row& row : all.rows)
    for (measurement& m : row.rounds) m.peak_rss /= 11;
  EXPECT_EQ(answer_of({all}, true, fit_goal::memory).verdict, fit_verdict::fitted) << "0.9 of 9 MiB";
}

TEST(proof, a_malloc_that_is_better_by_too_little_is_noted) {
  comparison all = measured({{"glibc", 1, 0.61}, {default_row}, {fitted_row}});
  for (comparison_row& row : all.rows)
    for (measurement& m : row.rounds) m.peak_rss /= 100;
  const fit_answer a = answer_of({all}, true, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::keep_default);
  ASSERT_EQ(a.notes.size(), 1U);
  EXPECT_TRUE(a.notes[0].starts_with("glibc beside the default: wall time same, peak RSS -39 %")) << a.notes[0];
  EXPECT_TRUE(a.notes[0].ends_with("; it is not the answer: less than 512 KiB is no gain")) << a.notes[0];
}

TEST(proof, a_malloc_that_is_better_on_one_input_alone_is_noted) {
  const comparison gains = measured({{"glibc", 1, 0.8}, {default_row}, {fitted_row}});
  const comparison same = measured({{"glibc"}, {default_row}, {fitted_row}});
  const fit_answer a = answer_of({gains, same}, true, fit_goal::memory);
  EXPECT_EQ(a.verdict, fit_verdict::keep_default);
  ASSERT_EQ(a.notes.size(), 1U);
  EXPECT_TRUE(a.notes[0].ends_with("; it is not the answer, because it does not gain on each input")) << a.notes[0];
}

TEST(proof, mallocs_that_are_as_good_as_the_answer_are_not_noted) {
  EXPECT_TRUE(
      answered({{"glibc"}, {default_row}, {fitted_row}, {"jemalloc", 1, 0.99}}, fit_goal::memory).notes.empty());
}

// 0.99 (0.99-0.99) is sure, and still neither a gain nor a harm.
TEST(proof, a_figure_counts_as_what_the_verdict_calls_it) {
  const comparison all = measured(
      {{"glibc", 1.1, 0.61}, {default_row, 1, 1, 0.0001}, {fitted_row, 1.01, 0.99, 0.0001}, {"jemalloc", 1, 1, 0.2}});
  const auto judged = [&](const char* row, const char* key) {
    for (const metric& m : metrics_of(all))
      if (m.key == key) return judge_figure(all, row, m, fit_goal::memory);
    return std::optional<judged_figure>();
  };
  for (const char* const key : {"wall_seconds", "peak_rss_bytes", "end_rss_bytes"}) {
    ASSERT_TRUE(judged(fitted_row, key)) << key;
    EXPECT_FALSE(judged(fitted_row, key)->has_gained) << key;
    EXPECT_FALSE(judged(fitted_row, key)->is_harmed) << key;
  }
  EXPECT_TRUE(judged("glibc", "peak_rss_bytes")->has_gained);
  EXPECT_TRUE(judged("glibc", "end_rss_bytes")->has_gained);
  EXPECT_TRUE(judged("glibc", "wall_seconds")->is_harmed);
  EXPECT_FALSE(judged("jemalloc", "peak_rss_bytes")->has_gained);
  EXPECT_FALSE(judged(default_row, "peak_rss_bytes"));
}

TEST(proof, of_small_programs_there_is_nothing_to_gain) {
  comparison all = measured({{"glibc", 0.8, 0.8}, {default_row}, {fitted_row, 0.9, 0.9}});
  for (comparison_row& row : all.rows) {
    for (measurement& m : row.rounds) {
      m.wall_seconds /= 1000;
      m.peak_rss /= 100;
    }
  }
  EXPECT_EQ(answer_of({all}, true, fit_goal::both).verdict, fit_verdict::keep_default);
}

TEST(proof, a_row_that_failed_proves_nothing) {
  comparison all = measured({{"glibc"}, {default_row}, {fitted_row, 1, 0.5}});
  all.rows[2].failure = "was killed by SIGSEGV";
  EXPECT_EQ(answer_of({all}, true, fit_goal::memory).verdict, fit_verdict::keep_default);
}

// Two mallocs that are the same, and others beside them, in noise of 3 %, a thousand times.
TEST(proof, of_equal_mallocs_hardly_any_is_said_to_gain) {
  unsigned claims = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const comparison all = measured({{"glibc", 1, 1, 0.03},
                                     {default_row, 1, 1, 0.03},
                                     {fitted_row, 1, 1, 0.03},
                                     {"jemalloc", 1, 1, 0.03},
                                     {"mimalloc", 1, 1, 0.03}},
                                    7, seed);
    claims += answer_of({all}, true, fit_goal::both).verdict != fit_verdict::keep_default ? 1 : 0;
  }
  EXPECT_LE(claims, 25U);
}

}  // namespace
}  // namespace heapwright::tool
