#include "segment_choice.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "elf_file.hpp"
#include "failure.hpp"
#include "printable.hpp"
#include "process_image.hpp"
#include "program.hpp"
#include "segment_folder.hpp"

namespace heapwright::tool {
namespace {

constexpr std::size_t longest_command = 80;

/// One that has been replaced by exec goes on as another, and one that has ended has no name while
/// another process has its id.
bool is_segment_of(const std::filesystem::path& path, pid_t pid) {
  try {
    const segment::process_figures process = segment::segment_reader(path).process();
    if (process.process_id != static_cast<std::uint32_t>(pid) || process.state == segment::process_state::replaced)
      return false;
    const std::uint64_t start = segment::process_start(process.process_id);
    return start == 0 || start == process.process_start;
  } catch (const segment::bad_segment&) {
    return false;
  }
}

/// A process may write its segment into any folder, as `heapwright live -- COMMAND` has it do; it
/// has it mapped from its beginning. (So has a child that has not called malloc since the fork: its
/// parent's.)
std::filesystem::path mapped_segment(pid_t pid) {
  for (const mapping& m : mapped_files(pid)) {
    if (m.offset != 0 || !m.path.ends_with(".segment")) continue;
    // In a container the path may lead to nothing here, or to something else.
    for (const std::string& path : {m.path, path_inside(pid, m.path)})
      if (is_segment_of(path, pid)) return path;
  }
  return {};
}

}  // namespace

segment::segment_reader open_segment(const std::filesystem::path& path, bool& may_control) {
  try {
    try {
      may_control = true;
      return segment::segment_reader(path, true);
    } catch (const segment::bad_segment&) {
      may_control = false;
      return segment::segment_reader(path);
    }
  } catch (const segment::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
}

std::filesystem::path segment_of(pid_t pid) {
  if (auto path = mapped_segment(pid); !path.empty()) return path;
  for (const auto& folder : folders_with_segments())
    for (const auto& path : segment::segments_in(folder))
      if (is_segment_of(path, pid)) return path;
  return {};
}

std::vector<std::filesystem::path> all_segments() {
  std::vector<std::filesystem::path> all;
  for (const auto& folder : folders_with_segments()) {
    const auto found = segment::segments_in(folder);
    all.insert(all.end(), found.begin(), found.end());
  }
  for (const pid_t pid : processes()) {
    const auto path = mapped_segment(pid);
    if (!path.empty() && std::find(all.begin(), all.end(), path) == all.end()) all.insert(all.begin(), path);
  }
  return all;
}

std::string command_of(const segment::process_figures& process) {
  if (process.arguments.empty()) return printable(process.program, longest_command);
  // One word may be a title, which is no command.
  if (process.arguments.size() == 1) return printable(process.arguments[0], longest_command);
  return printable(shown_command(process.arguments), longest_command);
}

namespace {

/// A process that has just executed a program has none in memory for a moment.
bool has_program(pid_t pid) {
  const std::string maps = fmt::format("/proc/{}/maps", pid);
  for (int look = 0; mapped_files(pid).empty(); ++look) {
    if (look == 20 || !read_file(maps)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void check_can_be_looked_into(pid_t pid) {
  if (segment::process_start(static_cast<std::uint32_t>(pid)) == 0)
    throw failure(exit_code::bad_input, fmt::format("no such process: {}", pid));
  if (!has_program(pid))
    throw failure(exit_code::bad_input, fmt::format("process {} may not be looked into; {}", pid, who_may_read()));
}

void check_can_be_preloaded_into(pid_t pid) {
  const std::string file = executable_of(pid);
  const auto elf = elf_file::open(path_inside(pid, file));
  if (const std::string why = elf ? why_not_preloadable(*elf, path_inside(pid, file)) : ""; !why.empty())
    throw failure(exit_code::bad_input, fmt::format("process {} cannot be observed: {} {}", pid, printable(file), why));
}

}  // namespace

void check_can_have_probe(pid_t pid) {
  check_can_be_looked_into(pid);
  check_can_be_preloaded_into(pid);
}

std::shared_ptr<watched_process> watch(pid_t pid, const std::filesystem::path& segment,
                                       const function_patterns& wrappers) {
  if (!segment.empty()) {
    bool may_control = false;
    segment::segment_reader reader = open_segment(segment, may_control);
    return std::make_shared<watched_process>(std::move(reader), may_control, wrappers);
  }
  check_can_be_looked_into(pid);
  try {
    return std::make_shared<watched_process>(pid);
  } catch (const failure& trouble) {
    // Advice to start it with the probe would be refused.
    check_can_be_preloaded_into(pid);
    throw failure(
        exit_code::bad_input,
        fmt::format("process {} has no segment: the probe must be in it from its start, as `heapwright live -- "
                    "COMMAND` does; `heapwright live --list` says which processes there are. Nor can its heap be "
                    "asked: {}",
                    pid, trouble.what()));
  }
}

}  // namespace heapwright::tool
