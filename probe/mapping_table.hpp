// Ranges of addresses in shared memory, which others read at any time.
//
// A place is taken by exchanging its address. A range is unmapped once, so one thread at a time
// changes a place.
#pragma once

#include <cstdint>

#include "../segment/segment.hpp"

namespace heapwright::probe {

using segment::relaxed;

/// False: there is no free place.
template <class Places>
[[nodiscard]] bool add_range(Places& places, std::uint64_t begin, std::uint64_t bytes) noexcept {
  for (auto& m : places) {
    std::uint64_t none = 0;
    if (m.begin.load(relaxed) != 0 || !m.begin.compare_exchange_strong(none, begin, relaxed)) continue;
    m.bytes.store(bytes, relaxed);
    return true;
  }
  return false;
}

/// Any part of what was added. False: there was no free place for what is left of a range.
template <class Places>
[[nodiscard]] bool remove_range(Places& places, std::uint64_t begin, std::uint64_t bytes) noexcept {
  const std::uint64_t end = begin + bytes;
  bool has_room = true;
  for (auto& m : places) {
    const std::uint64_t first = m.begin.load(relaxed), last = first + m.bytes.load(relaxed);
    if (first == 0 || first >= end || last <= begin) continue;
    if (last > end) has_room &= add_range(places, end, last - end);
    m.bytes.store(begin > first ? begin - first : 0, relaxed);
    if (begin <= first) m.begin.store(0, relaxed);
  }
  return has_room;
}

}  // namespace heapwright::probe
