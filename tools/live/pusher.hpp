// Sends heap profiles of the watched processes to a Pyroscope or an OTLP receiver, while they run
// and once when they have ended.
//
// One thread does it, in the viewer's process. Once a second it looks which processes run; each
// `every` it makes one profile after the other and sends it. What is live is told as it is; what
// was allocated is told since the last profile that the receiver has taken. So nothing has to be
// kept of a profile that was not taken: the next one has it.
//
//   working   the next round comes after `every`
//   failing   a round has failed: the next one comes after a pause that doubles with each failure,
//             up to five minutes. stderr says so once, and once when it works again
//   ending    one last round, of at_the_end at most
//
// Kept of a process: what each of its stacks had allocated, until it has ended and the receiver has
// the rest; of most_known processes. A process that begins and ends between two looks is not sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "http_client.hpp"
#include "profile.hpp"
#include "push_target.hpp"
#include "watched_family.hpp"

namespace heapwright::tool {

class pusher {
 public:
  /// Throws `failure` where nothing can be pushed there, whatever the receiver says. Sends nothing
  /// yet.
  explicit pusher(push_target target);
  pusher(const pusher&) = delete;
  pusher& operator=(const pusher&) = delete;
  ~pusher();

  /// `family` must live until the end. `host`: this machine's name.
  void start(watched_family& family, const std::string& host);

  /// The last round. Returns after about at_the_end, whatever the receiver does.
  void finish();

 private:
  static constexpr std::chrono::seconds at_the_end{5};
  static constexpr std::size_t most_known = 128;

  using clock = std::chrono::steady_clock;

  struct known_process {
    std::shared_ptr<watched_process> process;
    allocated_before told;      ///< what the receiver has
    std::uint64_t told_ns = 0;  ///< CLOCK_MONOTONIC, of this
    bool is_complete = false;   ///< it has ended, and the receiver has all
  };

  /// Of one process or a round. `may_go_on`: the receiver is there, and may take the next profile.
  struct outcome {
    std::string trouble;  ///< empty: none
    bool may_go_on = true;
  };

  void run();
  void look();
  [[nodiscard]] outcome push_all();
  [[nodiscard]] outcome push(known_process& of);
  [[nodiscard]] outcome send(const std::string& body, const profile_resource& resource, const profile_options& of);
  void tell_outcome(const outcome& round);
  void tell_loss(const outcome& last_round) const;
  [[nodiscard]] clock::duration time_left() const;
  [[nodiscard]] clock::duration pause() const;

  push_target target_;
  http_client client_;
  watched_family* family_ = nullptr;
  std::string host_;
  std::uint64_t started_ns_ = 0;  ///< CLOCK_MONOTONIC

  std::map<std::string, known_process> processes_;  ///< by the family's name
  bool has_seen_first_ = false;                     ///< of the family, which is pushed also if it has ended by now
  unsigned failures_ = 0;                           ///< rounds, one after the other
  bool has_told_of_part_ = false;                   ///< that the receiver takes profiles in part

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable ends_;
  bool is_ending_ = false;
  clock::time_point until_;  ///< of the last round

  std::thread thread_;
};

}  // namespace heapwright::tool
