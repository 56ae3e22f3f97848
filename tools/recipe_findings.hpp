// Which fields of a recipe govern the memory that a process does not use.
//
// Problem     figures say where the bytes of a heap are. They do not say which field of a recipe
//             changes that.
// Rules       one table, in recipe_findings.cpp: what is seen, from which size on, the fields, what
//             to try. docs/recipes.md shows the same table; a test compares the two. Where the
//             recipe is known to say already what is to be tried, the finding says so in its place.
// Invariant   a pure policy: it is told numbers and answers sentences. A finding has at least the
//             share of RSS and the bytes that its rule asks for, so a small program has none. No
//             finding has more bytes than RSS.
//
// Only libheapwright, and a malloc that `heapwright build` has made, tell these figures. A process
// on another malloc has no findings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heap_reading.hpp"

namespace heapwright::tool {

/// What is known of a process's memory, in bytes. What is not known is 0.
struct recipe_evidence {
  std::uint64_t rss = 0;
  std::uint64_t free_in_spans = 0;
  std::uint64_t thread_caches = 0;
  std::uint64_t free_kept = 0;
  std::uint64_t rounding = 0;
  std::uint64_t records = 0;
  std::uint64_t huge_excess = 0;   ///< in memory only because of huge pages that the heap has asked for
  std::uint64_t not_resident = 0;  ///< of the above, never touched or swapped out
  std::uint64_t threads = 0;       ///< that have a cache; a count
  std::uint64_t in_use = 0;        ///< blocks of the program, and of thread caches
  bool ends_by_itself = false;     ///< a command, not a server: near its end it has freed most

  struct room {
    std::uint64_t block_bytes = 0;
    std::uint64_t free = 0;  ///< in the spans of this size class
  };
  std::vector<room> classes;

  std::optional<recipe_values> recipe;  ///< what it says

  /// Takes what the heap itself says: not RSS, thread caches, rounding and huge pages.
  void take(const heap_reading& heap);
};

/// The evidence of a heap in a process without the probe. `anonymous`: the part of `rss` that is
/// anonymous memory.
[[nodiscard]] recipe_evidence evidence_of(const heap_reading& heap, std::uint64_t rss, std::uint64_t anonymous);

struct recipe_finding {
  const char* rule;  ///< its name
  std::uint64_t bytes;
  std::string text;                     ///< a sentence with figures, without a full stop
  std::span<const char* const> fields;  ///< "pages.give_back"
  const char* advice;                   ///< a sentence
  bool is_followed;                     ///< whether the recipe says so already, as the advice tells then

  /// All of it in one line, for a terminal.
  [[nodiscard]] std::string line() const;
};

/// No more than this are of use at once.
inline constexpr std::size_t most_findings = 3;

/// Where the rules are explained.
inline constexpr const char* rules_page = "docs/recipes.md#what-live-and-compare-point-to";

/// The largest first, at most `most_findings`.
[[nodiscard]] std::vector<recipe_finding> find_in(const recipe_evidence& evidence);

/// The rules as the rows of a table in Markdown, for docs/recipes.md.
[[nodiscard]] std::string rules_as_markdown();

}  // namespace heapwright::tool
