#include "recipe_search.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "allocators.hpp"
#include "failure.hpp"
#include "interruptible.hpp"
#include "proof.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned replay_rounds = 3;

constexpr const char* by_itself = "Changed by itself, from the best recipe so far";

struct field_step {
  const char* field;
  const char* value;
};

/// What may be changed of one field, where memory is to be gained.
constexpr std::array steps{
    field_step{"thread_cache.max_bytes_per_class", "4 * heapwright::KiB"},
    field_step{"thread_cache.max_bytes_per_class", "16 * heapwright::KiB"},
    field_step{"thread_cache.max_bytes_per_long", "64 * heapwright::KiB"},
    field_step{"thread_cache.share_bytes", "64 * heapwright::KiB"},
    field_step{"thread_cache.batch_bytes", "2 * heapwright::KiB"},
    field_step{"spans.first_of_small", "{4 * heapwright::KiB, 4, 16}"},
    field_step{"spans.first_of_small", "{8 * heapwright::KiB, 4, 16}"},
    field_step{"spans.first", "{4 * heapwright::KiB, 2, 8}"},
    field_step{"spans.last", "{8 * heapwright::KiB, 4, 8}"},
    field_step{"spans.last", "{16 * heapwright::KiB, 4, 8}"},
    field_step{"spans.growth_divisor", "64"},
    field_step{"spans.kept_empty", "0"},
    field_step{"spans.worth_scavenging", "16 * heapwright::KiB"},
    field_step{"pages.growth", "256 * heapwright::KiB"},
    field_step{"pages.unmap_from", "256 * heapwright::KiB"},
    field_step{"pages.unmap_from", "16 * heapwright::MiB"},
    field_step{"pages.headroom_divisor", "256"},
    field_step{"pages.purge_window_ms", "50"},
    field_step{"pages.max_free_resident", "1 * heapwright::MiB"},
    field_step{"pages.give_back", "heapwright::give_back_policy::at_once"},
};

/// A value as people read it: "4 KiB", "at_once".
std::string in_short(std::string value) {
  for (const std::string_view word : {"heapwright::give_back_policy::", "heapwright::", "* "})
    for (auto at = value.find(word); at != std::string::npos; at = value.find(word)) value.erase(at, word.size());
  return value;
}

/// The same recipe but for one field. Nothing if it has that value already.
std::optional<candidate> stepped(const candidate& from, const field_step& step) {
  candidate next = from;
  const auto known = std::ranges::find(next.changes, step.field, &field_change::field);
  if (known != next.changes.end() && known->value == step.value) return std::nullopt;
  if (known != next.changes.end()) next.changes.erase(known);
  next.changes.push_back({step.field, step.value, by_itself});
  const auto is_step = [](const field_change& change) { return change.reason.starts_with(by_itself); };
  const auto steps_so_far = std::ranges::count_if(next.changes, is_step);
  // "small caches, spans.kept_empty 0", then "small caches, 2 fields with pages.growth 256 KiB".
  if (!std::ranges::all_of(next.changes, is_step))
    next.name = from.name.substr(0, from.name.find(", ")) + ", ";
  else
    next.name.clear();
  if (steps_so_far > 1) next.name += fmt::format("{} fields with ", steps_so_far);
  next.name += fmt::format("{} {}", step.field, in_short(step.value));
  return next;
}

double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

double ratio_of(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 1 : static_cast<double>(a) / static_cast<double>(b);
}

/// Without the folder of this path, which is gone when somebody reads it.
std::string without_folder(std::string text, const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

std::uint64_t peak_of(const replay_row& row) { return row.peak() == nullptr ? 0 : row.peak()->bytes; }

}  // namespace

recipe_search::recipe_search(const scratch_file& plan, std::string compiler)
    : plan_(plan), compiler_(std::move(compiler)), default_{.who = {default_row, own_library()}} {
  recipe_build(write_header({}, {}), "fitted", compiler_, "").check();
}

void recipe_search::replay_default(fit_evidence& into) {
  const auto begin = clock::now();
  const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  const replay_runs runs(plan_, signals);
  show_step("replaying it under the default");
  runs.measure_memory(default_);
  std::vector<replay_row> rows{{.who = default_.who}};
  for (unsigned round = 0; round < replay_rounds && default_.failure.empty(); ++round) {
    runs.measure_time(rows, round, [](const std::string&) {});
    default_.failure = rows.front().failure;
  }
  if (!default_.failure.empty())
    throw failure(exit_code::judged_no,
                  "the program's trace cannot be replayed under the default: " + default_.failure);
  into.peak_bytes = peak_of(default_);
  into.live_at_peak = default_.live_at_peak();
  into.end_bytes = default_.final_bytes;
  into.page_faults = default_.page_faults;
  into.malloc_seconds = rows.front().seconds().value_or(0);
  share_ = into.program_seconds > 0 ? std::min(into.malloc_seconds / into.program_seconds, 1.0) : 0;
  seconds_ = seconds_since(begin) * 2;
}

double recipe_search::seconds_of_one() const noexcept {
  return tried_.empty() ? seconds_ : seconds_ / static_cast<double>(tried_.size());
}

std::string recipe_search::write_header(const candidate& what, const std::vector<std::string>& comment) const {
  std::string header = scratch_.file("recipe.hpp");
  write_source(header, header_of(what, comment));
  return header;
}

void recipe_search::try_out(const candidate& what) {
  const auto begin = clock::now();
  tried_recipe one{.what = what,
                   .library = scratch_.file(fmt::format("tried{}.so", tried_.size())),
                   .failure = {},
                   .is_finalist = false};
  try {
    const recipe_build recipe(write_header(what, {}), "fitted", compiler_, "");
    recipe.check();
    recipe.make(one.library);
    replay(one);
  } catch (const failure& trouble) {
    interruptible::throw_if_noted();
    one.failure = without_folder(trouble.what(), one.library);
  }
  if (tried_.empty()) seconds_ = 0;
  seconds_ += seconds_since(begin);
  tried_.push_back(std::move(one));
}

void recipe_search::replay(tried_recipe& into) {
  const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  const replay_runs runs(plan_, signals);
  replay_row its{.who = {fitted_row, into.library}};
  show_step(fmt::format("replaying it with {}", into.what.name));
  runs.measure_memory(its);
  std::vector<replay_row> rows{{.who = default_.who}, {.who = its.who}};
  for (unsigned round = 0; round < replay_rounds && its.failure.empty(); ++round) {
    runs.measure_time(rows, round, [](const std::string&) {});
    its.failure = rows.back().failure;
  }
  into.failure = its.failure;
  if (!its.failure.empty()) return;
  into.peak_ratio = ratio_of(peak_of(its), peak_of(default_));
  into.end_ratio = ratio_of(its.final_bytes, default_.final_bytes);
  const double before = rows.front().seconds().value_or(0);
  into.malloc_time_ratio = before > 0 ? rows.back().seconds().value_or(0) / before : 1;
}

std::vector<candidate> recipe_search::combinations(fit_goal goal) const {
  std::vector<const tried_recipe*> good, quick;
  for (const tried_recipe& one : tried_) {
    if (!one.failure.empty() || is_harmed(one)) continue;
    good.push_back(&one);
    if (!seems_slow(one, share_)) quick.push_back(&one);
  }
  const auto sorted = [](const std::vector<const tried_recipe*>& from, double tried_recipe::*ratio, double least) {
    std::vector<const tried_recipe*> those;
    for (const tried_recipe* const one : from)
      if (one->*ratio < 1 - least) those.push_back(one);
    std::ranges::stable_sort(those, {}, [&](const tried_recipe* one) { return one->*ratio; });
    std::vector<candidate> parts;
    for (const tried_recipe* const one : those) parts.push_back(one->what);
    return parts;
  };
  std::vector<candidate> memory, quick_memory, time, all;
  if (goal == fit_goal::memory || goal == fit_goal::both) {
    memory = sorted(good, &tried_recipe::peak_ratio, seen_in_memory);
    quick_memory = sorted(quick, &tried_recipe::peak_ratio, seen_in_memory);
  }
  if (goal != fit_goal::memory) time = sorted(good, &tried_recipe::malloc_time_ratio, seen_in_time);
  const auto add = [&](const std::vector<candidate>& parts) {
    if (parts.empty()) return;
    candidate whole = combined(parts);
    const auto has_its_name = [&](const candidate& other) { return other.name == whole.name; };
    if (std::ranges::none_of(parts, has_its_name) && std::ranges::none_of(all, has_its_name))
      all.push_back(std::move(whole));
  };
  add(memory);
  add(quick_memory);
  add(time);
  memory.insert(memory.end(), time.begin(), time.end());
  add(memory);
  return all;
}

bool recipe_search::try_step(fit_goal goal) {
  const auto promises = [&](const tried_recipe& one) {
    return one.failure.empty() && !is_harmed(one) && !seems_slow(one, share_);
  };
  const tried_recipe* best = nullptr;
  for (const tried_recipe& one : tried_)
    if (promises(one) && predicted(one, goal, share_) < (best == nullptr ? 1 : predicted(*best, goal, share_)))
      best = &one;
  const candidate from = best == nullptr ? candidate{} : best->what;
  const double before = best == nullptr ? 1 : predicted(*best, goal, share_);
  for (; steps_without_gain_ < steps.size(); ++steps_without_gain_) {
    const std::optional<candidate> next = stepped(from, steps[next_step_]);
    next_step_ = (next_step_ + 1) % steps.size();
    if (!next) continue;
    try_out(*next);
    tried_recipe& one = tried_.back();
    one.adds_nothing = !promises(one) || predicted(one, goal, share_) > before - seen_in_memory;
    if (one.adds_nothing) {
      ++steps_without_gain_;
      return true;
    }
    one.what.changes.back().reason = fmt::format("{}: the replayed peak is {:.1f} % lower with it.", by_itself,
                                                 100 * (1 - one.peak_ratio / (best == nullptr ? 1 : best->peak_ratio)));
    steps_without_gain_ = 0;
    return true;
  }
  return false;
}

std::vector<const tried_recipe*> recipe_search::choose(fit_goal goal, std::size_t most) {
  return choose_finalists(tried_, goal, share_, most);
}

}  // namespace heapwright::tool
