#include "levers.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <heapwright/heap/recipe.hpp>

#include "quantities.hpp"
#include "size_choice.hpp"

namespace heapwright::tool {
namespace {

std::string amount(std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); }
std::string counted(std::uint64_t n) { return show_count(static_cast<double>(n)); }

std::uint64_t without(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// Whether `part` is at least so many per mille of `whole`.
bool is_at_least(std::uint64_t part, std::uint64_t whole, std::uint64_t per_mille) {
  return whole > 0 && part * 1000 >= whole * per_mille;
}

/// "12 %", "0.4 %".
std::string percent(std::uint64_t part, std::uint64_t whole) {
  const double value = whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.{}f} %", value, value < 9.95 ? 1 : 0);
}

/// Bytes of the peak that nobody has asked for.
std::uint64_t excess(const fit_evidence& e) { return without(e.peak_bytes, e.live_at_peak); }

std::uint64_t transfers_at(const observation& o, std::uint64_t limit) {
  const auto found = std::ranges::find(o.caches, limit, &cache_use::limit);
  return found == o.caches.end() ? 0 : found->transfers;
}

constexpr std::uint64_t default_limit = 64 << 10;

using changes = std::vector<field_change>;

/// No changes: the rule does not apply.
struct lever {
  const char* name;
  bool is_for_memory, is_for_time;
  const char* seen;     ///< in the documentation
  const char* changed;  ///< in the documentation
  const char* gain;     ///< in the documentation
  changes (*apply)(const fit_evidence&);
  bool gains_outside_malloc = false;
};

changes sizes_of_the_program(const fit_evidence& e) {
  const size_choice chosen = choose_sizes(e.does.sizes, e.does.threads_at_once);
  if (chosen.sizes.empty() || !is_at_least(without(chosen.loss_by_default, chosen.loss), e.does.live_peak, 5))
    return {};
  const std::string reason = fmt::format(
      "Rounding, ends of spans and partly used spans of blocks up to 32 KiB take {} at the peak with the "
      "default's size classes, and {} with these.",
      amount(chosen.loss_by_default), amount(chosen.loss));
  constexpr span_length spans = size_choice::spans;
  return {{"classes.exact", fmt::format("{{{}}}", fmt::join(chosen.sizes, ", ")), reason},
          {"spans.last",
           fmt::format("{{{}, {}, {}}}", bytes_in_code(spans.min_bytes), spans.min_blocks, spans.max_waste_divisor),
           reason}};
}

changes fine_steps(const fit_evidence& e) {
  const std::uint64_t by_default = rounding_at_peak(e.does.sizes, 8), fine = rounding_at_peak(e.does.sizes, 16);
  if (!is_at_least(without(by_default, fine), e.does.live_peak, 5)) return {};
  const std::string reason = fmt::format("Rounding takes {} at the peak with 8 steps per doubling, and {} with 16.",
                                         amount(by_default), amount(fine));
  return {{"classes.steps_per_doubling", "16", reason}, {"spans.largest_cut", "64 * heapwright::KiB", reason}};
}

changes few_classes(const fit_evidence& e) {
  const std::uint64_t used = classes_in_use(e.does.sizes);
  if (!is_at_least(used * 8 * KiB, e.does.live_peak, 20)) return {};
  return {
      {"classes.steps_per_doubling", "4",
       fmt::format("{} size classes are in use for {}: each has spans that are partly free. With half as many there "
                   "are fewer.",
                   used, amount(e.does.live_peak))}};
}

changes short_spans(const fit_evidence& e) {
  if (!is_at_least(excess(e), e.peak_bytes, 20)) return {};
  const std::string reason =
      fmt::format("At the peak {} of {} is not what the program has asked for. Short spans are free as a whole sooner.",
                  amount(excess(e)), amount(e.peak_bytes));
  return {{"spans.first_of_small", "{4 * heapwright::KiB, 4, 16}", reason},
          {"spans.last", "{8 * heapwright::KiB, 4, 8}", reason},
          {"spans.kept_empty", "0", reason}};
}

/// Where much of the peak is blocks up to 2 KiB, and much more is in memory than was asked for.
changes mixed_spans_from(const fit_evidence& e, std::uint64_t from) {
  if (!is_at_least(excess(e), e.peak_bytes, 50)) return {};
  std::uint64_t mixed = 0, all = 0;
  for (const size_use& u : e.does.sizes) {
    const std::uint64_t bytes = u.live_at_peak * u.size;
    all += bytes;
    if (u.size > from && u.size <= 2 * KiB) mixed += bytes;
  }
  if (!is_at_least(mixed, all, 200)) return {};
  const std::string reason = fmt::format(
      "At the peak {} of {} is not what the program has asked for. Where blocks of many sizes share spans, free "
      "neighbours merge, and serve other sizes.",
      amount(excess(e)), amount(e.peak_bytes));
  return {{"spans.mixed_up_to", "2 * heapwright::KiB", reason},
          {"spans.mixed_from", fmt::format("{}", from), reason},
          {"classes.steps_per_doubling", "16", reason},
          {"spans.largest_cut", "64 * heapwright::KiB", reason}};
}

changes mixed_spans(const fit_evidence& e) { return mixed_spans_from(e, 0); }

/// Small blocks are the most frequent ones, and the least in bytes.
changes mixed_spans_of_longer_blocks(const fit_evidence& e) { return mixed_spans_from(e, 48); }

/// The smallest limit of caches that costs at most a transfer more in 500 events.
changes small_caches(const fit_evidence& e) {
  const observation& o = e.does;
  if (!is_at_least(o.threads_at_once * classes_in_use(o.sizes) * default_limit, e.peak_bytes, 10)) return {};
  const std::uint64_t by_default = transfers_at(o, default_limit);
  for (const cache_use& use : o.caches) {
    if (use.limit >= default_limit) return {};
    if (use.transfers > by_default + (o.all_allocations() + o.frees) / 500) continue;
    const std::string reason = fmt::format(
        "Caches of {} per size class would move {} batches for {} allocations; the default's of 64 KiB, {}.",
        amount(use.limit), counted(use.transfers), counted(o.all_allocations()), counted(by_default));
    return {{"thread_cache.max_bytes_per_class", bytes_in_code(use.limit), reason},
            {"thread_cache.share_bytes", bytes_in_code(16 * use.limit), reason},
            {"thread_cache.max_long_bytes", "1 * heapwright::MiB", reason}};
  }
  return {};
}

changes free_pages_go_back(const fit_evidence& e) {
  const observation& o = e.does;
  const std::uint64_t falls = without(o.live_peak, o.live_at_end) + o.regrown;
  if (!is_at_least(falls, o.live_peak, 50)) return {};
  const std::uint64_t kept = std::max<std::uint64_t>(e.peak_bytes / 128 / MiB, 1);
  const std::string reason =
      fmt::format("What lives falls by {} in all, from a peak of {}: free pages go back at once.", amount(falls),
                  amount(o.live_peak));
  return {{"pages.give_back", "heapwright::give_back_policy::at_once", reason},
          {"pages.max_free_resident", bytes_in_code(kept * MiB), reason}};
}

changes little_headroom(const fit_evidence& e) {
  if (!is_at_least(excess(e), e.peak_bytes, 20)) return {};
  const std::string reason = fmt::format("At the peak {} of {} is not what the program has asked for: {}",
                                         amount(excess(e)), amount(e.peak_bytes), "less is kept for later.");
  return {{"pages.headroom_divisor", "256", reason},
          {"pages.purge_window_ms", "50", reason},
          {"spans.worth_scavenging", "16 * heapwright::KiB", reason}};
}

changes large_caches(const fit_evidence& e) {
  const observation& o = e.does;
  const std::uint64_t by_default = transfers_at(o, default_limit);
  if (!is_at_least(by_default, o.all_allocations(), 1)) return {};
  for (const cache_use& use : o.caches) {
    if (use.limit <= default_limit || 10 * use.transfers > 8 * by_default) continue;
    const std::string reason = fmt::format(
        "Caches of {} per size class would move {} batches for {} allocations; the default's of 64 KiB, {}.",
        amount(use.limit), counted(use.transfers), counted(o.all_allocations()), counted(by_default));
    return {{"thread_cache.max_bytes_per_class", bytes_in_code(use.limit), reason},
            {"thread_cache.share_bytes", bytes_in_code(16 * use.limit), reason},
            {"thread_cache.max_blocks_per_class", "8192", reason}};
  }
  return {};
}

changes pages_stay(const fit_evidence& e) {
  const observation& o = e.does;
  if (!is_at_least(o.regrown + o.large_bytes, o.live_peak, 250)) return {};
  const std::string reason = fmt::format(
      "What lives grows again by {} after it fell, and {} of blocks beyond the classes come and go: pages that stay "
      "need no page fault.",
      amount(o.regrown), amount(o.large_bytes));
  return {{"pages.give_back", "heapwright::give_back_policy::when_asked", reason},
          {"thread_cache.max_long_bytes", "128 * heapwright::MiB", reason}};
}

changes long_spans(const fit_evidence& e) {
  if (e.does.all_allocations() < 200'000) return {};
  const std::string reason =
      fmt::format("{} allocations: long spans are fewer, and each costs some hundred instructions.",
                  counted(e.does.all_allocations()));
  return {{"spans.first_of_small", "{32 * heapwright::KiB, 8, 16}", reason},
          {"spans.first", "{16 * heapwright::KiB, 8, 16}", reason},
          {"spans.last", "{128 * heapwright::KiB, 8, 16}", reason},
          {"spans.kept_empty", "256 * heapwright::KiB", reason}};
}

changes huge_pages(const fit_evidence& e) {
  if (e.peak_bytes < 16 * MiB) return {};
  const std::string reason =
      fmt::format("{} at the peak: pages of 2 MiB take fewer faults and fewer entries of the processor's tables.",
                  amount(e.peak_bytes));
  return {{"pages.huge", "heapwright::huge_page_use::transparent", reason},
          {"pages.growth", "2 * heapwright::MiB", reason}};
}

changes remote_frees_stay(const fit_evidence& e) {
  const observation& o = e.does;
  if (!is_at_least(o.freed_by_others, o.frees, 50)) return {};
  const std::string reason =
      fmt::format("{} of {} blocks are freed by another thread than the one that allocated them.",
                  percent(o.freed_by_others, o.frees), counted(o.frees));
  return {{"thread_cache.keep_remote", "true", reason},
          {"thread_cache.batch_bytes", "32 * heapwright::KiB", reason},
          {"thread_cache.max_batch", "128", reason}};
}

changes touched_ahead(const fit_evidence& e) {
  if (e.page_faults < 1000 || e.peak_bytes < 4 * MiB) return {};
  constexpr std::uint64_t grain = 64 * KiB;
  const std::uint64_t growth = std::clamp<std::uint64_t>(e.peak_bytes / 64 / grain, 4, 256) * grain;
  const std::string reason =
      fmt::format("{} page faults, for {} at the peak: pages are touched {} at a time, by one system call.",
                  counted(e.page_faults), amount(e.peak_bytes), amount(growth));
  return {{"pages.prefault", "true", reason},
          {"pages.growth", bytes_in_code(growth), reason},
          {"pages.max_growth", bytes_in_code(growth), reason},
          {"pages.give_back", "heapwright::give_back_policy::when_asked", reason}};
}

changes full_limits(const fit_evidence& e) {
  const observation& o = e.does;
  if (o.threads < 16 && o.duration_ns > 1'000'000'000) return {};
  return {{"thread_cache.fixed", "true",
           fmt::format("{} thread{} in {}: limits of caches that start small have little time to grow.", o.threads,
                       o.threads == 1 ? "" : "s", show_seconds(static_cast<double>(o.duration_ns) / 1e9))}};
}

/// Those that gain most, as far as is known, come first.
constexpr std::array levers{
    lever{"sizes of the program", true, false,
          "other size classes lose at least 0.5 % of the live peak less, by rounding, ends of spans and partly used "
          "spans",
          "`classes.exact`, `spans.last`", "memory", sizes_of_the_program},
    lever{"pages stay", false, true,
          "what lives falls and grows again by a quarter of its peak, or as much comes and goes in large blocks",
          "`pages.give_back`, `thread_cache.max_long_bytes`", "time", pages_stay},
    lever{"mixed spans", true, false,
          "5 % of the peak is not what the program has asked for, and a fifth of it is blocks up to 2 KiB",
          "`spans.mixed_up_to`, finer steps", "memory", mixed_spans},
    lever{"mixed spans from 48 bytes", true, false, "that, of blocks longer than 48 bytes",
          "`spans.mixed_from`, `spans.mixed_up_to`, finer steps", "memory", mixed_spans_of_longer_blocks},
    lever{"short spans", true, false, "2 % of the peak is not what the program has asked for", "`spans`", "memory",
          short_spans},
    lever{"pages touched ahead", false, true, "1000 page faults, and a peak of 4 MiB",
          "`pages.prefault`, `pages.growth`, `pages.give_back`", "time", touched_ahead},
    lever{"small caches", true, false,
          "caches could have 1 % of the peak, and smaller ones would move at most one more batch in 500 calls",
          "`thread_cache` (bytes per class, share, long blocks)", "memory", small_caches},
    lever{"large caches", false, true, "larger caches would move a fifth fewer batches",
          "`thread_cache` (bytes per class, share, blocks)", "time", large_caches},
    lever{"fine steps", true, false, "16 steps per doubling round by 0.5 % of the live peak less",
          "`classes.steps_per_doubling`, `spans.largest_cut`", "memory", fine_steps},
    lever{"huge pages", false, true, "a peak of 16 MiB", "`pages.huge`, `pages.growth`", "time", huge_pages, true},
    lever{"few classes", true, false, "8 KiB for each size class in use are 2 % of the live peak",
          "`classes.steps_per_doubling`", "memory", few_classes},
    lever{"remote frees stay", false, true, "5 % of the blocks are freed by another thread",
          "`thread_cache.keep_remote`, `thread_cache.batch_bytes`", "time", remote_frees_stay},
    lever{"free pages go back", true, false, "what lives falls by 5 % of its peak in all",
          "`pages.give_back`, `pages.max_free_resident`", "memory", free_pages_go_back},
    lever{"long spans", false, true, "200,000 allocations", "`spans`", "time", long_spans},
    lever{"little headroom", true, false, "2 % of the peak is not what the program has asked for",
          "`pages.headroom_divisor`, `pages.purge_window_ms`, `spans.worth_scavenging`", "memory", little_headroom},
    lever{"full limits", false, true, "16 threads, or less than a second", "`thread_cache.fixed`", "time", full_limits},
};

}  // namespace

std::vector<candidate> candidates_for(const fit_evidence& seen, fit_goal goal) {
  std::vector<candidate> all;
  for (const lever& l : levers) {
    const bool is_wanted = (l.is_for_memory && (goal == fit_goal::memory || goal == fit_goal::both)) ||
                           (l.is_for_time && goal != fit_goal::memory);
    if (!is_wanted) continue;
    if (changes made = l.apply(seen); !made.empty()) all.push_back({l.name, std::move(made), l.gains_outside_malloc});
  }
  return all;
}

std::vector<std::string> habits_of(const fit_evidence& seen) {
  const observation& o = seen.does;
  std::vector<std::string> all;
  all.push_back(fmt::format(
      "It makes {} allocations of {} in all, {} of them resizes, by {} thread{} ({} at a time) in {}.",
      counted(o.all_allocations()), amount(o.allocated_bytes), counted(o.resizes), o.threads, o.threads == 1 ? "" : "s",
      o.threads_at_once, show_seconds(static_cast<double>(o.duration_ns) / 1e9)));
  const bool is_replayed = seen.peak_bytes > 0;  // under the default; not so where the fit was interrupted
  if (is_replayed && seen.program_seconds > 0)
    all.push_back(
        seen.malloc_seconds < seen.program_seconds
            ? fmt::format("Malloc, and the first touch of its pages, take some {:.0f} % of its processor time "
                          "under the default ({} of {}): no malloc can save more than that, but for what the "
                          "program gains from better places of its blocks.",
                          100 * seen.malloc_seconds / seen.program_seconds, show_seconds(seen.malloc_seconds),
                          show_seconds(seen.program_seconds))
            : fmt::format("It does little but malloc and free: the replay of them takes {}, and the whole "
                          "program takes {} of processor time.",
                          show_seconds(seen.malloc_seconds), show_seconds(seen.program_seconds)));
  all.push_back(fmt::format("At most {} live at one time; {} on average, {} at the end.", amount(o.live_peak),
                            amount(o.live_mean), amount(o.live_at_end)));
  if (is_replayed)
    all.back() += fmt::format(
        " In the replay of the default the program has at most {} of memory; {} of it is not what lives then.",
        amount(seen.peak_bytes), percent(excess(seen), seen.peak_bytes));
  if (is_at_least(o.regrown, o.live_peak, 50))
    all.push_back(fmt::format("What lives falls and grows again, by {} in all.", amount(o.regrown)));
  if (!o.sizes.empty()) {
    std::vector<size_use> by_count = o.sizes;
    std::ranges::stable_sort(by_count, std::ranges::greater{}, &size_use::allocations);
    by_count.resize(std::min<std::size_t>(by_count.size(), 3));
    std::vector<std::string> most;
    for (const size_use& u : by_count)
      if (is_at_least(u.allocations, o.all_allocations(), 10))
        most.push_back(fmt::format("{} bytes ({})", u.size, percent(u.allocations, o.all_allocations())));
    all.push_back(fmt::format("It asks for {} different sizes, in {} size classes{}.", counted(o.sizes.size()),
                              classes_in_use(o.sizes),
                              most.empty() ? "" : fmt::format("; most often for {}", fmt::join(most, ", "))));
  }
  const std::uint64_t ended = o.frees + o.resizes;
  all.push_back(
      fmt::format("{} of the blocks that it gives back live for less than a millisecond; {} are given back by "
                  "another thread than the one that allocated them.",
                  percent(o.short_lived, ended), percent(o.freed_by_others, ended)));
  if (o.large_allocations > 0)
    all.push_back(fmt::format("{} block{} longer than any size class, {} in all.", counted(o.large_allocations),
                              o.large_allocations == 1 ? " is" : "s are", amount(o.large_bytes)));
  if (is_at_least(o.longest_pause_ns, o.duration_ns, 100) && o.longest_pause_ns > 100'000'000)
    all.push_back(fmt::format("For {} at a time it neither allocates nor frees.",
                              show_seconds(static_cast<double>(o.longest_pause_ns) / 1e9)));
  return all;
}

std::string levers_as_markdown() {
  std::string text = "| name | what is seen | what is changed | for |\n|---|---|---|---|\n";
  for (const lever& l : levers) text += fmt::format("| {} | {} | {} | {} |\n", l.name, l.seen, l.changed, l.gain);
  return text;
}

}  // namespace heapwright::tool
