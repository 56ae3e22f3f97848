#include "stack_measure.hpp"

#include <algorithm>
#include <cmath>

#include "sample_weight.hpp"

namespace heapwright::tool {
namespace {

double value_of(stack_value kind, const baseline::counted& c) {
  switch (kind) {
    case stack_value::live: return static_cast<double>(c.live);
    case stack_value::peak: return static_cast<double>(std::max<std::int64_t>(c.at_peak, 0));
    case stack_value::allocated: return static_cast<double>(c.allocated_bytes);
    case stack_value::count: return c.allocations;
    case stack_value::short_lived: return static_cast<double>(c.short_lived_bytes);
  }
  return 0;
}

/// Blocks of one stack are about equally long: what is known of its bytes is carried over to counts
/// and shares of them.
double variance_of(stack_value kind, const segment::stack_figures& s) {
  if (kind == stack_value::live) return s.live_variance();
  if (kind == stack_value::allocated || s.allocated_bytes == 0) return s.allocated_variance;
  const auto bytes = static_cast<double>(s.allocated_bytes);
  if (kind == stack_value::count) return s.allocated_variance * (s.allocations / bytes) * (s.allocations / bytes);
  return s.allocated_variance * value_of(kind, counted_by(s)) / bytes;
}

double unseen_of(stack_value kind, const segment::stack_figures& s) {
  if (kind != stack_value::count) return s.unseen();
  return s.allocated_bytes > 0 ? s.unseen() * s.allocations / static_cast<double>(s.allocated_bytes) : 1;
}

/// Of what was allocated since `then`: by the present interval, and those of the samples since.
double unseen_since(stack_value kind, const segment::stack_figures& s, const baseline::counted& then) {
  if (kind != stack_value::live && kind != stack_value::allocated) return unseen_of(kind, s);
  const double bytes = static_cast<double>(s.allocated_bytes) - static_cast<double>(then.allocated_bytes);
  const double variance = std::max(s.allocated_variance - then.allocated_variance, 0.0);
  const double block_bytes = s.allocations > 0 ? static_cast<double>(s.allocated_bytes) / s.allocations : 0;
  return std::max(segment::unseen_weight(block_bytes, s.interval), bytes > 0 ? variance / bytes : 0);
}

/// Of what has changed since `then`. The samples of both moments are the same ones but for those
/// taken and those freed in between, so that these bound the variance; so do both moments, each by
/// itself.
double growth_variance(stack_value kind, const segment::stack_figures& s, const baseline::counted& then) {
  const double allocated = std::max(s.allocated_variance - then.allocated_variance, 0.0);
  if (kind == stack_value::allocated) return allocated;
  if (kind != stack_value::live) return variance_of(kind, s);
  const double freed = std::max(s.freed_variance - then.freed_variance, 0.0);
  // What thinning adds to the variance is by how much it made that of live bytes grow.
  const double thinned = std::abs(s.thinned_variance - then.thinned_variance);
  const double live_then = std::max(then.allocated_variance - then.freed_variance + then.thinned_variance, 0.0);
  return std::min(allocated + freed + thinned, s.live_variance() + live_then);
}

}  // namespace

measured& measured::operator+=(const measured& o) noexcept {
  value += o.value;
  grown += o.grown;
  variance += o.variance;
  unseen = std::max(unseen, o.unseen);
  return *this;
}

double error_of(double variance, double unseen) noexcept {
  constexpr double z = 1.96;
  const double half = z * unseen / 2;
  return z * (half + std::sqrt(std::max(variance, 0.0) + half * half));
}

baseline::counted counted_by(const segment::stack_figures& s) {
  return {.live = s.live_bytes(),
          .at_peak = s.at_peak,
          .allocated_bytes = s.allocated_bytes,
          .short_lived_bytes = s.short_lived_bytes,
          .allocations = s.allocations,
          .allocated_variance = s.allocated_variance,
          .freed_variance = s.freed_variance,
          .thinned_variance = s.thinned_variance};
}

measured measure(const segment::stack_figures& s, const stack_question& question) {
  const double now = value_of(question.value, counted_by(s));
  if (!question.since) return {now, 0, variance_of(question.value, s), unseen_of(question.value, s)};
  const auto found = question.since->stacks.find(s.id);
  const baseline::counted then = found == question.since->stacks.end() ? baseline::counted{} : found->second;
  const double grown = now - value_of(question.value, then);
  return {std::abs(grown), grown, growth_variance(question.value, s, then), unseen_since(question.value, s, then)};
}

bool asks_for(const stack_question& question, const segment::stack_figures& s, const segment::snapshot& figures) {
  return question.threads.empty() || fits_pattern(question.threads, figures.name_of_threads(s));
}

std::vector<std::uint32_t> places_of(const segment::stack_figures& s, const segment::snapshot& figures,
                                     places_book& book) {
  std::vector<std::uint32_t> all;
  for (const std::uint64_t address : s.addresses) {
    const auto here = book.at(address, figures);
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
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
