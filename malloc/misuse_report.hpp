// What libheapwright writes about a mistake of the program, in pieces: to stderr, to syslog where
// the user wants that, to the probe where the process has it, and for debuggers.
#pragma once

#include <string_view>

namespace heapwright::process {

/// From now on. `goes_on`: the process does not end where that does no harm. Once, before there are
/// threads.
void begin_misuse_reports(bool goes_on, bool to_syslog) noexcept;

/// Whether there was a message about a mistake.
[[nodiscard]] bool has_reported_misuse() noexcept;

/// Of one mistake, by the thread that made it. Nothing here allocates or takes a lock of the heap.
class misuse_report {
 public:
  /// `line`: the first one, which has been written to stderr.
  explicit misuse_report(const char* line) noexcept;

  void write(std::string_view more) noexcept;

  /// Of the probe's; negative: there is none.
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  void add_to_probe(std::string_view more) noexcept;

  int number_ = -1;
};

}  // namespace heapwright::process
