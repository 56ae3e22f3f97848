#include "segment_choice.hpp"

#include <fmt/format.h>

#include "failure.hpp"

namespace heapwright::tool {

trace::segment_reader open_segment(const std::filesystem::path& path, bool& may_control) {
  try {
    try {
      may_control = true;
      return trace::segment_reader(path, true);
    } catch (const trace::bad_segment&) {
      may_control = false;
      return trace::segment_reader(path);
    }
  } catch (const trace::bad_segment& trouble) {
    throw failure(exit_code::bad_input, trouble.what());
  }
}

std::filesystem::path segment_of(pid_t pid) {
  for (const auto& path : trace::segments_in(trace::segment_directory())) {
    const trace::process_figures process = trace::segment_reader(path).process();
    if (process.process_id == static_cast<std::uint32_t>(pid) && process.state != trace::process_state::replaced)
      return path;
  }
  return {};
}

std::shared_ptr<watched_process> watch(pid_t pid, const std::filesystem::path& segment) {
  if (!segment.empty()) {
    bool may_control = false;
    trace::segment_reader reader = open_segment(segment, may_control);
    return std::make_shared<watched_process>(std::move(reader), may_control);
  }
  const std::string nothing = fmt::format(
      "process {} has no segment in {}: the probe must be in it from its start, as `heapwright live -- "
      "COMMAND` does; `heapwright live --list` says which processes there are",
      pid, trace::segment_directory().string());
  if (trace::process_start(static_cast<std::uint32_t>(pid)) == 0)
    throw failure(exit_code::bad_input, fmt::format("no such process: {}", pid));
  try {
    return std::make_shared<watched_process>(pid);
  } catch (const failure& trouble) {
    throw failure(exit_code::bad_input, fmt::format("{}. Nor can its heap be asked: {}", nothing, trouble.what()));
  }
}

}  // namespace heapwright::tool
