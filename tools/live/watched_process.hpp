// One process, seen through its segment, by any number of viewers.
//
// Reads at most 20 times a second however many ask, and once a second when nobody does, for the history and so that a new mark finds its place. When
// the process has ended the last figures are kept and nothing is read any more.
#pragma once

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

#include "history.hpp"
#include "places.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {

/// `lost`: the segment can no longer be read.
enum class life { running, exited, replaced, killed, lost };

/// Bytes, as the kernel tells them; not there once the process is gone.
struct resident_memory {
  std::uint64_t rss = 0, pss = 0, anonymous = 0, swap = 0;
};

/// All that is known of one moment.
struct moment {
  trace::snapshot figures;
  trace::class_figures total;
  std::uint64_t requested_bytes = 0;
  life state = life::running;
  std::optional<resident_memory> memory;

  [[nodiscard]] std::int64_t live() const noexcept {
    return static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes);
  }
  /// Seconds since 1970 of a moment by CLOCK_MONOTONIC.
  [[nodiscard]] double unix_seconds(std::uint64_t ns) const noexcept;
};

/// What stacks had counted by a moment, to be compared with later.
struct baseline {
  struct counted {
    std::uint64_t live = 0, allocated_bytes = 0, short_lived_bytes = 0;
    double allocations = 0;
  };
  std::string name;
  std::uint64_t at_ns = 0;
  std::unordered_map<trace::reference, counted> stacks;
};

class watched_process {
 public:
  watched_process(trace::segment_reader reader, bool may_control);
  ~watched_process();

  /// `with_details`: somebody looks, who may cost the process something.
  [[nodiscard]] std::shared_ptr<const moment> now(bool with_details = true);
  [[nodiscard]] std::vector<trace::stack_figures> stacks();
  [[nodiscard]] std::vector<trace::sample_figures> live_samples();
  [[nodiscard]] std::vector<history_point> points(std::uint64_t since_ns, std::size_t most) const;

  /// Number of a mark, or "start" for when this server began to look. Null: nothing is known of that moment.
  [[nodiscard]] std::shared_ptr<const baseline> since(const std::string& mark) const;

  /// Resolves return addresses; behind a lock, as symbols are read in when first asked for.
  [[nodiscard]] places_book& places() noexcept { return places_; }

  // --- control

  [[nodiscard]] bool may_control() const noexcept { return may_control_; }
  void set_counting(bool on);
  void set_interval(std::uint64_t bytes);
  void reset_peak();
  /// False: there are too many already.
  bool add_mark(const std::string& name);

  // --- the end

  /// Sleeps that long, or until `stop`: then false.
  [[nodiscard]] bool wait(std::chrono::seconds time);
  void stop();

 private:
  void look_until_stopped();
  std::shared_ptr<const moment> read(bool with_details);
  void look(bool with_details) noexcept;
  void keep_baselines(const moment& m);

  trace::segment_reader reader_;
  bool may_control_;
  places_book places_;

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable stopped_;
  bool is_stopped_ = false;
  std::shared_ptr<const moment> last_;
  std::optional<resident_memory> detailed_;
  std::uint64_t detailed_at_ns_ = 0;
  history history_;
  std::map<std::string, std::shared_ptr<const baseline>> baselines_;
  std::size_t marks_seen_ = 0;

  std::thread watcher_;
};

}  // namespace heapwright::tool
