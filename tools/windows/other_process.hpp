// Another process, and what the libraries in it export.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "command.hpp"

namespace heapwright::tool {

class other_process {
 public:
  /// By the only word that is given, its number. Throws `failure` for anything else, and where the
  /// process cannot be read.
  other_process(const words& given, const char* subcommand);

  [[nodiscard]] HANDLE get() const noexcept { return process_.get(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }  ///< "process 123, program.exe"

  /// False: it is gone, or has no such memory.
  bool read(const void* there, void* into, std::size_t bytes) const noexcept;

  struct exported {
    std::string library;  ///< its path
    const void* there;    ///< the address in the process
  };

  /// All of this name, but for those of the system's own libraries.
  [[nodiscard]] std::vector<exported> exports_named(const char* name) const;

 private:
  handle process_;
  std::string name_;
};

/// The process runs on no malloc of ours.
[[nodiscard]] failure no_malloc_in(const other_process& of);

/// A malloc in it is of another version than this command.
[[nodiscard]] failure other_version_in(const other_process& of, const std::string& library);

}  // namespace heapwright::tool
