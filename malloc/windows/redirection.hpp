// How the process's modules come to call our malloc.
#pragma once

#include "module_list.hpp"

namespace heapwright::process {

/// Redirects all modules that are loaded, and those that are loaded from now on. The caller holds
/// the loader's lock: it is DllMain.
void redirect_modules() noexcept;

/// The loader's lock guards it.
[[nodiscard]] const module_list& seen_modules() noexcept;

}  // namespace heapwright::process
