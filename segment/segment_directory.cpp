// Which segments there are, and whose process still runs.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include <unistd.h>

#include "segment_reader.hpp"

namespace heapwright::segment {

std::uint64_t process_start(std::uint32_t process_id) {
  std::ifstream file("/proc/" + std::to_string(process_id) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The second field is the name, in parentheses: it may contain spaces and parentheses itself.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state, skipped;
  std::uint64_t threads = 0, start = 0;
  rest >> state;
  for (int field = 4; field < 20; ++field) rest >> skipped;
  rest >> threads >> skipped >> start;
  // A program's first thread may end before the others; it is then a zombie too.
  const bool has_ended = (state == "Z" || state == "X") && threads <= 1;
  return !rest || has_ended ? 0 : start;
}

std::uint32_t id_here(std::uint32_t own_id, std::uint64_t start) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry->path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("NSpid:")) continue;
      // One id for each namespace, from the outermost to its own.
      const auto id = static_cast<std::uint32_t>(std::strtoul(name.c_str(), nullptr, 10));
      const std::string own = line.substr(line.find_last_of(" \t") + 1);
      if (own == std::to_string(own_id) && process_start(id) == start) return id;
      break;
    }
  }
  return 0;
}

bool is_there(const process_figures& process) {
  const std::uint64_t start = process_start(process.process_id);
  return start != 0 && start == process.process_start;
}

std::filesystem::path segment_directory() {
  const char* const chosen = std::getenv("HEAPWRIGHT_SEGMENT_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return "/dev/shm/heapwright-" + std::to_string(geteuid());
}

std::vector<std::filesystem::path> segments_in(const std::filesystem::path& directory) {
  struct entry {
    std::uint64_t started;
    std::filesystem::path path;
  };
  std::vector<entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator file(directory, error), end; !error && file != end; file.increment(error)) {
    try {
      entries.push_back({segment_reader(file->path()).process().started_unix_ns, file->path()});
    } catch (const bad_segment&) {
      // Something else's, or one that is being made.
    }
  }
  std::sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) {
    return a.started != b.started ? a.started > b.started : a.path < b.path;
  });
  std::vector<std::filesystem::path> paths;
  for (entry& e : entries) paths.push_back(std::move(e.path));
  return paths;
}

}  // namespace heapwright::segment
