// A live process seen from outside: what is mapped into it, its memory, and which malloc its code
// is bound to.
//
// The dynamic loader keeps a list of loaded objects for debuggers (r_debug, see link.h) in the
// order in which symbols are looked up; the first object on it that defines `malloc` is the malloc
// of the process. Where the memory may not be read, the mapped files are known still, but not their
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace heapwright::tool {

struct mapping {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t offset;
  std::uint64_t inode;
  std::string path;  ///< as the process's own namespace names it, without " (deleted)"
  bool is_deleted;   ///< there is no file of this path any more, or another one
};

/// All processes that /proc shows.
std::vector<pid_t> processes();

/// The mappings that show files, in the order of their addresses. Empty if the process is gone or
/// not ours to look at.
std::vector<mapping> mapped_files(pid_t pid);

bool read_memory(pid_t pid, std::uint64_t address, void* into, std::size_t size);

/// Who may read a process that this one may not, for the end of a message.
std::string who_may_read();

/// Where a path of the process's own file system namespace (its container) is found from here.
std::string path_inside(pid_t pid, const std::string& path);

/// The path of the program it runs; empty if that cannot be found out.
std::string executable_of(pid_t pid);
/// As ps shows it; empty for a process that is gone.
std::string name_of_process(pid_t pid);

/// The file whose malloc the process is bound to: a library, or the executable when it brings its
/// own or is static. Nothing while the loader has not come that far, or when it cannot be found
/// out.
std::optional<std::string> malloc_of(pid_t pid);

/// Where the loader's records of loaded objects (link_map) are; empty if they cannot be read.
std::vector<std::uint64_t> loaded_object_records(pid_t pid);

/// RSS, right but for some hundred KiB. Cheap for the process looked at, however large it is;
/// smaps_rollup is not: it walks all its pages while the process waits.
std::optional<std::uint64_t> resident_bytes(pid_t pid);

/// A figure in bytes that /proc gives in a file of lines "Name:  123 kB"; zero if it is not there.
std::uint64_t proc_bytes(pid_t pid, const char* file, const char* name);

}  // namespace heapwright::tool
