// The live view for a terminal: totals, and where most live bytes come from, redrawn in place until q or ctrl-C.
#include "top.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "comparison.hpp"
#include "failure.hpp"
#include "full_screen.hpp"
#include "printable.hpp"
#include "segment_choice.hpp"
#include "stack_measure.hpp"
#include "terminal.hpp"
#include "watched_process.hpp"

namespace heapwright::tool {
namespace {

struct size_in_characters {
  std::size_t lines = 24, columns = 100;
};

size_in_characters terminal_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0) return {};
  return {window.ws_row, window.ws_col};
}

std::string described(const place& p) {
  if (p.file.empty()) return printable(p.function);
  return printable(fmt::format("{}  {}:{}", p.function, p.file.substr(p.file.rfind('/') + 1), p.line));
}

class screen_text {
 public:
  explicit screen_text(size_in_characters size) : size_(size) {}

  [[nodiscard]] bool is_full() const noexcept { return lines_ + 1 >= size_.lines; }

  void line(std::string text) {
    if (is_full()) return;
    ++lines_;
    if (text.size() > size_.columns) text.resize(size_.columns);
    all_ += text + "\033[K\n";
  }

  [[nodiscard]] const std::string& all() const noexcept { return all_; }

 private:
  size_in_characters size_;
  std::size_t lines_ = 0;
  std::string all_;
};

std::string per_second(std::uint64_t now, std::uint64_t before, double seconds, std::string (*show)(double)) {
  return seconds <= 0 ? "-" : show(static_cast<double>(now - std::min(before, now)) / seconds) + "/s";
}

const char* words_for(life state) {
  switch (state) {
    case life::running: return "running";
    case life::exited: return "ended";
    case life::replaced: return "replaced by exec";
    case life::killed: return "killed";
    case life::gone: return "gone";
    case life::lost: break;
  }
  return "lost";
}

/// Without the probe: what libheapwright says of its heap.
void write_heap(screen_text& text, const moment& m) {
  const auto& p = m.figures.process;
  const auto shown = [](std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); };
  text.line(printable(fmt::format("{}  process {}  {}  (no probe: the heap's own figures)", command_of(p), p.process_id,
                                  words_for(m.state))));
  text.line(fmt::format("blocks and threads' stocks {}   RSS {}", shown(static_cast<std::uint64_t>(m.live())),
                        m.memory ? shown(m.memory->rss) : "-"));
  if (!m.heap) return;
  const heap_reading& h = *m.heap;
  text.line(
      fmt::format("free in spans {}   free, in memory {}   free, given back {}   mapped {}   records {} ({} reserved)",
                  shown(h.spans - std::min(h.spans, h.outside() - h.large)), shown(h.free_resident),
                  shown(h.free_returned), shown(h.mapped), shown(h.records()), shown(h.metadata)));
  std::vector<class_reading> classes = h.classes;
  std::sort(classes.begin(), classes.end(),
            [](const class_reading& a, const class_reading& b) { return a.span_bytes > b.span_bytes; });
  text.line("");
  text.line(fmt::format("{:>12} {:>12} {:>12} {:>12}", "block size", "outside", "bytes", "in spans"));
  for (const class_reading& c : classes) {
    if (c.span_bytes == 0) break;
    text.line(fmt::format("{:>12} {:>12} {:>12} {:>12}", c.block_bytes, show_count(static_cast<double>(c.outside)),
                          shown(c.outside * c.block_bytes), shown(c.span_bytes)));
  }
}

/// `before`: what was shown last, null at first.
void write_totals(screen_text& text, const moment& m, const moment* before) {
  const auto& p = m.figures.process;
  if (!m.has_probe) return write_heap(text, m);
  const double seconds = before == nullptr ? 0 : static_cast<double>(m.figures.at_ns - before->figures.at_ns) / 1e9;
  text.line(printable(fmt::format("{}  process {}  {}{}", command_of(p), p.process_id, words_for(m.state),
                                  p.is_counting ? "" : "  (not counting)")));
  text.line(fmt::format("live {}{}   peak {}   RSS {}   {} threads", show_bytes(static_cast<double>(m.live())),
                        p.counts_from_start() ? "" : " since counting began", show_bytes(static_cast<double>(p.peak)),
                        m.memory ? show_bytes(static_cast<double>(m.memory->rss)) : "-",
                        std::count_if(m.figures.threads.begin(), m.figures.threads.end(),
                                      [](const auto& t) { return t.state == trace::slot_state::alive; })));
  const trace::class_figures last = before == nullptr ? m.total : before->total;
  text.line(fmt::format("allocations {}   {}   frees {}",
                        per_second(m.total.allocations, last.allocations, seconds, show_count),
                        per_second(m.total.allocated_bytes, last.allocated_bytes, seconds, show_bytes),
                        per_second(m.total.frees, last.frees, seconds, show_count)));
}

struct site_figures {
  double live_bytes = 0, live_blocks = 0, allocated_bytes = 0;
};

/// Call stacks that end alike are one site here: there is no room for how they differ further out.
void write_sites(screen_text& text, watched_process& process, const moment& m) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, site_figures> by_place;  // where, and called by
  if (!m.has_probe) return;
  for (const trace::stack_figures& s : process.stacks()) {
    if (s.live_bytes() == 0) continue;
    const auto places = places_of(s, m.figures, process.places());
    const std::size_t site = site_in(places, process.places());
    site_figures& sum = by_place[{places[site], places[std::min(site + 1, places.size() - 1)]}];
    sum.live_bytes += static_cast<double>(s.live_bytes());
    sum.live_blocks += s.live_blocks();
    sum.allocated_bytes += static_cast<double>(s.allocated_bytes);
  }
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, site_figures>> sites(by_place.begin(), by_place.end());
  std::sort(sites.begin(), sites.end(),
            [](const auto& a, const auto& b) { return a.second.live_bytes > b.second.live_bytes; });
  text.line("");
  text.line(fmt::format("{:>12} {:>12} {:>12}  {}", "live", "blocks", "allocated", "where, and called by"));
  for (const auto& [places, sum] : sites) {
    if (text.is_full()) return;
    std::string where = described(process.places()[places.first]);
    if (places.second != places.first) where += "  <  " + described(process.places()[places.second]);
    text.line(fmt::format("{:>12} {:>12} {:>12}  {}", show_bytes(sum.live_bytes),
                          show_count(std::round(sum.live_blocks)), show_bytes(sum.allocated_bytes), where));
  }
}

}  // namespace

int top(const top_options& options) {
  const bool is_drawn = !options.once && can_draw(STDOUT_FILENO);
  std::optional<awaited_signals> signals;
  if (is_drawn) signals.emplace(full_screen::signals);
  const auto watched = watch(options.pid, segment_of(options.pid));
  watched_process& process = *watched;
  if (!is_drawn) {
    screen_text text({40, 1000});
    const auto now = process.now();
    write_totals(text, *now, nullptr);
    write_sites(text, process, *now);
    std::string all = text.all();
    for (std::size_t at = 0; (at = all.find("\033[K", at)) != std::string::npos;) all.erase(at, 3);
    answer_text(all);
    return EXIT_SUCCESS;
  }
  const full_screen screen(*signals);
  std::shared_ptr<const moment> before;
  for (;;) {
    const auto now = process.now();
    screen_text text(terminal_size());
    write_totals(text, *now, before.get());
    write_sites(text, process, *now);
    screen.draw(text.all());
    before = now;
    if (!screen.wait(options.every_seconds)) return EXIT_SUCCESS;
  }
}

}  // namespace heapwright::tool
