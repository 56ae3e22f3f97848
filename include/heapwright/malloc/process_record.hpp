// What a process that runs on libheapwright, or on a malloc of `heapwright build`, tells about
// itself. `heapwright info PID` reads it from outside.
//
// An ELF note in the library, or in the program that libheapwright.a is linked into, says where the
// record is. The note lies in memory with the code: neither the name of the file nor its symbols
// matter, nor whether the file is still there. The record points to the figures.
//
// The record is valid from load to exit, also while the process is stopped or stuck; nothing in it
// is ever freed. `layout` changes whenever a field changes its place or meaning; readers refuse a
// layout they do not know.
#pragma once

#include <cstdint>

#include <heapwright/core/language.hpp>
#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/heap_places.hpp>
#include <heapwright/heap/recipe.hpp>

namespace heapwright {

/// What the recipe of a malloc says in the fields that `heapwright compare` and `live` advise on.
struct recipe_values {
  std::uint64_t last_span_bytes;     ///< spans.last.min_bytes
  std::uint64_t steps_per_doubling;  ///< classes.steps_per_doubling
  std::uint64_t share_bytes;         ///< thread_cache.share_bytes
  std::uint64_t max_long_bytes;      ///< thread_cache.max_long_bytes
  std::uint64_t max_free_resident;   ///< pages.max_free_resident
  give_back_policy give_back;        ///< pages.give_back
};

/// Where guarded samples are. Those of a process are an array; the offsets are from its members.
struct guarded_sample_places {
  const void* first;        ///< the array
  std::uint64_t count;      ///< its length
  std::uint64_t stride;     ///< bytes from one to the next
  std::uint64_t state;      ///< 1 byte: 0 unused, 1 live, 2 freed
  std::uint64_t begin;      ///< 8 bytes: where its guard pages and pages begin
  std::uint64_t bytes;      ///< 8 bytes: of these
  std::uint64_t block;      ///< 8 bytes: where the block begins
  std::uint64_t asked_for;  ///< 8 bytes: of the block
};

/// What a process tells about itself. All addresses are addresses in that process.
struct process_record {
  static constexpr char expected_magic[16] = "heapwright 0001";  ///< what `magic` is
  static constexpr std::uint32_t current_layout = 8;             ///< what `layout` is in this version

  char magic[16];               ///< expected_magic
  std::uint32_t layout;         ///< current_layout
  std::uint32_t bytes;          ///< sizeof(process_record)
  char version[32];             ///< "0.1.0"
  char build[32];               ///< "release", "checked" or "debug"
  char recipe[64];              ///< the name of the recipe that the malloc is made from, as far as it fits
  const heap_figures* figures;  ///< address in the process that is described
  char options[1024];           ///< the options in effect, "name=value name=value"; empty until they have been read

  // The size classes that are cut from spans, the smallest blocks first.
  std::uint32_t class_count;            ///< how many there are
  std::uint32_t class_stride;           ///< bytes from the figures of one class to those of the next
  const std::uint32_t* class_bytes;     ///< address of the block sizes
  const class_figures* first_of_class;  ///< address of the first class's figures

  std::uint32_t page_bytes;               ///< of a page of the heap
  std::uint32_t page_map_bytes_per_page;  ///< what the page map takes for each that is in a span

  recipe_values values;  ///< of the recipe

  // For debuggers: from an address to its block.
  const heap_places* places;             ///< offsets and values
  std::uint64_t places_bytes;            ///< of these and the sizes of classes behind them: a described_heap
  std::int64_t cache_from_thread;        ///< bytes from a thread's pointer to its storage to its pointer to its cache
  const guarded_sample_places* samples;  ///< of guarded samples
};

/// The ELF note that leads to the record.
struct record_note {
  static constexpr char owner[12] = "Heapwright";   ///< with the padding that a note has
  static constexpr std::uint32_t owner_bytes = 11;  ///< of these
  static constexpr std::uint32_t type = 1;          ///< the note's type

  std::int32_t record_from_here;  ///< bytes from this field to the process_record
};

}  // namespace heapwright

extern "C" {
/// Exported by libheapwright.so and libheapwright.a.
extern heapwright::process_record heapwright_process_record;
}
