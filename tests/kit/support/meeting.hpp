// Where threads wait for each other. Not std::barrier: that of GCC 12 for Windows lets threads wait
// for ever.
#pragma once

#include <condition_variable>
#include <mutex>

namespace heapwright::testing {

class meeting {
 public:
  explicit meeting(unsigned threads) : threads_(threads) {}

  /// Returns when as many threads have called it.
  void arrive_and_wait() {
    std::unique_lock held(lock_);
    const unsigned round = round_;
    if (++here_ == threads_) {
      here_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(held, [&] { return round_ != round; });
    }
  }

 private:
  const unsigned threads_;
  unsigned here_ = 0, round_ = 0;
  std::mutex lock_;
  std::condition_variable all_here_;
};

}  // namespace heapwright::testing
