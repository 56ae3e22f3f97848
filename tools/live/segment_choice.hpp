// Which segment a person means.
#pragma once

#include <filesystem>

#include <sys/types.h>

#include "segment_reader.hpp"

namespace heapwright::tool {

/// Of a process that has the probe. Throws `failure` if there is none.
[[nodiscard]] std::filesystem::path segment_of(pid_t pid);

/// Opened so that the probe can be told what to do, as far as that is permitted. Throws `failure`.
[[nodiscard]] trace::segment_reader open_segment(const std::filesystem::path& path, bool& may_control);

}  // namespace heapwright::tool
