#include "misuse_report.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>

#include "../abi/export.hpp"
#include "calls.hpp"

extern "C" {
/// The last message about a mistake, for debuggers and for what reads core files.
HEAPWRIGHT_EXPORT constinit char heapwright_misuse_message[400] = {};
}

namespace heapwright::process {
namespace {

constinit bool writes_to_syslog = false;

/// As one message of RFC 3164 to the local daemon. It is lost where none listens, or its queue is
/// full.
void write_to_syslog(const char* line) noexcept {
  constexpr const char* user_critical = "<10>";
  sockaddr_un daemon{.sun_family = AF_UNIX, .sun_path = "/dev/log"};
  const int log = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (log < 0) return;
  text<500> message;
  message.add(user_critical).add("heapwright[").add(static_cast<std::uint64_t>(::getpid())).add("]: ").add(line);
  if (::connect(log, reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon) == 0)
    (void)!::send(log, message.c_str(), message.size(), MSG_NOSIGNAL);
  ::close(log);
}

/// A mistake that is made again and again is named once: that takes milliseconds. Where there are
/// more kinds than places, an old one may be named again.
bool is_first_from(const calls& c) noexcept {
  static constinit std::array<std::atomic<std::uint64_t>, 256> known{};
  std::uint64_t hash = 1;
  for (unsigned i = 0; i < c.count; ++i) hash = fibonacci_hash(hash ^ c.at[i]);
  std::atomic<std::uint64_t>& place = known[hash >> 56];
  return place.exchange(hash, std::memory_order_relaxed) != hash;
}

void say_more(const char* line) noexcept {
  const int kept = errno;
  calls here{};
  here.note(unwind::current_state());
  if (is_first_from(here)) here.write("here,");
  keep_misuse_report(line);
  errno = kept;
}

}  // namespace

void begin_misuse_reports(bool goes_on, bool to_syslog) noexcept {
  // What is not written to stays out of memory. The quick way to find frames is not looked up: that
  // brings pages of the loader into each process.
  if (to_syslog) writes_to_syslog = true;
  if (goes_on) the_misuse_policy.goes_on.store(true, std::memory_order_relaxed);
  the_misuse_policy.listener.store(say_more, std::memory_order_release);
}

void keep_misuse_report(const char* line) noexcept {
  const std::size_t n = std::min(std::strlen(line), sizeof heapwright_misuse_message - 1);
  std::memcpy(heapwright_misuse_message, line, n);
  heapwright_misuse_message[n] = '\0';
  if (writes_to_syslog) write_to_syslog(line);
}

}  // namespace heapwright::process
