// Replays of one plan, each a process of its own: what heapwright-replayer measures, into the rows
// of a report. A replay must be seen to run on the malloc that it was given.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "awaited_signals.hpp"
#include "replay_report.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

class replay_runs {
 public:
  /// Told the name of a malloc before each run under it.
  using progress = std::function<void(const std::string&)>;

  /// The program that replays. Throws `failure` if it is not there.
  [[nodiscard]] static std::string replayer();

  /// Both must outlive it. `plan`: of rows that have none of their own.
  replay_runs(const scratch_file& plan, const awaited_signals& signals);

  /// In turns, once: fills in the row's memory, or its failure.
  void measure_memory(replay_row& row) const;

  /// At full speed, each row once, in the order of this round: adds a time to each, or its failure.
  /// Rows that have failed are left out.
  void measure_time(std::vector<replay_row>& rows, unsigned round, const progress& told) const;

  /// In turns under callgrind, each row once: fills in its instructions, or its failure.
  void count_instructions(std::vector<replay_row>& rows, const progress& told) const;

  /// Throws `failure` if what counts instructions is not there.
  static void check_valgrind();

 private:
  struct figures;

  bool run(replay_row& row, const char* how, figures& into) const;
  bool count(replay_row& row, const char* how, std::uint64_t& instructions) const;
  [[nodiscard]] std::uint64_t own_time(const scratch_file* plan) const;

  std::string replayer_, plan_;
  const awaited_signals& signals_;
};

}  // namespace heapwright::tool
