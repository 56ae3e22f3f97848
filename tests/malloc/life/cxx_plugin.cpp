// The C++ library that late_cxx_runtime.c opens: counts the three ways in which operator new may
// fail.
#include <cstdint>
#include <new>

#include "../support/opaque.h"

extern "C" int cxx_plugin_catches_bad_alloc() {
  int right = 0;
  try {
    ::operator delete(::operator new(opaque_size(PTRDIFF_MAX)));
  } catch (const std::bad_alloc&) {
    ++right;
  }
  std::set_new_handler([] { throw 42; });
  try {
    ::operator delete(::operator new(opaque_size(PTRDIFF_MAX)));
  } catch (const int thrown) {
    right += thrown == 42 ? 1 : 0;
  }
  if (::operator new(opaque_size(PTRDIFF_MAX), std::nothrow) == nullptr) ++right;
  std::set_new_handler(nullptr);
  return right;
}
