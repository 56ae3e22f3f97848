// One run of a command under one preload, measured as a whole process tree and looked into before
// it is gone.
//
// How each figure comes about:
//   wall    from just before exec to the death of the command's first process, less the time for
//           which this tool held it
//   cpu     user + system time that the kernel accounts to every process of the tree, less what
//           came before exec
//   faults  minor and major, likewise
//   memory  the largest of three lower bounds of the true peak:
//           - the sum of the resident sets of the tree at one moment, sampled while it runs. Shared
//             pages count in each process, a peak between two samples is missed, and sampling takes
//             at most 1 % of one core
//           - the high-water mark of the first process, read at its exit: exact, and the whole
//             truth for one process
//           - the kernel's ru_maxrss, the high-water mark of the biggest process of the tree. A
//             child inherits it from the process that forked it, which is this tool. So it counts
//             only where it exceeds what it was just before exec
//   end     the resident sets of the tree, summed, at the exit of the first process: what was not
//           given back by then
//
//   heap    what libheapwright has in its record (heap_record.hpp) of the process that has most
//           memory. It is read from outside at the exit of the first process, and whenever a
//           sample sees that the process has grown by 1/16 since and is not about to free what it
//           has. Reading takes some time, so only the run to warm up does it
//
// The first process is traced (ptrace, its main thread only) to stop at its exit, while its memory
// is still there. Nothing else stops it but signals to the main thread, which the tool passes on.
// Where tracing is forbidden, the samples must do.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "awaited_signals.hpp"
#include "recipe_findings.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

struct measurement {
  double wall_seconds;
  double user_seconds;
  double system_seconds;
  std::uint64_t peak_rss;
  std::uint64_t end_rss;
  std::uint64_t minor_faults;
  std::uint64_t major_faults;
  // Of a server (server_run.hpp) alone.
  std::uint64_t steady_rss = 0;
  std::vector<double> driver_figures{};  ///< in the order in which they were asked for
};

struct job {
  std::vector<std::string> command;
  std::string ld_preload;
  const scratch_file* input;  ///< null for /dev/null
  double timeout_seconds;     ///< 0 for none
  bool reads_heap = false;    ///< of the process with most memory, where it runs on libheapwright
};

/// A process that lived long enough to be looked into.
struct seen_process {
  std::string name;  ///< as ps shows it
  std::string executable;
  std::string malloc;  ///< the file its malloc is in: a library, or the executable itself

  auto operator<=>(const seen_process&) const = default;
};

struct run_result {
  measurement figures{};
  int wait_status = 0;
  bool timed_out = false;
  std::string main_malloc;  ///< whose malloc the first process used, a file; empty if not seen
  std::set<seen_process> seen;
  scratch_file output;
  scratch_file errors;
  // With `reads_heap`.
  std::optional<recipe_evidence> heap_at_peak;  ///< when a sample saw a process at its largest
  std::optional<recipe_evidence> heap_at_end;   ///< when end_rss or steady_rss was taken

  /// "exited with status 3", "was killed by SIGSEGV", "timed out"; empty if all went well.
  [[nodiscard]] std::string trouble() const;
};

/// "exited with status 3", "was killed by SIGSEGV".
std::string describe_status(int wait_status);

/// Runs to the end and leaves no process behind. `signals` has SIGCHLD; another one of them that
/// comes ends the tree, and is thrown as interrupted.
run_result run_measured(const job& what, const awaited_signals& signals);

}  // namespace heapwright::tool
