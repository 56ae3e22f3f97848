#include "replay_runs.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>

#include "allocators.hpp"
#include "failure.hpp"
#include "loader.hpp"
#include "measured_run.hpp"
#include "program.hpp"
#include "quantities.hpp"

namespace heapwright::tool {
namespace {

bool is_same(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

/// Of a plan, for the replayer.
std::string path_of(const scratch_file& plan) { return fmt::format("/proc/{}/fd/{}", getpid(), plan.fd()); }

/// Of replays in turns: what a malloc does goes by addresses, too. Containers may forbid it.
class fixed_addresses {
 public:
  fixed_addresses() : before_(personality(asked)) {
    if (before_ >= 0) (void)personality(static_cast<unsigned>(before_) | ADDR_NO_RANDOMIZE);
  }
  fixed_addresses(const fixed_addresses&) = delete;
  fixed_addresses& operator=(const fixed_addresses&) = delete;
  ~fixed_addresses() {
    if (before_ >= 0) (void)personality(static_cast<unsigned>(before_));
  }

 private:
  static constexpr unsigned long asked = 0xFFFFFFFF;  // changes nothing
  int before_;
};

}  // namespace

/// What heapwright-replayer has printed.
struct replay_runs::figures {
  std::vector<memory_moment> moments;
  std::uint64_t final_bytes = 0, wall_ns = 0, processor_ns = 0, page_faults = 0;
  std::uint64_t refused = 0, first_refused_bytes = 0;  ///< allocations for which there was no memory
  std::optional<std::uint64_t> memory_calls;

  void read(const std::string& output) {
    std::istringstream lines(output);
    for (std::string word; lines >> word;) {
      if (word == "measured") {
        memory_moment m{};
        lines >> m.at_ns >> m.live >> m.bytes;
        moments.push_back(m);
        continue;
      }
      std::string name;
      std::uint64_t value = 0;
      lines >> name >> value;
      if (name == "final_bytes") final_bytes = value;
      if (name == "wall_ns") wall_ns = value;
      if (name == "processor_ns") processor_ns = value;
      if (name == "page_faults") page_faults = value;
      if (name == "refused") refused = value;
      if (name == "first_refused_bytes") first_refused_bytes = value;
      if (name == "memory_calls") memory_calls = value;
    }
  }
};

std::string replay_runs::replayer() {
  std::string path = own_helper("heapwright-replayer");
  if (path.empty())
    throw failure(exit_code::bad_input, "heapwright-replayer, which replays a trace, is not here; install it again");
  return path;
}

replay_runs::replay_runs(const scratch_file& plan, const awaited_signals& signals)
    : replayer_(replayer()), plan_(path_of(plan)), signals_(signals) {}

void replay_runs::measure_memory(replay_row& row) const {
  const fixed_addresses guard;
  figures found;
  if (!run(row, "turns", found)) return;
  row.moments = std::move(found.moments);
  row.final_bytes = found.final_bytes;
  // The end is a moment, too: what a thread has at its end stands behind the last turn.
  if (!row.moments.empty()) row.moments.push_back({row.moments.back().at_ns, row.moments.back().live, row.final_bytes});
  row.page_faults = found.page_faults;
  row.memory_calls = found.memory_calls;
}

void replay_runs::measure_time(std::vector<replay_row>& rows, unsigned round, const progress& told) const {
  const std::uint64_t own_of_all = own_time(nullptr);
  for (const unsigned i : order_of_round(round, static_cast<unsigned>(rows.size()))) {
    replay_row& row = rows[i];
    if (!row.failure.empty()) continue;
    told(row.who.name);
    const std::uint64_t own = row.plan == nullptr ? own_of_all : own_time(row.plan);
    figures found;
    if (!run(row, "speed", found)) continue;
    const std::uint64_t in_malloc = found.processor_ns - std::min(found.processor_ns, own);
    row.rounds.push_back({static_cast<double>(in_malloc) / 1e9, static_cast<double>(found.wall_ns) / 1e9});
    if (row.moments.empty()) row.page_faults = found.page_faults;
  }
}

void replay_runs::count_instructions(std::vector<replay_row>& rows, const progress& told) const {
  replay_row nobody;
  std::uint64_t own = 0;
  told("nothing");
  if (!count(nobody, "count-nothing", own))
    throw failure(exit_code::judged_no, "the replay without a malloc failed: " + nobody.failure);
  for (replay_row& row : rows) {
    std::uint64_t all = 0;
    if (!row.failure.empty()) continue;
    told(row.who.name);
    if (count(row, "count", all)) row.instructions = all - std::min(all, own);
  }
}

void replay_runs::check_valgrind() {
  try {
    (void)program::resolve({"valgrind"});
  } catch (const failure&) {
    throw failure(exit_code::bad_input, "--count: valgrind, which counts the instructions, is not here; install it");
  }
}

/// False: it has failed, and the row says why. callgrind says what it has counted in a line of its
/// own: "==7== Collected : 1234".
bool replay_runs::count(replay_row& row, const char* how, std::uint64_t& instructions) const {
  const std::vector<std::string> words{"valgrind",
                                       "--tool=callgrind",
                                       "--callgrind-out-file=/dev/null",
                                       "--toggle-collect=heapwright_counted_operations",
                                       replayer_,
                                       plan_,
                                       how};
  const run_result ran = run_measured({words, preload_value(row.who.library), nullptr, 0}, signals_);
  const std::string said = ran.errors.content(), name = "Collected : ";
  const std::size_t at = said.find(name);
  row.failure = ran.trouble();
  if (row.failure.empty() && at == std::string::npos) row.failure = "callgrind has counted nothing";
  if (!row.failure.empty()) {
    row.failure = "under callgrind: " + row.failure + "; its last words: " + ran.errors.tail(3);
    return false;
  }
  instructions = std::stoull(said.substr(at + name.size()));
  return true;
}

/// False: it has failed, and the row says why.
bool replay_runs::run(replay_row& row, const char* how, figures& into) const {
  const std::string plan = row.plan == nullptr ? plan_ : path_of(*row.plan);
  const run_result ran = run_measured({{replayer_, plan, how}, preload_value(row.who.library), nullptr, 0}, signals_);
  row.failure = ran.trouble();
  if (const std::string said = ran.errors.tail(3); !row.failure.empty() && !said.empty())
    row.failure += "; its last words: " + said;
  const bool is_proven = row.who.library.empty() || is_same(ran.main_malloc, row.who.library);
  if (row.failure.empty() && !is_proven)
    row.failure = ran.main_malloc.empty()
                      ? "ran, but on which malloc could not be seen (may ptrace(2) be forbidden here?)"
                      : fmt::format("ran on the malloc of {}", ran.main_malloc);
  if (!row.failure.empty()) return false;
  into.read(ran.output.content());
  if (into.refused == 0) return true;
  row.failure =
      fmt::format("had no memory for {} that the program was given; the first was of {}",
                  show_count_of(into.refused, "allocation"), show_bytes(static_cast<double>(into.first_refused_bytes)));
  return false;
}

/// Processor time of the replay itself, in nanoseconds.
std::uint64_t replay_runs::own_time(const scratch_file* plan) const {
  replay_row nobody{.who = {}, .plan = plan};
  figures found;
  if (!run(nobody, "nothing", found))
    throw failure(exit_code::judged_no, "the replay without a malloc failed: " + nobody.failure);
  return found.processor_ns;
}

}  // namespace heapwright::tool
