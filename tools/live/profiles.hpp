// Stacks in the formats of other tools: pprof, and lines of "a;b;c value" for flame graph scripts.
#pragma once

#include <string>

#include "views.hpp"

namespace heapwright::tool {

/// gzip-compressed pprof. `seconds`: only what happens in that time, for which the caller waits.
/// Throws std::runtime_error when stopped meanwhile.
[[nodiscard]] std::string pprof_answer(watched_process& process, bool is_heap, unsigned seconds);

[[nodiscard]] std::string collapsed_answer(watched_process& process, const stack_question& question);

}  // namespace heapwright::tool
