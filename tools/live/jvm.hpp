// What a JVM calls the code that it has compiled: it writes /tmp/perf-PID.map when it is asked to,
// as jcmd does with Compiler.perfmap (JDK 17 and later).
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace heapwright::tool {

/// Whether the process has a JVM in it.
[[nodiscard]] bool is_jvm(pid_t process);

/// Asks for the map, and waits until it is written. `own_id`: what the process calls itself. False:
/// it is not a JVM that can be asked, or one that knows no such map. Takes two seconds at most
/// where the JVM does not answer.
bool write_perf_map_of_jvm(pid_t process, std::uint32_t own_id);

}  // namespace heapwright::tool
