#include "exit_reports.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "printable.hpp"
#include "quantities.hpp"

namespace heapwright::tool {
namespace {

constexpr std::size_t most_rows = 40;

std::string shown(std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); }

std::string row(const std::string& process, const std::string& peak_rss, const std::string& peak,
                const std::string& live, const std::string& free, const std::string& command) {
  return fmt::format("{:>9}{:>11}{:>11}{:>11}{:>11}{}{}\n", process, peak_rss, peak, live, free,
                     command.empty() ? "" : "  ", command);
}

}  // namespace

exit_reports::exit_reports() {
  setenv("HEAPWRIGHT_STATS_FILE", fmt::format("/proc/{}/fd/{}", getpid(), file_.fd()).c_str(), 1);
}

std::vector<process_report> exit_reports::read() const {
  const std::string content = file_.content();
  std::vector<process_report> all;
  for (std::size_t at = 0; at + sizeof(process_report) <= content.size(); at += sizeof(process_report)) {
    process_report r;
    std::memcpy(&r, content.data() + at, sizeof r);
    if (std::memcmp(r.magic, process_report::expected_magic, sizeof r.magic) != 0 || r.bytes != sizeof r) break;
    for (char* text : {r.version, r.build}) text[sizeof r.version - 1] = '\0';
    r.command[sizeof r.command - 1] = '\0';
    all.push_back(r);
  }
  return all;
}

std::string page_view(const std::vector<process_report>& all, pid_t process, int died_of, bool is_go) {
  const auto own = std::find_if(all.rbegin(), all.rend(), [&](const process_report& r) {
    return r.process_id == static_cast<std::uint32_t>(process);
  });
  if (own != all.rend()) {
    text<2000> page;
    own->write_page(page);
    std::string safe;
    for (const char* at = page.c_str(); *at != '\0'; ++at) {
      const char* const end = std::strchr(at, '\n');
      safe += printable(std::string_view(at, static_cast<std::size_t>(end - at))) + '\n';
      at = end;
    }
    if (own->heap.mapped_peak == 0)
      safe +=
          "  libheapwright is loaded, but had nothing to do: another malloc is in effect (that of a library which "
          "LD_PRELOAD names before it), or the program allocates nothing\n";
    return safe;
  }
  if (died_of != 0) {
    const char* const name = sigabbrev_np(died_of);
    return fmt::format("heapwright: process {} was killed by SIG{} and left no statistics\n", process,
                       name != nullptr ? name : std::to_string(died_of));
  }
  if (is_go)
    return fmt::format(
        "heapwright: process {} left no statistics: it is a Go program, and Go ends without the C library's exit, "
        "which writes them; while it runs, `heapwright info PID` has them\n",
        process);
  return fmt::format(
      "heapwright: process {} left no statistics: it ended in a program that libheapwright was not loaded into, or "
      "without the C library's exit (as Go's programs do), or could not reach this one\n",
      process);
}

std::string processes_view(const std::vector<process_report>& all) {
  std::vector<process_report> sorted = all;
  std::stable_sort(sorted.begin(), sorted.end(), [](const process_report& a, const process_report& b) {
    return a.heap.mapped_peak > b.heap.mapped_peak;
  });
  struct columns {
    std::uint64_t peak_rss = 0, peak = 0, in_use = 0, free = 0;
  };
  const auto row_of = [](const std::string& process, const columns& c, const std::string& command) {
    return row(process, shown(c.peak_rss), shown(c.peak), shown(c.in_use), shown(c.free), command);
  };
  std::string text = row("process", "peak RSS", "peak held", "in use", "free held", "command");
  columns highest, sum;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const process_report& r = sorted[i];
    const columns c{r.peak_rss, r.heap.mapped_peak, r.heap.in_use(),
                    r.heap.cached + r.heap.free_in_spans + r.heap.free_resident};
    for (const auto column : {&columns::peak_rss, &columns::peak, &columns::in_use, &columns::free}) {
      sum.*column += c.*column;
      highest.*column = std::max(highest.*column, c.*column);
    }
    if (i < most_rows) text += row_of(std::to_string(r.process_id), c, printable(r.command, 60));
  }
  if (sorted.size() > most_rows) text += fmt::format("{:>9}  {} more\n", "...", sorted.size() - most_rows);
  return text + row_of("highest", highest, "") +
         row_of("sum", sum,
                fmt::format("{} process{}", sorted.size(), sorted.size() == 1 ? ", at its end" : "es, at their ends"));
}

}  // namespace heapwright::tool
