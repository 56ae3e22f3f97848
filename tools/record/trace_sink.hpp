// Where a trace is written to: a file that takes its name when it is complete.
#pragma once

#include <cerrno>
#include <cstddef>
#include <span>

#include <unistd.h>

#include "output_file.hpp"

namespace heapwright::tool {

class trace_sink {
 public:
  explicit trace_sink(const output_file& to) : to_(to) {}

  /// For trace_writer. False: the file does not take it.
  bool operator()(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(to_.fd(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        error_ = errno;
        return false;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// What to throw when it did not.
  [[nodiscard]] failure trouble() const {
    errno = error_;
    return to_.trouble();
  }

 private:
  const output_file& to_;
  int error_ = 0;
};

}  // namespace heapwright::tool
