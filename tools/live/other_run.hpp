// Another run of a program, whose stacks a process's are compared with.
//
// Addresses and stacks have other numbers there: stacks are the same if their functions have the
// same names, in files of code of the same names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "places.hpp"
#include "saved_run.hpp"

namespace heapwright::tool {

struct other_stack {
  segment::stack_figures figures;
  std::vector<place> places;  ///< the innermost first
  std::string threads;        ///< the name of those that have allocated
};

struct other_process {
  std::string run;          ///< the name of its file
  std::string interpreter;  ///< places_book::interpreter
  double unseen = 0;        ///< what a sample of a stack that was not seen at all may stand for, in bytes
  std::vector<other_stack> stacks;
};

/// Of each program that ran, the process whose live bytes had the highest peak.
class other_run {
 public:
  /// Throws `failure` if it cannot be read.
  other_run(const std::string& file, const function_patterns& wrappers);

  /// The one to compare a process of this program with: of the same program, or where there is
  /// none, of that with the highest peak.
  [[nodiscard]] std::shared_ptr<const other_process> of_program(const std::string& program) const;

 private:
  std::map<std::string, std::shared_ptr<const other_process>> by_program_;  ///< by the file's name
  std::shared_ptr<const other_process> largest_;
};

}  // namespace heapwright::tool
