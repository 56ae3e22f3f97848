// What a JVM calls the code that it has compiled: it writes /tmp/perf-PID.map when it is asked to,
// as jcmd does with Compiler.perfmap (JDK 17 and later).
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace heapwright::tool {

/// Whether the process has a JVM in it.
[[nodiscard]] bool is_jvm(pid_t process);

/// Asks for the map, and waits until it is written. `own_id`: what the process calls itself.
/// Nothing happens where it does not listen, or knows no such map. Takes two seconds at most where
/// it does not answer.
void write_perf_map_of_jvm(pid_t process, std::uint32_t own_id);

}  // namespace heapwright::tool
