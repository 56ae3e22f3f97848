// `heapwright diff`: what it can be told.
#pragma once

#include <string>
#include <vector>

#include "function_patterns.hpp"

namespace heapwright::tool {

struct diff_options {
  std::string before, after;         ///< segments
  std::vector<std::string> fail_if;  ///< `peak>+5%`: see diff.cpp
  std::string html;                  ///< file for a snapshot_page of the difference; empty: none
  unsigned sites = 10;               ///< at most so many are listed of each figure
  function_patterns wrappers;        ///< as places_book has them
};

/// 0, or 1 when one of fail_if is so. Throws `failure`.
int diff(const diff_options& options);

}  // namespace heapwright::tool
