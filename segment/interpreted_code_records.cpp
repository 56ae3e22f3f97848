#include "interpreted_code_records.hpp"

#include <algorithm>

namespace heapwright::segment {
namespace {

/// A record of this length at most: the probe's own are shorter.
constexpr std::uint64_t longest = std::uint64_t{5} << 20;

}  // namespace

std::shared_ptr<const interpreted_codes> interpreted_code_records::read(const segment_file& file,
                                                                        const segment_header& header) {
  const std::lock_guard hold(mutex_);
  const std::uint64_t used = std::min(header.codes_used.load(relaxed), reference_reach);
  std::shared_ptr<interpreted_codes> more;
  std::string text;
  while (read_bytes_ < used) {
    alignas(interpreted_code) std::byte bytes[sizeof(interpreted_code)];
    const std::uint64_t at = header.codes_at + read_bytes_;
    if (file.read(at, bytes, sizeof bytes) != sizeof bytes) break;
    const auto& record = *reinterpret_cast<const interpreted_code*>(bytes);
    const auto lines = static_cast<line_table>(record.lines.load(std::memory_order_acquire));
    const std::uint64_t text_bytes = std::uint64_t{record.name_bytes} + record.file_bytes + record.table_bytes;
    const std::uint64_t length = interpreted_code_length(record.name_bytes, record.file_bytes, record.table_bytes);
    if (lines == line_table::none || text_bytes > longest || length > used - read_bytes_) break;
    text.resize(text_bytes);
    if (file.read(at + sizeof bytes, text.data(), text_bytes) != text_bytes) break;
    if (!more) more = known_ ? std::make_shared<interpreted_codes>(*known_) : std::make_shared<interpreted_codes>();
    more->insert_or_assign(
        static_cast<reference>(read_bytes_ / reference_unit + 1),
        interpreted_code_figures{text.substr(0, record.name_bytes), text.substr(record.name_bytes, record.file_bytes),
                                 record.first_line, lines, text.substr(record.name_bytes + record.file_bytes)});
    read_bytes_ += length;
  }
  if (more) known_ = std::move(more);
  return known_;
}

}  // namespace heapwright::segment
