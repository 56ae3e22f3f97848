// The processes that descend from this one. As a subreaper, this process also inherits descendants
// whose parent died, so none escapes.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace heapwright::tool {

struct tree_member {
  pid_t pid;
  /// Bytes resident; 0 for a process that shares its parent's memory (vfork, before the exec) and
  /// is counted there.
  std::uint64_t resident;
};

/// From now on, orphaned descendants become children of this process.
void adopt_orphans();

/// Without the process `except` and what descends from it.
std::vector<tree_member> descendants(pid_t except = 0);

}  // namespace heapwright::tool
