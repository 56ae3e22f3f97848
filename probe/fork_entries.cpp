// Ways to become two processes that tell none of the handlers of pthread_atfork: _Fork, and clone
// without shared memory. The child is a child of a fork like others. What is made by the system
// call itself is noticed later: observer.hpp.
#include <cerrno>
#include <cstdarg>

#include <dlfcn.h>
#include <sched.h>
#include <sys/types.h>

#include "../abi/export.hpp"
#include "observer.hpp"

namespace {

using namespace heapwright::probe;

// Found when the probe is loaded: a signal handler that calls them may have interrupted the loader.
pid_t (*next_fork)() = nullptr;
decltype(&::clone) next_clone = nullptr;

[[gnu::constructor]] void find_next_fork() noexcept {
  next_fork = reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_NEXT, "_Fork"));  // since glibc 2.34
  next_clone = reinterpret_cast<decltype(&::clone)>(::dlsym(RTLD_NEXT, "clone"));
}

/// What a cloned process begins with, on the stack of the thread that has made it.
struct beginning {
  int (*run)(void*);
  void* argument;
};

int begin_cloned(void* of) {
  const auto [run, argument] = *static_cast<const beginning*>(of);
  note_untold_fork();
  return run(argument);
}

}  // namespace

extern "C" {

HEAPWRIGHT_EXPORT pid_t _Fork() noexcept {
  if (next_fork == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const pid_t child = next_fork();
  if (child == 0) note_untold_fork();
  return child;
}

HEAPWRIGHT_EXPORT int clone(int (*run)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list more;
  va_start(more, argument);
  auto* const parents_id = va_arg(more, pid_t*);
  auto* const thread_pointer = va_arg(more, void*);
  auto* const childs_id = va_arg(more, pid_t*);
  va_end(more);
  if (next_clone == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  if ((flags & CLONE_VM) != 0 || run == nullptr)
    return next_clone(run, stack, flags, argument, parents_id, thread_pointer, childs_id);
  beginning of{run, argument};
  return next_clone(begin_cloned, stack, flags, &of, parents_id, thread_pointer, childs_id);
}

}  // extern "C"
