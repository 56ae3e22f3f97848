// Called by the library's constructor, of which there is one for the shared library and one for static linking.
#pragma once

namespace heapwright::process {

/// `environment`: the process's, as main gets it.
void start(char** environment) noexcept;

}  // namespace heapwright::process
