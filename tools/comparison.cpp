// Describing the machine, showing quantities, and summing up a row: what all views of a comparison share.
#include "comparison.hpp"

#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace heapwright::tool {

machine_description machine_description::of_this_one() {
  utsname system{};
  uname(&system);
  std::string processor = system.machine;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    processor = line.substr(line.find(':') + 2);
    break;
  }
  return {processor, std::thread::hardware_concurrency(),
          static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
          fmt::format("{} {}", system.sysname, system.release), fmt::format("glibc {}", gnu_get_libc_version())};
}

std::string show_seconds(double value) {
  if (value >= 100) return fmt::format("{:.0f} s", value);
  if (value >= 1) return fmt::format("{:.2f} s", value);
  return value >= 0.1 ? fmt::format("{:.0f} ms", value * 1e3) : fmt::format("{:.1f} ms", value * 1e3);
}

std::string show_bytes(double value) {
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

std::optional<summary> summarise(const comparison& all, const comparison_row& row, const metric& property) {
  if (!row.failure.empty() || row.rounds.empty()) return std::nullopt;
  const auto values = [&](const comparison_row& of) {
    std::vector<double> result;
    for (const measurement& m : of.rounds) result.push_back(property.value(m));
    return result;
  };
  const auto own = values(row);
  const bool reference = &row == &all.rows.front();
  return summary{median(own), reference ? std::nullopt : paired_ratio(own, values(all.rows.front()))};
}

}  // namespace heapwright::tool
