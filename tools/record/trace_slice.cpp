// A piece of a trace: events of some time, of all processes or one.
//
// Problem. Blocks are known by how many allocations their thread has made before. In the piece that
// count begins anew: it is less by what the thread has allocated before the piece. A free can stand
// in the file before the allocation of another thread's block, so the trace is read twice: first
// for these counts, then to write. A block from before the piece is not known in it.
#include "trace_slice.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "failure.hpp"
#include "output_file.hpp"
#include "quantities.hpp"
#include "terminal.hpp"
#include "trace_reader.hpp"
#include "trace_sink.hpp"
#include "trace_writer.hpp"

namespace heapwright::tool {
namespace {

using namespace trace;
using thread_key = std::pair<std::uint32_t, std::uint32_t>;  // process, thread

/// Of a thread's allocations, the numbers of the first and the last in the piece. 0: none.
struct numbers {
  std::uint64_t first = 0, last = 0;
};

class slicer {
 public:
  explicit slicer(const slice_options& options)
      : options_(options),
        from_ns_(static_cast<std::uint64_t>(options.from_seconds * 1e9)),
        to_ns_(static_cast<std::uint64_t>(options.to_seconds * 1e9)) {}

  /// First.
  void look_at(const part& p) {
    if (const auto* const one = std::get_if<process>(&p)) has_process_ |= one->number == options_.process;
    const auto* const some = std::get_if<events>(&p);
    if (some == nullptr || !is_wanted(some->by.process)) return;
    for (const event& e : some->all) {
      if (!is_within(e.at_ns) || (e.kind != event_kind::allocate && e.kind != event_kind::reallocate)) continue;
      numbers& n = numbers_[{some->by.process, some->by.thread}];
      if (n.first == 0) n.first = e.block.number;
      n.last = e.block.number;
      stacks_.insert({some->by.process, e.asked.stack});
    }
  }

  [[nodiscard]] bool has_process() const noexcept { return !options_.process || has_process_; }

  /// Then.
  void write(const part& p, trace_writer& to) {
    if (const auto* const one = std::get_if<process>(&p); one != nullptr && is_wanted(one->number)) to.add(*one);
    if (const auto* const one = std::get_if<module>(&p); one != nullptr && is_wanted(one->process)) to.add(*one);
    if (const auto* const one = std::get_if<interpreted_code>(&p); one != nullptr && is_wanted(one->process))
      to.add(*one);
    if (const auto* const one = std::get_if<stack>(&p); one != nullptr && stacks_.contains({one->process, one->id}))
      to.add(*one);
    if (const auto* const one = std::get_if<note>(&p);
        one != nullptr && is_wanted(one->process) && is_within(one->at_ns))
      to.add(*one);
    if (const auto* const one = std::get_if<memory>(&p);
        one != nullptr && is_wanted(one->process) && is_within(one->at_ns))
      to.add(*one);
    if (const auto* const one = std::get_if<touched>(&p); one != nullptr && renumbered(one->block).number != 0)
      to.add(touched{renumbered(one->block), one->bytes});
    if (const auto* const some = std::get_if<events>(&p); some != nullptr && is_wanted(some->by.process)) {
      // Rounds stay rounds: a note or a definition between them does not end one.
      if (some->round != round_) to.flush();
      round_ = some->round;
      for (const event& e : some->all)
        if (is_within(e.at_ns)) write(some->by, e, to);
    }
  }

 private:
  [[nodiscard]] bool is_wanted(std::uint32_t process) const noexcept {
    return !options_.process || process == *options_.process;
  }
  [[nodiscard]] bool is_within(std::uint64_t at_ns) const noexcept { return at_ns >= from_ns_ && at_ns < to_ns_; }

  /// Number 0: it is not in the piece.
  [[nodiscard]] block_id renumbered(const block_id& b) const {
    const auto found = numbers_.find({b.by.process, b.by.thread});
    if (found == numbers_.end() || b.number < found->second.first || b.number > found->second.last) return {};
    return {b.by, b.number - found->second.first + 1};
  }

  void write(thread_number by, const event& e, trace_writer& to) const {
    switch (e.kind) {
      case event_kind::allocate: (void)to.allocate(by, e.asked, e.at_ns); break;
      case event_kind::deallocate: to.deallocate(by, renumbered(e.block), e.at_ns); break;
      case event_kind::reallocate: (void)to.reallocate(by, renumbered(e.before), e.asked, e.at_ns); break;
      case event_kind::end_thread: to.end_thread(by, e.at_ns); break;
    }
  }

  const slice_options& options_;
  std::uint64_t from_ns_, to_ns_;
  bool has_process_ = false;
  std::map<thread_key, numbers> numbers_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> stacks_;  ///< process, id
  std::uint32_t round_ = 0;
};

/// One of the two times that the trace is read.
template <class F>
ending each_part(const std::string& file, int times_before, F f) {
  trace_reader reader(file);
  return for_each_part(reader, [&](const part& p) {
    f(p);
    const double done = times_before + static_cast<double>(reader.position()) / static_cast<double>(reader.size());
    show_step(fmt::format("reading {}: {:.0f} %", file, 100 * done / 2));
  });
}

/// "a piece of app.trace (1.5 s to 2 s, process 1)".
std::string described(const slice_options& options) {
  const slice_options all;
  std::string limits;
  if (options.to_seconds != all.to_seconds)
    limits = fmt::format("{} s to {} s", options.from_seconds, options.to_seconds);
  else if (options.from_seconds != all.from_seconds)
    limits = fmt::format("from {} s on", options.from_seconds);
  if (options.process) limits += fmt::format("{}process {}", limits.empty() ? "" : ", ", *options.process);
  return fmt::format("a piece of {}{}", options.trace, limits.empty() ? "" : fmt::format(" ({})", limits));
}

}  // namespace

int trace_slice(const slice_options& options) {
  if (options.to_seconds <= options.from_seconds)
    throw failure(exit_code::bad_input, "trace slice: --to is not behind --from");
  check_is_a_file("--output", options.output);
  check_replaces_none("--output", options.output, {options.trace});
  try {
    slicer piece(options);
    (void)each_part(options.trace, 0, [&](const part& p) { piece.look_at(p); });
    if (!piece.has_process())
      throw failure(exit_code::bad_input, fmt::format("{} has no process {}", options.trace, *options.process));
    output_file file(options.output);
    trace_sink sink(file);
    trace_writer to(std::ref(sink));
    const ending ended = each_part(options.trace, 1, [&](const part& p) { piece.write(p, to); });
    // A piece of a torn trace counts as torn: nobody knows what is missing.
    to.end({.reason = fmt::format("{}, which {} {}", described(options),
                                  ended.is_torn || ended.is_piece ? "is" : "ended:", ended.reason),
            .is_torn = ended.is_torn,
            .is_piece = true});
    show_step("");
    if (to.has_failed()) throw sink.trouble();
    file.finish();
    tell("heapwright: {} in {}{}{}\n", show_count_of(to.events(), "event"), options.output,
         to.events() == 0 ? fmt::format("; {} has none there", options.trace) : "",
         ended.is_torn ? fmt::format("; not all that were asked for, maybe: the trace is {}", ended.reason) : "");
    return ended.is_torn ? 1 : EXIT_SUCCESS;
  } catch (const bad_trace& why) {
    throw failure(exit_code::bad_input, why.what());
  }
}

}  // namespace heapwright::tool
