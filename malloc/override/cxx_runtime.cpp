#include "cxx_runtime.hpp"

#include <heapwright/core/check.hpp>

// std::get_new_handler and std::__throw_bad_alloc, by the names they have in libstdc++ and libc++ alike.
extern "C" {
[[gnu::weak]] std::new_handler _ZSt15get_new_handlerv() noexcept;
[[gnu::weak]] void _ZSt17__throw_bad_allocv();
}

namespace heapwright::process {

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

}  // namespace heapwright::process
