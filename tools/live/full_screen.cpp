#include "full_screen.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "failure.hpp"

namespace heapwright::tool {
namespace {

constexpr const char* taken = "\033[?1049h\033[?25l";
constexpr const char* given_back = "\033[?25h\033[?1049l";
constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

const termios* settings_to_restore = nullptr;  ///< null where there are none

/// Uses nothing but system calls.
void write_now(const char* text) noexcept { (void)!::write(STDOUT_FILENO, text, std::strlen(text)); }

void after_a_crash(int signal) noexcept {
  write_now(given_back);
  if (settings_to_restore != nullptr) tcsetattr(STDIN_FILENO, TCSANOW, settings_to_restore);
  raise(signal);  // by its default action, which SA_RESETHAND has put back
}

}  // namespace

full_screen::full_screen(const awaited_signals& of_signals) : signals_(of_signals) {
  arrivals_ = descriptor(signalfd(-1, &signals_.set(), SFD_CLOEXEC));
  has_keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
  settings_to_restore = has_keys_ ? &before_ : nullptr;
  struct sigaction action {};
  action.sa_handler = after_a_crash;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (const int signal : crashes) sigaction(signal, &action, nullptr);
  take();
}

full_screen::~full_screen() {
  give_back();
  for (const int signal : crashes) std::signal(signal, SIG_DFL);
  settings_to_restore = nullptr;
}

void full_screen::take() const {
  if (has_keys_) {
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_now(taken);
}

void full_screen::give_back() const {
  write_now(given_back);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void full_screen::draw(const std::string& lines) const {
  const std::string text = "\033[H" + lines + "\033[J";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

bool full_screen::wait(double seconds) const {
  pollfd from[] = {{arrivals_.get(), POLLIN, 0}, {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
  if (poll(from, 2, static_cast<int>(seconds * 1000)) <= 0) return true;
  if (from[0].revents == 0) {
    char key = 0;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q';
  }
  const int signal = signals_.wait(0).number;
  if (signal == SIGINT) return false;
  if (signal == SIGTSTP) {
    give_back();
    raise(SIGSTOP);
    take();
  }
  if (signal == 0 || signal == SIGTSTP || signal == SIGWINCH) return true;
  throw interrupted{signal};
}

}  // namespace heapwright::tool
