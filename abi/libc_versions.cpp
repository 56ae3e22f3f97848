// Lets one binary run on glibc 2.28, on all newer versions, and on musl, whatever it is linked
// against.
//
// Problem     glibc 2.34 moved pthread_* and dl* into libc.so.6 and gave them a new version. A
//             library that is linked there refuses to load on an older glibc. Of pthread_atfork and
//             at_quick_exit glibc has a part that is linked into the library, and that calls what
//             musl has not. (All other names are alike; musl looks at no versions, and takes
//             libc.so.6 for itself.)
//
// Solution    This library defines the functions that it calls, hidden. Each definition forwards to
//             the first version that glibc had of the function, which every glibc keeps, or to what
//             musl has.
//
// States      found    the function is in the process: always since 2.34, and in musl; before, if
//                      the program is linked to libpthread or libdl
//             absent   an older glibc, and a program that is not. dlsym then finds nothing: no
//                      C++ program can be asked which operators it replaces, and those that it
//                      does not are this library's. The end of a thread is learnt from
//                      __cxa_thread_atexit_impl, which libc itself has: a plugin may bring
//                      libpthread, and threads, later.
//
// Invariant   No other file of the shared libraries refers to a symbol newer than glibc 2.28
//             (tests/structure/needed_libraries.py), or to one that musl has not. The archive does
//             not have this file: it is linked where it runs.
#include <cstddef>
#include <cstdlib>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/syscall.h>

// The first version of every function of that age.
#if defined(__x86_64__)
#define HEAPWRIGHT_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define HEAPWRIGHT_FIRST_GLIBC "GLIBC_2.17"
#elif defined(__riscv)
#define HEAPWRIGHT_FIRST_GLIBC "GLIBC_2.27"
#else
#error "name the first glibc of this processor here"
#endif
#define HEAPWRIGHT_FIRST_VERSION(function) asm(".symver first_" #function ", " #function "@" HEAPWRIGHT_FIRST_GLIBC)

extern "C" {

HEAPWRIGHT_FIRST_VERSION(dladdr);
HEAPWRIGHT_FIRST_VERSION(dlsym);
HEAPWRIGHT_FIRST_VERSION(pthread_getspecific);
HEAPWRIGHT_FIRST_VERSION(pthread_key_create);
HEAPWRIGHT_FIRST_VERSION(pthread_key_delete);
HEAPWRIGHT_FIRST_VERSION(pthread_setspecific);

[[gnu::weak]] decltype(dladdr) first_dladdr;
[[gnu::weak]] decltype(dlsym) first_dlsym;
[[gnu::weak]] decltype(pthread_getspecific) first_pthread_getspecific;
[[gnu::weak]] decltype(pthread_key_create) first_pthread_key_create;
[[gnu::weak]] decltype(pthread_key_delete) first_pthread_key_delete;
[[gnu::weak]] decltype(pthread_setspecific) first_pthread_setspecific;

// glibc's own.
[[gnu::weak]] int __cxa_at_quick_exit(void (*function)(void*), void* library);
[[gnu::weak]] int __cxa_thread_atexit_impl(void (*destroy)(void*), void* value, void* library);
[[gnu::weak]] int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(), void* library);
extern char __dso_handle;

}  // extern "C"

namespace {

// The key of a process without libpthread. A library has one key, so one destructor is enough.
constexpr pthread_key_t key_of_libc = ~pthread_key_t{0};
using destructor = void(void*);
constinit destructor* destroy_at_thread_end = nullptr;

bool is_main_thread() noexcept { return ::gettid() == ::getpid(); }

/// A function of a libc that is not glibc; null: it has none.
template <class Function>
Function* of_other_libc(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

#pragma GCC visibility push(hidden)

int dladdr(const void* address, Dl_info* found) noexcept {
  return &first_dladdr == nullptr ? 0 : first_dladdr(address, found);
}

void* dlsym(void* library, const char* name) noexcept {
  return &first_dlsym == nullptr ? nullptr : first_dlsym(library, name);
}

int pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) noexcept {
  if (&first_pthread_key_create != nullptr) return first_pthread_key_create(key, destroy);
  destroy_at_thread_end = destroy;
  *key = key_of_libc;
  return 0;
}

void* pthread_getspecific(pthread_key_t key) noexcept {
  return &first_pthread_getspecific == nullptr ? nullptr : first_pthread_getspecific(key);
}

// Glibc has had them since 2.30.
pid_t gettid() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }
ssize_t getdents64(int folder, void* entries, std::size_t bytes) noexcept {
  return ::syscall(SYS_getdents64, folder, entries, bytes);
}

int pthread_key_delete(pthread_key_t key) noexcept { return key == key_of_libc ? 0 : first_pthread_key_delete(key); }

// libc runs the destructor of the main thread at exit, where a key's does not run: what exit
// handlers allocate needs the main thread's value.
int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  if (key != key_of_libc) return first_pthread_setspecific(key, value);
  if (is_main_thread() || value == nullptr) return 0;
  return __cxa_thread_atexit_impl(destroy_at_thread_end, const_cast<void*>(value), &__dso_handle);
}

int pthread_atfork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
  if (&__register_atfork != nullptr) return __register_atfork(before, in_parent, in_child, &__dso_handle);
  auto* const other = of_other_libc<decltype(pthread_atfork)>("pthread_atfork");
  return other == nullptr ? -1 : other(before, in_parent, in_child);
}

#pragma GCC visibility pop

}  // extern "C"

// glibc's headers declare it as a function of C++ with the name of C.
[[gnu::visibility("hidden")]] int at_quick_exit(void (*function)()) noexcept {
  if (&__cxa_at_quick_exit != nullptr)
    return __cxa_at_quick_exit(reinterpret_cast<void (*)(void*)>(function), &__dso_handle);
  auto* const other = of_other_libc<decltype(at_quick_exit)>("at_quick_exit");
  return other == nullptr ? -1 : other(function);
}
