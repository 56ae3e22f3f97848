#include "recipe_findings.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quantities.hpp"

namespace heapwright::tool {
namespace {

/// What a rule has seen. The text goes on behind "64 % of RSS, 120 MiB,".
struct sight {
  std::uint64_t bytes = 0;
  std::string text;
};

struct rule {
  const char* name;
  const char* seen;       ///< in the documentation
  std::uint64_t percent;  ///< of RSS, at least
  std::uint64_t bytes;    ///< at least
  std::array<const char*, 3> fields;
  const char* advice;
  sight (*look)(const recipe_evidence&);
  bool (*is_followed)(const recipe_values&) = [](const recipe_values&) { return false; };
  const char* advice_if_followed = nullptr;

  [[nodiscard]] std::span<const char* const> named_fields() const {
    const auto end = std::find(fields.begin(), fields.end(), nullptr);
    return {fields.begin(), static_cast<std::size_t>(end - fields.begin())};
  }
};

std::uint64_t without(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

std::string amount_text(std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); }

/// "240 bytes", "12 KiB".
std::string block_size(std::uint64_t bytes) {
  return bytes % 1024 == 0 ? fmt::format("{} KiB", bytes / 1024) : fmt::format("{} bytes", bytes);
}

const recipe_evidence::room* roomiest(const recipe_evidence& e) {
  const auto found = std::ranges::max_element(e.classes, {}, &recipe_evidence::room::free);
  return found == e.classes.end() || found->free == 0 ? nullptr : &*found;
}

/// A page that was never touched takes no memory. The figures do not say which pages those are: all
/// of them are taken to be in the part that is looked at. So the result may be too low.
std::uint64_t resident_part(const recipe_evidence& e, std::uint64_t bytes) { return without(bytes, e.not_resident); }

/// Where a command has freed nearly all by its end, free spans say nothing of the recipe.
bool spans_matter(const recipe_evidence& e) { return !e.ends_by_itself || 4 * e.in_use >= e.rss; }

bool is_in_one_class(const recipe_evidence& e) {
  const auto* const most = roomiest(e);
  return most != nullptr && 2 * most->free >= e.free_in_spans;
}

sight in_one_class(const recipe_evidence& e) {
  if (!spans_matter(e) || !is_in_one_class(e)) return {};
  const std::uint64_t bytes = resident_part(e, e.free_in_spans);
  const auto& most = *roomiest(e);
  return {bytes, fmt::format("is free in spans, {} of it in spans of blocks of {}",
                             amount_text(std::min(bytes, most.free)), block_size(most.block_bytes))};
}

sight in_many_classes(const recipe_evidence& e) {
  const auto* const most = roomiest(e);
  if (!spans_matter(e) || most == nullptr || is_in_one_class(e)) return {};
  const std::uint64_t bytes = resident_part(e, e.free_in_spans);
  const auto with_room = std::ranges::count_if(e.classes, [](const auto& c) { return c.free > 0; });
  return {bytes, fmt::format("is free in spans of {} size classes; spans of blocks of {} have the most, {}", with_room,
                             block_size(most->block_bytes), amount_text(std::min(bytes, most->free)))};
}

sight in_thread_caches(const recipe_evidence& e) {
  return {e.thread_caches,
          fmt::format("is freed blocks in the caches of {} thread{}", e.threads, e.threads == 1 ? "" : "s")};
}

sight in_free_pages(const recipe_evidence& e) {
  return {resident_part(e, e.free_kept), "is free pages that the heap has not given back to the system"};
}

sight in_rounding(const recipe_evidence& e) {
  return {e.rounding, "is rounding: the live blocks are so much longer than the program has asked for"};
}

sight in_huge_pages(const recipe_evidence& e) {
  return {e.huge_excess, "is memory that the heap does not use, kept by the huge pages that it lies in"};
}

sight in_records(const recipe_evidence& e) {
  return {e.records,
          fmt::format("is the heap's own records; {} thread{} a cache", e.threads, e.threads == 1 ? " has" : "s have")};
}

bool has_short_spans(const recipe_values& r) { return r.last_span_bytes <= 4 * KiB; }
bool has_few_classes(const recipe_values& r) { return r.steps_per_doubling <= 4; }
bool has_fine_classes(const recipe_values& r) { return r.steps_per_doubling >= 16; }
bool has_small_caches(const recipe_values& r) { return r.share_bytes <= 256 * KiB && r.max_long_bytes <= 4 * MiB; }
bool keeps_few_pages(const recipe_values& r) {
  return r.give_back == give_back_policy::at_once && r.max_free_resident <= 8 * MiB;
}

constexpr std::array rules{
    rule{"free_in_spans_of_one_class",
         "free in spans, at least half of it in one size class",
         15,
         8 * MiB,
         {"spans"},
         "Try shorter spans, which are free as a whole sooner: `.spans = {.last = {4 * heapwright::KiB, 4, 8}}`.",
         in_one_class,
         has_short_spans,
         "Spans of the recipe are short already: some blocks of each are in use still."},
    rule{"free_in_spans_of_many_classes",
         "free in spans, less than half of it in any size class",
         15,
         8 * MiB,
         {"classes.steps_per_doubling", "spans"},
         "Try fewer size classes, which share their spans: `.classes = {.steps_per_doubling = 4}`. "
         "Rounding grows, to 1/4 at most.",
         in_many_classes,
         has_few_classes,
         "The recipe has few size classes already."},
    rule{"thread_caches",
         "freed blocks in thread caches (`live` with the probe)",
         15,
         8 * MiB,
         {"thread_cache"},
         "Try smaller caches: `.thread_cache = {.share_bytes = 256 * heapwright::KiB, "
         ".max_long_bytes = 4 * heapwright::MiB}`.",
         in_thread_caches,
         has_small_caches,
         "The caches of the recipe are small already."},
    rule{"free_pages",
         "free pages that are kept",
         25,
         16 * MiB,
         {"pages.give_back"},
         "Try to keep fewer: `.pages = {.max_free_resident = 8 * heapwright::MiB, "
         ".give_back = heapwright::give_back_policy::at_once}`. Taking them again costs page faults.",
         in_free_pages,
         keeps_few_pages,
         "The recipe gives pages back at once already."},
    rule{"rounding",
         "rounding of live blocks (`live` with the probe)",
         10,
         8 * MiB,
         {"classes.exact", "classes.steps_per_doubling"},
         "Try classes for the sizes that are frequent, `.classes = {.exact = {24, 40, 64}}`, "
         "or finer steps: `.classes = {.steps_per_doubling = 16}, .spans = {.largest_cut = 64 * heapwright::KiB}`.",
         in_rounding,
         has_fine_classes,
         "Steps are fine already. Try classes for the sizes that are frequent, `.classes = {.exact = {24, 40, 64}}`."},
    rule{"huge_pages",
         "kept by huge pages, where the recipe asks for these (`live`)",
         15,
         8 * MiB,
         {"pages.huge"},
         "Try pages of 4 KiB: `.pages = {.huge = heapwright::huge_page_use::none}`.",
         in_huge_pages},
    rule{"records",
         "the heap's own records",
         10,
         4 * MiB,
         {"classes.steps_per_doubling"},
         "Each thread cache has a record for each size class. Try fewer classes: `.classes = {.steps_per_doubling = "
         "4}`.",
         in_records,
         has_few_classes,
         "Each thread cache has a record for each size class. The recipe has few classes already."},
};

std::string quoted(std::span<const char* const> fields) {
  std::string text;
  for (const char* const field : fields) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", field);
  return text;
}

}  // namespace

void recipe_evidence::take(const heap_reading& heap) {
  in_use = heap.outside();
  free_in_spans = heap.free_in_spans();
  free_kept = heap.free_resident;
  records = heap.records();
  threads = heap.threads;
  recipe = heap.recipe;
  classes.clear();
  for (const class_reading& c : heap.classes)
    classes.push_back({c.block_bytes, without(c.span_bytes, c.outside * c.block_bytes)});
}

recipe_evidence evidence_of(const heap_reading& heap, std::uint64_t rss, std::uint64_t anonymous) {
  recipe_evidence e;
  e.rss = rss;
  e.take(heap);
  e.not_resident = without(heap.outside() + e.free_in_spans + e.free_kept + e.records, anonymous);
  return e;
}

std::string recipe_finding::line() const {
  if (is_followed) return fmt::format("{}. {} See {}", text, advice, rules_page);
  return fmt::format("{}; see {} of the recipe, {}", text, fmt::join(fields, ", "), rules_page);
}

std::vector<recipe_finding> find_in(const recipe_evidence& evidence) {
  std::vector<recipe_finding> found;
  for (const rule& r : rules) {
    sight seen = r.look(evidence);
    seen.bytes = std::min(seen.bytes, evidence.rss);
    if (evidence.rss == 0 || seen.bytes < r.bytes || 100 * seen.bytes < r.percent * evidence.rss) continue;
    const std::uint64_t share = (100 * seen.bytes + evidence.rss / 2) / evidence.rss;
    const bool is_followed = evidence.recipe && r.is_followed(*evidence.recipe);
    found.push_back({r.name, seen.bytes, fmt::format("{} % of RSS, {}, {}", share, amount_text(seen.bytes), seen.text),
                     r.named_fields(), is_followed ? r.advice_if_followed : r.advice, is_followed});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &recipe_finding::bytes);
  if (found.size() > most_findings) found.resize(most_findings);
  return found;
}

std::string rules_as_markdown() {
  std::string text = "| what is seen | from | field | what to try |\n|---|---|---|---|\n";
  for (const rule& r : rules)
    text += fmt::format("| {} | {} % of RSS and {} MiB | {} | {} |\n", r.seen, r.percent, r.bytes / MiB,
                        quoted(r.named_fields()), r.advice);
  return text;
}

}  // namespace heapwright::tool
