// `heapwright fit`: what it can be told.
#pragma once

#include <string>
#include <vector>

#include "given_server.hpp"
#include "levers.hpp"

namespace heapwright::tool {

struct fit_options {
  std::vector<std::string> command;
  fit_goal goal = fit_goal::both;
  double minutes = 10;
  std::string output = "heapwright-fit";  ///< a folder
  std::string json;
  std::vector<std::vector<std::string>> inputs;  ///< commands; with a driver, each a driver in one word
  std::vector<std::string> with;
  std::vector<std::string> only;
  std::string compiler;        ///< empty for $CXX, or else c++
  double timeout_seconds = 0;  ///< of a run; 0: a third of the minutes
  bool ignore_output = false;
  server_options server;
};

/// 0 for any verdict. Throws `failure`.
int fit(const fit_options& options);

}  // namespace heapwright::tool
