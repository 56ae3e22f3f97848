#include "trace_view.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "call_sites.hpp"
#include "failure.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "terminal.hpp"
#include "trace_names.hpp"
#include "trace_reader.hpp"
#include "wrapped_text.hpp"

namespace heapwright::tool {
namespace {

using namespace trace;

struct block_hash {
  std::size_t operator()(const block_id& b) const noexcept { return (b.number * 31 + b.by.thread) * 31 + b.by.process; }
};

struct process_sums {
  std::uint64_t allocations = 0, frees = 0, reallocations = 0;
  std::uint64_t unknown = 0;  ///< frees of blocks from before the recording, or from before the fork
  std::uint64_t requested = 0, live = 0, peak = 0;  ///< bytes
  std::set<std::uint32_t> threads;
};

/// At the anonymous memory of a process.
struct memory_looks {
  std::uint64_t most = 0;  ///< bytes
  std::uint64_t count = 0;
};

/// Events of a round are brought into the order of their times; what one thread frees before
/// another has allocated it is counted when it has.
class trace_summary {
 public:
  void add(const part& p) {
    if (const auto* const one = std::get_if<process>(&p)) processes[one->number] = *one;
    if (const auto* const one = std::get_if<note>(&p)) notes.push_back(*one);
    if (const auto* const one = std::get_if<memory>(&p)) {
      memory_looks& looks = memory_of[one->process];
      looks.most = std::max(looks.most, one->bytes);
      ++looks.count;
    }
    stacks += std::holds_alternative<stack>(p) ? 1 : 0;
    const auto* const some = std::get_if<events>(&p);
    if (some == nullptr) return;
    if (!round_.empty() && some->round != round_.front().round) end_round();
    round_.push_back(*some);
  }

  void end_round() {
    std::vector<std::size_t> done(round_.size(), 0);
    for (;;) {
      std::size_t next = round_.size();
      for (std::size_t i = 0; i < round_.size(); ++i) {
        if (done[i] == round_[i].all.size()) continue;
        if (next == round_.size() || round_[i].all[done[i]].at_ns < round_[next].all[done[next]].at_ns) next = i;
      }
      if (next == round_.size()) break;
      count(round_[next].by, round_[next].all[done[next]++]);
    }
    for (const auto& [block, by] : early_) ++sums[by].unknown;
    early_.clear();
    round_.clear();
  }

  std::map<std::uint32_t, process> processes;
  std::map<std::uint32_t, process_sums> sums;
  std::map<std::uint32_t, memory_looks> memory_of;
  std::vector<note> notes;
  std::uint64_t stacks = 0;

 private:
  void count(thread_number by, const event& e) {
    process_sums& s = sums[by.process];
    s.threads.insert(by.thread);
    if (e.kind == event_kind::end_thread) return;
    if (e.kind == event_kind::deallocate) {
      ++s.frees;
      return end(s, by.process, e.block);
    }
    if (e.kind == event_kind::reallocate) {
      ++s.reallocations;
      end(s, by.process, e.before);
    } else {
      ++s.allocations;
    }
    s.requested += e.asked.size;
    if (early_.erase(e.block) > 0) return;
    s.live += e.asked.size;
    s.peak = std::max(s.peak, s.live);
    live_[e.block] = e.asked.size;
  }

  void end(process_sums& s, std::uint32_t by, const block_id& block) {
    const auto found = live_.find(block);
    if (block.number == 0 || block.by.process != by) {
      ++s.unknown;  // or inherited by fork: the parent's may live on
    } else if (found == live_.end()) {
      early_[block] = by;
    } else {
      s.live -= found->second;
      live_.erase(found);
    }
  }

  std::vector<events> round_;
  std::unordered_map<block_id, std::uint64_t, block_hash> live_;   ///< bytes
  std::unordered_map<block_id, std::uint32_t, block_hash> early_;  ///< freed, not yet allocated; by which process
};

trace_names names_of(const std::string& file) {
  try {
    return trace_names(file);
  } catch (const bad_trace& why) {
    throw failure(exit_code::bad_input, why.what());
  }
}

template <class F>
ending read_trace(const std::string& file, F f) {
  try {
    trace_reader reader(file);
    return for_each_part(reader, f);
  } catch (const bad_trace& why) {
    throw failure(exit_code::bad_input, why.what());
  }
}

/// On a terminal, in lines that it does not break; what follows the first is indented further.
void answer_lines(std::size_t indent, const std::string& text) {
  answer("{:{}}{}", "", indent, wrapped(text, indent, indent + 2, columns_of(STDOUT_FILENO)));
}

std::string name_of(const block_id& b) {
  return b.number == 0 ? "?" : fmt::format("{}.{}.{}", b.by.process, b.by.thread, b.number);
}

std::string line_of(const event& e) {
  const auto asked = [&] {
    return fmt::format("{} bytes{}{} stack {}", e.asked.size,
                       e.asked.alignment != 0 ? fmt::format(" aligned to {}", e.asked.alignment) : "",
                       e.asked.zeroed ? " zeroed" : "", e.asked.stack);
  };
  switch (e.kind) {
    case event_kind::allocate: return fmt::format("allocate {} {}", name_of(e.block), asked());
    case event_kind::deallocate: return fmt::format("free {}", name_of(e.block));
    case event_kind::reallocate:
      return fmt::format("reallocate {} {} {}", name_of(e.before), name_of(e.block), asked());
    case event_kind::end_thread: return "the thread ends";
  }
  return "";
}

}  // namespace

int trace_info(const std::string& file) {
  trace_summary all;
  const ending ended = read_trace(file, [&](const part& p) { all.add(p); });
  all.end_round();
  if (all.processes.empty()) {
    const bool is_told_why = ended.is_torn || !all.notes.empty();
    answer_lines(0,
                 is_told_why ? "no process" : "no process: none had the probe, or called malloc while it was recorded");
  }
  for (const auto& [number, p] : all.processes) {
    const process_sums& s = all.sums[number];
    answer("process {} ({}): {}\n", number, p.id, shown_command(p.arguments));
    answer_lines(2, fmt::format("malloc of {}", p.allocator));
    answer_lines(
        2, fmt::format("{}; {}, {}, {}, of them {} of blocks from before", show_count_of(s.threads.size(), "thread"),
                       show_count_of(s.allocations, "allocation"), show_count_of(s.reallocations, "reallocation"),
                       show_count_of(s.frees, "free"), show_count(static_cast<double>(s.unknown))));
    answer_lines(
        2, fmt::format("asked for {}; live at most {}, at the end {}", show_bytes(static_cast<double>(s.requested)),
                       show_bytes(static_cast<double>(s.peak)), show_bytes(static_cast<double>(s.live))));
    if (const auto found = all.memory_of.find(number); found != all.memory_of.end())
      answer_lines(2, fmt::format("anonymous memory of at most {}, looked at {}",
                                  show_bytes(static_cast<double>(found->second.most)),
                                  show_count_of(found->second.count, "time")));
  }
  std::ranges::stable_sort(all.notes, {}, &note::at_ns);
  for (const note& n : all.notes)
    answer_lines(0, fmt::format("{:.3f} s: {}", static_cast<double>(n.at_ns) / 1e9, n.text));
  answer_lines(0, fmt::format("{}; {}", show_count_of(all.stacks, "call stack"), ended.reason));
  return ended.is_torn ? 1 : EXIT_SUCCESS;
}

int trace_dump(const std::string& file) {
  trace_names names = names_of(file);
  const ending ended = read_trace(file, [&](const part& p) {
    if (const auto* const one = std::get_if<process>(&p))
      answer("process {} id {} {}\n", one->number, one->id, shown_command(one->arguments));
    if (const auto* const one = std::get_if<stack>(&p)) {
      std::string addresses;
      for (const std::uint64_t address : one->addresses) addresses += fmt::format(" {:#x}", address);
      answer("stack {} {}{}\n", one->process, one->id, addresses);
      const places_book& book = names.book(one->process);
      for (const std::uint32_t place : names.places_of(*one)) answer("  {}\n", text_of(book[place]));
    }
    if (const auto* const one = std::get_if<module>(&p))
      answer("module {} {:#x}-{:#x} {:#x} {}\n", one->process, one->begin, one->end, one->base, one->path);
    if (const auto* const one = std::get_if<interpreted_code>(&p))
      answer("code {} {} {} {}:{}\n", one->process, one->id, one->name, one->file, one->first_line);
    if (const auto* const one = std::get_if<note>(&p)) answer("note {} {}\n", one->process, one->text);
    if (const auto* const one = std::get_if<memory>(&p))
      answer("memory {} {:.6f} {}\n", one->process, static_cast<double>(one->at_ns) / 1e9, one->bytes);
    if (const auto* const one = std::get_if<touched>(&p)) answer("touched {} {}\n", name_of(one->block), one->bytes);
    if (const auto* const some = std::get_if<events>(&p)) {
      for (const event& e : some->all)
        answer("{}.{} {:.6f} {}\n", some->by.process, some->by.thread, static_cast<double>(e.at_ns) / 1e9, line_of(e));
    }
  });
  answer("end {}\n", ended.reason);
  return ended.is_torn ? 1 : EXIT_SUCCESS;
}

}  // namespace heapwright::tool
