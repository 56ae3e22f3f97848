// Follows a command's processes by ptrace, and holds each at its end while its memory is still
// there.
//
// The kernel stops a traced thread where it ends (PTRACE_EVENT_EXIT): after all code of the process
// has run, in whatever way it ends, with memory and registers in place. Nothing is needed in the
// program for it. If this process dies, the kernel lets go of all that it traces, and they go on.
//
// A thread is   running   or stopped only to report something; it goes on at once
//               held      at its end, together with the whole process, or so it seems
//               leaving   at its end, while the process goes on
//
// A process ends when all its threads that are not leaving are held. Then `at_end` is called, and
// all go on. Two things look alike at first:
// - A thread that ends alone is in the system call `exit`: it leaves, unless it is the last one.
// - Threads that another thread's exec ends are held without a reason of their own. exec waits for
//   them, so they are let go once a thread of theirs is seen in exec.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "thread_state.hpp"

namespace heapwright::tool {

/// A process at its end. It waits until `at_end` returns.
struct ending_process {
  pid_t id = 0;
  pid_t reader = 0;                   ///< the thread by whose id memory is read: the first one may be gone
  int status = 0;                     ///< as waitpid tells it
  std::vector<thread_state> threads;  ///< those that are held
};

class process_tracer {
 public:
  using end_handler = std::function<void(const ending_process&)>;

  explicit process_tracer(end_handler at_end) : at_end_(std::move(at_end)) {}

  /// Follows a child of this process, and what it starts. False: the system does not permit it;
  /// errno says why.
  [[nodiscard]] bool follow(pid_t child);

  /// Handles all that has been reported. False: no process is left.
  [[nodiscard]] bool handle_reports();

  /// The time after which handle_reports() has to look again although nothing is reported; nothing:
  /// never.
  [[nodiscard]] std::optional<std::chrono::milliseconds> patience() const;

  /// How a process ended, as waitpid tells it. Nothing while it runs.
  [[nodiscard]] std::optional<int> status_of(pid_t process) const;

  [[nodiscard]] std::size_t running_processes() const;

 private:
  enum class stage { running, held, leaving };
  struct thread {
    pid_t process = 0;
    stage is = stage::running;
    bool ends_process = false;  ///< certainly: by exit_group or by a signal
    int status = 0;
    std::chrono::steady_clock::time_point since;
    thread_state state;
  };

  void handle(pid_t id, int status);
  void handle_stop(pid_t id, int status);
  void handle_end_of_thread(pid_t id);
  void handle_exec(pid_t id);
  void look_for_ends();
  void finish(pid_t process);
  [[nodiscard]] thread& known(pid_t id);
  [[nodiscard]] std::vector<pid_t> threads_of(pid_t process) const;
  /// Threads that may still come to their end, by what /proc says: a new one may not have been
  /// reported.
  [[nodiscard]] std::vector<pid_t> awaited(pid_t process) const;

  end_handler at_end_;
  std::map<pid_t, thread> threads_;
  std::map<pid_t, int> ended_;
};

}  // namespace heapwright::tool
