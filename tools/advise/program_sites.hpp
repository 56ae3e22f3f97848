// The call sites of a traced program: places in its own code that allocate.
//
// A stack belongs to the site that a person would look at: the first frame that is no wrapper of
// malloc (tools/symbols/allocation_wrappers.hpp). Stacks with the same function, line and type of
// container there are one site, however they differ further out: the nodes of a map and the strings
// in them are allocated at one line, and live differently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "function_patterns.hpp"
#include "plan_builder.hpp"

namespace heapwright::tool {

struct program_site {
  std::string function, file;  ///< the file is empty where it is not known
  unsigned line = 0;
  std::string module;
  std::string through;        ///< the wrapper that it calls: "std::vector<int>::push_back"; empty: none
  bool is_container = false;  ///< a container of the C++ library allocates for it
  std::string container;      ///< which: "std::vector"; empty: none, or another one
  std::string types;          ///< its template arguments: "<int, std::allocator<int> >"

  /// "build  tree.cpp:12".
  [[nodiscard]] std::string name() const;
};

struct program_sites {
  std::vector<program_site> all;             ///< number 1 first
  std::vector<stack_site> stacks;            ///< by number
  std::vector<std::string> unused_wrappers;  ///< patterns that fit no function of a stack

  [[nodiscard]] const program_site& operator[](std::uint16_t number) const { return all[number - 1U]; }
};

/// Of one process of a trace. Throws `failure`.
program_sites sites_of(const std::string& trace, std::uint32_t process, const function_patterns& wrappers);

}  // namespace heapwright::tool
