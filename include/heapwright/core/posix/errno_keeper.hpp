// Free must not change errno (POSIX.1-2024), nor may anything else that a malloc does beside its
// task.
#pragma once

#include <cerrno>

#include <heapwright/core/language.hpp>

namespace heapwright::detail {

/// errno is at its end what it was at its beginning.
class errno_keeper {
 public:
  errno_keeper() noexcept : kept_(errno) {}
  ~errno_keeper() { errno = kept_; }
  errno_keeper(const errno_keeper&) = delete;
  errno_keeper& operator=(const errno_keeper&) = delete;

 private:
  int kept_;
};

}  // namespace heapwright::detail
