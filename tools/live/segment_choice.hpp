// Which segment a person means.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "segment_reader.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {

/// Of a process that has the probe, wherever it is, or of one that has ended, in the usual folder
/// or that of a `live`; empty if there is none.
[[nodiscard]] std::filesystem::path segment_of(pid_t pid);

/// Of all processes that have the probe and may be looked at, and those of ended ones there.
[[nodiscard]] std::vector<std::filesystem::path> all_segments();

/// Throws `failure` where the process is not there, may not be looked into, or runs a program that
/// no probe can be preloaded into.
void check_can_have_probe(pid_t pid);

/// A process through its segment, or, without one, through what libheapwright in it says. Throws
/// `failure` if there is neither.
[[nodiscard]] std::shared_ptr<watched_process> watch(pid_t pid, const std::filesystem::path& segment,
                                                     const function_patterns& wrappers);

/// What a person knows the process by: its command line, shortened to what a line of a terminal
/// shows.
[[nodiscard]] std::string command_of(const segment::process_figures& process);

/// Opened so that the probe can be told what to do, as far as that is permitted. Throws `failure`.
[[nodiscard]] segment::segment_reader open_segment(const std::filesystem::path& path, bool& may_control);

}  // namespace heapwright::tool
