// libheapwright in a running process, seen from outside.
//
// A process on libheapwright, or on a malloc of `heapwright build`, holds a record of itself. An
// ELF note in what is mapped says where. Both are read from the process's memory, and the record is
// believed only if its magic and layout are known. What it says are numbers from a stranger all the
// same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include <heapwright/malloc/process_record.hpp>

#include "process_image.hpp"

namespace heapwright::tool {

/// A size class that is cut from spans, at one moment.
struct class_reading {
  std::uint32_t block_bytes = 0;
  std::uint64_t outside = 0;  ///< blocks with the program or in the cache of a thread
  std::uint64_t span_bytes = 0;
};

class heap_record {
 public:
  /// Null: the process does not run on libheapwright. Throws `failure` when it does, or may, but
  /// cannot be read.
  [[nodiscard]] static std::unique_ptr<heap_record> find(pid_t pid);

  /// Of all processes that may be read, but this one.
  [[nodiscard]] static std::vector<std::unique_ptr<heap_record>> find_all();

  /// Whether processes that load this file have one.
  [[nodiscard]] static bool is_kept_by(const std::string& library);

  [[nodiscard]] pid_t process() const noexcept { return pid_; }
  [[nodiscard]] const process_record& what() const noexcept { return record_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }  ///< of the library, or of the program
  /// The file of this path is gone, or another one.
  [[nodiscard]] bool is_deleted() const noexcept { return is_deleted_; }

  /// The figures now. False: the process is gone.
  [[nodiscard]] bool read(heap_figures& into) const;

  /// The classes now, the smallest blocks first; empty if the process is gone.
  [[nodiscard]] std::vector<class_reading> read_classes() const;

 private:
  /// By path and inode: files that hold no note need not be looked into again for the next
  /// process.
  using known_files = std::set<std::pair<std::string, std::uint64_t>>;
  [[nodiscard]] static std::unique_ptr<heap_record> find(pid_t pid, known_files& without);

  heap_record(pid_t pid, const mapping& of) : pid_(pid), path_(of.path), is_deleted_(of.is_deleted) {}

  pid_t pid_;
  std::string path_;
  bool is_deleted_;
  process_record record_{};
};

}  // namespace heapwright::tool
