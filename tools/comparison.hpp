// What a comparison found: the model that the table, the JSON and the page are three views of.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocators.hpp"
#include "measured_run.hpp"
#include "server_run.hpp"
#include "statistics.hpp"

namespace heapwright::tool {

/// What the heap of a row's largest process shows of its recipe.
struct row_finding {
  const char* when;  ///< "at its peak", "at its end"
  recipe_finding what;
};

struct comparison_row {
  allocator who;
  std::string remark;  ///< what makes the row special: "brings libjemalloc.so.2"
  std::vector<measurement> rounds;
  std::string failure;                  ///< why there are no figures; empty if there are
  std::string difference;               ///< how the output differed from glibc's; empty if it did not
  std::vector<row_finding> findings{};  ///< of the run to warm up, on libheapwright alone
};

struct machine_description {
  std::string processor;
  unsigned cores;
  std::uint64_t memory_bytes;
  std::string kernel;
  std::string libc;

  static machine_description of_this_one();
};

/// Now, ISO 8601.
std::string local_time();

struct comparison {
  std::vector<std::string> command;
  std::string started;  ///< local time, ISO 8601
  machine_description machine;
  unsigned rounds = 0;               ///< that are complete
  double tolerance = 0;              ///< from which a ratio is a difference that matters: 0.03
  std::vector<comparison_row> rows;  ///< glibc is the first
  std::size_t baseline = 0;          ///< the row that ratios are to
  std::vector<std::string> notes;
  int interrupted_by = 0;               ///< the signal that ended it before all rounds that were asked for
  std::optional<server_plan> server{};  ///< if the command is a server with a driver

  [[nodiscard]] const comparison_row& base() const { return rows[baseline]; }
};

/// One measured property, and how to show it.
struct metric {
  std::string key;
  std::string title;
  std::string noun;  ///< in a verdict; empty if verdicts leave it out
  std::function<double(const measurement&)> value;
  std::string (*show)(double);
  bool is_from_driver = false;
  bool higher_is_better = false;
};
/// Those of the comparison's command, in the order in which they are shown.
std::vector<metric> metrics_of(const comparison& all);

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

/// Of what a run has seen of a heap, the largest first. What is so at the end is told of the end,
/// though it was so at the peak too.
std::vector<row_finding> findings_of(const run_result& ran, bool is_server);

/// `terminal_columns`: of the terminal that shows it; 0: there is none, any width will do.
std::string table_view(const comparison& all, bool colour, unsigned terminal_columns = 0);
std::string json_view(const comparison& all);
std::string page_view(const comparison& all);

}  // namespace heapwright::tool
