// One run of a server under one preload, with a driver that makes it work.
//
// States      starting    the server runs; wait until it is ready
//             driven      the driver runs, outside of the server's tree (driver_process.hpp)
//             settling    the driver has ended: wait until processes and memory of the server stay
//                         the same, for 2 s at most (processes that serve one client end after it)
//             steady      what the server has resident now is its steady RSS
//             ending      SIGTERM to the server's first process; SIGKILL after a limit
// A run that goes wrong at any state, or is interrupted, goes to `ending` and has no figures.
//
// Figures     measured_run.hpp, but: wall is the driver's; steady RSS and the driver's own figures
//             are added. Processor time, faults and peak are those of the server's whole life.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "awaited_signals.hpp"
#include "driver_figure.hpp"
#include "measured_run.hpp"

namespace heapwright::tool {

/// How a server shows that it can be driven.
struct readiness {
  int port = 0;      ///< it answers there on loopback; 0: by a line
  std::string line;  ///< as the user gave it
  std::regex pattern{};
  double limit_seconds = 60;
};

struct server_plan {
  std::string driver;  ///< a shell command
  readiness ready;
  double driver_limit_seconds = 0;  ///< 0 for none
  double end_limit_seconds = 10;
  std::vector<driver_figure> figures{};
};

struct server_result {
  run_result run;
  std::string trouble;      ///< a sentence without its full stop; empty if all went well
  bool was_killed = false;  ///< SIGTERM did not end it within the limit
};

/// Leaves no process behind. `signals` has SIGCHLD; another one that comes ends server and driver,
/// and is thrown as `interrupted`. Throws `failure` if another process answers on the port.
server_result run_server(const job& server, const server_plan& plan, const awaited_signals& signals);

}  // namespace heapwright::tool
