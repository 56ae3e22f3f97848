// Prometheus's text format, and tables as CSV.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "stack_measure.hpp"
#include "utf8.hpp"
#include "views.hpp"

namespace heapwright::tool {
namespace {

using segment::size_scale;

/// As Prometheus has it: UTF-8, with three characters escaped. The program's own text may be any
/// bytes; those beyond ASCII are not worth a label.
std::string label_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool is_plain = c >= 0x20 && c < 0x7f;
    if (c == '"' || c == '\\') result += '\\';
    result += is_plain ? c : '?';
  }
  return result;
}

/// Figures of several processes. All lines of a metric stand together, as the format wants it.
class exposition {
 public:
  /// What follows is of this process. Labels are what it keeps for as long as it lives: a title
  /// that it changes (PostgreSQL's) would begin new time series.
  void begin(const segment::process_figures& process) {
    const std::string& program = process.shown_program.empty() ? process.program : process.shown_program;
    process_ = fmt::format("process=\"{}\",program=\"{}\"", process.process_id,
                           label_text(program.substr(program.rfind('/') + 1)));
    std::string title;
    for (const std::string& word : process.arguments) title += (title.empty() ? "" : " ") + word;
    title.resize(title.find_last_not_of(' ') + 1);
    line("heapwright_process_info", "gauge", "1. The title is the command line, which a process may change.",
         fmt::format(",title=\"{}\"", label_text(title.substr(0, most_of_title))), 1);
  }

  template <class Number>
  void one(const char* name, const char* type, const char* help, Number value) {
    line(name, type, help, "", value);
  }

  void by_class(const char* name, const char* help, const segment::snapshot& figures,
                std::uint64_t segment::class_figures::*member) {
    const auto classes = figures.by_class();
    for (unsigned c = 0; c < size_scale::count; ++c)
      if (classes[c].allocations != 0 || classes[c].frees != 0)
        line(name, "counter", help, fmt::format(",largest_bytes=\"{}\"", size_scale::largest(c)), classes[c].*member);
  }

  /// The number tells meters of the same name apart.
  void by_meter(const char* name, const char* type, const char* help, const std::vector<segment::meter_figures>& meters,
                std::uint64_t segment::meter_figures::*member) {
    for (std::size_t i = 0; i < meters.size(); ++i)
      line(name, type, help, fmt::format(",name=\"{}\",number=\"{}\"", label_text(meters[i].name), i),
           meters[i].*member);
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const metric& m : metrics_) all += m.lines;
    return all;
  }

 private:
  static constexpr std::size_t most_of_title = 200;

  struct metric {
    std::string_view name;
    std::string lines;
  };

  template <class Number>
  void line(const char* name, const char* type, const char* help, const std::string& more_labels, Number value) {
    auto found = std::ranges::find(metrics_, std::string_view(name), &metric::name);
    if (found == metrics_.end()) {
      metrics_.push_back({name, fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type)});
      found = metrics_.end() - 1;
    }
    fmt::format_to(std::back_inserter(found->lines), "{}{{{}{}}} {}\n", name, process_, more_labels, value);
  }

  std::string process_;
  std::vector<metric> metrics_;
};

/// A spreadsheet would take a text that begins with one of these for a formula.
std::string csv_text(const std::string& text) {
  std::string result = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) result += '\'';
  for (const char c : as_utf8(text)) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

void add_metrics(exposition& e, const moment& m) {
  const segment::process_figures& p = m.figures.process;
  std::size_t alive = 0;
  for (const segment::thread_figures& t : m.figures.threads) alive += t.state == segment::slot_state::alive;

  e.begin(p);
  e.one("heapwright_process_up", "gauge", "Whether the process is there.", m.state == life::running ? 1 : 0);
  e.one("heapwright_process_start_time_seconds", "gauge", "When the process was first seen, since 1970.",
        m.unix_seconds(p.started_ns));
  if (m.heap) {
    e.one("heapwright_heap_mapped_bytes", "gauge", "Address space that libheapwright's heap holds for blocks.",
          m.heap->mapped);
    e.one("heapwright_heap_outside_bytes", "gauge", "With the program or in the caches of threads.", m.heap->outside());
    e.one("heapwright_heap_span_bytes", "gauge", "In spans that are cut into blocks.", m.heap->spans);
    e.one("heapwright_heap_free_resident_bytes", "gauge",
          "Free pages that are not given back; those never touched are not in memory.", m.heap->free_resident);
    e.one("heapwright_heap_metadata_bytes", "gauge", "Address space reserved for the heap's own records.",
          m.heap->metadata);
    e.one("heapwright_heap_metadata_resident_bytes", "gauge", "About how much of that is in memory.",
          m.heap->records());
    e.one("heapwright_heap_returned_bytes_total", "counter", "Given back to the system so far.",
          m.heap->decommitted_total);
  }
  if (m.memory && m.state == life::running) {
    e.one("heapwright_process_resident_memory_bytes", "gauge", "RSS of the process.", m.memory->rss);
    if (m.memory->pss > 0)
      e.one("heapwright_process_proportional_memory_bytes", "gauge", "PSS of the process, not older than ten seconds.",
            m.memory->pss);
  }
  if (!m.has_probe) return;
  e.one("heapwright_counting", "gauge", "Whether calls are counted now.", p.is_counting ? 1 : 0);
  e.one("heapwright_estimated", "gauge", "Whether only samples are counted: all figures are estimates.",
        p.is_of_samples ? 1 : 0);
  e.one("heapwright_sampling_interval_bytes", "gauge", "Bytes between samples, on average; 0 for none.", p.interval);
  if (p.processor_ns != 0)
    e.one("heapwright_sampling_seconds_total", "counter", "Processor time spent on samples, as measured.",
          static_cast<double>(p.sampling_ns) / 1e9);
  e.one("heapwright_live_bytes", "gauge", "Bytes allocated and not freed, since counting began.", m.live());
  e.one("heapwright_live_blocks", "gauge", "Blocks allocated and not freed, since counting began.",
        static_cast<std::int64_t>(m.total.allocations - m.total.frees));
  e.one("heapwright_inherited_bytes", "gauge",
        "What of the allocated bytes was live in the parent at the fork, and is counted there too.", p.inherited_bytes);
  e.one("heapwright_inherited_blocks", "gauge",
        "What of the allocated blocks was live in the parent at the fork, and is counted there too.",
        p.inherited_blocks);
  e.one("heapwright_peak_bytes", "gauge",
        "The most bytes that were live at one moment, to 16 KiB for each thread; of estimates what was certainly live.",
        p.peak);
  e.one("heapwright_allocations_total", "counter", "Blocks allocated.", m.total.allocations);
  e.one("heapwright_allocated_bytes_total", "counter", "Bytes allocated, as malloc_usable_size has them.",
        m.total.allocated_bytes);
  e.one("heapwright_requested_bytes_total", "counter", "Bytes asked for.", m.total.requested_bytes);
  e.one("heapwright_frees_total", "counter", "Blocks freed.", m.total.frees);
  e.one("heapwright_freed_bytes_total", "counter", "Bytes freed.", m.total.freed_bytes);
  e.one("heapwright_threads", "gauge", "Threads alive that have called malloc or free.", alive);
  e.one("heapwright_threads_seen_total", "counter", "Threads that have ever called malloc or free.", p.threads_ever);
  e.one("heapwright_samples_lost_total", "counter", "Samples lost for want of room.", p.lost_samples);
  e.one("heapwright_mistakes_total", "counter", "Mistakes of the program with memory that libheapwright has found.",
        p.mistakes);
  e.by_class("heapwright_class_allocations_total", "Blocks allocated, by the largest size of their class.", m.figures,
             &segment::class_figures::allocations);
  e.by_class("heapwright_class_allocated_bytes_total", "Bytes allocated, by the largest size of their class.",
             m.figures, &segment::class_figures::allocated_bytes);
  e.by_class("heapwright_class_frees_total", "Blocks freed, by the largest size of their class.", m.figures,
             &segment::class_figures::frees);
  e.by_class("heapwright_class_freed_bytes_total", "Bytes freed, by the largest size of their class.", m.figures,
             &segment::class_figures::freed_bytes);
  using figures = segment::meter_figures;
  e.by_meter("heapwright_meter_in_use_bytes", "gauge", "Bytes in use of an allocator of the program's own.", p.meters,
             &figures::in_use);
  e.by_meter("heapwright_meter_peak_bytes", "gauge", "The most that was in use at one moment.", p.meters,
             &figures::peak);
  e.by_meter("heapwright_meter_allocations_total", "counter", "Its allocations.", p.meters, &figures::allocations);
  e.by_meter("heapwright_meter_deallocations_total", "counter", "Its deallocations.", p.meters,
             &figures::deallocations);
  e.by_meter("heapwright_meter_allocated_bytes_total", "counter", "Bytes asked of it.", p.meters,
             &figures::total_bytes);
  e.by_meter("heapwright_meter_failures_total", "counter", "Requests that it did not serve.", p.meters,
             &figures::failures);
}

}  // namespace

std::string metrics_view(watched_process& process) {
  exposition e;
  add_metrics(e, *process.now());
  return e.text();
}

std::string metrics_view(watched_family& family) {
  exposition e;
  for (const family_member& m : family.all_members()) add_metrics(e, *m.seen);
  return e.text();
}

std::string classes_csv(watched_process& process) {
  const auto seen = process.now();
  std::string text = "largest_bytes,allocations,allocated_bytes,frees,freed_bytes,live_blocks,live_bytes,peak_bytes\n";
  const auto classes = seen->figures.by_class();
  for (unsigned c = 0; c < size_scale::count; ++c) {
    const auto& f = classes[c];
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{}\n", size_scale::largest(c), f.allocations,
                   f.allocated_bytes, f.frees, f.freed_bytes, static_cast<std::int64_t>(f.allocations - f.frees),
                   static_cast<std::int64_t>(f.allocated_bytes - f.freed_bytes), seen->figures.process.class_peak[c]);
  }
  return text;
}

std::string threads_csv(watched_process& process) {
  const auto seen = process.now();
  std::string text =
      "slot,thread_id,name,state,requested_bytes,allocations,allocated_bytes,frees,freed_bytes,net_bytes,peak_net_"
      "bytes\n";
  for (const segment::thread_figures& t : seen->figures.threads) {
    const segment::class_figures f = t.total();
    const char* state = t.state == segment::slot_state::alive  ? "alive"
                        : t.state == segment::slot_state::gone ? "gone"
                                                               : "others";
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{}\n", t.slot, t.thread_id,
                   csv_text(t.name), state, f.requested_bytes, f.allocations, f.allocated_bytes, f.frees, f.freed_bytes,
                   static_cast<std::int64_t>(f.allocated_bytes - f.freed_bytes), t.peak_net);
  }
  return text;
}

std::string history_csv(watched_process& process) {
  const auto seen = process.now();
  std::string text = "unix_seconds,live_bytes,rss_bytes,allocated_bytes,allocations\n";
  for (const history_point& p : process.points(0, SIZE_MAX))
    fmt::format_to(std::back_inserter(text), "{:.3f},{},{},{},{}\n", seen->unix_seconds(p.at_ns), p.live, p.rss,
                   p.allocated_bytes, p.allocations);
  return text;
}

std::string sites_csv(watched_process& process) {
  const seen_stacks stacks = process.stacks();
  std::string text =
      "site,live_bytes,live_bytes_error,live_blocks,allocations,allocated_bytes,allocated_bytes_error,frees,freed_"
      "bytes,"
      "short_lived_bytes,samples,stack\n";
  for (const segment::stack_figures& s : stacks.figures) {
    std::string stack;
    for (const std::uint64_t address : s.addresses) {
      for (const std::uint32_t number : process.places().at(address, stacks.seen->figures)) {
        const place p = process.places()[number];
        if (!stack.empty()) stack += " < ";
        stack += p.file.empty() ? p.function : fmt::format("{} ({}:{})", p.function, p.file, p.line);
      }
    }
    fmt::format_to(std::back_inserter(text), "{},{},{:.0f},{:.1f},{:.1f},{},{:.0f},{:.1f},{},{},{},{}\n", s.id,
                   s.live_bytes(), error_of(s.live_variance(), s.unseen()), s.live_blocks(), s.allocations,
                   s.allocated_bytes, error_of(s.allocated_variance, s.unseen()), s.frees, s.freed_bytes,
                   s.short_lived_bytes, s.samples, csv_text(stack));
  }
  return text;
}

}  // namespace heapwright::tool
