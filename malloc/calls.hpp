// The calls that have led to a place: of an allocation, a free, a mistake.
#pragma once

#include <array>
#include <cstdint>

#include "../unwind/frame.hpp"
#include "misuse_report.hpp"

namespace heapwright::process {

/// All zero is none. Nothing here allocates or takes a lock of the heap; write starts addr2line.
struct calls {
  static constexpr unsigned most = 16;

  std::array<std::uintptr_t, most> at;  ///< return addresses, the innermost first
  unsigned count;
  std::uint64_t thread;

  /// Those of the calling thread that have led to `from`, without libheapwright's own and
  /// the probe's.
  void note(unwind::machine_state from) noexcept;

  /// "  WHAT in thread N:", and a line for each call.
  void write(const char* what, misuse_report& to) const noexcept;
};

}  // namespace heapwright::process
