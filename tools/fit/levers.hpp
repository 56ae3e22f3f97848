// Which fields of a recipe may fit a program, and why.
//
// Problem    a blind search over forty fields has no end, and its answer has no reason.
// Rules      one table, in levers.cpp: what is seen of the program, what is changed, what it may
//            gain. docs/fit.md shows the same table; a test compares the two.
// Invariant  a pure policy: it is told numbers and answers candidates, each with its reasons. It
//            promises nothing: a candidate counts when it has been measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "candidate.hpp"
#include "observation.hpp"

namespace heapwright::tool {

enum class fit_goal { time, memory, both, latency };

/// What is known of a program before a recipe is tried.
struct fit_evidence {
  observation does;
  // Of its replay under the default.
  std::uint64_t peak_bytes = 0, live_at_peak = 0, end_bytes = 0;
  std::uint64_t page_faults = 0;
  double malloc_seconds = 0;
  double program_seconds = 0;  ///< processor time of the program itself; 0: not known
};

/// The most promising first.
std::vector<candidate> candidates_for(const fit_evidence& seen, fit_goal goal);

/// What the program does, in sentences.
std::vector<std::string> habits_of(const fit_evidence& seen);

/// The rules as the rows of a table in Markdown, for docs/fit.md.
std::string levers_as_markdown();

}  // namespace heapwright::tool
