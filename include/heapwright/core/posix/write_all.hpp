// Writing to a file descriptor. A pipe that nobody reads is no SIGPIPE: the program is not writing.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

#include <unistd.h>

#include <heapwright/core/language.hpp>
#include <heapwright/core/posix/errno_keeper.hpp>
#include <heapwright/core/posix/without_cancellation.hpp>

namespace heapwright::detail {

/// Holds SIGPIPE back, and takes away one that has come meanwhile.
class without_sigpipe {
 public:
  without_sigpipe() noexcept {
    sigemptyset(&pipe_);  // these are macros on macOS
    sigaddset(&pipe_, SIGPIPE);
    ::sigprocmask(SIG_BLOCK, &pipe_, &before_);
    was_pending_ = is_pending();
  }
  ~without_sigpipe() {
    if (!was_pending_ && is_pending()) {
#ifdef __APPLE__  // which has no sigtimedwait, and sends the signal to the thread that has written
      int taken;
      ::sigwait(&pipe_, &taken);
#else
      constexpr timespec at_once{};
      ::sigtimedwait(&pipe_, nullptr, &at_once);
#endif
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

 private:
  [[nodiscard]] static bool is_pending() noexcept {
    sigset_t pending;
    ::sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }
  sigset_t pipe_, before_;
  bool was_pending_;
};

/// Gives up on an error. Keeps errno.
inline void write_all(int fd, const char* from, std::size_t bytes) noexcept {
  const errno_keeper keep;
  const without_cancellation goes_on;
  const without_sigpipe held;
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd, from + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace heapwright::detail
