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

#include "heap_reading.hpp"
#include "process_image.hpp"

namespace heapwright::tool {

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
  [[nodiscard]] bool read_figures(heap_figures& into) const;

  /// The heap now. Nothing: the process is gone.
  [[nodiscard]] std::optional<heap_reading> read() const;

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
