#include "profiles.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "profile.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {

std::string pprof_answer(watched_process& process, bool is_heap, unsigned seconds) {
  const auto begin = process.now();
  auto [stacks, end] = process.stacks();
  if (seconds > 0) {
    const auto earlier = std::move(stacks);
    if (!process.wait(std::chrono::seconds(seconds))) throw std::runtime_error("the server is going away");
    auto [later, seen_later] = process.stacks();
    stacks = stacks_between(later, earlier);
    end = std::move(seen_later);
  }
  const segment::process_figures& p = end->figures.process;
  profile_options options;
  options.shown_first = is_heap ? heap_measure::inuse_space : heap_measure::alloc_space;
  options.interval = p.interval;
  options.at_unix_ns = p.started_unix_ns + (end->figures.at_ns - p.started_ns);
  options.duration_ns = end->figures.at_ns - (seconds > 0 ? begin->figures.at_ns : p.started_ns);
  options.program = p.program;
  options.is_difference = seconds > 0;
  options.thread_names = end->figures.thread_names;
  std::string result;
  process.places().use_symbols(
      end->figures, [&, &all = stacks](symbolizer& symbols) { result = pprof_profile(all, symbols, options); });
  return result;
}

std::string collapsed_answer(watched_process& process, const stack_question& question) {
  auto [stacks, seen] = process.stacks();
  const segment::snapshot& figures = seen->figures;
  std::erase_if(stacks, [&](const auto& s) { return !asks_for(question, figures.name_of_threads(s)); });
  for (segment::stack_figures& s : stacks) {
    // Of a growth only what grows: the format knows no negative values.
    const measured m = measure(s, question);
    s.allocated_bytes = static_cast<std::uint64_t>(std::llround(std::max(question.since ? m.grown : m.value, 0.0)));
  }
  std::string result;
  process.places().use_symbols(figures, [&, &all = stacks](symbolizer& symbols) {
    result = collapsed_stacks(all, symbols, heap_measure::alloc_space);
  });
  return result;
}

}  // namespace heapwright::tool
