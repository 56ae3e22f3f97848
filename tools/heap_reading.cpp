#include "heap_reading.hpp"

#include <cstring>

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

namespace {

/// The smallest blocks first; empty if the process is gone. What the record says are numbers from a
/// stranger.
std::vector<class_reading> read_classes(const process_record& record, const memory_reader& read) {
  constexpr std::size_t most = 255, longest_stride = 4096;
  const std::size_t count = record.class_count, stride = record.class_stride;
  if (count == 0 || count > most || stride < sizeof(class_figures) || stride > longest_stride) return {};
  std::vector<std::uint32_t> block_bytes(count);
  std::vector<std::byte> figures(count * stride);
  // The last one's stride may reach beyond the heap.
  const std::size_t whole = figures.size() - stride + sizeof(class_figures);
  if (!read(record.class_bytes, block_bytes.data(), count * sizeof(std::uint32_t)) ||
      !read(record.first_of_class, figures.data(), whole))
    return {};
  std::vector<class_reading> classes;
  for (std::size_t c = 0; c < count; ++c) {
    class_figures one;
    std::memcpy(&one, figures.data() + c * stride, sizeof one);
    classes.push_back({block_bytes[c], one.outside, one.span_bytes});
  }
  return classes;
}

}  // namespace

std::optional<heap_reading> read_heap(const process_record& record, const memory_reader& read) {
  heap_figures f;
  if (record.figures == nullptr || !read(record.figures, &f, sizeof f)) return std::nullopt;
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
                      .classes = read_classes(record, read),
                      .recipe = record.values};
}

}  // namespace heapwright::tool
