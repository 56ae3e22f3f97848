#include "misuse_report.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <heapwright/core/check.hpp>
#include <heapwright/core/hash.hpp>
#include <heapwright/core/posix/errno_keeper.hpp>
#include <heapwright/core/posix/without_cancellation.hpp>

#include "../abi/export.hpp"
#include "../abi/misuse_reports.hpp"
#include "../abi/written_at_start.hpp"
#include "calls.hpp"

extern "C" {
/// The last message about a mistake, for debuggers and for what reads core files.
HEAPWRIGHT_EXPORT constinit char heapwright_misuse_message[400] = {};
}

namespace heapwright::process {
namespace {

[[HEAPWRIGHT_WRITTEN_AT_START]] constinit bool writes_to_syslog = false;

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

/// A kind of mistake with the calls that have led to it, and the report of it.
struct known_calls {
  std::atomic<std::uint64_t> hash;
  std::atomic<int> report;
};

/// A mistake that is made again and again is reported once: that takes milliseconds. Where there
/// are more kinds than places, an old one may be reported again.
known_calls& place_of(std::uint64_t hash) noexcept {
  static constinit std::array<known_calls, 256> known{};
  return known[hash >> 56];
}

/// Of the calls and the kind, which is what `line` has up to the address.
std::uint64_t hash_of(const calls& c, const char* line) noexcept {
  std::uint64_t hash = 1;
  for (const char* at = line; *at != '\0' && std::strncmp(at, ": 0x", 4) != 0; ++at)
    hash = fibonacci_hash(hash ^ static_cast<unsigned char>(*at));
  for (unsigned i = 0; i < c.count; ++i) hash = fibonacci_hash(hash ^ c.at[i]);
  return hash;
}

void keep(const char* line) noexcept {
  const std::size_t n = std::min(std::strlen(line), sizeof heapwright_misuse_message - 1);
  std::memcpy(heapwright_misuse_message, line, n);
  heapwright_misuse_message[n] = '\0';
  if (writes_to_syslog) write_to_syslog(line);
}

void count(int report) noexcept {
  if (&heapwright_probe_count_mistake != nullptr) heapwright_probe_count_mistake(report);
}

void say_more(const char* line) noexcept {
  const detail::errno_keeper keep_errno;
  const detail::without_cancellation goes_on;
  calls here{};
  here.note(unwind::current_state());
  const std::uint64_t hash = hash_of(here, line);
  known_calls& known = place_of(hash);
  if (known.hash.exchange(hash, std::memory_order_relaxed) == hash) {
    keep(line);
    count(known.report.load(std::memory_order_relaxed));
  } else {
    misuse_report report(line);
    known.report.store(report.number(), std::memory_order_relaxed);
    here.write("here,", report);
  }
}

}  // namespace
}  // namespace heapwright::process

namespace heapwright {
[[HEAPWRIGHT_WRITTEN_AT_START]] constinit misuse_policy the_misuse_policy{.goes_on = false,
                                                                          .listener = process::say_more};
}

namespace heapwright::process {

bool has_reported_misuse() noexcept { return heapwright_misuse_message[0] != '\0'; }

void begin_misuse_reports(bool goes_on, bool to_syslog) noexcept {
  // What is not written to stays out of memory. The quick way to find frames is not looked up: that
  // brings pages of the loader into each process.
  if (to_syslog) {
    if (const opened is_open(writes_to_syslog); is_open) writes_to_syslog = true;
  }
  if (goes_on) {
    if (const opened is_open(the_misuse_policy); is_open) the_misuse_policy.goes_on = true;
  }
}

misuse_report::misuse_report(const char* line) noexcept {
  keep(line);
  if (&heapwright_probe_begin_report != nullptr) number_ = heapwright_probe_begin_report();
  count(number_);
  add_to_probe(line);
}

void misuse_report::write(std::string_view more) noexcept {
  text<1000>().add(more).write_to(2);
  add_to_probe(more);
}

void misuse_report::add_to_probe(std::string_view more) noexcept {
  if (number_ >= 0) heapwright_probe_add_to_report(number_, more.data(), more.size());
}

}  // namespace heapwright::process
