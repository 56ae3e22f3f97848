// What a process running on libheapwright tells about itself to whoever looks from outside: `heapwright info PID` finds the
// exported symbol heapwright_process_record in the process's memory and reads it, and the figures it points at, from there.
//
// The record is valid from load to exit, also while the process is stopped or stuck; nothing in it is ever freed.
// `layout` changes whenever a field changes its place or meaning; readers refuse a layout they do not know.
#pragma once

#include <cstdint>

#include <heapwright/core/language.hpp>
#include <heapwright/heap/figures.hpp>

namespace heapwright {

/// What a process tells about itself. All addresses are addresses in that process.
struct process_record {
  static constexpr char expected_magic[16] = "heapwright 0001";  ///< what `magic` is
  static constexpr std::uint32_t current_layout = 4;             ///< what `layout` is in this version

  char magic[16];               ///< expected_magic
  std::uint32_t layout;         ///< current_layout
  std::uint32_t bytes;          ///< sizeof(process_record)
  char version[32];             ///< "0.1.0"
  char build[32];               ///< "release", "checked" or "debug"
  const heap_figures* figures;  ///< address in the process that is described
  char options[1024];           ///< the options in effect, "name=value name=value"; empty until they have been read

  // The size classes that are cut from spans, the smallest blocks first.
  std::uint32_t class_count;            ///< how many there are
  std::uint32_t class_stride;           ///< bytes from the figures of one class to those of the next
  const std::uint32_t* class_bytes;     ///< address of the block sizes
  const class_figures* first_of_class;  ///< address of the first class's figures

  std::uint32_t page_bytes;               ///< of a page of the heap
  std::uint32_t page_map_bytes_per_page;  ///< what the page map takes for each that is in a span
};

}  // namespace heapwright

extern "C" {
/// Exported by libheapwright.so and libheapwright.a.
extern heapwright::process_record heapwright_process_record;
}
