// What a replay found: the model that the table, the JSON and the page are views of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocators.hpp"
#include "plan_builder.hpp"
#include "scratch_file.hpp"
#include "statistics.hpp"

namespace heapwright::tool {

/// The memory of a replay, between two operations.
struct memory_moment {
  std::uint64_t at_ns;  ///< in the recording
  std::uint64_t live;   ///< bytes that were asked for and not freed
  std::uint64_t bytes;  ///< anonymous, less what there was before the first operation
};

/// One replay at full speed.
struct replay_time {
  double allocator_seconds;  ///< processor time, less that of a replay that calls no malloc
  double wall_seconds;
};

struct replay_row {
  allocator who;
  const scratch_file* plan = nullptr;    ///< of this row alone; null: that of all rows
  std::string failure{};                 ///< why there are no figures; empty if there are
  std::vector<memory_moment> moments{};  ///< empty: memory was not asked for
  std::uint64_t final_bytes = 0;
  std::uint64_t page_faults = 0;                ///< of the replay in turns, or else of the last one
  std::optional<std::uint64_t> memory_calls{};  ///< system calls for memory, of the replay in turns
  std::optional<std::uint64_t> instructions{};  ///< in malloc
  std::vector<replay_time> rounds{};

  /// Whether something of it was measured.
  [[nodiscard]] bool has_run() const noexcept { return !moments.empty() || !rounds.empty(); }
  [[nodiscard]] const memory_moment* peak() const noexcept;  ///< null: there is none
  /// The most that was live while memory was within a hundredth of its peak; bytes.
  [[nodiscard]] std::uint64_t live_at_peak() const noexcept;
  [[nodiscard]] double mean_bytes() const noexcept;     ///< over the time of the recording
  [[nodiscard]] std::optional<double> seconds() const;  ///< the median of allocator_seconds
  [[nodiscard]] std::optional<double> wall_seconds() const;
};

struct replay_report {
  std::string trace;
  traced_process process;
  plan_summary plan;
  std::vector<replay_row> rows;  ///< glibc is the first
  unsigned rounds = 0;           ///< that are complete
  double tolerance = 0.03;       ///< from which a ratio is a difference that matters
  std::vector<std::string> notes;
  int interrupted_by = 0;

  /// What the program itself had at most, while it was recorded; 0: it was not looked at.
  [[nodiscard]] std::uint64_t recorded_peak() const noexcept;

  /// By how much the replay's peak differs from the recorded one's, as a part of that, on the
  /// malloc that was recorded. Nothing where one of them is not known.
  [[nodiscard]] std::optional<double> prediction_error() const;

  /// Why prediction_error is not known, as a sentence; empty: it is, or no memory was asked for.
  [[nodiscard]] std::string why_no_prediction() const;

  /// Of a row's time in the allocator to that of the first row.
  [[nodiscard]] std::optional<ratio_estimate> time_ratio(const replay_row& row) const;

  /// Null: the malloc of the recording was not replayed.
  [[nodiscard]] const replay_row* row_of_recording() const;
};

/// `terminal_columns`: of the terminal that shows it; 0: there is none, any width will do.
std::string table_view(const replay_report& all, bool colour, unsigned terminal_columns = 0);
std::string json_view(const replay_report& all);
std::string page_view(const replay_report& all);

}  // namespace heapwright::tool
