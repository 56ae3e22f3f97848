// Lines of source around a place, where the file is there.
//
// Only files that call stacks name are read: a viewer gets no others by their names. Of a process
// in a container it is the container's file, whatever links there lead to: none of this machine's.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "descriptor.hpp"
#include "utf8.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

constexpr unsigned lines_around = 5;
constexpr std::size_t longest_line = 400, longest_file = 16 << 20;

struct source_file {
  std::string text;
  double written = 0;  ///< seconds since 1970
};

/// `root`: as in process_figures.
descriptor opened(const std::string& root, const std::string& file) {
  constexpr int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe is not waited for
  if (root.empty()) return descriptor(open(file.c_str(), how));
  const descriptor folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how within{};
  within.flags = how;
  within.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return descriptor(static_cast<int>(syscall(SYS_openat2, folder.get(), file.c_str(), &within, sizeof within)));
}

/// Nothing: it cannot be read, or is no file of lines.
std::optional<source_file> read_source(const std::string& root, const std::string& file) {
  const descriptor source = opened(root, file);
  struct stat about {};
  if (!source || fstat(source.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::uint64_t>(about.st_size) > longest_file)
    return std::nullopt;
  source_file result{std::string(static_cast<std::size_t>(about.st_size), '\0'),
                     static_cast<double>(about.st_mtim.tv_sec) + static_cast<double>(about.st_mtim.tv_nsec) / 1e9};
  std::size_t length = 0;
  while (length < result.text.size()) {
    const ssize_t n = read(source.get(), result.text.data() + length, result.text.size() - length);
    if (n <= 0) break;
    length += static_cast<std::size_t>(n);
  }
  result.text.resize(length);
  return result;
}

}  // namespace

std::string source_view(watched_process& process, const std::string& file, unsigned line) {
  const auto seen = process.now();
  json result = {{"file", file}, {"line", line}, {"first", 0}, {"lines", json::array()}, {"is_newer", false}};
  const segment::process_figures& p = seen->figures.process;
  // The root of a process that is gone may be another one's.
  const bool is_there = p.root.empty() || seen->state == life::running;
  const auto source = is_there && process.places().has_file(file) ? read_source(p.root, file) : std::nullopt;
  if (!source) return result.dump(-1, ' ', false, json::error_handler_t::replace);
  std::istringstream in(source->text);
  const unsigned first = line > lines_around ? line - lines_around : 1;
  json& lines = result["lines"];
  std::string text;
  for (unsigned number = 1; number <= line + lines_around && std::getline(in, text); ++number)
    if (number >= first) lines.push_back(clipped(as_utf8(text), longest_line));
  if (first + lines.size() <= line) lines.clear();  // the file is another one by now
  result["first"] = first;
  // Lines of a file that has changed since the process began may be other ones.
  result["is_newer"] = source->written > seen->unix_seconds(p.started_ns);
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
