#include "malloc_mappings.hpp"

#include "mapping_table.hpp"
#include "observer.hpp"

namespace heapwright::probe {

using namespace segment;

constinit malloc_mappings the_mappings;

void malloc_mappings::add(const void* p, std::size_t bytes) noexcept {
  if (!add_range(the_segment->malloc_mappings, reinterpret_cast<std::uintptr_t>(p), bytes))
    the_segment->lost_mappings.fetch_add(1, relaxed);
}

void malloc_mappings::remove(const void* p, std::size_t bytes) noexcept {
  if (!remove_range(the_segment->malloc_mappings, reinterpret_cast<std::uintptr_t>(p), bytes))
    the_segment->lost_mappings.fetch_add(1, relaxed);
}

void malloc_mappings::copy(const segment_header& from, segment_header& to) noexcept {
  for (std::size_t i = 0; i < from.malloc_mappings.size(); ++i) {
    to.malloc_mappings[i].begin.store(from.malloc_mappings[i].begin.load(relaxed), relaxed);
    to.malloc_mappings[i].bytes.store(from.malloc_mappings[i].bytes.load(relaxed), relaxed);
  }
  to.lost_mappings.store(from.lost_mappings.load(relaxed), relaxed);
}

}  // namespace heapwright::probe
