#include "stack_measure.hpp"

#include <cmath>

namespace heapwright::tool {
namespace {

double of_kind(stack_value kind, std::uint64_t live, std::uint64_t allocated, std::uint64_t short_lived, double count) {
  switch (kind) {
    case stack_value::live: return static_cast<double>(live);
    case stack_value::allocated: return static_cast<double>(allocated);
    case stack_value::count: return count;
    case stack_value::short_lived: return static_cast<double>(short_lived);
  }
  return 0;
}

}  // namespace

measured measure(const trace::stack_figures& s, const stack_question& question) {
  const double now = of_kind(question.value, s.live_bytes(), s.allocated_bytes, s.short_lived_bytes, s.allocations);
  if (!question.since) return {now, 0};
  const auto found = question.since->stacks.find(s.id);
  const baseline::counted then = found == question.since->stacks.end() ? baseline::counted{} : found->second;
  const double grown =
      now - of_kind(question.value, then.live, then.allocated_bytes, then.short_lived_bytes, then.allocations);
  return {std::abs(grown), grown};
}

std::vector<std::uint32_t> places_of(const trace::stack_figures& s, const trace::snapshot& figures, places_book& book) {
  std::vector<std::uint32_t> all;
  for (const std::uint64_t address : s.addresses) {
    const auto here = book.at(address, figures);
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

std::size_t site_in(const std::vector<std::uint32_t>& places, const places_book& book) {
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!book.is_machinery(places[i])) return i;
  return 0;
}

std::uint32_t place_table::number(std::uint32_t in_book) {
  const auto [entry, is_new] = numbers_.emplace(in_book, static_cast<std::uint32_t>(used_.size()));
  if (is_new) used_.push_back(in_book);
  return entry->second;
}

nlohmann::ordered_json place_table::rows() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::uint32_t number : used_) {
    const place p = book_[number];
    rows.push_back({p.function, p.file, p.line, p.module, p.is_inlined ? 1 : 0});
  }
  return rows;
}

}  // namespace heapwright::tool
