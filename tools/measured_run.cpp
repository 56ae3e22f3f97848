// One run of a command, from its start to its end.
#include "measured_run.hpp"

#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "measured_tree.hpp"

namespace heapwright::tool {

std::string describe_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
  const char* const name = sigabbrev_np(WTERMSIG(wait_status));
  return fmt::format("was killed by SIG{}", name != nullptr ? name : std::to_string(WTERMSIG(wait_status)));
}

std::string run_result::trouble() const {
  if (timed_out) return "timed out";
  return wait_status == 0 ? "" : describe_status(wait_status);
}

run_result run_measured(const job& what, const awaited_signals& signals) {
  measured_tree tree(what, signals);
  tree.watch(what.timeout_seconds > 0 ? now() + what.timeout_seconds : never);
  const bool timed_out = !tree.has_ended();
  run_result result = tree.finish();
  result.timed_out = timed_out;
  return result;
}

}  // namespace heapwright::tool
