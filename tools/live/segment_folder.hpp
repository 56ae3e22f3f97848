// A folder for segments, of this process alone, which goes when the object does.
//
// Where this process is killed, the folder stays until another one is made after the end of those
// who write to it.
//
// Invariant: the folder is locked while the object lives. A folder that nobody has locked, and to
// which no running process writes, is left over.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "descriptor.hpp"

namespace heapwright::tool {

/// Where segments may lie: the usual folder, and those of `live` that run now, or were killed.
[[nodiscard]] std::vector<std::filesystem::path> folders_with_segments();

/// Why there is no segment in this folder of a program that has ended: a sentence on `who`.
[[nodiscard]] std::string why_no_segment(const char* who, const std::filesystem::path& folder);

class segment_folder {
 public:
  /// In HEAPWRIGHT_SEGMENT_DIR, where that is set; otherwise in /dev/shm, or else in /tmp. Removes
  /// folders that are left over there. Throws `failure`.
  segment_folder();
  segment_folder(const segment_folder&) = delete;
  segment_folder& operator=(const segment_folder&) = delete;
  ~segment_folder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  descriptor lock_;
};

}  // namespace heapwright::tool
