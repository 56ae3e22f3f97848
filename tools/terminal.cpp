#include "terminal.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "failure.hpp"

namespace heapwright::tool {

void tell_text(const std::string& text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

bool can_draw(int descriptor) noexcept {
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) != 0 && kind != nullptr && kind != std::string_view("dumb") && *kind != '\0';
}

bool wants_colour(int descriptor) noexcept {
  const char* const unwanted = std::getenv("NO_COLOR");
  return can_draw(descriptor) && (unwanted == nullptr || *unwanted == '\0');
}

void show_step(const std::string& text) noexcept {
  if (can_draw(STDERR_FILENO)) tell("\r  {:60}\r", text);
}

void occupy_standard_descriptors() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is the one that is closed, as those below are not.
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void finish_answers() {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  const int why = errno;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return;
  std::clearerr(stdout);
  throw failure(exit_code::bad_input, fmt::format("the answer was lost: standard output: {}",
                                                  why != 0 ? std::strerror(why) : "it cannot be written to"));
}

}  // namespace heapwright::tool
