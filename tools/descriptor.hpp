// A file descriptor with one owner, pipes of such, and the reading of files too small or too
// strange (/proc) for a stream.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace heapwright::tool {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct pipe_ends {
  descriptor reader, writer;
};

/// A pipe that no program inherits; nothing if there can be none. errno says why.
inline std::optional<pipe_ends> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return pipe_ends{descriptor(ends[0]), descriptor(ends[1])};
}

/// The whole content of a file; nothing if it cannot be opened or read. errno says why.
inline std::optional<std::string> read_file(const std::string& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string content;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0) return std::nullopt;
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace heapwright::tool
