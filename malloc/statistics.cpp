#include "statistics.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <heapwright/core/posix/errno_keeper.hpp>

#include "../abi/written_at_start.hpp"
#include "guarded_samples.hpp"
#include "heap_statistics_of.hpp"
#include "process_heap.hpp"

namespace heapwright::process {
namespace {

enum class report_state { unwanted, wanted, done };

constinit report_state state{report_state::unwanted};
[[HEAPWRIGHT_WRITTEN_AT_START]] constinit const char* report_file = nullptr;
constinit pid_t reporting_process = 0;

void note_process() noexcept {
  state = report_state::wanted;
  reporting_process = ::getpid();
}

/// Of the calling process, from /proc. Empty if that cannot be read.
template <std::size_t N>
void read_command(char (&command)[N]) noexcept {
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = ::read(fd, command, N - 1);
  ::close(fd);
  std::size_t length = n > 0 ? static_cast<std::size_t>(n) : 0;
  while (length > 0 && command[length - 1] == '\0') --length;
  for (std::size_t i = 0; i < length; ++i) {
    if (static_cast<unsigned char>(command[i]) < 0x20 || command[i] == 0x7f) command[i] = ' ';
  }
  command[length] = '\0';
}

/// The value of a line "VmHWM:  1234 kB", read piece by piece: the lines before it have no bound.
class peak_reader {
 public:
  void read_piece(const char* piece, std::size_t length) noexcept {
    for (std::size_t i = 0; i < length && !is_complete_; ++i) read_byte(piece[i]);
  }

  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return kib_ * 1024; }

 private:
  static constexpr char name[] = "\nVmHWM:";
  static constexpr std::size_t name_length = sizeof name - 1;

  void read_byte(char c) noexcept {
    if (matched_ < name_length) {
      matched_ = c == name[matched_] ? matched_ + 1 : c == '\n' ? 1 : 0;
    } else if (c >= '0' && c <= '9') {
      kib_ = kib_ * 10 + static_cast<std::uint64_t>(c - '0');
    } else {
      is_complete_ = kib_ > 0;
    }
  }

  std::size_t matched_ = 0;
  std::uint64_t kib_ = 0;
  bool is_complete_ = false;
};

/// The most that this program has had resident. ru_maxrss would count what the process had before
/// its last exec, VmHWM begins anew; so ru_maxrss is for where there is no /proc.
std::uint64_t read_peak_rss() noexcept {
  if (const int fd = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC); fd >= 0) {
    peak_reader peak;
    char piece[1024];
    for (ssize_t n = 0; !peak.is_complete() && (n = ::read(fd, piece, sizeof piece)) > 0;)
      peak.read_piece(piece, static_cast<std::size_t>(n));
    ::close(fd);
    if (peak.is_complete()) return peak.bytes();
  }
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

process_report report_of_this_process() noexcept {
  process_report r{};
  std::memcpy(r.magic, process_report::expected_magic, sizeof r.magic);
  r.bytes = sizeof r;
  r.process_id = static_cast<std::uint32_t>(::getpid());
  std::strncpy(r.version, HEAPWRIGHT_VERSION, sizeof r.version - 1);
  std::strncpy(r.build, HEAPWRIGHT_BUILD, sizeof r.build - 1);
  read_command(r.command);
  r.peak_rss = read_peak_rss();
  r.heap = collect_statistics();
  return r;
}

[[gnu::cold]] void say_unwritable(const char* file) noexcept {
  text<400> line;
  line.add("heapwright: HEAPWRIGHT_STATS_FILE: ")
      .add(file)
      .add(" cannot be opened, error ")
      .add(static_cast<std::uint64_t>(errno));
  line.add(" (it must be there already); the statistics are lost\n").write_to(2);
}

/// All or nothing, where the file system appends a write as a whole: those of Linux do.
void append(const char* file, const process_report& r) noexcept {
  const int fd = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) {
    // In /proc it is the tool's, which says itself whose report is missing.
    if (std::strncmp(file, "/proc/", 6) != 0) say_unwritable(file);
    return;
  }
  (void)!::write(fd, &r, sizeof r);
  ::close(fd);
}

}  // namespace

malloc_statistics collect_statistics() noexcept {
  // A program may end in a signal handler that has interrupted malloc: then a lock is never free.
  constexpr std::uint64_t patience_ms = 20;
  const census<chosen_recipe, process_os> all(the_heap, patience_ms);
  malloc_statistics s = statistics_of(the_heap, all.taken(this_cache));
  const guarded_samples::total samples = the_samples.sum();
  s.large_in_use += samples.live;
  s.mapped += samples.mapped;
  s.mapped_peak = std::max(s.mapped_peak, s.mapped);
  return s;
}

void write_statistics(int fd) noexcept {
  text<1600> page;
  report_of_this_process().write_page(page);
  page.write_to(fd);
}

void report_at_exit(const char* file) noexcept {
  if (file != nullptr) {
    if (const opened is_open(report_file); is_open) report_file = file;
  }
  note_process();
  ::pthread_atfork(nullptr, nullptr, note_process);
  ::at_quick_exit(report_exit);
}

void report_exit() noexcept {
  if (state != report_state::wanted || reporting_process != ::getpid()) return;
  state = report_state::done;
  const detail::errno_keeper keep;
  if (report_file != nullptr)
    append(report_file, report_of_this_process());
  else
    write_statistics(2);
}

}  // namespace heapwright::process
