// Reads the segment of a process (segment.hpp), living or dead, and tells its probe what to do.
//
// A segment may be cut off, torn or overwritten, also while it is read: what does not fit is left
// out, never followed, and what is read is a copy. A reader can be used by several threads at once;
// each answer is of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "segment.hpp"

namespace heapwright::segment {

/// What is wrong with a file that was to be read: `what()` is a whole sentence with its path.
class bad_segment : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct class_figures {
  std::uint64_t allocations = 0, allocated_bytes = 0, requested_bytes = 0, frees = 0, freed_bytes = 0;

  class_figures& operator+=(const class_figures& o) noexcept;
};

struct thread_figures {
  std::uint32_t slot = 0;  ///< 0: of all threads whose slots were taken over
  std::uint32_t thread_id = 0;
  slot_state state = slot_state::unused;
  std::string name;
  std::uint64_t began_ns = 0, ended_ns = 0;
  std::uint64_t stack_at = 0;  ///< an address in its stack; 0: not known
  std::uint64_t peak_net = 0;  ///< the most bytes that it has had allocated beyond what it had freed
  std::array<class_figures, size_scale::count> classes;

  [[nodiscard]] class_figures total() const noexcept;
};

struct stack_figures {
  reference id = 0;                      ///< of this stack as long as the segment lives
  reference first_with_calls = 0;        ///< equal for stacks with equal calls, whatever their threads
  std::vector<std::uint64_t> addresses;  ///< return addresses, the innermost first
  bool is_cut = false;
  std::uint32_t name_of_threads = 0;  ///< that have allocated: see snapshot::name_of_threads
  // As in stack_counters, of all threads; counts are in blocks here.
  std::uint64_t samples = 0, live_samples = 0, freed_samples = 0;
  double allocations = 0, frees = 0, short_lived = 0;
  std::uint64_t allocated_bytes = 0, freed_bytes = 0, short_lived_bytes = 0;
  std::int64_t at_peak = 0;                           ///< bytes that were live when the process was at its peak
  double allocated_variance = 0, freed_variance = 0;  ///< bytes^2
  // By how much thinning of live samples has changed the estimates of what is live.
  std::uint64_t thinned_samples = 0;
  std::int64_t thinned_bytes = 0;
  double thinned_blocks = 0, thinned_variance = 0;
  /// Of the process: the present one, or the mean one where that is longer. What the site has
  /// allocated that was not seen was sampled by about this. 1: all is seen.
  std::uint64_t interval = 0;
  std::uint64_t first_ns = 0, last_ns = 0;
  std::array<std::uint64_t, lifetime_buckets> lifetimes{};

  [[nodiscard]] double live_blocks() const noexcept { return allocations - frees + thinned_blocks; }
  [[nodiscard]] std::uint64_t live_bytes() const noexcept {
    // Unsigned: figures of a damaged segment may add up to anything.
    const std::uint64_t bytes = allocated_bytes - freed_bytes + static_cast<std::uint64_t>(thinned_bytes);
    return static_cast<std::int64_t>(bytes) > 0 ? bytes : 0;
  }
  /// Of live_bytes as an estimate, in bytes^2.
  [[nodiscard]] double live_variance() const noexcept {
    return std::max(allocated_variance - freed_variance + thinned_variance, 0.0);
  }

  /// What a sample may stand for that was not seen, in bytes: by `interval`, by the intervals of
  /// all samples, and by those of live ones, on average. 0: none is unseen. See
  /// tools/live/stack_measure.hpp.
  [[nodiscard]] double unseen() const noexcept;

  /// Adds all but what tells stacks apart: id, calls and name_of_threads.
  stack_figures& operator+=(const stack_figures& o) noexcept;
};

struct sample_figures {
  std::uint64_t address = 0, bytes = 0, bytes_for = 0, at_ns = 0;
  double stands_for = 0;
  reference at_stack = 0;  ///< id of the stack

  /// Of bytes_for as an estimate, in bytes^2: a sample of s bytes that was taken with the
  /// probability p stands for s / p.
  [[nodiscard]] double variance() const noexcept {
    const auto standing_for = static_cast<double>(bytes_for);
    return standing_for * std::max(standing_for - static_cast<double>(bytes), 0.0);
  }
};

struct module_figures {
  std::uint64_t begin = 0, end = 0, base = 0;
  std::string path;
  std::string shown_path = {};  ///< what a person knows the program by: see process_figures. Empty: `path`
};

/// Interpreted code that stacks name (segment.hpp).
struct interpreted_code_figures {
  std::string name, file;
  std::int32_t first_line = 0;
  line_table lines = line_table::none;
  std::string table;
};

/// By record. Records are never changed: what is known of one stays.
using interpreted_codes = std::unordered_map<reference, interpreted_code_figures>;

struct mark_figures {
  std::uint64_t at_ns = 0;
  std::string name;
};

/// What the malloc has written about a mistake of the program.
struct misuse_report_figures {
  std::uint64_t at_ns = 0;
  std::uint32_t thread_id = 0;
  std::uint64_t mistakes = 0;  ///< how often it was made
  std::string text;            ///< lines
};

/// An allocator of the program's own, by its own counts.
struct meter_figures {
  std::string name;
  bool is_open = false;
  std::uint64_t allocations = 0, deallocations = 0, failures = 0, total_bytes = 0, in_use = 0, peak = 0;
};

/// Memory that the malloc below has mapped for itself.
struct mapping_figures {
  std::uint64_t begin = 0, bytes = 0;
};

/// The words of a command line as /proc has it: each with a null behind it. A title that a program
/// gave itself has nulls alone behind its first word; so has a command all of whose arguments are
/// empty, and it is taken for a title.
[[nodiscard]] std::vector<std::string> arguments_in(std::string_view text);

struct process_figures {
  std::uint32_t process_id = 0;  ///< as this process sees it
  std::uint32_t own_id = 0;      ///< as it sees itself: another one in a process namespace of its own
  std::string root;  ///< "/proc/PID/root" if its segment or its program is there, in a container; else empty
  process_state state = process_state::running;
  std::uint64_t started_ns = 0, started_unix_ns = 0, ended_ns = 0, process_start = 0, forked_from = 0;
  std::uint64_t inherited_blocks = 0, inherited_bytes = 0;  ///< as in segment_header
  std::string program, allocator;
  std::string shown_program;  ///< the link beside `program` by which it was started; empty: `program`
  std::vector<std::string> arguments;
  bool is_counting = false;
  bool is_of_samples = false;                                   ///< only samples are counted: all figures are estimates
  double live_variance = 0;                                     ///< of the live bytes then
  std::array<double, size_scale::count> class_live_variance{};  ///< of those of a class
  std::uint64_t counting_since_ns = 0;
  std::uint64_t interval = 0;  ///< bytes between samples, on average
  bool interval_adapts = false;
  std::uint64_t unseen_interval = 0;                ///< by which blocks may be unseen
  bool samples_all = false;                         ///< every block since counting began
  std::uint64_t sampling_ns = 0, processor_ns = 0;  ///< as in segment_header
  std::uint64_t peak = 0, peak_at_ns = 0, peak_grain = 0;
  std::uint64_t interpreter_at = 0;  ///< an address within the file that has the interpreter; 0: none
  std::uint64_t threads_ever = 0, threads_folded = 0, lost_samples = 0;
  std::uint64_t mistakes = 0;                            ///< of the program, that the malloc has found
  int why_not_recorded = 0, why_child_not_recorded = 0;  ///< as in segment_header
  std::array<std::uint64_t, size_scale::count> class_peak{};
  std::vector<mark_figures> marks;
  std::vector<meter_figures> meters;
  std::vector<mapping_figures> malloc_mappings;  ///< in no order
  bool knows_malloc_mappings = false;            ///< these are all there are

  /// Whether counting began with the process, so that what is live is known and not only how it has
  /// changed.
  [[nodiscard]] bool counts_from_start() const noexcept {
    return counting_since_ns != 0 && counting_since_ns <= started_ns;
  }

  /// Whether the segment has the call stack of every block since counting began: what it tells of
  /// sites is exact then.
  [[nodiscard]] bool knows_all_stacks() const noexcept { return samples_all && lost_samples == 0; }
};

/// What a segment says at about one moment.
struct snapshot {
  std::uint64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  process_figures process;
  std::vector<thread_figures> threads;  ///< slot 0 first; alive and gone ones
  /// The process ended, or was stopped, while it moved figures to slot 0: some may be there twice
  /// or not at all.
  bool is_torn = false;
  std::vector<module_figures> modules;
  std::shared_ptr<const interpreted_codes> codes;  ///< null: none
  std::vector<std::string> thread_names;

  /// "(other threads)": those whose name came when there was no room for more.
  [[nodiscard]] std::string name_of_threads(const stack_figures& s) const {
    return s.name_of_threads - 1 < thread_names.size() ? thread_names[s.name_of_threads - 1] : "(other threads)";
  }

  [[nodiscard]] class_figures total() const noexcept;
  /// Without what was live in the parent at a fork: sums over processes have each block once. Where
  /// the process has freed more of that than it has allocated, its live bytes are 0.
  [[nodiscard]] class_figures own_total() const noexcept;
  [[nodiscard]] std::array<class_figures, size_scale::count> by_class() const noexcept;
};

/// What this process calls a process of another namespace, as of a container, and its parent.
/// 0: as the segment does.
struct ids_here {
  std::uint32_t process = 0, parent = 0;
};

/// O(1), unless the process is in no list of processes that was made since it began: O(processes).
[[nodiscard]] ids_here ids_here_of(const segment_header& h);

class segment_reader {
 public:
  /// Throws bad_segment. `may_control`: opened for writing too, which the control functions need:
  /// without it they throw std::logic_error. All throw bad_segment when the file's header is no
  /// longer there.
  explicit segment_reader(const std::filesystem::path& file, bool may_control = false);
  segment_reader(segment_reader&&) noexcept;
  segment_reader& operator=(segment_reader&&) noexcept;
  ~segment_reader();

  [[nodiscard]] process_figures process() const;
  [[nodiscard]] snapshot read() const;                      ///< O(threads)
  [[nodiscard]] std::vector<stack_figures> stacks() const;  ///< by calls and names of threads. O(stacks)
  /// Without what was live in the parent at a fork. O(stacks).
  [[nodiscard]] std::vector<stack_figures> own_stacks() const;
  [[nodiscard]] std::vector<sample_figures> live_samples() const;  ///< O(samples + stacks)
  /// The first ones, in the order in which they began. O(reports).
  [[nodiscard]] std::vector<misuse_report_figures> misuse_reports() const;

  void set_counting(bool on);
  void set_interval(std::uint64_t bytes);
  void adapt_interval();  ///< from the present one on
  void reset_peak();
  bool add_mark(const std::string& name);  ///< now; a long name is cut. False: there are too many, it was not kept

  [[nodiscard]] const std::filesystem::path& path() const noexcept;

 private:
  [[nodiscard]] process_figures described(const segment_header& h) const;

  std::unique_ptr<class segment_file> file_;
  std::unique_ptr<class interpreted_code_records> codes_;
  ids_here ids_;
  std::string root_;
};

/// Whether the process that a segment tells of is still there (and not another one with its id).
/// One that has ended is not, also while its parent has not yet asked for its status. One that has
/// executed another program is.
[[nodiscard]] bool is_there(const process_figures& process);

/// When the process began, in clock ticks since boot: with its id, what tells it from all others.
/// 0: there is none, or it has ended.
[[nodiscard]] std::uint64_t process_start(std::uint32_t process_id);

/// Where probes put their segments: HEAPWRIGHT_SEGMENT_DIR, or /dev/shm/heapwright-UID.
[[nodiscard]] std::filesystem::path segment_directory();

/// All segments there, the newest process first. Those that cannot be read are left out.
[[nodiscard]] std::vector<std::filesystem::path> segments_in(const std::filesystem::path& directory);

}  // namespace heapwright::segment
