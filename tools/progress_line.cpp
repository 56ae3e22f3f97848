#include "progress_line.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "terminal.hpp"

namespace heapwright::tool {

progress_line::progress_line(std::string what)
    : what_(what.empty() ? "" : std::move(what) + ", "), terminal_(can_draw(STDERR_FILENO)) {}

void progress_line::operator()(unsigned done, unsigned total, unsigned round, const std::string& name) {
  const std::string stage = what_ + (round == 0 ? "warm-up" : fmt::format("round {}", round));
  if (!terminal_) {
    if (round != last_round_ || done == 0) tell("heapwright: {} ({} of {} runs done)\n", stage, done, total);
    last_round_ = round;
    return;
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  std::string left;
  if (done >= 2) {
    const double seconds = spent.count() / done * (total - done);
    left = seconds < 1 ? ", less than 1 s left" : fmt::format(", about {:.0f} s left", seconds);
  }
  const std::string line = fmt::format("[{}/{}] {}: {}{}", done + 1, total, stage, name, left);
  tell("\r\033[K{}", cut_to_columns(line, columns_of(STDERR_FILENO)));
  std::fflush(stderr);
}

void progress_line::clear() const {
  if (terminal_) tell("\r\033[K");
}

}  // namespace heapwright::tool
