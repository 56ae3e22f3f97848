// malloc and free are no cancellation points (POSIX.1-2024, 2.9.5), but some of the functions that
// they call now and then are.
#pragma once

#include <pthread.h>

#include <heapwright/core/language.hpp>

namespace heapwright::detail {

/// A thread that is asked to end goes on for as long as this lives.
class without_cancellation {
 public:
  without_cancellation() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~without_cancellation() { ::pthread_setcancelstate(before_, nullptr); }
  without_cancellation(const without_cancellation&) = delete;
  without_cancellation& operator=(const without_cancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace heapwright::detail
