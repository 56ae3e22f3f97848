// Something that each thread has for itself, and that learns of the thread's end; for code in
// headers.
#pragma once

#ifdef _WIN32
#include <heapwright/sync/windows/thread_record.hpp>
#else

#include <heapwright/core/language.hpp>

namespace heapwright {

/// One `Record` for each thread: `Record{}` until the thread changes it. It has
///
///   void at_end() noexcept            the thread ends; leaves the record as ended() is
///   static constexpr Record ended()   it stays so: what still runs in the thread changes nothing
template <class Record>
class thread_record {
 public:
  /// The calling thread's.
  [[nodiscard]] static Record& mine() noexcept { return record_; }

  /// at_end is called when the calling thread ends, after destructors of thread-local objects that
  /// were made later. Once, however often it is armed. By the destructor of a thread-local object:
  /// unlike a pthread key, that keeps the library loaded that the function is in, so a plugin that
  /// is closed leaves nothing behind that a thread could call.
  static void arm() noexcept {
    // Not a static member: GCC 12 makes one guard too many of those in a program with std::pmr.
    thread_local hook armed;
    armed.touch();
  }

 private:
  struct hook {
    hook() noexcept = default;
    ~hook() { record_.at_end(); }
    hook(const hook&) = delete;
    hook& operator=(const hook&) = delete;
    void touch() noexcept {}  // the first use of the object makes its destructor run
  };

  static inline constinit thread_local Record record_{};
};

}  // namespace heapwright

#endif
