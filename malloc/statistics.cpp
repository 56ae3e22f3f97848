#include "statistics.hpp"

#include <unistd.h>

#include <heapwright/core/text.hpp>

#include "process_heap.hpp"

namespace heapwright::process {

statistics collect_statistics() noexcept {
  const heap_figures& f = the_heap.figures();
  statistics s{};
  const cache_type* const mine = this_cache;
  using classes = class_table<chosen_recipe>;
  const std::uint64_t cached_small = mine->cached_bytes(1, classes::cut_end);
  const std::uint64_t cached_whole = mine->cached_bytes(classes::cut_end, classes::count);
  s.cached = cached_small + cached_whole;
  std::uint64_t outside = 0;
  for (unsigned c = 1; c < classes::cut_end; ++c) outside += the_heap.live_blocks(c) * classes::of(c).size;
  // Other threads go on meanwhile; a difference is never allowed to wrap.
  const auto minus = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  s.small_in_use = minus(outside, cached_small);
  s.large_in_use = minus(f.large.get(), cached_whole);
  s.free_in_spans = minus(f.spans.get(), outside);
  s.free_resident = f.free_resident.get();
  s.free_returned = f.free_returned.get();
  s.mapped = f.mapped.get();
  s.mapped_peak = f.mapped_peak.get();
  s.metadata = f.metadata.get();
  s.returned_total = f.returned_total.get();
  s.threads = f.threads.get();
  s.threads_total = f.threads_total.get();
  return s;
}

void write_statistics(int fd) noexcept {
  const statistics s = collect_statistics();
  text<1600> out;
  const auto row = [&](const char* name, std::uint64_t bytes) { out.add("  ").add(name).add_bytes(bytes).add("\n"); };
  out.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "), process ")
      .add(static_cast<std::uint64_t>(::getpid()))
      .add("\n");
  row("mapped                 ", s.mapped);
  row("  blocks in use        ", s.small_in_use + s.large_in_use);
  row("    small              ", s.small_in_use);
  row("    large              ", s.large_in_use);
  row("  this thread's stock  ", s.cached);
  row("  free within spans    ", s.free_in_spans);
  row("  free, in memory      ", s.free_resident);
  row("  free, given back     ", s.free_returned);
  row("metadata               ", s.metadata);
  row("mapped at the peak     ", s.mapped_peak);
  row("given back so far      ", s.returned_total);
  out.add("  threads now ").add(s.threads).add(", ever ").add(s.threads_total).add("\n");
  out.write_to(fd);
}

}  // namespace heapwright::process
