// A file in memory, for code that reads files by their path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace heapwright::fuzzing {

class scratch_file {
 public:
  scratch_file() : fd_(memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    if (fd_ < 0) std::abort();
  }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() { close(fd_); }

  void set(const void* data, std::size_t length) {
    if (ftruncate(fd_, 0) != 0) std::abort();
    write_at(0, data, length);
  }

  void write_at(std::size_t offset, const void* data, std::size_t length) {
    if (pwrite(fd_, data, length, static_cast<off_t>(offset)) != static_cast<ssize_t>(length)) std::abort();
  }

  void cut(std::size_t length) {
    if (ftruncate(fd_, static_cast<off_t>(length)) != 0) std::abort();
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  int fd_;
  std::string path_;
};

/// Ends the run: libFuzzer keeps the input.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace heapwright::fuzzing
