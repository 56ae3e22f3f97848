// The three views of one comparison: what they must show, and what must not escape them.
#include "comparison.hpp"
#include "quantities.hpp"
#include "terminal.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

measurement took(double wall) { return {wall, wall, 0, 1024 * 1024, 512 * 1024, 100, 0}; }

comparison example() {
  comparison all{{"true"}, "2026-01-01T00:00:00+0000", {"cpu", 2, 1u << 30, "Linux", "glibc"}, 3, 0.03, {}, 0, {}, 0};
  all.rows.push_back({{"glibc", ""}, "", {took(1), took(1.1), took(0.9)}, "", ""});
  all.rows.push_back({{"fast", "/lib/fast.so"}, "", {took(0.5), took(0.55), took(0.45)}, "", ""});
  all.rows.push_back({{"broken", "/lib/broken.so"}, "", {}, "was killed by SIGSEGV", ""});
  return all;
}

TEST(views, the_table_shows_ratio_sameness_and_failure) {
  const std::string table = table_view(example(), false);
  EXPECT_NE(table.find("0.50 (0.50-0.50)"), std::string::npos) << table;
  EXPECT_NE(table.find("same (1.00-1.00)"), std::string::npos) << table;
  EXPECT_NE(table.find("was killed by SIGSEGV"), std::string::npos) << table;
  EXPECT_EQ(table.find('\033'), std::string::npos) << "colour was not asked for";
}

TEST(views, the_verdict_is_a_sentence) {
  comparison all = example();
  EXPECT_EQ(verdict_on(all, all.rows[0]), "");
  EXPECT_EQ(verdict_on(all, all.rows[1]), "fast takes the same memory and 50 % less time than glibc");
  EXPECT_EQ(verdict_on(all, all.rows[2]), "");
  const auto with = [&](const char* name, std::vector<measurement> rounds) {
    all.rows.push_back({{name, ""}, "", std::move(rounds), "", ""});
    return verdict_on(all, all.rows.back());
  };
  EXPECT_EQ(with("slow", {took(3), took(3.3), took(2.7)}),
            "slow takes the same memory and 3.0 times the time of glibc");
  EXPECT_EQ(with("odd", {took(1), took(1.2), took(0.8)}),
            "odd takes the same memory as glibc; its time is unclear, about 66 rounds would tell");
  EXPECT_EQ(with("wild", {took(1), took(9), took(0.1)}),
            "wild takes the same memory as glibc; its time is unclear, more than 1000 rounds would tell");
}

TEST(views, what_is_unclear_is_told_together) {
  comparison all = example();
  all.server =
      server_plan{"driver", {6379, ""}, 0, 10, {driver_figure("SET/s:higher=(.*)"), driver_figure("GET/s=(.*)")}};
  const double factors[] = {1, 1.2, 0.8};
  for (comparison_row& row : all.rows) {
    for (std::size_t i = 0; i < row.rounds.size(); ++i) {
      const double factor = row.who.name == "fast" ? factors[i] : 1;
      row.rounds[i] = took(factor);
      row.rounds[i].steady_rss = 1;
      row.rounds[i].driver_figures = {100 * factor, 8 / factor};
    }
  }
  EXPECT_EQ(verdict_on(all, all.rows[1]),
            "fast takes the same memory and the same steady memory as glibc; its time, SET/s and GET/s are unclear, "
            "about 369 rounds would tell all");
}

TEST(views, a_wide_interval_does_not_move_columns) {
  comparison all = example();
  all.rows[1].rounds = {took(1), took(90000), took(0.001)};
  const std::string table = table_view(all, false);
  const auto line_of = [&](const char* text) {
    const auto line = table.rfind('\n', table.find(text)) + 1;
    return table.substr(line, table.find('\n', line) - line);
  };
  const std::string titles = line_of("wall time"), ratios = line_of("unclear (0.00-");
  const auto second = ratios.find("unclear", ratios.find("unclear") + 1);
  EXPECT_EQ(titles.find("CPU time"), second) << table;
  EXPECT_EQ(titles.find("peak RSS"), ratios.find("same")) << table;
}

TEST(views, a_narrow_terminal_gets_one_figure_to_a_line) {
  const comparison all = example();
  const std::string wide = table_view(all, false);
  std::size_t needed = 0;
  for (std::size_t at = wide.find("\n   "), end = 0; at != std::string::npos; at = wide.find("\n   ", end)) {
    end = wide.find('\n', at + 1);
    needed = std::max(needed, end - at - 1);
  }
  EXPECT_EQ(table_view(all, false, 200), wide);
  const std::string narrow = table_view(all, false, static_cast<unsigned>(needed) - 1);
  EXPECT_NE(narrow.find("\nglibc\n  wall time    1.00 s\n  CPU time     1.00 s\n  peak RSS     1.0 MiB\n"),
            std::string::npos)
      << narrow;
  EXPECT_NE(narrow.find("\nfast\n  wall time    500 ms   0.50 (0.50-0.50)\n"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("\nbroken\n  was killed by SIGSEGV\n"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("; behind them the ratio to glibc"), std::string::npos) << narrow;
  const std::string coloured = table_view(all, true, 80);
  EXPECT_NE(coloured.find("  \033[1;32m500 ms"), std::string::npos) << coloured;
}

TEST(views, one_round_has_no_ratio_and_no_legend_of_one) {
  comparison all = example();
  all.rounds = 1;
  for (comparison_row& row : all.rows) row.rounds.resize(std::min<std::size_t>(row.rounds.size(), 1));
  const std::string table = table_view(all, false);
  EXPECT_NE(table.find("\nOne round: no ratio to glibc, which needs two.\n"), std::string::npos) << table;
  for (const char* const word : {"Medians", "confidence", "unclear"})
    EXPECT_EQ(table.find(word), std::string::npos) << table;
}

TEST(views, the_program_as_built_is_no_name) {
  comparison all = example();
  all.rows[1].who.name = "as built";
  EXPECT_EQ(verdict_on(all, all.rows[1]), "as built, it takes the same memory and 50 % less time than glibc");
  all.baseline = 1;
  EXPECT_EQ(verdict_on(all, all.rows[0]), "glibc takes the same memory and 2.0 times the time of the program as built");
}

TEST(views, a_line_is_cut_to_the_terminal) {
  EXPECT_EQ(cut_to_columns("[5/9] round 1: heapwright, about 0 s left", 0),
            "[5/9] round 1: heapwright, about 0 s left");
  EXPECT_EQ(cut_to_columns("[5/9] round 1: heapwright, about 0 s left", 40), "[5/9] round 1: heapwright, about 0 s le");
  EXPECT_EQ(cut_to_columns("short", 40), "short");
  EXPECT_EQ(cut_to_columns("\xC3\xA4\xC3\xB6\xC3\xBC", 3), "\xC3\xA4\xC3\xB6") << "between characters";
  EXPECT_EQ(cut_to_columns("\xFF\xFF\xFF", 3), "\xFF\xFF");
}

TEST(views, figures_of_a_driver_are_higher_or_lower_and_known_to_be_better_or_worse) {
  comparison all = example();
  all.server =
      server_plan{"driver", {6379, ""}, 0, 10, {driver_figure("rate:higher=(.*)"), driver_figure("delay=(.*)")}};
  for (comparison_row& row : all.rows) {
    const double factor = row.who.name == "fast" ? 1.5 : 1;
    for (measurement& m : row.rounds) {
      m.steady_rss = m.end_rss;
      m.driver_figures = {100 * factor, 8 / factor};
    }
  }
  EXPECT_EQ(
      verdict_on(all, all.rows[1]),
      "fast takes the same memory, the same steady memory and 50 % less time than glibc; its rate is 50 % higher; "
      "its delay is 33 % lower");
  const std::string table = table_view(all, true);
  for (const char* const best : {"\033[1;32m150 ", "\033[1;32m5.333 "})
    EXPECT_NE(table.find(best), std::string::npos) << best << table;
  EXPECT_NE(table.find("steady RSS"), std::string::npos) << table;
  EXPECT_EQ(table.find("RSS at end"), std::string::npos) << table;
}

TEST(views, findings_of_both_moments_are_told_once_the_largest_first) {
  constexpr std::uint64_t MiB = 1 << 20;
  run_result ran;
  const auto evidence = [](std::uint64_t rss, std::uint64_t kept, std::uint64_t cached) {
    recipe_evidence e;
    e.rss = rss;
    e.free_kept = kept;
    e.thread_caches = cached;
    return e;
  };
  ran.heap_at_peak = evidence(200 * MiB, 80 * MiB, 0);
  ran.heap_at_end = evidence(100 * MiB, 70 * MiB, 20 * MiB);
  const auto found = findings_of(ran, false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_STREQ(found[0].when, "at its end");
  EXPECT_EQ(found[0].what.bytes, 70 * MiB);
  EXPECT_STREQ(found[1].what.rule, "thread_caches");
  EXPECT_STREQ(findings_of(ran, true)[0].when, "when the driver has ended");
  comparison all = example();
  all.rows[1].findings = found;
  EXPECT_NE(table_view(all, false).find("\nfast, at its end: 70 % of RSS, 70.0 MiB, is free pages"), std::string::npos);
}

TEST(views, ratios_are_to_the_baseline) {
  comparison all = example();
  all.baseline = 1;
  EXPECT_EQ(verdict_on(all, all.rows[0]), "glibc takes the same memory and 2.0 times the time of fast");
  EXPECT_EQ(verdict_on(all, all.rows[1]), "");
}

TEST(views, json_has_no_figures_for_a_failed_row) {
  const comparison all = example();
  EXPECT_TRUE(summarise(all, all.rows[1], metrics_of(all)[0]));
  EXPECT_FALSE(summarise(all, all.rows[2], metrics_of(all)[0]));
}

TEST(views, no_command_can_break_out_of_the_page) {
  comparison all = example();
  const std::string without = page_view(all);
  all.command = {"</script><script>alert(1)</script>", "<!--", "\xff\xfe not UTF-8"};
  const std::string with = page_view(all);
  const auto count = [](const std::string& text, const std::string& part) {
    unsigned n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count(with, "</script>"), count(without, "</script>"));
  EXPECT_EQ(count(with, "<!--"), count(without, "<!--"));
  EXPECT_NE(with.find("\\u003c/script>"), std::string::npos);
}

TEST(views, the_page_needs_nothing_from_outside) {
  const std::string page = page_view(example());
  for (const char* const reference : {"src=", "href=", "@import", "url("})
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
}

TEST(views, quantities_are_shown_as_a_person_writes_them) {
  EXPECT_EQ(show_count(0), "0");
  EXPECT_EQ(show_count(1234567), "1,234,567");
  EXPECT_EQ(show_count_of(1, "block"), "1 block");
  EXPECT_EQ(show_count_of(2048, "block"), "2,048 blocks");
  EXPECT_EQ(show_number(0.012345), "0.01235");
  EXPECT_EQ(show_number(123456.7), "123,457");
  EXPECT_EQ(show_bytes(1024), "1 KiB");
  EXPECT_EQ(show_bytes(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(show_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(show_seconds(12.345), "12.35 s");
}

}  // namespace
}  // namespace heapwright::tool
