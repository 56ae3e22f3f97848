#include "profile.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <unordered_map>

#include "utf8.hpp"

namespace heapwright::tool {
namespace {

/// Counters only grow; one that is lower was read from another segment, or is damaged.
template <class Number>
Number growth(Number later, Number earlier) {
  return later > earlier ? later - earlier : Number{};
}

segment::stack_figures growth(segment::stack_figures later, const segment::stack_figures& earlier) {
  using figures = segment::stack_figures;
  for (const auto counter :
       {&figures::samples, &figures::live_samples, &figures::freed_samples, &figures::thinned_samples,
        &figures::allocated_bytes, &figures::freed_bytes, &figures::short_lived_bytes})
    later.*counter = growth(later.*counter, earlier.*counter);
  for (const auto counter : {&figures::allocations, &figures::frees, &figures::short_lived,
                             &figures::allocated_variance, &figures::freed_variance})
    later.*counter = growth(later.*counter, earlier.*counter);
  later.thinned_bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(later.thinned_bytes) -
                                                  static_cast<std::uint64_t>(earlier.thinned_bytes));
  later.thinned_blocks -= earlier.thinned_blocks;
  later.thinned_variance -= earlier.thinned_variance;
  for (unsigned i = 0; i < later.lifetimes.size(); ++i)
    later.lifetimes[i] = growth(later.lifetimes[i], earlier.lifetimes[i]);
  return later;
}

/// Damaged counters can be anything; what a double holds beyond a 64-bit integer is not defined as
/// one.
std::int64_t rounded(double blocks) {
  constexpr double limit = 9e18;
  return std::isnan(blocks) ? 0 : std::llround(std::clamp(blocks, -limit, limit));
}

/// A name for a format in which semicolons part the frames and lines the stacks.
void add_name(std::string& to, const std::string& name) {
  for (const char c : as_utf8(name)) to += c == ';' ? ':' : static_cast<unsigned char>(c) < ' ' ? ' ' : c;
}

}  // namespace

std::int64_t value_of(const segment::stack_figures& stack, heap_measure measure) {
  switch (measure) {
    case heap_measure::alloc_objects: return rounded(stack.allocations);
    case heap_measure::alloc_space: return static_cast<std::int64_t>(stack.allocated_bytes);
    case heap_measure::inuse_objects: return rounded(stack.live_blocks());
    case heap_measure::inuse_space:
      return static_cast<std::int64_t>(stack.allocated_bytes - stack.freed_bytes +
                                       static_cast<std::uint64_t>(stack.thinned_bytes));
  }
  return 0;
}

heap_values values_of(const segment::stack_figures& stack, const profile_options& options) {
  segment::stack_figures since = stack;
  if (options.before != nullptr) {
    const auto found = options.before->find(stack.id);
    const allocated_figures before = found == options.before->end() ? allocated_figures{} : found->second;
    since.allocations = growth(stack.allocations, before.blocks);
    since.allocated_bytes = growth(stack.allocated_bytes, before.bytes);
  }
  heap_values values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const heap_measure measure = heap_measures[i].measure;
    const bool is_allocated = measure == heap_measure::alloc_objects || measure == heap_measure::alloc_space;
    values[i] = value_of(is_allocated ? since : stack, measure);
    if (values[i] < 0 && !options.is_difference) values[i] = 0;
  }
  return values;
}

std::vector<segment::stack_figures> stacks_between(const std::vector<segment::stack_figures>& later,
                                                   const std::vector<segment::stack_figures>& earlier) {
  std::unordered_map<segment::reference, const segment::stack_figures*> before;
  for (const segment::stack_figures& s : earlier) before.emplace(s.id, &s);
  std::vector<segment::stack_figures> result;
  for (const segment::stack_figures& s : later) {
    const auto known = before.find(s.id);
    segment::stack_figures d = known == before.end() ? s : growth(s, *known->second);
    if (d.allocations > 0 || d.frees > 0 || d.allocated_bytes != 0 || d.freed_bytes != 0 || d.thinned_bytes != 0)
      result.push_back(std::move(d));
  }
  return result;
}

std::string collapsed_stacks(const std::vector<segment::stack_figures>& stacks, symbolizer& symbols,
                             heap_measure measure) {
  std::string text;
  for (const segment::stack_figures& s : stacks) {
    const std::int64_t value = value_of(s, measure);
    if (value <= 0) continue;
    const std::size_t line = text.size();
    if (s.is_cut) text += "(cut)";
    for (const std::uint64_t address : s.addresses | std::views::reverse)
      for (const source_frame& frame : symbols.resolve(address).frames | std::views::reverse) {
        if (text.size() > line) text += ';';
        add_name(text, frame.function);
      }
    if (text.size() == line) text += "(unknown)";
    text += ' ' + std::to_string(value) + '\n';
  }
  return text;
}

}  // namespace heapwright::tool
