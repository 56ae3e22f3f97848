// A C program may load a C++ library later, and privately (RTLD_LOCAL), as interpreters do with
// extension modules; then the weak symbols were bound to nothing. A runtime that is loaded can
// still be asked for by its name.
#include <initializer_list>

#include <dlfcn.h>

#include <heapwright/core/check.hpp>

#include "cxx_runtime.hpp"

// std::get_new_handler and std::__throw_bad_alloc, by the names they have in libstdc++ and libc++
// alike.
extern "C" {
[[gnu::weak]] std::new_handler _ZSt15get_new_handlerv() noexcept;
[[gnu::weak]] void _ZSt17__throw_bad_allocv();
}

namespace heapwright::process {

namespace {

/// By name: a reference would bind to a glibc that has dlclose in libc (libc_versions.cpp), and in
/// the probe to the probe's own.
void close_library(void* library) noexcept {
  using dlclose_function = int(void*);
  if (auto* const close = reinterpret_cast<dlclose_function*>(::dlsym(RTLD_NEXT, "dlclose"))) close(library);
}

}  // namespace

void* cxx_runtime_function(const char* mangled) noexcept {
  for (const char* runtime : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"}) {
    if (void* const library = ::dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD)) {
      void* const function = ::dlsym(library, mangled);
      close_library(library);  // the count of its users only: it stays loaded
      if (function != nullptr) return function;
    }
  }
  return nullptr;
}

bool is_started_with_cxx_runtime() noexcept { return &_ZSt15get_new_handlerv != nullptr; }

std::new_handler current_new_handler() noexcept {
  auto* get = &_ZSt15get_new_handlerv;
  if (get == nullptr) get = reinterpret_cast<decltype(get)>(cxx_runtime_function("_ZSt15get_new_handlerv"));
  return get == nullptr ? nullptr : get();
}

void throw_bad_alloc() {
  auto* raise = &_ZSt17__throw_bad_allocv;
  if (raise == nullptr) raise = reinterpret_cast<decltype(raise)>(cxx_runtime_function("_ZSt17__throw_bad_allocv"));
  if (raise != nullptr) raise();
  die("operator new: out of memory, and no C++ runtime to throw std::bad_alloc with");
}

void* new_caught(std::size_t size, std::size_t alignment) noexcept {
  // The runtime's own nothrow form is exactly that: it calls the throwing form, which is ours, and
  // catches. A `catch` here would need the runtime when the library is loaded.
  const std::nothrow_t nothrow;
  if (alignment <= alignof(std::max_align_t)) {
    using form = void*(std::size_t, const std::nothrow_t&);
    auto* const f = reinterpret_cast<form*>(cxx_runtime_function("_ZnwmRKSt9nothrow_t"));
    return f == nullptr ? nullptr : f(size, nothrow);
  }
  using form = void*(std::size_t, std::align_val_t, const std::nothrow_t&);
  auto* const f = reinterpret_cast<form*>(cxx_runtime_function("_ZnwmSt11align_val_tRKSt9nothrow_t"));
  return f == nullptr ? nullptr : f(size, std::align_val_t{alignment}, nothrow);
}

}  // namespace heapwright::process
