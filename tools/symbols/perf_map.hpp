// Names of code that a program makes while it runs: just-in-time compilers list it in
// /tmp/perf-PID.map, one piece a line, `START SIZE NAME` with the numbers in hexadecimal. The file
// grows, or is written anew; a piece listed later takes the place of those that it overlaps.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heapwright::tool {

class perf_map {
 public:
  explicit perf_map(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Reads what is new in the file. Whether there was anything. Costs one stat(2) if not.
  bool refresh();

  /// Null: nothing is known of this address.
  [[nodiscard]] const std::string* find(std::uint64_t pc) const;

 private:
  struct piece {
    std::uint64_t end;
    std::string name;
  };

  bool add_line(const std::string& line);

  std::string path_;
  std::map<std::uint64_t, piece> pieces_;  ///< by where they begin; they do not overlap
  std::uint64_t read_bytes_ = 0;           ///< whole lines
  std::uint64_t seen_bytes_ = 0;           ///< the file's length when last looked at
  std::int64_t written_ns_ = 0;            ///< and when it was written last
  std::string last_read_;                  ///< what stands before read_bytes_: changed where the file is written anew
  std::uint64_t file_id_ = 0;
};

}  // namespace heapwright::tool
