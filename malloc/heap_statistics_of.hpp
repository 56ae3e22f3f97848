// What the figures of a process's heap and a census of it say, as statistics of a malloc.
#pragma once

#include <heapwright/heap/census.hpp>
#include <heapwright/malloc/process_report.hpp>

namespace heapwright::process {

/// `taken`: of a census.
template <class Heap, class Taken>
[[nodiscard]] malloc_statistics statistics_of(Heap& heap, const Taken& taken) noexcept {
  const heap_figures& f = heap.figures();
  malloc_statistics s{};
  s.mapped = f.mapped.get();
  s.mapped_peak = f.mapped_peak.get();
  s.small_in_use = taken.in_use_in_spans;
  s.large_in_use = taken.in_use_large;
  s.cached = taken.in_caches;
  s.free_in_spans = taken.free_in_spans;
  s.free_resident = f.free_resident.get();
  s.free_decommitted = f.free_decommitted.get();
  s.metadata_reserved = f.metadata.get();
  s.metadata_resident = resident_metadata(f.metadata, f.page_map, f.spans / heap_page * Heap::page_map_bytes_per_page);
  s.decommitted_total = f.decommitted_total.get();
  s.threads = f.threads.get();
  s.threads_total = f.threads_total.get();
  return s;
}

}  // namespace heapwright::process
