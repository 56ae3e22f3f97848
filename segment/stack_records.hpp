// Finds the stacks of a segment, and adds up what several threads have counted of the same one.
//
// They lie one behind the other, each as long as its depth says: that order finds all of them, also
// in a file that has been cut off. But a stack for which room was taken and that is not yet written
// has no length, and after a fork it may never get one: then the chains lead to those behind it. A
// reference is followed once, and only to what lies within the file.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "segment_file.hpp"
#include "segment_reader.hpp"

namespace heapwright::segment {

inline constexpr std::uint32_t deepest_stack = 512;

class stack_records {
 public:
  enum class which { all, own };  ///< own: without inherited ones, see segment::stack

  stack_records(const segment_file& file, const segment_header& header, which wanted = which::all);

  struct known_stacks {
    std::vector<stack_figures> stacks;  ///< by id
    std::unordered_map<reference, reference> id_of_record;
  };

  [[nodiscard]] known_stacks all();

 private:
  struct record {
    std::uint64_t length;  ///< 0: none can be read
    reference next;
  };

  /// Reads the stack at `id` into `found_`, unless it is there already or is not complete.
  record visit(reference id);
  void follow_chain(reference first);
  static known_stacks merged(std::vector<stack_figures> records);

  const segment_file& file_;
  const segment_header& header_;
  which wanted_;
  std::uint64_t used_;
  record_window window_;
  std::vector<stack_figures> found_;
  std::unordered_map<reference, record> visited_;
  std::unordered_set<reference> followed_;
};

}  // namespace heapwright::segment
