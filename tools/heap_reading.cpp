#include "heap_reading.hpp"

namespace heapwright::tool {

std::uint64_t heap_reading::outside() const noexcept {
  std::uint64_t bytes = large;
  for (const class_reading& c : classes) bytes += c.outside * c.block_bytes;
  return bytes;
}

std::uint64_t heap_reading::free_in_spans() const noexcept {
  const std::uint64_t used = outside() - large;
  return spans > used ? spans - used : 0;
}

std::optional<heap_reading> read_heap(const heap_record& of) {
  heap_figures f;
  if (!of.read(f)) return std::nullopt;
  const process_record& record = of.what();
  const std::uint64_t pages = record.page_bytes == 0 ? 0 : f.spans / record.page_bytes;
  return heap_reading{.mapped = f.mapped,
                      .spans = f.spans,
                      .large = f.large,
                      .free_resident = f.free_resident,
                      .free_decommitted = f.free_decommitted,
                      .metadata = f.metadata,
                      .page_map = f.page_map,
                      .page_map_of_spans = pages * record.page_map_bytes_per_page,
                      .decommitted_total = f.decommitted_total,
                      .huge_asked = f.huge_reserved_total + f.huge_transparent_total,
                      .threads = f.threads,
                      .classes = of.read_classes(),
                      .recipe = record.values};
}

}  // namespace heapwright::tool
