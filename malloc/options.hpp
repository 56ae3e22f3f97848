// What a user may set for libheapwright from the environment: one table, from which the parser,
// `heapwright info` and docs/options.md come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "chosen_recipe.hpp"

namespace heapwright::process {

struct option {
  const char* name;  ///< of the environment variable
  std::uint64_t default_value;
  std::uint64_t max;
  std::array<const char*, 2> words{};  ///< what stands for 0 and for 1; null: numbers are given
};

/// What documentation says of it, which is not in the memory of a program.
struct described_option {
  option is;
  const char* meaning;
};

enum class option_id : std::size_t { guard_sample, on_misuse, purge_delay_ms, stats, syslog, verbose };

inline constexpr std::array<described_option, 6> described_options{{
    {{"HEAPWRIGHT_GUARD_SAMPLE", 0, 1'000'000'000},
     "N guards one in N allocations, on average; of short blocks only those that find a thread's free list empty can "
     "be guarded, in libheapwright-hardened all. A read or a write beyond it or after its end ends the process with a "
     "report; 0 guards none."},
    {{"HEAPWRIGHT_ON_MISUSE", 0, 1, {"abort", "report"}},
     "What happens after a message about a mistake of the program. abort: the process ends. report: it goes on where "
     "that does no harm; the call that made the mistake does nothing, as a rule. What the malloc does not know goes to "
     "libc's free, which ends the process."},
    {{"HEAPWRIGHT_PURGE_DELAY_MS", chosen_recipe.pages.purge_window_ms, 3'600'000},
     "Milliseconds for which freed memory is kept before it is given back to the system; 0 keeps it no longer than the "
     "next few hundred calls."},
    {{"HEAPWRIGHT_STATS", 0, 1},
     "1 prints statistics to stderr when the process exits. `heapwright run --stats` does it for the command alone."},
    {{"HEAPWRIGHT_SYSLOG", 0, 1}, "1 writes messages about mistakes of the program to syslog too (/dev/log)."},
    {{"HEAPWRIGHT_VERBOSE", 0, 1}, "1 prints a line to stderr when the library has been loaded."},
}};

inline constexpr auto option_table = [] {
  std::array<option, described_options.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = described_options[i].is;
  return all;
}();

inline constexpr const char* stats_file_variable = "HEAPWRIGHT_STATS_FILE";

/// The options in effect: until the environment has been read, the defaults.
class options {
 public:
  /// `value_of(name)`: what a variable of the environment is set to, or null; a string that stays.
  /// A value that is no number in the option's range is reported to stderr and not taken.
  template <class F>
  void read(F value_of) noexcept {
    const char* const file = value_of(stats_file_variable);
    if (file != nullptr && *file != '\0') stats_file_ = file;
    for (std::size_t i = 0; i < option_table.size(); ++i) {
      if (const char* const given = value_of(option_table[i].name)) take(i, given);
    }
  }

  /// Where reports go instead of stderr; null: nowhere else. A string of the environment.
  [[nodiscard]] const char* stats_file() const noexcept { return stats_file_; }

  [[nodiscard]] std::uint64_t operator[](option_id id) const noexcept { return values_[static_cast<std::size_t>(id)]; }

 private:
  using values = std::array<std::uint64_t, option_table.size()>;

  static constexpr values defaults() noexcept {
    values of_all{};
    for (std::size_t i = 0; i < of_all.size(); ++i) of_all[i] = option_table[i].default_value;
    return of_all;
  }

  void take(std::size_t option, const char* given) noexcept;

  values values_ = defaults();
  const char* stats_file_ = nullptr;
};

}  // namespace heapwright::process
