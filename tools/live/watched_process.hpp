// One process, seen through its segment, by any number of viewers. One without a segment that runs
// on libheapwright shows what its heap says: where its bytes are, not who asked for them.
//
// Reads at most 20 times a second however many ask, and once a second when nobody does, for the
// history and so that a new mark finds its place. When the process has ended the last figures are
// kept and nothing is read any more.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "baseline.hpp"
#include "detailed_looks.hpp"
#include "heap_record.hpp"
#include "history.hpp"
#include "memory_picture.hpp"
#include "places.hpp"
#include "segment_reader.hpp"
#include "stack_history.hpp"

namespace heapwright::tool {

struct other_process;

/// `killed`: it is gone and has not called exit: by a signal, or by the system call alone.
/// `lost`: the segment can no longer be read. `gone`: a process without one is no longer there.
/// `left`: it ran when this was saved.
enum class life { running, exited, replaced, killed, lost, gone, left };

/// Bytes, as the kernel tells them; not there once the process is gone.
struct resident_memory {
  std::uint64_t rss = 0, pss = 0, anonymous = 0, swap = 0;
  std::optional<std::uint64_t> python_arenas = {};  ///< of a Python whose memory may be read (python_arenas.hpp)
};

/// All that is known of one moment.
struct moment {
  segment::snapshot figures;
  segment::class_figures total;
  life state = life::running;
  std::optional<resident_memory> memory;
  std::optional<heap_reading> heap;  ///< where it runs on libheapwright, whose memory may be read
  bool has_probe = true;

  /// Of a process without the probe: with what its threads keep.
  [[nodiscard]] std::int64_t live() const noexcept {
    if (!has_probe) return heap ? static_cast<std::int64_t>(heap->outside()) : 0;
    return static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes);
  }
  /// Nothing if what is live is not known.
  [[nodiscard]] std::optional<live_blocks> live_parts() const noexcept;
  /// Seconds since 1970 of a moment by CLOCK_MONOTONIC.
  [[nodiscard]] double unix_seconds(std::uint64_t ns) const noexcept;
  /// By CLOCK_MONOTONIC; not before the process's start.
  [[nodiscard]] std::uint64_t nanoseconds(double unix_seconds) const noexcept;
};

struct seen_stacks {
  std::vector<segment::stack_figures> figures;
  std::shared_ptr<const moment> seen;
};

/// What a viewer knows of a process and its segment does not: kept with a saved run.
struct process_past {
  life state = life::running;
  std::uint64_t at_ns = 0;             ///< CLOCK_MONOTONIC, of all this
  std::vector<std::string> arguments;  ///< as the process has them now: some programs say there what they do
  std::vector<history_point> points;
  std::vector<std::shared_ptr<const baseline>> stacks;
  std::optional<resident_memory> memory;
  std::shared_ptr<const memory_picture> picture;
};

/// As /proc has them now; empty: there are none, or the process is gone.
[[nodiscard]] std::vector<std::string> arguments_of(pid_t process);

/// What a segment says now, and RSS. `may_run`: false of a saved run, whose process may be another
/// one by now.
[[nodiscard]] moment moment_of(const segment::segment_reader& reader, bool may_run);

/// What /proc says of a process, which has no segment.
[[nodiscard]] segment::process_figures describe(pid_t process);

class watched_process {
 public:
  /// `wrappers`: as places_book has them.
  watched_process(segment::segment_reader reader, bool may_control, function_patterns wrappers = {});
  /// Of a saved run: nothing changes any more.
  watched_process(segment::segment_reader reader, process_past past, function_patterns wrappers);
  /// Without a segment. Throws `failure` if the process does not run on libheapwright, or cannot be
  /// read.
  explicit watched_process(pid_t process);
  ~watched_process();

  /// `with_details`: somebody looks, who may cost the process something (detailed_looks.hpp).
  [[nodiscard]] std::shared_ptr<const moment> now(bool with_details = true);
  /// What was seen a moment ago may be of before the end: what is asked for next is not older than
  /// this call.
  void look_again();
  /// With a moment that is not before them: all that they name is known in it. Of a JVM whose names
  /// are wanted they may take a moment.
  [[nodiscard]] seen_stacks stacks();
  /// Without what was live in the parent at a fork.
  [[nodiscard]] seen_stacks own_stacks();
  [[nodiscard]] std::vector<segment::sample_figures> live_samples();
  [[nodiscard]] std::vector<segment::misuse_report_figures> misuse_reports();
  /// Not older than two seconds, or the last that was seen of a process that has ended; null if
  /// there is none.
  [[nodiscard]] std::shared_ptr<const memory_picture> memory();
  [[nodiscard]] std::vector<history_point> points(std::uint64_t since_ns, std::size_t most) const;

  /// From now on the memory map is looked at every ten seconds or more, though nobody asks for it.
  void keep_memory_map();
  [[nodiscard]] process_past past();

  /// Number of a mark, or "start" for when this server began to look; or the kept moment that is
  /// nearest to "@SECONDS" since 1970. Null: nothing is known of that moment.
  [[nodiscard]] std::shared_ptr<const baseline> since(const std::string& mark) const;

  /// A process of another run, to be compared with; null: there is none. It is set before anybody
  /// else knows this object.
  void compare_with(std::shared_ptr<const other_process> other) { other_ = std::move(other); }
  [[nodiscard]] const std::shared_ptr<const other_process>& other() const noexcept { return other_; }

  /// What stacks have counted over time, the oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const baseline>> past_stacks() const;

  /// Resolves return addresses; behind a lock, as symbols are read in when first asked for.
  [[nodiscard]] places_book& places() noexcept { return places_; }

  // --- control

  [[nodiscard]] bool may_control() const noexcept { return may_control_; }
  /// Where it has a JVM, that is asked for the names of its code when somebody looks, every ten
  /// seconds at most. To be called before anybody else knows this object.
  void ask_jvm_for_names() noexcept { wants_names_of_jvm_ = true; }

  /// To be called before anybody else knows this object.
  void forbid_control() noexcept { may_control_ = false; }
  void set_counting(bool on);
  void set_interval(std::uint64_t bytes);
  void adapt_interval();
  void reset_peak();
  /// False: there are too many already.
  bool add_mark(const std::string& name);

  // --- the end

  /// Sleeps that long, or until `stop`: then false.
  [[nodiscard]] bool wait(std::chrono::seconds time);
  void stop();

 private:
  void begin();
  void look_until_stopped();
  void look_at_memory_map();
  std::shared_ptr<const moment> read(bool with_details);
  void read_figures(moment& m);
  [[nodiscard]] bool runs_another_program(pid_t process);
  [[nodiscard]] std::uint64_t last_sign_of_life(const segment::snapshot& figures) const;
  void look(bool with_details) noexcept;
  void keep_baselines(const moment& m);
  void keep_stacks(const moment& m);
  void name_code_of_jvm();
  [[nodiscard]] std::vector<segment::stack_figures> read_stacks() const;
  [[nodiscard]] seen_stacks with_moment(std::vector<segment::stack_figures> stacks);

  std::optional<segment::segment_reader> reader_;
  bool may_control_ = false;
  std::optional<process_past> past_;  ///< of a saved run
  segment::process_figures bare_;     ///< what is known of a process without a segment
  /// Of the program that was last seen to run: what tells it from others, and whether it has not
  /// the segment mapped.
  std::uint64_t image_ = 0;
  bool is_without_segment_ = false;
  std::unique_ptr<heap_record> heap_;
  places_book places_;
  std::shared_ptr<const other_process> other_;

  std::mutex jvm_mutex_;
  bool wants_names_of_jvm_ = false;
  std::uint64_t names_of_jvm_due_ns_ = 0;

  std::mutex memory_mutex_;
  std::shared_ptr<const memory_picture> memory_;
  std::atomic<std::uint64_t> memory_map_every_ns_{0};  ///< 0: only when asked for
  std::uint64_t memory_map_due_ns_ = 0;                ///< of the watcher's thread

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable stopped_;
  bool is_stopped_ = false;
  std::shared_ptr<const moment> last_;
  std::optional<resident_memory> detailed_;
  detailed_looks detailed_looks_;
  history history_;
  stack_history stack_history_;
  std::map<std::string, std::shared_ptr<const baseline>> baselines_;
  std::size_t marks_seen_ = 0;

  std::thread watcher_;
};

}  // namespace heapwright::tool
