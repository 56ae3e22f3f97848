// `heapwright live`: what it can be told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "function_patterns.hpp"
#include "push_target.hpp"

namespace heapwright::tool {

/// Exactly one of command, pid, list and file says what to look at.
struct live_options {
  std::vector<std::string> command;  ///< started with the probe in it
  pid_t pid = 0;                     ///< runs with the probe in it already
  bool list = false;                 ///< says which processes there are
  std::string file;                  ///< a segment

  std::string host = "127.0.0.1";
  std::uint16_t port = 0;       ///< 0: any
  std::string token;            ///< empty: none on loopback, a random one elsewhere
  std::string sample;           ///< bytes between samples, or auto; empty: as the probe has it
  bool estimate = false;        ///< the probe counts samples alone
  bool python_objects = false;  ///< Python asks malloc for its small objects too
  function_patterns wrappers;   ///< as places_book has them
  std::string advice;           ///< of `heapwright advise --json`, shown beside the sites; empty: none
  std::string snapshot;         ///< file for snapshot_page at the end; of a pid or a file at once, without a server
  std::string against;          ///< a saved run to compare with; empty: none
  push_options push;            ///< where profiles go while it runs
  std::string save;             ///< the segment as it is at the end, copied to this file; empty: it is not
  bool read_only = false;       ///< viewers change nothing in the program
  bool no_browser = false;
  bool exit_with_program = false;
  int ready_fd =
      -1;  ///< "URL PROCESS-ID\n" is written there when the page can be seen. All others beyond stderr are closed: they are of the program that starts this
};

/// The exit code of the started program; otherwise 0. Throws `failure`.
int live(const live_options& options);

}  // namespace heapwright::tool
