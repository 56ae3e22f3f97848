// Calls a function when a thread ends, for code in headers: by the destructor of a thread-local
// object. Unlike a pthread key, that keeps the library loaded that the function is in: a plugin
// that is closed leaves nothing behind that a thread could call.
#pragma once

#include <heapwright/core/language.hpp>

namespace heapwright {

/// One hook for each function. `Function` takes nothing and does not throw.
template <void (*Function)() noexcept>
class thread_exit {
 public:
  /// Function is called when the calling thread ends, after destructors of thread-local objects
  /// that were made later. Once, however often it is armed.
  static void arm() noexcept {
    // Not a static member: GCC 12 makes one guard too many of those in a program with std::pmr.
    thread_local hook armed;
    armed.touch();
  }

 private:
  struct hook {
    hook() noexcept = default;
    ~hook() { Function(); }
    hook(const hook&) = delete;
    hook& operator=(const hook&) = delete;
    void touch() noexcept {}  // the first use of the object makes its destructor run
  };
};

}  // namespace heapwright
