// The live view for a terminal: totals, and where most live bytes come from, redrawn in place until
// q or ctrl-C.
#include "top.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "call_sites.hpp"
#include "failure.hpp"
#include "full_screen.hpp"
#include "heap_text.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "segment_choice.hpp"
#include "terminal.hpp"
#include "utf8.hpp"
#include "watched_family.hpp"

namespace heapwright::tool {
namespace {

struct size_in_characters {
  std::size_t lines = 24, columns = 100;
};

size_in_characters terminal_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return {};
  return {window.ws_row, window.ws_col};
}

class screen_text {
 public:
  explicit screen_text(size_in_characters size) : size_(size) {}

  [[nodiscard]] bool is_full() const noexcept { return lines_ + 1 >= size_.lines; }

  [[nodiscard]] std::size_t columns() const noexcept { return size_.columns; }

  void line(std::string_view text) {
    if (is_full()) return;
    ++lines_;
    all_ += clipped(text, size_.columns) + "\033[K\n";
  }

  /// In as many lines as it takes, broken where three spaces are between figures, or else at a
  /// space.
  void wrapped(std::string_view text) {
    while (text.size() > size_.columns) {
      std::size_t end = text.rfind("   ", size_.columns);
      if (end == text.npos) end = text.rfind(' ', size_.columns);
      if (end == text.npos || end == 0) break;
      line(text.substr(0, end));
      text.remove_prefix(text.find_first_not_of(' ', end));
    }
    line(text);
  }

  [[nodiscard]] const std::string& all() const noexcept { return all_; }

 private:
  size_in_characters size_;
  std::size_t lines_ = 0;
  std::string all_;
};

std::string per_second(std::uint64_t now, std::uint64_t before, double seconds, std::string (*show)(double)) {
  return show(static_cast<double>(now - std::min(before, now)) / seconds) + "/s";
}

const char* words_for(life state) {
  switch (state) {
    case life::running: return "running";
    case life::exited: return "ended";
    case life::replaced: return "replaced by exec";
    case life::killed: return "gone (killed, or ended without exit)";
    case life::gone: return "gone";
    case life::left: return "running when it was saved";
    case life::lost: break;
  }
  return "lost";
}

/// Without the probe: what libheapwright says of its heap.
void write_heap(screen_text& text, const moment& m) {
  const auto& p = m.figures.process;
  const auto shown = [](std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); };
  text.line(printable(fmt::format("process {}  {}  (no probe: the heap's own figures)  {}", p.process_id,
                                  words_for(m.state), command_of(p))));
  text.wrapped(fmt::format("blocks and thread caches {}   RSS {}", shown(static_cast<std::uint64_t>(m.live())),
                           m.memory ? shown(m.memory->rss) : "-"));
  if (!m.heap) return;
  for (const std::string& line : lines_of_heap(*m.heap)) text.wrapped(line);
  text.line("");
  for (const std::string& line : lines_of_classes(*m.heap)) text.line(line);
}

/// How exact the sites are, and what that costs.
std::string sampling_text(const moment& m) {
  const segment::process_figures& p = m.figures.process;
  if (p.interval == 0) return "sites: none, no block is sampled";
  if (p.knows_all_stacks()) return "sites: exact, every block is sampled";
  if (p.samples_all) return "sites: every block is sampled";
  if (p.interval == 1) return "sites: every block is sampled now; what was allocated before is an estimate";
  std::string text = fmt::format("sites: a sample every {}", show_bytes(static_cast<double>(p.interval)));
  if (p.interval_adapts) text += ", which adapts";
  if (p.interval_adapts && p.processor_ns != 0) {
    const auto spent = static_cast<double>(p.sampling_ns);
    const double share = spent / static_cast<double>(p.processor_ns);
    // A program that mostly waits: a share of its little time would say little.
    const bool waits = share > 0.012 && m.figures.at_ns > p.started_ns;
    text += waits ? fmt::format("; sampling takes {:.2f} ms in a second",
                                1000 * spent / static_cast<double>(m.figures.at_ns - p.started_ns))
                  : fmt::format("; sampling takes {:.1f} % of the program's processor time", 100 * share);
  }
  return text;
}

/// Where a Python that grows may have its memory, and no site shows it. Each Python has some.
void write_python_arenas(screen_text& text, const moment& m) {
  const std::uint64_t bytes = m.memory ? m.memory->python_arenas.value_or(0) : 0;
  if (bytes > 0 && bytes >= m.memory->rss / 4)
    text.wrapped(fmt::format("arenas of Python, about {}: no site has them without live --python-objects",
                             show_bytes(static_cast<double>(bytes))));
}

std::string with_error(double value, double error) {
  if (is_vague(value, error)) return "up to " + show_bytes(value + error);
  const double percent = value > 0 ? error / value * 100 : 0;
  return percent < 0.5 ? show_bytes(value) : fmt::format("{} ±{:.0f} %", show_bytes(value), percent);
}

/// Whether figures of the whole process are.
bool is_estimate(const segment::process_figures& p) { return p.is_of_samples && !p.knows_all_stacks(); }

void write_sampling(screen_text& text, const moment& m) {
  text.wrapped(sampling_text(m));
  if (m.figures.process.lost_samples > 0)
    text.wrapped(fmt::format("{} samples were lost for want of room: sites have less than there is",
                             show_count(static_cast<double>(m.figures.process.lost_samples))));
  if (m.figures.process.interval > 0 && !m.figures.process.samples_all)
    text.wrapped("95 of 100 figures of sites are within ±, or below what they are \"up to\"");
  write_python_arenas(text, m);
}

/// Rates since `before`; totals where there are none, as it is null or the process has ended.
void write_totals(screen_text& text, watched_process& process, const moment& m, const moment* before) {
  const auto& p = m.figures.process;
  if (!m.has_probe) return write_heap(text, m);
  text.line(printable(fmt::format("process {}  {}{}  {}", p.process_id, words_for(m.state),
                                  !p.is_counting    ? "  (not counting)"
                                  : p.is_of_samples ? "  (estimates from samples)"
                                                    : "",
                                  command_of(p))));
  if (!p.is_counting && m.state == life::running)
    text.wrapped(fmt::format("the page has the switch (More): heapwright live {}", p.process_id));
  const auto threads =
      std::ranges::count(m.figures.threads, segment::slot_state::alive, &segment::thread_figures::state);
  text.wrapped(
      fmt::format("live {}{}   peak {}{}   RSS {}   {} thread{}",
                  p.is_of_samples ? with_error(static_cast<double>(m.live()),
                                               error_of(p.live_variance, unseen_of_all(p, process.stacks().figures)))
                                  : show_bytes(static_cast<double>(m.live())),
                  p.counts_from_start() ? "" : " since counting began", is_estimate(p) ? "at least " : "",
                  show_bytes(static_cast<double>(p.peak)),
                  m.memory ? show_bytes(static_cast<double>(m.memory->rss)) : "-", threads, threads == 1 ? "" : "s"));
  if (before == nullptr || before->figures.at_ns >= m.figures.at_ns || m.state != life::running) {
    text.wrapped(fmt::format(
        "allocations {}   allocated {}   frees {}", show_count(static_cast<double>(m.total.allocations)),
        show_bytes(static_cast<double>(m.total.allocated_bytes)), show_count(static_cast<double>(m.total.frees))));
    write_sampling(text, m);
    if (m.state != life::running && m.live() < static_cast<std::int64_t>(p.peak / 2))
      text.wrapped("most has been freed by the end; the page has what was live at the peak (Where)");
    return;
  }
  const segment::class_figures& last = before->total;
  const double seconds = static_cast<double>(m.figures.at_ns - before->figures.at_ns) / 1e9;
  text.wrapped(fmt::format("allocations {}   {}   frees {}",
                           per_second(m.total.allocations, last.allocations, seconds, show_count),
                           per_second(m.total.allocated_bytes, last.allocated_bytes, seconds, show_bytes),
                           per_second(m.total.frees, last.frees, seconds, show_count)));
  write_sampling(text, m);
}

/// Of how many blocks these bytes are: an estimate where the bytes are.
std::string about_count(double count, double bytes, double error) {
  return (error > 0 && error >= bytes / 200 ? "~" : "") + show_count(std::round(count));
}

/// Which columns there is room for: the site is seen before what it has allocated.
struct site_columns {
  explicit site_columns(std::size_t terminal) : has_blocks(terminal >= 70), has_allocated(terminal >= 90) {}

  [[nodiscard]] std::string line(std::string_view live, std::string_view blocks, std::string_view allocated,
                                 std::string_view site) const {
    std::string text = fmt::format("{:>{}}", live, has_blocks ? 18 : 15);
    if (has_blocks) text += fmt::format(" {:>10}", blocks);
    if (has_allocated) text += fmt::format(" {:>18}", allocated);
    return fmt::format("{}  {}", text, site);
  }

  bool has_blocks, has_allocated;
};

/// What the malloc has said of the program's mistakes: the first line of the last report.
void write_mistakes(screen_text& text, watched_process& process, const moment& m) {
  if (m.figures.process.mistakes == 0) return;
  const auto reports = process.misuse_reports();
  std::string last = reports.empty() ? "" : reports.back().text.substr(0, reports.back().text.find('\n'));
  constexpr std::string_view sender = "heapwright: ";
  if (last.starts_with(sender)) last.erase(0, sender.size());
  text.wrapped(printable(fmt::format("mistakes {}   {}{}", m.figures.process.mistakes,
                                     reports.size() > 1 ? "the last new one: " : "", last)));
}

void write_sites(screen_text& text, watched_process& process, const moment& m) {
  if (!m.has_probe) return;
  std::vector<call_site> sites = call_sites(process);
  const bool has_samples = !sites.empty();
  std::erase_if(sites, [](const call_site& s) { return s.sum.live_bytes() == 0; });
  std::ranges::stable_sort(sites, std::ranges::greater{}, [](const call_site& s) {
    return shown_size(static_cast<double>(s.sum.live_bytes()), error_of(s.sum.live_variance(), s.sum.unseen()));
  });
  if (sites.empty() && m.figures.process.interval == 0) return;
  text.line("");
  if (sites.empty())
    return text.wrapped(has_samples && m.state != life::running
                            ? "no block that was sampled is live; the page, heapwright live, has what lived at the peak"
                        : has_samples              ? "no block that was sampled is live"
                        : m.state == life::running ? "nothing was sampled yet"
                                                   : "nothing was sampled");
  const site_columns columns(text.columns());
  if (const std::string hint = hint_at_symbols(sites, process.places()); !hint.empty()) text.wrapped(hint);
  text.line(columns.line("live", "blocks", "allocated", "where, and called by"));
  for (const call_site& site : sites) {
    if (text.is_full()) return;
    const segment::stack_figures& f = site.sum;
    const std::string figures = columns.line(
        with_error(static_cast<double>(f.live_bytes()), error_of(f.live_variance(), f.unseen())),
        about_count(f.live_blocks(), static_cast<double>(f.live_bytes()), error_of(f.live_variance(), f.unseen())),
        with_error(static_cast<double>(f.allocated_bytes), error_of(f.allocated_variance, f.unseen())), "");
    const std::size_t taken = std::min(text.columns(), characters_in(figures));
    text.line(figures + text_of(site, process.places(), text.columns() - taken));
  }
}

/// The process of a saved run with this id; 0: the one with most live bytes at its peak.
std::shared_ptr<watched_process> chosen_of(watched_family& run, pid_t id) {
  const auto members = run.members(SIZE_MAX);
  const auto peak = [](const family_member& member) { return member.process.peak; };
  const auto id_of = [](const family_member& member) { return member.process.process_id; };
  auto found = id == 0 ? std::ranges::max_element(members, {}, peak)
                       : std::ranges::find(members, static_cast<std::uint32_t>(id), id_of);
  std::string ids;
  for (const family_member& member : members) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id_of(member));
  if (found == members.end())
    throw failure(exit_code::bad_input, fmt::format("no process {} in this run; there are {}", id, ids));
  if (members.size() > 1 && id == 0)
    tell(
        "heapwright: {} processes ({}); shown is {}, whose live bytes had the highest peak; --process ID chooses "
        "another\n",
        members.size(), ids, id_of(*found));
  auto watched = run.find(found->name);
  if (!watched) throw failure(exit_code::bad_input, fmt::format("process {} cannot be read any more", id_of(*found)));
  return watched;
}

}  // namespace

int top(const top_options& options) {
  const bool is_drawn = !options.once && can_draw(STDOUT_FILENO);
  std::optional<awaited_signals> signals;
  if (is_drawn) signals.emplace(full_screen::signals);
  std::optional<opened_run> saved;
  if (!options.file.empty()) saved.emplace(options.file);
  std::optional<watched_family> family;
  if (saved) family.emplace(*saved, options.wrappers);
  const auto watched =
      family ? chosen_of(*family, options.pid) : watch(options.pid, segment_of(options.pid), options.wrappers);
  watched_process& process = *watched;
  if (!is_drawn) {
    screen_text text({40, 1000});
    const auto now = process.now();
    write_totals(text, process, *now, nullptr);
    write_mistakes(text, process, *now);
    write_sites(text, process, *now);
    std::string all = text.all();
    for (std::size_t at = 0; (at = all.find("\033[K", at)) != std::string::npos;) all.erase(at, 3);
    answer_text(all);
    return EXIT_SUCCESS;
  }
  const full_screen screen(*signals);
  std::shared_ptr<const moment> before, last;
  for (;;) {
    const auto now = process.now();
    // A change of the terminal's size draws the same moment again.
    if (!last || now->figures.at_ns > last->figures.at_ns) before = std::exchange(last, now);
    screen_text text(terminal_size());
    write_totals(text, process, *now, before.get());
    write_mistakes(text, process, *now);
    write_sites(text, process, *now);
    screen.draw(text.all());
    if (!screen.wait(options.every_seconds)) return EXIT_SUCCESS;
  }
}

}  // namespace heapwright::tool
