// What a comparison found: the model that the table, the JSON and the page are three views of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "allocators.hpp"
#include "measured_run.hpp"
#include "statistics.hpp"

namespace heapwright::tool {

struct comparison_row {
  allocator who;
  std::string remark;  ///< what makes the row special: "brings libjemalloc.so.2"
  std::vector<measurement> rounds;
  std::string failure;     ///< why there are no figures; empty if there are
  std::string difference;  ///< how the output differed from glibc's; empty if it did not
};

struct machine_description {
  std::string processor;
  unsigned cores;
  std::uint64_t memory_bytes;
  std::string kernel;
  std::string libc;

  static machine_description of_this_one();
};

struct comparison {
  std::vector<std::string> command;
  std::string started;  ///< local time, ISO 8601
  machine_description machine;
  unsigned rounds;                   ///< that are complete
  double tolerance;                  ///< from which a ratio is a difference that matters: 0.03
  std::vector<comparison_row> rows;  ///< glibc is the first
  std::size_t baseline = 0;          ///< the row that ratios are to
  std::vector<std::string> notes;
  int interrupted_by = 0;  ///< the signal that ended it before all rounds that were asked for

  [[nodiscard]] const comparison_row& base() const { return rows[baseline]; }
};

/// One measured property, and how to show it.
struct metric {
  const char* key;
  const char* title;
  double (*value)(const measurement&);
  std::string (*show)(double);
};
std::string show_seconds(double value);
std::string show_bytes(double value);
std::string show_count(double value);

inline constexpr metric metrics[] = {
    {"wall_seconds", "wall time", [](const measurement& m) { return m.wall_seconds; }, show_seconds},
    {"cpu_seconds", "CPU time", [](const measurement& m) { return m.user_seconds + m.system_seconds; }, show_seconds},
    {"peak_rss_bytes", "peak RSS", [](const measurement& m) { return static_cast<double>(m.peak_rss); }, show_bytes},
    {"end_rss_bytes", "RSS at end", [](const measurement& m) { return static_cast<double>(m.end_rss); }, show_bytes},
    {"page_faults", "page faults",
     [](const measurement& m) { return static_cast<double>(m.minor_faults + m.major_faults); }, show_count},
};

struct summary {
  double median;
  std::optional<ratio_estimate> to_baseline;  ///< nothing for the baseline itself, and where no interval exists
};

/// More than these, `compare` does not do.
inline constexpr unsigned most_rounds = 1000;

/// Nothing for a row that failed.
std::optional<summary> summarise(const comparison& all, const comparison_row& row, const metric& property);

/// What a row says of the program in a sentence: "heapwright takes 12-15 % less memory than glibc,
/// and the same time". Empty where there is nothing to say: the baseline, a row that failed, a
/// single round.
std::string verdict_on(const comparison& all, const comparison_row& row);

std::string table_view(const comparison& all, bool colour);
std::string json_view(const comparison& all);
std::string page_view(const comparison& all);

}  // namespace heapwright::tool
