#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "leak_report.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "segment_choice.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

constexpr std::size_t most_frames = 24;

std::string amount(const leak_figures& f) {
  const double blocks = std::round(f.blocks);
  if (const double error = error_of(f); error >= 1) {
    const double bytes = static_cast<double>(f.bytes);
    if (is_vague(bytes, error)) return fmt::format("up to {} (too few samples to say more)", show_bytes(bytes + error));
    return fmt::format("{} ±{:.0f} % in about {} {}", show_bytes(bytes), 100 * error / bytes, show_count(blocks),
                       blocks == 1 ? "block" : "blocks");
  }
  return fmt::format("{} {} in {} {}", show_count(static_cast<double>(f.bytes)), f.bytes == 1 ? "byte" : "bytes",
                     show_count(blocks), blocks == 1 ? "block" : "blocks");
}

bool is_any(const leak_figures& f) { return f.blocks > 0; }

std::string end_text(const named_leaks& p) {
  const auto& process = p.leaks.figures.process;
  if (!p.leaks.status) {
    switch (process.state) {
      case segment::process_state::exited: return "ended";
      case segment::process_state::replaced: return "replaced by exec";
      case segment::process_state::running: break;
    }
    return segment::is_there(process) ? "still runs" : "was killed, or ended without exit";
  }
  const int status = *p.leaks.status;
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::string line_of(const place& p, std::size_t width) {
  std::string line = fmt::format("    {:<{}}", printable(p.function), width);
  if (!p.file.empty())
    line += fmt::format("  {}:{}", printable(p.file.substr(p.file.rfind('/') + 1)), p.line);
  else if (!p.module.empty() && p.function.find("+0x") == std::string::npos)
    line += fmt::format("  in {}", printable(p.module.substr(p.module.rfind('/') + 1)));
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string stack_text(const named_site& site) {
  constexpr std::size_t longest_column = 40;
  std::size_t width = 0;
  const std::size_t shown = std::min(site.stack.size(), most_frames);
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, std::min(printable(site.stack[i].function).size(), longest_column));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += line_of(site.stack[i], width);
  if (shown < site.stack.size()) text += fmt::format("    and {} more frames\n", site.stack.size() - shown);
  if (site.is_cut) text += "    (the call stack was cut off here)\n";
  if (site.stack.empty()) text += "    (allocated before call stacks were recorded)\n";
  return text;
}

/// One part of the report: sites with something of one kind, those with most bytes first.
std::string sites_text(const std::vector<named_site>& sites, const char* title, leak_figures leak_site::*kind,
                       std::size_t limit) {
  std::vector<const named_site*> shown;
  for (const named_site& s : sites)
    if (s.suppressed_by.empty() && is_any(s.figures.*kind)) shown.push_back(&s);
  const auto bytes_of = [&](const named_site* s) {
    const bool leads = kind == &leak_site::lost;
    return (s->figures.*kind).bytes + (leads ? s->figures.lost_with_these.bytes : 0);
  };
  std::ranges::stable_sort(shown, [&](const auto* a, const auto* b) { return bytes_of(a) > bytes_of(b); });
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, shown.size()); ++i) {
    const leak_site& f = shown[i]->figures;
    text += fmt::format("\n  {} {}\n", amount(f.*kind), title);
    if (kind == &leak_site::lost && is_any(f.lost_with_these))
      text += fmt::format("  and {} that only these lead to\n", amount(f.lost_with_these));
    text += stack_text(*shown[i]);
  }
  if (shown.size() > limit) {
    leak_figures rest;
    for (std::size_t i = limit; i < shown.size(); ++i) rest += shown[i]->figures.*kind;
    text += fmt::format("\n  {} {} at {} more place{} (--limit)\n", amount(rest), title, shown.size() - limit,
                        shown.size() - limit == 1 ? "" : "s");
  }
  return text;
}

/// Empty of a process that is no child of fork.
std::string inherited_text(const segment::process_figures& process) {
  if (process.inherited_blocks == 0) return {};
  return fmt::format("  Without {} that process {} had at the fork.\n",
                     amount({process.inherited_bytes, static_cast<double>(process.inherited_blocks)}),
                     process.forked_from);
}

std::string totals_text(const named_leaks& p) {
  if (!p.leaks.not_judged.empty())
    return fmt::format("  {} not freed\n  Lost is not told from reachable: {}.\n{}", amount(p.not_judged),
                       p.leaks.not_judged,
                       p.leaks.is_estimate ? "  Sites are estimated from samples; ±: 95 of 100 are within.\n" : "") +
           inherited_text(p.leaks.figures.process);
  std::string text = fmt::format("  {} definitely lost\n", amount(p.lost));
  if (is_any(p.indirectly_lost)) text += fmt::format("  {} indirectly lost\n", amount(p.indirectly_lost));
  text += fmt::format("  {} still reachable\n", amount(p.reachable));
  return text;
}

std::string process_text(const named_leaks& p, const report_options& options) {
  const auto& process = p.leaks.figures.process;
  std::string text =
      fmt::format("heapwright leaks: {} (process {}) {}\n", command_of(process), process.process_id, end_text(p));
  text += totals_text(p);
  if (p.suppressed_sites > 0) text += fmt::format("  {} suppressed\n", amount(p.suppressed));
  if (p.leaks.unknown_blocks > 0)
    text += fmt::format(
        "  {} {} no record, for want of memory for it: {} not listed, and freed memory counts as a "
        "reference.\n",
        show_count(static_cast<double>(p.leaks.unknown_blocks)),
        p.leaks.unknown_blocks == 1 ? "block has" : "blocks have", p.leaks.unknown_blocks == 1 ? "it is" : "they are");
  text += sites_text(p.sites, "definitely lost", &leak_site::lost, options.limit);
  text += sites_text(p.sites, "not freed", &leak_site::not_judged, options.limit);
  if (options.all) {
    text += sites_text(p.sites, "indirectly lost", &leak_site::indirectly_lost, options.limit);
    text += sites_text(p.sites, "still reachable", &leak_site::reachable, options.limit);
  }
  return text;
}

std::string unobserved_text(const std::vector<unobserved_process>& processes) {
  if (processes.empty()) return {};
  constexpr std::size_t most = 8;
  std::vector<std::pair<const unobserved_process*, std::size_t>> programs;  // the first of each, and how many
  for (const unobserved_process& p : processes) {
    const auto known = std::ranges::find(programs, p.program, [](const auto& of) { return of.first->program; });
    if (known == programs.end())
      programs.emplace_back(&p, 1);
    else
      ++known->second;
  }
  std::string names;
  for (std::size_t i = 0; i < std::min(programs.size(), most); ++i) {
    const auto& [first, count] = programs[i];
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", printable(first->program),
                         count == 1 ? fmt::format("{}", first->id) : fmt::format("{} processes", count));
  }
  if (programs.size() > most) names += fmt::format(" and {} more programs", programs.size() - most);
  return fmt::format("{} ran without the probe and {} not judged: {}.\n",
                     processes.size() == 1 ? "1 process" : fmt::format("{} processes", processes.size()),
                     processes.size() == 1 ? "is" : "are", names);
}

}  // namespace

std::string leak_text(const command_leaks& command, const report_options& options) {
  const std::vector<named_leaks>& processes = command.processes;
  std::string text;
  leak_figures lost, not_judged;
  std::size_t places = 0, quiet = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const named_leaks& p = processes[i];
    lost += p.lost;
    lost += p.indirectly_lost;
    not_judged += p.not_judged;
    places += static_cast<std::size_t>(std::ranges::count_if(
        p.sites, [](const named_site& s) { return s.suppressed_by.empty() && is_any(s.figures.lost); }));
    if (i > 0 && !options.all && !is_any(p.lost) && !is_any(p.not_judged)) {
      ++quiet;
      continue;
    }
    text += process_text(p, options) + "\n";
  }
  if (quiet > 0) text += fmt::format("{} other {} lost nothing.\n", quiet, quiet == 1 ? "process" : "processes");
  text += unobserved_text(command.unobserved);
  for (const std::string& pattern : command.idle_suppressions)
    text += fmt::format("--suppress '{}' suppressed nothing.\n", printable(pattern));
  const bool is_judged = std::ranges::any_of(processes, [](const auto& p) { return p.leaks.not_judged.empty(); });
  text += "heapwright leaks: ";
  if (is_any(lost))
    text += fmt::format("{} lost from {} {}\n", amount(lost), places, places == 1 ? "place" : "places");
  else if (is_judged)
    text +=
        is_any(not_judged) || !command.unobserved.empty() ? "nothing lost where that can be told\n" : "nothing lost\n";
  else
    text += fmt::format("{} not freed\n", amount(not_judged));
  return text;
}

}  // namespace heapwright::tool
