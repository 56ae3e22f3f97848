// The subcommands: what each can be told, and the function that carries it out and returns the exit
// code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "given_server.hpp"

namespace heapwright::tool {

enum class wanted_statistics { none, of_command, of_all_processes };

inline constexpr std::uint64_t most_guard_interval = 1'000'000'000;  ///< allocations; malloc/options.hpp

struct run_options {
  std::vector<std::string> command;
  std::string library;                        ///< empty for libheapwright.so
  bool is_hardened = false;                   ///< libheapwright-hardened.so in its place
  std::optional<std::uint64_t> guard_sample;  ///< one in so many allocations is guarded
  wanted_statistics statistics = wanted_statistics::none;
};
/// Becomes the command, unless statistics are wanted: then it returns the exit code, or ends by the
/// command's signal.
int run(const run_options& options);

struct compare_options {
  std::vector<std::string> command;
  std::vector<std::string> with;
  std::vector<std::string> only;
  std::string json;
  std::string html;
  unsigned rounds = 7;
  std::string baseline = "glibc";
  double same_within_percent = 3;
  double timeout_seconds = 0;
  bool ignore_output = false;
  server_options server;
};
int compare(const compare_options& options);

struct build_options {
  std::string header;
  std::string output;
  std::string recipe;    ///< the name of a recipe in it; empty for the one that there is
  std::string compiler;  ///< empty for $CXX, or else c++
  bool check = false;
};
int build(const build_options& options);

struct info_options {
  pid_t pid = 0;  ///< 0 to tell about the installation rather than a process
  bool json = false;
};
int info(const info_options& options);

}  // namespace heapwright::tool
