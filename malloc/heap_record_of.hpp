// What of the heap stands in the record of a process (process_record.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include <heapwright/core/text.hpp>
#include <heapwright/heap/class_table.hpp>
#include <heapwright/malloc/process_record.hpp>

#include "chosen_recipe.hpp"

#define HEAPWRIGHT_NAME_OF(x) HEAPWRIGHT_WORD(x)
#define HEAPWRIGHT_WORD(x) #x

namespace heapwright::process {

/// The record before the process has begun: all that a compiler knows.
template <class Heap>
consteval process_record initial_record() noexcept {
  return {
      .magic = "heapwright 0001",
      .layout = process_record::current_layout,
      .bytes = sizeof(process_record),
      .version = HEAPWRIGHT_VERSION,
      .build = HEAPWRIGHT_BUILD,
      .recipe = "",
      .figures = nullptr,
      .options = "",
      .class_count = 0,
      .class_stride = 0,
      .class_bytes = nullptr,
      .first_of_class = nullptr,
      .page_bytes = heap_page,
      .page_map_bytes_per_page = Heap::page_map_bytes_per_page,
      .values = {.last_span_bytes = chosen_recipe.spans.last.min_bytes,
                 .steps_per_doubling = chosen_recipe.classes.steps_per_doubling,
                 .share_bytes = chosen_recipe.thread_cache.share_bytes,
                 .max_long_bytes = chosen_recipe.thread_cache.max_long_bytes,
                 .max_free_resident = chosen_recipe.pages.max_free_resident,
                 .give_back = chosen_recipe.pages.give_back},
      .places = nullptr,
      .places_bytes = 0,
      .cache_from_thread = 0,
      .samples = nullptr,
  };
}

/// Of the classes that are cut from spans.
inline constexpr auto recorded_class_bytes = [] {
  using classes = class_table<chosen_recipe>;
  std::array<std::uint32_t, classes::cut_end - 1> all{};
  for (unsigned c = 1; c < classes::cut_end; ++c) all[c - 1] = classes::of(c).size;
  return all;
}();

/// Its figures, its classes and the name of its recipe.
template <class Heap>
void record_figures(process_record& record, Heap& heap) noexcept {
  record.class_count = recorded_class_bytes.size();
  record.class_stride = Heap::class_figures_stride;
  record.class_bytes = recorded_class_bytes.data();
  record.first_of_class = &heap.figures_of(1);
  record.figures = &heap.figures();
  text<sizeof(process_record::recipe) - 1> name;
  name.add(HEAPWRIGHT_NAME_OF(HEAPWRIGHT_RECIPE));
  std::memcpy(record.recipe, name.c_str(), name.size() + 1);
}

}  // namespace heapwright::process
