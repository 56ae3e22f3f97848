#include "stack_measure.hpp"

#include <algorithm>
#include <cmath>

#include "sample_weight.hpp"
#include "utf8.hpp"

namespace heapwright::tool {
namespace {

double value_of(stack_value kind, const stack_counts& c) {
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
double variance_of(stack_value kind, const stack_counts& c) {
  if (kind == stack_value::live) return c.live_variance();
  if (kind == stack_value::allocated || c.allocated_bytes == 0) return c.allocated_variance;
  const auto bytes = static_cast<double>(c.allocated_bytes);
  if (kind == stack_value::count) return c.allocated_variance * (c.allocations / bytes) * (c.allocations / bytes);
  return c.allocated_variance * value_of(kind, c) / bytes;
}

double unseen_of(stack_value kind, const segment::stack_figures& s) {
  if (kind != stack_value::count) return s.unseen();
  return s.allocated_bytes > 0 ? s.unseen() * s.allocations / static_cast<double>(s.allocated_bytes) : 1;
}

/// Of what was allocated from `then` to `now`: by the present interval, and those of the samples
/// meanwhile.
double unseen_since(stack_value kind, const segment::stack_figures& s, const stack_counts& now,
                    const stack_counts& then) {
  if (kind != stack_value::live && kind != stack_value::allocated) return unseen_of(kind, s);
  const double bytes = static_cast<double>(now.allocated_bytes) - static_cast<double>(then.allocated_bytes);
  const double variance = std::max(now.allocated_variance - then.allocated_variance, 0.0);
  const double block_bytes = s.allocations > 0 ? static_cast<double>(s.allocated_bytes) / s.allocations : 0;
  return std::max(segment::unseen_weight(block_bytes, s.interval), bytes > 0 ? variance / bytes : 0);
}

/// Of what has changed from `then` to `now`. The samples of both moments are the same ones but for
/// those taken and those freed in between, so that these bound the variance; so do both moments,
/// each by itself.
double growth_variance(stack_value kind, const stack_counts& now, const stack_counts& then) {
  const double allocated = std::max(now.allocated_variance - then.allocated_variance, 0.0);
  if (kind == stack_value::allocated) return allocated;
  if (kind != stack_value::live) return variance_of(kind, now);
  const double freed = std::max(now.freed_variance - then.freed_variance, 0.0);
  // What thinning adds to the variance is by how much it made that of live bytes grow.
  const double thinned = std::abs(now.thinned_variance - then.thinned_variance);
  return std::min(allocated + freed + thinned, now.live_variance() + then.live_variance());
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

measured measure(const segment::stack_figures& s, const stack_question& question) {
  const stack_counts now = question.until ? question.until->of(s.id) : counts_of(s);
  const double value = value_of(question.value, now);
  if (!question.since) return {value, 0, variance_of(question.value, now), unseen_of(question.value, s)};
  const stack_counts then = question.since->of(s.id);
  const double grown = value - value_of(question.value, then);
  return {std::abs(grown), grown, growth_variance(question.value, now, then),
          unseen_since(question.value, s, now, then)};
}

double unseen_of_unknown(const segment::process_figures& process) {
  return segment::unseen_weight(0, process.unseen_interval);
}

double unseen_of_all(const segment::process_figures& process, const std::vector<segment::stack_figures>& stacks) {
  segment::stack_figures all;
  all.interval = process.unseen_interval;
  for (const segment::stack_figures& s : stacks) all += s;
  return all.unseen();
}

bool asks_for(const stack_question& question, const std::string& name_of_threads) {
  return question.threads.empty() || fits_pattern(question.threads, as_utf8(name_of_threads));
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
