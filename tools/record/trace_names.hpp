// Names for the call stacks of a trace, after its program has ended.
//
// A trace has addresses, and the files that were mapped there. It names them when its process ends
// or from time to time, so behind the stacks: the trace is read once for them. Names are those of
// the files as they are now; one that was built anew since has other functions at these addresses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "function_patterns.hpp"
#include "places.hpp"
#include "segment_reader.hpp"
#include "trace.hpp"

namespace heapwright::tool {

class trace_names {
 public:
  /// `wrappers`: functions that allocate for others, beside those that are known. Throws
  /// trace::bad_trace.
  explicit trace_names(const std::string& file, const function_patterns& wrappers = {});

  /// Numbers in the book of its process, the innermost first.
  [[nodiscard]] std::vector<std::uint32_t> places_of(const trace::stack& s);

  [[nodiscard]] places_book& book(std::uint32_t process) { return named(process).book; }

 private:
  struct named_process {
    explicit named_process(const function_patterns& wrappers) : book(wrappers) { figures.codes = codes; }

    /// Of which only the modules, the codes and the interpreter are known, and the process's id.
    segment::snapshot figures;
    std::shared_ptr<segment::interpreted_codes> codes =
        std::make_shared<segment::interpreted_codes>();  ///< figures has it too
    places_book book;
  };

  named_process& named(std::uint32_t process);

  function_patterns wrappers_;
  std::map<std::uint32_t, named_process> processes_;
};

}  // namespace heapwright::tool
