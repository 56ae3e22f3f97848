// Leaks with names, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "function_patterns.hpp"
#include "leak_scan.hpp"
#include "places.hpp"

namespace heapwright::tool {

/// Sites whose named stacks are equal are one here.
struct named_site {
  std::vector<place> stack;  ///< from the program's own frame to main, the innermost first
  bool is_cut = false;
  leak_site figures;          ///< `addresses` are of one of the stacks
  std::string suppressed_by;  ///< pattern; empty: it is not
};

/// Of the bytes: 95 of 100 are nearer to the truth. 0: they are exact.
[[nodiscard]] double error_of(const leak_figures& f);

/// What one process has not freed. Unless all sites are asked for, `sites` are those where
/// something was lost or is not judged: the names of others would take longer than the scan.
struct named_leaks {
  process_leaks leaks;  ///< without sites
  std::vector<named_site> sites;
  // Sums over sites that are not suppressed. Where sites are estimates and none is suppressed,
  // not_judged is what was counted.
  leak_figures lost, indirectly_lost, reachable, not_judged;
  leak_figures suppressed;  ///< what was lost at the others, also indirectly
  std::size_t suppressed_sites = 0;
};

[[nodiscard]] named_leaks named(process_leaks leaks, const function_patterns& suppressed, bool all_sites);

/// One that the probe was not loaded into.
struct unobserved_process {
  pid_t id = 0;
  std::string program;  ///< path; empty: it cannot be read
};

/// What became of a command.
struct command_leaks {
  std::vector<named_leaks> processes;  ///< the command's own first
  std::vector<unobserved_process> unobserved;
  std::vector<std::string> idle_suppressions;  ///< of the command line, by which nothing was suppressed
};

struct report_options {
  bool all = false;        ///< reachable and indirectly lost blocks too
  std::size_t limit = 50;  ///< sites of a process
};

[[nodiscard]] std::string leak_text(const command_leaks& command, const report_options& options);

/// `exit_code`: what `heapwright leaks` ends with. No limit.
[[nodiscard]] std::string leak_json(const command_leaks& command, int exit_code);

}  // namespace heapwright::tool
