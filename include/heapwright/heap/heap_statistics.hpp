// Where each byte of a heap is, at one moment.
//
//   mapped = in_use + in_caches + free_in_spans + free_resident + free_decommitted      always
//
// While threads go on, what each cache has is seen as of slightly different moments. So in_caches
// is never more than what is outside of spans, and in_use is the rest of that: a sum that is right
// and parts that may be some blocks off, none of them negative.
#pragma once

#include <cstdint>

#include <heapwright/core/text.hpp>

namespace heapwright {

/// What a line about a heap calls it.
[[nodiscard]] constexpr const char* shown_name(const char* name) noexcept {
  return name[0] != '\0' ? name : "(no name)";
}

/// Bytes, but for the threads.
struct heap_statistics {
  const char* name = "";     ///< of the heap
  std::uint64_t mapped = 0;  ///< address space held for blocks
  std::uint64_t in_use = 0;  ///< with the program, rounded up to their classes
  std::uint64_t requested =
      0;  ///< of in_use: what was asked for, where recipe.notes_requests says so; the rest is rounding
  std::uint64_t in_caches = 0;  ///< free, kept by threads for their next request, or on their way back
  std::uint64_t free_in_spans =
      0;  ///< free, in spans of which something is outside, with what is too short for a block
  std::uint64_t free_resident = 0;      ///< free pages, not given back; those never touched are not in memory
  std::uint64_t free_decommitted = 0;   ///< free pages, given back to the system or never touched
  std::uint64_t metadata = 0;           ///< address space reserved for the heap's own records, apart from `mapped`
  std::uint64_t metadata_resident = 0;  ///< about how much of that is in memory
  std::uint64_t mapped_peak = 0;        ///< the most that `mapped` ever was
  std::uint64_t decommitted_total = 0;  ///< given back to the system so far
  std::uint64_t limit =
      0;  ///< that in_use, in_caches, free_in_spans and free_resident together may reach; UINT64_MAX: none
  std::uint64_t huge_reserved_total = 0;     ///< had so far in huge pages that were set aside
  std::uint64_t huge_transparent_total = 0;  ///< had so far in memory that the system may back by huge pages
  std::uint64_t locked_total = 0;            ///< had so far in locked pages
  std::uint64_t bound_total = 0;             ///< had so far from the recipe's NUMA node
  std::uint64_t huge_excess = 0;    ///< of free_decommitted: in memory all the same, as huge pages are there as a whole
  std::uint64_t threads = 0;        ///< that have a cache
  std::uint64_t threads_total = 0;  ///< that ever had one

  /// One JSON object, as the members are called here.
  template <std::size_t N>
  void write_json(text<N>& to) const noexcept {
    to.add("{\"name\": \"");
    for (const char* c = name; *c != '\0'; ++c) {
      if (*c == '"' || *c == '\\') to.add("\\");
      const char one[2] = {static_cast<unsigned char>(*c) < 0x20 ? ' ' : *c, '\0'};
      to.add(one);
    }
    to.add("\"");
    const auto add = [&](const char* key, std::uint64_t value) { to.add(", \"").add(key).add("\": ").add(value); };
    add("mapped", mapped);
    add("in_use", in_use);
    add("requested", requested);
    add("in_caches", in_caches);
    add("free_in_spans", free_in_spans);
    add("free_resident", free_resident);
    add("free_decommitted", free_decommitted);
    add("metadata", metadata);
    add("metadata_resident", metadata_resident);
    add("mapped_peak", mapped_peak);
    add("decommitted_total", decommitted_total);
    add("limit", limit);
    add("huge_reserved_total", huge_reserved_total);
    add("huge_transparent_total", huge_transparent_total);
    add("locked_total", locked_total);
    add("bound_total", bound_total);
    add("huge_excess", huge_excess);
    add("threads", threads);
    add("threads_total", threads_total);
    to.add("}");
  }
};

}  // namespace heapwright
