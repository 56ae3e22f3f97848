// Call sites: a place in the program's own code that allocates, and the function that calls it.
//
// Stacks that pass through both are one site, however they differ further out and in the wrappers
// of malloc: a person could not tell their rows apart.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "asked_stacks.hpp"

namespace heapwright::tool {

struct call_site {
  segment::stack_figures sum;         ///< of all its stacks; id, addresses and is_cut of the largest
  std::vector<std::uint32_t> places;  ///< of the largest stack, the innermost first
  std::size_t site = 0;               ///< index in `places`
  /// Index of the first place further out in another function, and in one with a name where the
  /// site has none; places.size(): none.
  std::size_t caller = 0;
  measured value;
  std::vector<segment::reference> stacks;  ///< ids, the largest first
  std::set<segment::reference> calls;      ///< first_with_calls of these
};

/// In no order. Sites whose stacks all have a value of 0 are there too. O(stacks * depth).
[[nodiscard]] std::vector<call_site> call_sites(std::vector<asked_stack> stacks, const places_book& book);

/// Of all that the process has.
[[nodiscard]] std::vector<call_site> call_sites(watched_process& process);

/// What to do about modules without names, in one sentence; empty: none has a tenth of the value.
[[nodiscard]] std::string hint_at_symbols(const std::vector<call_site>& sites, const places_book& book);

/// A function without "(anonymous namespace)::", which tells a reader of a table nothing.
[[nodiscard]] std::string short_name(std::string function);

/// "function  file:line", or "function  [module]" where the line is not known.
[[nodiscard]] std::string text_of(const place& p);

/// The site's place and its caller's function, for a line of text.
[[nodiscard]] std::string text_of(const call_site& s, const places_book& book);

/// The same in at most so many characters, if the number of the line alone has no more: it tells
/// sites apart, so that the caller, the function and the file give way to it, in this order.
[[nodiscard]] std::string text_of(const call_site& s, const places_book& book, std::size_t most);

}  // namespace heapwright::tool
