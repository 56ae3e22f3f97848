// What `live --save` keeps of a run: the segments of all its processes, and what only the viewer
// has seen of them (time line, resident memory, memory map). One file, packed, which any machine
// can read.
//
//   gzip of   one line of JSON: format, and for each process its name, state, past and the parts of
//             its segment
//             the bytes of these parts, one behind the other
//
// A segment is a sparse file; only what is no hole is kept. To be read, the segments are unpacked
// into a folder of their own, which goes with the object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "segment_folder.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {

struct saved_process {
  std::string name;  ///< PID-START-N, as its segment is called
  std::filesystem::path segment;
  std::optional<process_past> past;  ///< none: nobody has watched it
};

/// Throws `failure` if the file cannot be written, or a segment cannot be read. The first process
/// is the one that was started.
void save_run(const std::string& file, const std::vector<saved_process>& processes);

class opened_run {
 public:
  /// Of a saved run, or of a segment as a probe leaves it, which is a run of one process. Throws
  /// `failure`.
  explicit opened_run(const std::string& file);

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  /// At least one.
  [[nodiscard]] const std::vector<saved_process>& processes() const noexcept { return processes_; }
  /// Where the segments of its processes are; empty: there is only the first.
  [[nodiscard]] std::filesystem::path folder() const;

 private:
  void unpack(const std::string& file);

  std::filesystem::path file_;
  std::unique_ptr<segment_folder> folder_;
  std::vector<saved_process> processes_;
};

}  // namespace heapwright::tool
