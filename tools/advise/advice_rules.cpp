#include "advice_rules.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "quantities.hpp"

namespace heapwright::tool {
namespace {

constexpr std::uint64_t KiB = 1024;

/// What a rule sees in a site; nothing: it does not apply.
using finding = std::optional<advice>;

struct rule {
  advice_kind kind;
  const char* name;
  const char* seen;  ///< for the table of the documentation
  const char* part;
  finding (*apply)(const site_habits&);
};

bool is_at_least(std::uint64_t part, std::uint64_t whole, std::uint64_t percent) {
  return whole > 0 && part * 100 >= whole * percent;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const double value = 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
  return fmt::format("{:.{}f} %", value, value < 99.95 && value >= 99 ? 1 : 0);
}

std::string counted(std::uint64_t n) { return show_count(static_cast<double>(n)); }
std::string amount(std::uint64_t n) { return show_bytes(static_cast<double>(n)); }

bool is_one_size(const site_habits& s) {
  constexpr std::uint64_t longest = 4 * KiB;
  return is_at_least(s.usual_allocations, s.allocations, 99) && s.usual_size <= longest && s.usual_size > 0;
}

finding small_buffer(const site_habits& s) {
  constexpr std::uint64_t most_at_once = 16;
  if (!is_at_least(s.small_allocations, s.allocations, 90) || !is_at_least(s.short_lived, s.allocations, 90) ||
      s.thread_live_blocks > most_at_once || s.freed_by_others > 0)
    return {};
  return advice{
      .seen = fmt::format("{} of its {} blocks have at most {} bytes, and {} are freed before their thread "
                          "allocates {} more; at most {} live at one time.",
                          percent(s.small_allocations, s.allocations), counted(s.allocations), site_habits::small,
                          percent(s.short_lived, s.allocations), site_habits::soon, counted(s.thread_live_blocks)),
      .bytes = std::min((s.largest + 7) / 8 * 8, site_habits::small)};
}

finding reserve(const site_habits& s) {
  if (!is_at_least(s.takeovers, s.allocations, 50) || s.rows == 0) return {};
  const std::uint64_t becomes = s.grown_bytes / s.rows;
  return advice{
      .seen = fmt::format("{} of its {} blocks take over from a smaller one: {} grow, to {} on average, in {} steps.",
                          percent(s.takeovers, s.allocations), counted(s.allocations), counted(s.rows), amount(becomes),
                          fmt::format("{:.3g}", static_cast<double>(s.takeovers) / static_cast<double>(s.rows))),
      .bytes = becomes};
}

finding stack_arena(const site_habits& s) {
  constexpr std::uint64_t most_bytes = 64 * KiB;
  if (!is_at_least(s.freed_newest, s.frees, 99) || !is_at_least(s.frees, s.allocations, 90) ||
      s.thread_live_bytes > most_bytes || s.freed_by_others > 0)
    return {};
  return advice{
      .seen = fmt::format("{} of its {} blocks are freed in the reverse order of their allocation; a thread "
                          "has at most {} of them at one time.",
                          percent(s.freed_newest, s.frees), counted(s.allocations), amount(s.thread_live_bytes)),
      .bytes = std::bit_ceil(std::max<std::uint64_t>(s.thread_live_bytes + s.thread_live_bytes / 4, 256))};
}

finding arena(const site_habits& s) {
  constexpr std::uint64_t fewest_at_once = 8;
  if (s.freed_by_others > 0 || s.thread_live_blocks < fewest_at_once || s.gathered_peak * 4 > s.live_peak * 5)
    return {};
  const std::string ends =
      s.endings == 0 ? "they live to the end of the recording"
                     : fmt::format("{} time{} all of them were free", counted(s.endings), s.endings == 1 ? "" : "s");
  return advice{.seen = fmt::format("Its {} blocks live and die together: {}. An arena that is emptied then would hold "
                                    "{} of them at most, and {} live at most as it is.",
                                    counted(s.allocations), ends, amount(s.gathered_peak), amount(s.live_peak))};
}

advice of_one_size(const site_habits& s, const std::string& more) {
  return advice{.seen = fmt::format("{} of its {} blocks have {} bytes{}.", percent(s.usual_allocations, s.allocations),
                                    counted(s.allocations), s.usual_size, more),
                .bytes = s.usual_size};
}

finding pool(const site_habits& s) {
  if (!is_one_size(s) || s.freed_by_others > 0) return {};
  return of_one_size(s, fmt::format("; at most {} live at one time", amount(s.live_peak)));
}

finding shared_pool(const site_habits& s) {
  if (!is_one_size(s)) return {};
  return of_one_size(s, fmt::format(", and {} of those that are freed are freed by another thread",
                                    percent(s.freed_by_others, s.frees + s.resized)));
}

finding hand_over(const site_habits& s) {
  if (!is_at_least(s.freed_by_others, s.frees + s.resized, 90)) return {};
  return advice{.seen = fmt::format("{} of its {} blocks that are freed are freed by another thread than their own.",
                                    percent(s.freed_by_others, s.frees + s.resized), counted(s.frees + s.resized))};
}

constexpr std::array rules{
    rule{advice_kind::small_buffer, "small buffer",
         "90 % of the blocks have at most 128 bytes, and 90 % are freed before their thread allocates 32 more; at most "
         "16 "
         "live at one time in a thread, and it frees them itself",
         "room for a short block within what owns it, malloc for a longer one", small_buffer},
    rule{advice_kind::reserve, "reserve",
         "half of the blocks take over from a smaller one, by realloc or as a container grows",
         "one allocation of what the block will become", reserve},
    rule{advice_kind::stack_arena, "stack arena",
         "99 % of the frees are of the site's newest block in the thread, 90 % of the blocks are freed, and a thread "
         "has "
         "at most 64 KiB of them at one time and frees them itself",
         "`stack_arena`", stack_arena},
    rule{advice_kind::arena, "arena",
         "if blocks came free only when none of the site lives in the thread, it would have a quarter more at its peak "
         "at "
         "most; 8 live at one time, and their thread frees them itself",
         "`arena`, emptied when the last one dies", arena},
    rule{advice_kind::pool, "pool",
         "99 % of the blocks have one size, of at most 4 KiB, and their thread frees them itself", "`pool`", pool},
    rule{advice_kind::shared_pool, "shared pool", "that, but other threads free them", "`concurrent_pool`",
         shared_pool},
    rule{advice_kind::hand_over, "hand-over", "90 % of the blocks are freed by another thread than their own",
         "a malloc that keeps them there (`thread_cache.keep_remote`)", hand_over},
};

const rule& rule_of(advice_kind kind) { return *std::ranges::find(rules, kind, &rule::kind); }

/// Whether the rule takes blocks that live at the end of the trace for blocks that die together. At
/// the end of a torn trace they do not end.
bool needs_the_end(const rule& r, const site_habits& s) { return r.kind == advice_kind::arena && s.endings == 0; }

/// Of the allocations and of the peak, the larger part.
double weight(const program_habits& all, const site_habits& s) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
  };
  return std::max(share(s.allocations, all.allocations), share(s.live_at_program_peak, all.live_peak));
}

}  // namespace

const char* advice::name() const noexcept { return rule_of(kind).name; }
const char* advice::part() const noexcept { return rule_of(kind).part; }

std::optional<replay::kit_part> advice::replayed_part() const noexcept {
  using enum replay::part_kind;
  const auto made = [&](replay::part_kind part) { return replay::kit_part{.kind = part, .unused = 0, .bytes = bytes}; };
  switch (kind) {
    case advice_kind::small_buffer: return made(small_buffer);
    case advice_kind::stack_arena: return made(stack_arena);
    case advice_kind::arena: return made(arena);
    case advice_kind::pool: return made(pool);
    case advice_kind::shared_pool: return made(shared_pool);
    case advice_kind::reserve:
    case advice_kind::hand_over: return std::nullopt;
  }
  return std::nullopt;
}

std::vector<advice> advice_for(const program_habits& seen) {
  constexpr double least = 0.01;
  std::vector<std::uint16_t> order;
  for (std::size_t i = 0; i < seen.sites.size(); ++i)
    if (weight(seen, seen.sites[i]) >= least) order.push_back(static_cast<std::uint16_t>(i + 1));
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::uint16_t site) { return weight(seen, seen.sites[site - 1U]); });
  std::vector<advice> all;
  for (const std::uint16_t site : order) {
    for (const rule& r : rules) {
      if (seen.is_torn && needs_the_end(r, seen.sites[site - 1U])) continue;
      finding found = r.apply(seen.sites[site - 1U]);
      if (!found) continue;
      found->kind = r.kind;
      found->site = site;
      all.push_back(std::move(*found));
      break;
    }
  }
  return all;
}

std::string advice_rules_as_markdown() {
  std::string text = "| advice | what is seen of a site | what to do |\n|---|---|---|\n";
  for (const rule& r : rules) text += fmt::format("| {} | {} | {} |\n", r.name, r.seen, r.part);
  return text;
}

}  // namespace heapwright::tool
