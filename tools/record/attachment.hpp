// A process that runs already, as its recorder has it.
//
// States: attached (this tool has the lock of the segment, and the probe records), detached. Where
// this tool is killed the lock goes with it, and the probe stops recording when a ring is full.
#pragma once

#include <cstdint>
#include <filesystem>

#include <sys/types.h>

#include "descriptor.hpp"
#include "segment_file.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

class attachment {
 public:
  /// Throws `failure` if the process cannot be recorded: there is none, it has no probe or one that
  /// counts, or somebody records it.
  explicit attachment(pid_t process);
  attachment(const attachment&) = delete;
  attachment& operator=(const attachment&) = delete;
  ~attachment();

  /// No more than once.
  void detach() noexcept;

  [[nodiscard]] const segment::process_figures& process() const noexcept { return figures_; }
  [[nodiscard]] const std::filesystem::path& segment() const noexcept { return segment_.path(); }
  /// Where the process makes its rings, if it has none yet.
  [[nodiscard]] std::filesystem::path rings() const;

  /// Bytes of anonymous memory that it had before.
  [[nodiscard]] std::uint64_t anonymous_before() const noexcept { return anonymous_before_; }

  /// Throws `failure` if the probe has tried to record since, and could not.
  void check_records();
  /// Somebody has told the probe to count: it does not record meanwhile.
  [[nodiscard]] bool is_counting() noexcept;
  [[nodiscard]] bool has_ended() const;
  /// It has executed another one, which is not recorded.
  [[nodiscard]] bool is_another_program() noexcept;

 private:
  [[nodiscard]] segment::segment_header* control() noexcept;  ///< null: the segment has gone, with its process

  segment::segment_file segment_;
  segment::process_figures figures_;
  descriptor lock_;
  std::uint64_t anonymous_before_ = 0;
  std::uint32_t recording_ = 0;  ///< what the segment says while this tool records; 0: it does not
};

}  // namespace heapwright::tool
