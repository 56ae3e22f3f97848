#include "malloc_mappings.hpp"

#include <algorithm>

#include "observer.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

void add_range(std::uint64_t begin, std::uint64_t bytes) noexcept {
  segment_header& h = *the_segment;
  for (malloc_mapping& m : h.malloc_mappings) {
    std::uint64_t none = 0;
    if (m.begin.load(relaxed) != 0 || !m.begin.compare_exchange_strong(none, begin, relaxed)) continue;
    m.bytes.store(bytes, relaxed);
    return;
  }
  h.lost_mappings.fetch_add(1, relaxed);
}

}  // namespace

constinit malloc_mappings the_mappings;

void malloc_mappings::add(const void* p, std::size_t bytes) noexcept {
  add_range(reinterpret_cast<std::uintptr_t>(p), bytes);
}

void malloc_mappings::remove(const void* p, std::size_t bytes) noexcept {
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(p), end = begin + bytes;
  for (malloc_mapping& m : the_segment->malloc_mappings) {
    const std::uint64_t first = m.begin.load(relaxed), last = first + m.bytes.load(relaxed);
    if (first == 0 || first >= end || last <= begin) continue;
    if (last > end) add_range(end, last - end);
    m.bytes.store(begin > first ? begin - first : 0, relaxed);
    if (begin <= first) m.begin.store(0, relaxed);
  }
}

void malloc_mappings::copy(const segment_header& from, segment_header& to) noexcept {
  for (std::size_t i = 0; i < from.malloc_mappings.size(); ++i) {
    to.malloc_mappings[i].begin.store(from.malloc_mappings[i].begin.load(relaxed), relaxed);
    to.malloc_mappings[i].bytes.store(from.malloc_mappings[i].bytes.load(relaxed), relaxed);
  }
  to.lost_mappings.store(from.lost_mappings.load(relaxed), relaxed);
}

}  // namespace heapwright::probe
