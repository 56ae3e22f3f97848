// How the process's modules come to call our malloc.
#pragma once

#include "module_list.hpp"

namespace heapwright::process {

/// Whether another malloc of ours, of whatever name, has done so before. The caller is DllMain.
[[nodiscard]] bool is_redirected_already() noexcept;

/// Redirects all modules that are loaded, and those that are loaded from now on. The caller holds
/// the loader's lock: it is DllMain.
void redirect_modules() noexcept;

/// The loader's lock guards it.
[[nodiscard]] const module_list& seen_modules() noexcept;

}  // namespace heapwright::process
