// The processes that one server shows: the one it was started for, and those beside it whose
// segments are in the same folder, which are its children where the server has started it. A
// process that executes another program goes on as that, with another segment; the first is
// followed.
//
// Each is watched from when somebody asks for it, and at most so many at once: a server under which
// thousands of processes come and go stays small.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "other_run.hpp"
#include "saved_run.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {

/// A process that can be asked for.
struct family_member {
  std::string name;  ///< PID-START-N, as its segment is called; "" for the first where it has none
  segment::process_figures process;
  std::int64_t live = 0;
  bool is_running = false;
  std::shared_ptr<const moment> seen;  ///< where it is not watched: without PSS and the heap's own figures
  std::string how_it_ended;            ///< as set_end says; empty: it runs, or nobody knows
};

/// How the first process came to be watched: started here, or there before and named by its id.
enum class found_by { start, id };

class watched_family {
 public:
  /// `folder`: where other segments may be; empty: there are no others.
  watched_family(std::shared_ptr<watched_process> first, const std::filesystem::path& segment,
                 std::filesystem::path folder, function_patterns wrappers, found_by how);
  /// Of a saved run, which must live as long.
  watched_family(const opened_run& run, function_patterns wrappers);

  /// All processes from now on. To be called before anybody asks.
  void compare_with(std::shared_ptr<const other_run> other);

  /// Viewers may only look. To be called before anybody asks.
  void forbid_control();

  /// By name or process id; empty: the first. Null: there is no such process.
  [[nodiscard]] std::shared_ptr<watched_process> find(const std::string& name_or_id);

  /// The name of what find() returns. Nothing: there is no such process.
  [[nodiscard]] std::optional<std::string> name_of_asked(const std::string& name_or_id);

  /// The saved run or segment that was given; empty: none.
  [[nodiscard]] std::filesystem::path file() const { return run_ != nullptr ? run_->file() : std::filesystem::path(); }

  /// Whether the first is what the user has asked for by its id.
  [[nodiscard]] bool is_asked_for() const { return how_ == found_by::id; }

  /// How many processes had ended before the first was attached to, and are not its children.
  [[nodiscard]] std::size_t ended_before() const;

  /// The first, then the newest, no more than `most`. Without those that `ended_before` counts,
  /// unless they are asked for.
  [[nodiscard]] std::vector<family_member> members(std::size_t most, bool with_ended_before = false);

  /// All members, and what is seen of them now: of those that are watched more than of the others.
  [[nodiscard]] std::vector<family_member> all_members();

  /// All of them with what is watched, as far as that may be so many; the first one first.
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<watched_process>>> watched_members();

  /// These, of the run alone: where the first was asked for by its id, it and what it and its
  /// children have forked.
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<watched_process>>> watched_run();

  /// To be called about once a second where all of the run is to be seen later: processes that have
  /// begun are watched from now on.
  void watch_all();

  /// How a process has ended, in words of who has waited for it: "killed by SIGSEGV".
  void set_end(std::uint32_t process_id, std::string how);

  /// What to save: the first, then all others; with `only_descendants` those that the first and its
  /// children have forked.
  [[nodiscard]] std::vector<saved_process> saved(bool only_descendants);

  /// Those who wait are woken, and nothing is read any more.
  void stop();

 private:
  static constexpr std::size_t most_watched = 64;

  void follow_first();
  void leave_out_ended();
  /// What the process is called that is asked for by its id, the first by "". A name stays itself.
  [[nodiscard]] std::string name_among(const std::string& name_or_id) const;
  [[nodiscard]] std::shared_ptr<watched_process> open(const std::filesystem::path& segment) const;
  [[nodiscard]] std::shared_ptr<watched_process> prepared(std::shared_ptr<watched_process> process) const;

  std::filesystem::path folder_, first_segment_;
  const opened_run* run_ = nullptr;
  std::shared_ptr<const other_run> other_;
  bool may_control_ = true;
  function_patterns wrappers_;
  found_by how_ = found_by::start;
  std::set<std::string> ended_before_;  ///< names

  std::mutex mutex_;  ///< of what follows
  std::shared_ptr<watched_process> first_;
  std::string first_name_;
  std::map<std::string, std::shared_ptr<watched_process>> others_;
  std::map<std::uint32_t, std::string> ends_;  ///< by process id
  std::vector<std::string> asked_for_;         ///< the names of others_, the one asked for last at the end
  bool is_stopped_ = false;
};

}  // namespace heapwright::tool
