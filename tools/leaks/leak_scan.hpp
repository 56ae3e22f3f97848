// What a process has not freed, by call stack, and what of it was lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process_tracer.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

struct leak_figures {
  std::uint64_t bytes = 0;  ///< malloc_usable_size's
  double blocks = 0;        ///< whole, unless estimated from samples
  double variance = 0;      ///< of the bytes; 0: they are exact
  double unseen = 0;        ///< what a sample may stand for that was not seen, in bytes

  leak_figures& operator+=(const leak_figures& o) noexcept {
    bytes += o.bytes;
    blocks += o.blocks;
    variance += o.variance;
    unseen = std::max(unseen, o.unseen);
    return *this;
  }
  bool operator==(const leak_figures&) const = default;
};

/// What was allocated at one call stack and not freed.
struct leak_site {
  std::vector<std::uint64_t> addresses;  ///< return addresses, the innermost first
  bool is_cut = false;
  leak_figures lost;
  leak_figures lost_with_these;  ///< allocated here or elsewhere, reachable only from blocks that were lost here
  leak_figures indirectly_lost;  ///< allocated here, reachable only from lost blocks
  leak_figures reachable;
  leak_figures not_judged;  ///< not freed; the process's memory was not looked at
};

struct process_leaks {
  segment::snapshot figures;  ///< of the segment, at the end
  std::vector<leak_site> sites;
  std::optional<int> status;         ///< how the process ended, as waitpid tells it
  std::string not_judged;            ///< why lost is not told from reachable; empty: it is
  bool is_estimate = false;          ///< from samples
  double unseen = 0;                 ///< as in leak_figures, of all sites together
  std::uint64_t unknown_blocks = 0;  ///< of which there is no record
};

/// False: the process ends as a program that the probe is not loaded into, so that nothing is known
/// of it.
[[nodiscard]] bool has_probe(const ending_process& process);

/// Of a process at its end. Nothing where the probe has not seen it, or where it has allocated
/// nothing since it was forked. Blocks that a child has inherited are not the child's leaks.
[[nodiscard]] std::optional<process_leaks> scan(const ending_process& process);

/// What a segment tells alone. Throws segment::bad_segment.
[[nodiscard]] process_leaks unfreed_in(const std::filesystem::path& segment);

}  // namespace heapwright::tool
