// Lines of source around a place, where the file is there.
//
// Only files that call stacks name are read: a viewer gets no others by their names. Of a process
// in a container none is: links there could lead to files of this machine.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "utf8.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr unsigned lines_around = 5;
constexpr std::size_t longest_line = 400, longest_file = 16 << 20;

/// As it was when the process began: lines of a file that has changed since may be other ones.
bool is_newer(const fs::path& file, const moment& m) {
  std::error_code trouble;
  const auto written = fs::last_write_time(file, trouble);
  if (trouble) return false;
  const auto seconds = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return std::chrono::duration<double>(seconds).count() > m.unix_seconds(m.figures.process.started_ns);
}

}  // namespace

std::string source_view(watched_process& process, const std::string& file, unsigned line) {
  const auto seen = process.now();
  json result = {{"file", file}, {"line", line}, {"first", 0}, {"lines", json::array()}, {"is_newer", false}};
  std::error_code trouble;
  if (!seen->figures.process.root.empty() || !process.places().has_file(file) || !fs::is_regular_file(file, trouble) ||
      fs::file_size(file, trouble) > longest_file)
    return result.dump(-1, ' ', false, json::error_handler_t::replace);
  std::ifstream in(file);
  const unsigned first = line > lines_around ? line - lines_around : 1;
  json& lines = result["lines"];
  std::string text;
  for (unsigned number = 1; number <= line + lines_around && std::getline(in, text); ++number)
    if (number >= first) lines.push_back(clipped(as_utf8(text), longest_line));
  if (first + lines.size() <= line) lines.clear();  // the file is another one by now
  result["first"] = first;
  result["is_newer"] = is_newer(file, *seen);
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
