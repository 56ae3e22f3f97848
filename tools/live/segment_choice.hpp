// Which segment a person means.
#pragma once

#include <filesystem>
#include <memory>

#include <sys/types.h>

#include "segment_reader.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {

/// Of a process that has the probe; empty if there is none.
[[nodiscard]] std::filesystem::path segment_of(pid_t pid);

/// A process through its segment, or, without one, through what libheapwright in it says. Throws `failure` if there is neither.
[[nodiscard]] std::shared_ptr<watched_process> watch(pid_t pid, const std::filesystem::path& segment);

/// Opened so that the probe can be told what to do, as far as that is permitted. Throws `failure`.
[[nodiscard]] trace::segment_reader open_segment(const std::filesystem::path& path, bool& may_control);

}  // namespace heapwright::tool
