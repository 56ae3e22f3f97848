#include "interpreted_lines.hpp"

#include <optional>

namespace heapwright::tool {
namespace {

using segment::line_table;

std::uint8_t byte_at(const std::string& table, std::size_t i) { return static_cast<std::uint8_t>(table[i]); }
int signed_at(const std::string& table, std::size_t i) { return static_cast<std::int8_t>(table[i]); }

std::optional<std::int64_t> line_in_3_9(const std::string& table, std::int64_t first, std::uint32_t instruction) {
  std::int64_t line = first;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    at += byte_at(table, i);
    if (at > instruction) break;
    line += signed_at(table, i + 1);
  }
  return line;
}

std::optional<std::int64_t> line_in_3_10(const std::string& table, std::int64_t first, std::uint32_t instruction) {
  constexpr int no_line = -128;
  std::int64_t line = first;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    const int difference = signed_at(table, i + 1);
    if (difference != no_line) line += difference;
    end += byte_at(table, i);
    if (instruction < end) return difference == no_line ? std::nullopt : std::optional(line);
  }
  return std::nullopt;
}

/// Six bits a byte, the lowest first, and a bit for more; the lowest bit of all is the sign.
std::int64_t signed_number(const std::string& table, std::size_t i) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; i < table.size() && shift < 42; ++i, shift += 6) {
    value |= std::uint64_t{byte_at(table, i) & 0x3fU} << shift;
    if ((byte_at(table, i) & 0x40) == 0) break;
  }
  const auto magnitude = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

std::optional<std::int64_t> line_in_3_11(const std::string& table, std::int64_t first, std::uint32_t instruction) {
  constexpr unsigned instruction_bytes = 2;
  constexpr unsigned next_line = 11, line_after = 12, without_columns = 13, whole = 14, no_place = 15;
  std::int64_t line = first;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < table.size();) {
    const unsigned kind = byte_at(table, i) >> 3 & 15;
    end += instruction_bytes * ((byte_at(table, i) & 7U) + 1);
    if (kind == without_columns || kind == whole) line += signed_number(table, i + 1);
    if (kind == next_line) line += 1;
    if (kind == line_after) line += 2;
    if (instruction < end) return kind == no_place ? std::nullopt : std::optional(line);
    do ++i;
    while (i < table.size() && (byte_at(table, i) & 0x80) == 0);
  }
  return std::nullopt;
}

}  // namespace

unsigned line_at(const segment::interpreted_code_figures& code, std::uint32_t position) {
  std::optional<std::int64_t> line;
  switch (code.lines) {
    case line_table::python_3_9: line = line_in_3_9(code.table, code.first_line, position); break;
    case line_table::python_3_10: line = line_in_3_10(code.table, code.first_line, position); break;
    case line_table::python_3_11: line = line_in_3_11(code.table, code.first_line, position); break;
    case line_table::line_of_call:
      if (position != 0) line = position;
      break;
    case line_table::none: break;
  }
  const std::int64_t known = line.value_or(code.first_line);
  return known > 0 && known <= 0x7fffffff ? static_cast<unsigned>(known) : 0;
}

}  // namespace heapwright::tool
