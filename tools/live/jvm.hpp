// What a JVM tells of itself when it is asked, as jcmd does: what it calls the code that it has
// compiled, and what its memory consists of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace heapwright::tool {

/// Whether the process has a JVM in it.
[[nodiscard]] bool is_jvm(pid_t process);

/// Has it write /tmp/perf-PID.map (JDK 17 and later), and waits until that is written. `own_id`:
/// what the process calls itself. Nothing happens where it does not listen, or knows no such map.
/// Takes two seconds at most where it does not answer.
void write_perf_map_of_jvm(pid_t process, std::uint32_t own_id);

/// What one part of the JVM has, by its own account. Bytes.
struct jvm_part {
  std::string name;
  std::uint64_t reserved = 0, committed = 0;
  std::uint64_t by_malloc = 0;  ///< of the committed ones; the rest is mapped

  friend bool operator==(const jvm_part&, const jvm_part&) = default;
};

/// Nothing: it does not listen, or does not answer in two seconds. Empty: it keeps no account
/// (Native Memory Tracking is off).
[[nodiscard]] std::optional<std::vector<jvm_part>> memory_of_jvm(pid_t process, std::uint32_t own_id);

/// The parts in what VM.native_memory answers, in bytes.
[[nodiscard]] std::vector<jvm_part> jvm_parts_in(std::string_view answer);

}  // namespace heapwright::tool
