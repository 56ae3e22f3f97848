// What the processes of a command on libheapwright have said of themselves at their end
// (heapwright/malloc/process_report.hpp).
//
// They append to a file without a name, which they reach through this process's /proc entry:
// nothing is left behind, whatever becomes of this process or of them. A process that may not look
// into this one (another user's), or is in another /proc, reports nothing.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include <heapwright/malloc/process_report.hpp>

#include "scratch_file.hpp"

namespace heapwright::tool {

class exit_reports {
 public:
  /// Tells what is started from now on, by the environment, where to report. Throws `failure` if
  /// there can be no file.
  exit_reports();

  /// In the order in which the processes have ended.
  [[nodiscard]] std::vector<process_report> read() const;

 private:
  scratch_file file_;
};

/// The last report of a process, as a page; a sentence that there is none where it has none.
/// `died_of`: the signal, or 0. `is_go`: of the program that was started.
[[nodiscard]] std::string page_view(const std::vector<process_report>& all, pid_t process, int died_of, bool is_go);

/// A row for each process, those with the highest peaks first, and their sum. There is at least
/// one.
[[nodiscard]] std::string processes_view(const std::vector<process_report>& all);

}  // namespace heapwright::tool
