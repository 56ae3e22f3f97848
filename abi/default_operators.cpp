// Runs in every process, in most before all else: it asks the loader nothing where there is no C++
// runtime, and allocates only where a program replaces operators.
#include "default_operators.hpp"

#include <cstdint>
#include <initializer_list>

#include <dlfcn.h>

#include "cxx_runtime.hpp"
#include "own_object.hpp"
#include "written_at_start.hpp"

namespace heapwright::process {

[[HEAPWRIGHT_WRITTEN_AT_START]] constinit default_operators defaults{};

namespace {

/// Whether the process binds this form to another object than this library.
bool is_replaced(const char* mangled) noexcept {
  return !is_in_own_object(reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, mangled)));
}

/// f(the form's pointer, its mangled name) for each, until one is false.
template <class F>
bool all_forms(default_operators& d, F f) noexcept {
  return f(d.new_array, "_Znam") && f(d.new_nothrow, "_ZnwmRKSt9nothrow_t") &&
         f(d.new_array_nothrow, "_ZnamRKSt9nothrow_t") && f(d.new_array_aligned, "_ZnamSt11align_val_t") &&
         f(d.new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t") &&
         f(d.new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t") && f(d.delete_array, "_ZdaPv") &&
         f(d.delete_sized, "_ZdlPvm") && f(d.delete_array_sized, "_ZdaPvm") &&
         f(d.delete_nothrow, "_ZdlPvRKSt9nothrow_t") && f(d.delete_array_nothrow, "_ZdaPvRKSt9nothrow_t") &&
         f(d.delete_array_aligned, "_ZdaPvSt11align_val_t") && f(d.delete_aligned_sized, "_ZdlPvmSt11align_val_t") &&
         f(d.delete_array_aligned_sized, "_ZdaPvmSt11align_val_t") &&
         f(d.delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t") &&
         f(d.delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t");
}

/// A library that stands before this one may have all forms: ours are not called then.
bool has_forms_of_ours() noexcept {
  default_operators unused{};
  return !all_forms(unused, [](auto*&, const char* mangled) { return is_replaced(mangled); });
}

/// From the runtime itself: another malloc may stand between it and this library, and have forms of
/// its own.
bool find_all(default_operators& d) noexcept {
  return all_forms(d, []<class Function>(Function*& into, const char* mangled) {
    into = reinterpret_cast<Function*>(cxx_runtime_function(mangled));
    return into != nullptr;
  });
}

[[gnu::constructor(101)]] void find_defaults() noexcept {
  if (!is_started_with_cxx_runtime() || !has_forms_of_ours()) return;
  for (const char* const called_by_defaults :
       {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t", "_ZdlPvSt11align_val_t",
        "_ZdaPvSt11align_val_t"}) {
    if (!is_replaced(called_by_defaults)) continue;
    default_operators found{};
    found.are_used = find_all(found);
    if (!found.are_used) return;
    if (const opened is_open(defaults); is_open) defaults = found;
    return;
  }
}

}  // namespace
}  // namespace heapwright::process
