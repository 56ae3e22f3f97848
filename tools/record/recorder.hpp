// Reads the rings of all processes in a folder of segments, or of one that runs already, and writes
// their trace.
//
//   look    finds processes that have begun, reads all rings, and writes what is certain
//   end     reads what is left, and writes why the trace ends
//
// States of a process: runs; gone (it is not there any more, and all that it had recorded is read).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tsl/robin_map.h>

#include "attachment.hpp"
#include "merger.hpp"
#include "ring_source.hpp"
#include "segment_file.hpp"
#include "segment_reader.hpp"
#include "trace_writer.hpp"

namespace heapwright::tool {

/// When a recording begins: before the program does.
struct recording_begin {
  std::uint64_t ticks, ns;  ///< the same moment, by the processor's counter and by CLOCK_MONOTONIC

  static recording_begin now() noexcept;
};

class recorder {
 public:
  /// `most_bytes`: of the trace; 0: any.
  recorder(std::filesystem::path folder, trace::trace_writer::sink to, std::uint64_t most_bytes,
           const recording_begin& begin);
  /// `attached` must outlive it.
  recorder(attachment& attached, trace::trace_writer::sink to, std::uint64_t most_bytes, const recording_begin& begin);

  /// Returns how many records there were.
  std::uint64_t look();

  /// No process records any more; their rings are read to the end.
  void stop();

  /// After that, from time to time: processes that have begun since do not record.
  void refuse_others() { find_processes(); }
  void end(const std::string& reason);

  /// Whether there are some that are not gone, or of which something is still to be read.
  [[nodiscard]] bool has_running_processes();

  [[nodiscard]] bool has_processes() const noexcept { return !processes_.empty(); }
  /// Sentences on the processes that are not.
  [[nodiscard]] const std::vector<std::string>& not_recorded() const noexcept { return not_recorded_; }

  [[nodiscard]] std::uint64_t written() const noexcept { return writer_.written(); }
  [[nodiscard]] std::uint64_t events() const noexcept { return writer_.events(); }
  [[nodiscard]] bool has_failed() const noexcept { return writer_.has_failed(); }
  [[nodiscard]] bool is_full() const noexcept { return writer_.is_full(); }

 private:
  struct recorded_process {
    std::uint32_t number = 0;
    segment::process_figures figures;
    std::unique_ptr<segment::segment_file> segment;
    std::unique_ptr<segment::segment_reader> reader;  ///< of the same file
    std::uint64_t stacks_at = 0;
    std::uint64_t since_ticks = 0;       ///< older records are of an earlier recording
    std::uint64_t anonymous_before = 0;  ///< bytes
    std::unique_ptr<ring_source> rings;
    std::vector<std::int64_t> thread_of_ring;  ///< -1: none yet, or it has ended
    std::vector<std::uint64_t> waited_ns;      ///< of each ring, of which notes tell
    std::uint32_t threads = 0;
    tsl::robin_map<std::uint64_t, std::uint32_t> stacks;  ///< by reference
    std::size_t modules = 0;
    segment::reference last_code = 0;  ///< of those that the trace has
    std::uint64_t next_memory_ns = 0;  ///< when its memory is looked at again
    std::uint64_t next_growth_ns = 0;  ///< when it is, if it grows
    std::uint64_t most_resident = 0;   ///< bytes of RSS, when it was looked at
    bool has_told_of_child = false;    ///< that is not recorded
    bool is_gone = false;
  };

  recorder(std::filesystem::path folder, attachment* attached, trace::trace_writer::sink to, std::uint64_t most_bytes,
           const recording_begin& begin);

  void find_processes();
  [[nodiscard]] std::vector<std::filesystem::path> files_of_rings() const;
  void note_unreadable(const segment::bad_segment& why);
  void find_refusals();
  void note_refusal_in(const std::filesystem::path& segment);
  void note_not_recorded(const std::string& which);
  void begin(std::unique_ptr<recorded_process> p);
  /// Returns how many records there were. `is_over`: the process has ended, or is another program.
  std::uint64_t read(recorded_process& p, bool is_over);
  [[nodiscard]] std::uint32_t stack_of(recorded_process& p, std::uint64_t reference);
  void note_names(recorded_process& p);
  [[nodiscard]] static std::uint64_t own_memory(const recorded_process& p);
  void note_memory(recorded_process& p, bool is_busy);
  [[nodiscard]] static bool is_at_a_new_high(const recorded_process& p);
  void note_waits(recorded_process& p);
  void note_lost_children(recorded_process& p);
  void note_end(recorded_process& p);

  std::filesystem::path folder_;
  attachment* attached_;  ///< null: all processes in the folder
  trace::trace_writer writer_;
  std::uint64_t began_ns_;
  trace::tick_scale clock_;
  trace::merger merger_;
  std::vector<std::unique_ptr<recorded_process>> processes_;
  std::uint64_t looks_ = 0;
  std::vector<std::string> not_recorded_;
  std::set<std::filesystem::path> known_segments_;  ///< of processes that are recorded, or were told of as not
  bool is_stopped_ = false;
};

}  // namespace heapwright::tool
