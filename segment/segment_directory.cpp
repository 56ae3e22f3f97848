// Which segments there are, and whose process still runs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "segment_reader.hpp"

namespace heapwright::segment {

std::uint64_t process_start(std::uint32_t process_id) {
  std::ifstream file("/proc/" + std::to_string(process_id) + "/stat");
  // Reading fails if the process goes after the file is opened. An iterator would throw then.
  std::string text;
  std::getline(file, text, '\0');
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

namespace {

/// The processes of namespaces below this one's, as /proc showed them once. One that is not among
/// them and began earlier is gone: a process never comes into a namespace later.
///
/// What was found is kept, so that a process has the same id after its end.
class nested_processes {
 public:
  ids_here find(std::uint32_t own_id, std::uint64_t start, std::uint64_t segment_made_ns, std::uint64_t parents_own_id,
                bool may_run) {
    const std::lock_guard hold(mutex_);
    if (const auto known = known_.find({own_id, start}); known != known_.end()) return known->second;
    if (!may_run) return {};
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::chrono::nanoseconds made(segment_made_ns);
    // A segment from the future is of another machine, or not to be believed.
    if (made >= listed_at_ && (made <= now || now - listed_at_ > std::chrono::seconds(1))) list(now);
    const auto found = std::ranges::find_if(
        listed_, [&](const listed& p) { return p.own_id == own_id && process_start(p.id) == start; });
    if (found == listed_.end()) return {};
    const auto parent = std::ranges::find_if(listed_, [&](const listed& p) {
      return p.own_id == parents_own_id && !p.space.empty() && p.space == found->space;
    });
    return known_[{own_id, start}] = {found->id, parent == listed_.end() ? 0 : parent->id};
  }

 private:
  struct listed {
    std::uint32_t id, own_id;
    std::string space;  ///< which namespace; empty where that may not be looked at
  };

  void list(std::chrono::nanoseconds now) {
    listed_at_ = now;
    listed_.clear();
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream status(entry->path() / "status");
      for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("NSpid:")) continue;
        // One id for each namespace, from this one to the process's own.
        std::istringstream ids(line.substr(line.find(':') + 1));
        const std::vector<std::uint32_t> all{std::istream_iterator<std::uint32_t>(ids), {}};
        std::error_code unseen;
        if (all.size() > 1)
          listed_.push_back(
              {all.front(), all.back(), std::filesystem::read_symlink(entry->path() / "ns/pid", unseen).string()});
        break;
      }
    }
  }

  std::mutex mutex_;  ///< of what follows
  std::map<std::pair<std::uint32_t, std::uint64_t>, ids_here> known_;
  std::vector<listed> listed_;
  std::chrono::nanoseconds listed_at_{0};  ///< CLOCK_MONOTONIC
};

}  // namespace

ids_here ids_here_of(const segment_header& h) {
  static nested_processes nested;
  const bool may_run = h.state.load(relaxed) != static_cast<std::uint32_t>(process_state::exited);
  if (may_run && process_start(h.process_id) == h.process_start) return {};
  return nested.find(h.process_id, h.process_start, h.started_ns, h.forked_from, may_run);
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
