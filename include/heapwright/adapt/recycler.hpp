// Gives back what an allocator does not need, now and then, from a thread of its own: for those
// that give nothing back by themselves, so that no call of the program ever waits for it:
//
//   heap<app> memory;                                  // app.pages.give_back: when_asked
//   recycler gives_back(memory, std::chrono::milliseconds(500));
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// Calls memory.trim(), which has to be thread-safe, every so often until it is destroyed, which
/// waits for a call under way. The memory must outlive it. In the child of a fork it does nothing.
/// Throws std::system_error where no thread can be had.
template <can_trim A>
class recycler {
 public:
  /// Starts the thread; the first trim comes after `every`.
  recycler(A& memory, std::chrono::milliseconds every)
      : thread_([at = sleeping_, &memory, every] {
          std::unique_lock held(at->lock);
          while (!at->woken.wait_for(held, every, [&] { return at->ends; })) memory.trim();
        }) {}

  recycler(const recycler&) = delete;
  recycler& operator=(const recycler&) = delete;

  ~recycler() {
    // The thread has stayed behind in the parent; what it sleeps on here is never woken, and never
    // freed.
    if (::getpid() != process_) {
      thread_.detach();
      return;
    }
    {
      const std::lock_guard held(sleeping_->lock);
      sleeping_->ends = true;
    }
    sleeping_->woken.notify_one();
    thread_.join();
  }

 private:
  struct place {
    std::mutex lock;
    std::condition_variable woken;
    bool ends = false;
  };

  const pid_t process_ = ::getpid();
  const std::shared_ptr<place> sleeping_ = std::make_shared<place>();
  std::thread thread_;  // not jthread: older C++ libraries of Clang have none
};

}  // namespace heapwright
