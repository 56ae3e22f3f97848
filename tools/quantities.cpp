#include "quantities.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace heapwright::tool {

std::string show_seconds(double value) {
  if (value >= 100) return fmt::format("{:.0f} s", value);
  if (value >= 1) return fmt::format("{:.2f} s", value);
  return value >= 0.1 ? fmt::format("{:.0f} ms", value * 1e3) : fmt::format("{:.1f} ms", value * 1e3);
}

std::string show_bytes(double value) {
  if (value < 1024) return fmt::format("{:.0f} B", value);
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (value /= 1024; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 100 && unit > 0 ? 1 : 0, units[unit]);
}

std::string show_count(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string show_count_of(std::uint64_t n, const char* one) {
  return fmt::format("{} {}{}", show_count(static_cast<double>(n)), one, n == 1 ? "" : "s");
}

std::string show_number(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15) return show_count(value);
  return fmt::format("{:.4g}", value);
}

}  // namespace heapwright::tool
