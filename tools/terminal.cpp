#include "terminal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "failure.hpp"
#include "utf8.hpp"

namespace heapwright::tool {

namespace {

failure lost_answer() {
  const int why = errno;
  // What is left in the buffer would be tried again when the process ends.
  std::clearerr(stdout);
  return {exit_code::bad_input, fmt::format("the answer was lost: standard output: {}", std::strerror(why))};
}

}  // namespace

bool tell_text(const std::string& text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), stderr) == text.size() && std::fflush(stderr) == 0;
}

void answer_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw lost_answer();
}

bool can_draw(int descriptor) noexcept {
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) != 0 && kind != nullptr && kind != std::string_view("dumb") && *kind != '\0';
}

bool wants_colour(int descriptor) noexcept {
  const char* const unwanted = std::getenv("NO_COLOR");
  return can_draw(descriptor) && (unwanted == nullptr || *unwanted == '\0');
}

unsigned columns_of(int descriptor) noexcept {
  winsize window{};
  return ioctl(descriptor, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

std::string cut_to_columns(const std::string& text, unsigned columns) {
  if (columns == 0) return text;
  std::string_view rest = text;
  for (unsigned taken = 1; taken < columns && !rest.empty(); ++taken)
    rest.remove_prefix(std::max<std::size_t>(1, utf8_length(rest)));
  return text.substr(0, text.size() - rest.size());
}

void show_step(const std::string& text) noexcept {
  if (!can_draw(STDERR_FILENO)) return;
  tell("\r{}\r", cut_to_columns(fmt::format("  {:60}", text), columns_of(STDERR_FILENO)));
}

void occupy_standard_descriptors() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is the one that is closed, as those below are not.
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void finish_answers() {
  if (std::fflush(stdout) != 0) throw lost_answer();
}

}  // namespace heapwright::tool
