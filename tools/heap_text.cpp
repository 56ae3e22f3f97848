#include "heap_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "quantities.hpp"

namespace heapwright::tool {
namespace {

std::string size_text(std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); }

}  // namespace

std::vector<std::string> lines_of_heap(const heap_reading& of) {
  return {fmt::format("mapped {}   free in spans {}   free, not given back {}   free, given back or new {}",
                      size_text(of.mapped), size_text(of.free_in_spans()), size_text(of.free_resident),
                      size_text(of.free_decommitted)),
          fmt::format("records of the heap {} ({} reserved)", size_text(of.records()), size_text(of.metadata)),
          "outside: blocks with the program, or kept by its threads"};
}

std::vector<std::string> lines_of_classes(const heap_reading& of) {
  std::vector<class_reading> classes = of.classes;
  std::sort(classes.begin(), classes.end(),
            [](const class_reading& a, const class_reading& b) { return a.span_bytes > b.span_bytes; });
  std::vector<std::string> lines{
      fmt::format("{:>12} {:>12} {:>12} {:>12}", "block size", "outside", "bytes", "in spans")};
  for (const class_reading& c : classes) {
    if (c.span_bytes == 0) break;
    lines.push_back(fmt::format("{:>12} {:>12} {:>12} {:>12}", c.block_bytes,
                                show_count(static_cast<double>(c.outside)), size_text(c.outside * c.block_bytes),
                                size_text(c.span_bytes)));
  }
  return lines;
}

}  // namespace heapwright::tool
