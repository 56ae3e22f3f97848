// A temporary file without a name: whatever becomes of this process, nothing is left behind. Holds
// what a measured command reads (its input, fed to each run from the start) and writes (its output,
// compared between runs).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "descriptor.hpp"

namespace heapwright::tool {

/// The folder for what is temporary: $TMPDIR, or /tmp.
std::string scratch_place();

class scratch_file {
 public:
  scratch_file();

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::string content() const;
  /// The last lines that are not blank, joined by " | ", cut to a length one can read.
  [[nodiscard]] std::string tail(unsigned lines) const;
  /// The same file with an offset of its own, at the start.
  [[nodiscard]] descriptor reopen() const;
  /// Whether the file system that it lies in has room left.
  [[nodiscard]] bool has_room() const;
  /// Appends all there is to read from a descriptor.
  void fill_from(int source) const;

 private:
  descriptor file_;
};

struct difference {
  std::uint64_t line;  ///< counted from 1
  std::string expected;
  std::string found;
};

/// The first line in which two files differ; nothing if they are equal. Lines are cut and made
/// printable for a message.
std::optional<difference> first_difference(const scratch_file& expected, const scratch_file& found);

}  // namespace heapwright::tool
