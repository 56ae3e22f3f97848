// What the options of a server say: that the command is one, and how it is driven.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server_run.hpp"

namespace heapwright::tool {

struct server_options {
  std::string driver;  ///< empty: the command is no server
  int ready_port = 0;
  std::string ready_line;
  double ready_timeout_seconds = 60;
  double end_timeout_seconds = 10;
  std::vector<std::string> figures;
};

/// Nothing for a command that is no server. `driver_limit_seconds`: 0 for none. Throws `failure`.
std::optional<server_plan> given_server(const server_options& options, double driver_limit_seconds);

}  // namespace heapwright::tool
