#include "recorder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include "anonymous_memory.hpp"
#include "descriptor.hpp"
#include "not_recorded.hpp"
#include "process_image.hpp"
#include "stamp.hpp"

namespace heapwright::tool {
namespace {

constexpr std::uint64_t ns_of_margin = 2'000'000, ns_of_skew = 2'000;

std::uint64_t clock_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

/// Measured over 20 ms and more: what the trace needs of time is coarse.
trace::tick_scale measured_scale(const recording_begin& begin) {
  constexpr std::uint64_t enough_ns = 20'000'000;
  if (const std::uint64_t passed = clock_ns() - begin.ns; passed < enough_ns) {
    const timespec rest{0, static_cast<long>(enough_ns - passed)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
  const recording_begin now = recording_begin::now();
  return {begin.ticks, static_cast<double>(now.ns - begin.ns) / static_cast<double>(now.ticks - begin.ticks)};
}

}  // namespace

recording_begin recording_begin::now() noexcept { return {trace::ticks_now(), clock_ns()}; }

recorder::recorder(std::filesystem::path folder, trace::trace_writer::sink to, std::uint64_t most_bytes,
                   const recording_begin& begin)
    : recorder(std::move(folder), nullptr, std::move(to), most_bytes, begin) {}

recorder::recorder(attachment& attached, trace::trace_writer::sink to, std::uint64_t most_bytes,
                   const recording_begin& begin)
    : recorder(attached.segment().parent_path(), &attached, std::move(to), most_bytes, begin) {}

recorder::recorder(std::filesystem::path folder, attachment* attached, trace::trace_writer::sink to,
                   std::uint64_t most_bytes, const recording_begin& begin)
    : folder_(std::move(folder)),
      attached_(attached),
      writer_(std::move(to), most_bytes),
      began_ns_(begin.ns),
      clock_(measured_scale(begin)),
      merger_(writer_, static_cast<std::uint64_t>(ns_of_skew / clock_.ns_per_tick), clock_) {}

/// That were not opened yet.
std::vector<std::filesystem::path> recorder::files_of_rings() const {
  std::vector<std::filesystem::path> files;
  if (attached_ != nullptr) {
    if (processes_.empty()) files.push_back(attached_->rings());
    return files;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error))
    if (file->path().extension() == ".rings") files.push_back(file->path());
  return files;
}

void recorder::find_processes() {
  std::vector<std::unique_ptr<recorded_process>> fresh;
  for (const std::filesystem::path& file : files_of_rings()) {
    auto rings = ring_source::open(file);
    if (!rings) continue;
    auto p = std::make_unique<recorded_process>();
    p->rings = std::move(rings);
    if (attached_ != nullptr) {
      p->since_ticks = clock_.begin;
      p->anonymous_before = attached_->anonymous_before();
    } else {
      p->anonymous_before = p->rings->anonymous_before();
    }
    try {
      const auto segment = std::filesystem::path(file).replace_extension(".segment");
      p->segment = std::make_unique<segment::segment_file>(segment, true);
      p->reader = std::make_unique<segment::segment_reader>(segment);
      p->figures = p->reader->process();
      known_segments_.insert(segment);
      fresh.push_back(std::move(p));
    } catch (const segment::bad_segment& why) {
      note_unreadable(why);
    }
    // Probes leave a segment alone while it has rings, or is open here. The memory of the rings
    // goes with the last of the two that have them mapped.
    std::error_code ignored;
    if (attached_ == nullptr) std::filesystem::remove(file, ignored);
  }
  // A parent began before its child.
  std::ranges::sort(fresh, {}, [](const auto& p) { return p->figures.started_ns; });
  for (auto& p : fresh) {
    try {
      begin(std::move(p));
    } catch (const segment::bad_segment& why) {
      note_unreadable(why);
    }
  }
  if (attached_ == nullptr && !is_stopped_) find_refusals();
}

void recorder::note_unreadable(const segment::bad_segment& why) {
  if (!is_stopped_) note_not_recorded(fmt::format("a process is not recorded: {}", why.what()));
}

/// Of processes whose probe could not make its file.
void recorder::find_refusals() {
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
    const std::filesystem::path& path = file->path();
    if (path.extension() == ".segment") {
      note_refusal_in(path);
    } else if (path.extension() == ".unrecorded") {  // see leave_refusal in the probe
      std::error_code ignored;
      const int why = std::atoi(std::filesystem::read_symlink(path, ignored).c_str());
      std::filesystem::remove(path, ignored);
      note_not_recorded(
          fmt::format("process {} is not recorded: {}", path.stem().string(), why_not_recorded(why, folder_)));
    }
  }
}

void recorder::note_refusal_in(const std::filesystem::path& segment) {
  if (known_segments_.contains(segment)) return;
  try {
    const segment::process_figures process = segment::segment_reader(segment).process();
    if (process.why_not_recorded == 0) return;
    known_segments_.insert(segment);
    note_not_recorded(fmt::format("process {} is not recorded, nor are children that it forks: {}", process.process_id,
                                  why_not_recorded(process.why_not_recorded, folder_)));
  } catch (const segment::bad_segment&) {
    // Something else's, or one that is being made.
  }
}

void recorder::note_not_recorded(const std::string& which) {
  writer_.add(trace::note{0, clock_ns() - began_ns_, which});
  not_recorded_.push_back(which);
}

/// Once for each parent.
void recorder::note_lost_children(recorded_process& p) {
  const segment::process_figures parent = p.reader->process();
  if (parent.why_child_not_recorded == 0 || std::exchange(p.has_told_of_child, true)) return;
  note_not_recorded(fmt::format("children of process {} are not recorded: {}", parent.process_id,
                                why_not_recorded(parent.why_child_not_recorded, folder_)));
}

void recorder::begin(std::unique_ptr<recorded_process> p) {
  if (is_stopped_) return p->segment->control().recording.store(0, std::memory_order_relaxed);
  p->number = static_cast<std::uint32_t>(processes_.size());
  const auto header = p->segment->header();
  p->stacks_at = header->stacks_at;
  p->thread_of_ring.assign(p->rings->rings(), -1);
  // Of an earlier recording.
  for (std::uint32_t ring = 0; ring < p->rings->rings(); ++ring)
    p->waited_ns.push_back(attached_ != nullptr ? p->rings->waited_ns(ring) : 0);
  // The last one that had the parent's id.
  const auto parent = std::ranges::find_if(processes_.rbegin(), processes_.rend(), [&](const auto& other) {
    return header->fork_number != 0 && other->figures.own_id == header->forked_from;
  });
  trace::process described{.number = p->number,
                           .id = p->figures.process_id,
                           .forked_from_plus_one = 0,
                           .started_unix_ns = p->figures.started_unix_ns,
                           .program = p->figures.program,
                           .allocator = p->figures.allocator,
                           .arguments = p->figures.arguments};
  if (parent != processes_.rend()) {
    described.forked_from_plus_one = (*parent)->number + 1;
    merger_.begin_child((*parent)->number, header->fork_number);
  } else {
    merger_.begin_process();
  }
  writer_.add(described);
  processes_.push_back(std::move(p));
}

std::uint32_t recorder::stack_of(recorded_process& p, std::uint64_t reference) {
  if (reference == 0) return 0;
  if (const auto known = p.stacks.find(reference); known != p.stacks.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(p.stacks.size() + 1);
  p.stacks.emplace(reference, id);
  const std::uint64_t at = p.stacks_at + (reference - 1) * segment::reference_unit;
  trace::stack s{.process = p.number, .id = id, .addresses = {}};
  alignas(segment::stack) std::byte head[sizeof(segment::stack)];
  if (p.segment->read(at, head, sizeof head) == sizeof head) {
    constexpr std::uint32_t deepest = 512;
    s.addresses.resize(std::min(reinterpret_cast<const segment::stack*>(head)->depth, deepest));
    const std::size_t bytes = s.addresses.size() * sizeof(std::uint64_t);
    if (p.segment->read(at + sizeof head, s.addresses.data(), bytes) != bytes) s.addresses.clear();
  }
  writer_.add(s);
  return s.id;
}

std::uint64_t recorder::read(recorded_process& p, bool is_over) {
  std::uint64_t records = 0;
  p.rings->begin_look();
  for (std::uint32_t ring = 0; ring < p.rings->rings(); ++ring) {
    p.rings->read(ring, is_over, [&](std::uint64_t ticks, const trace::ring_record& r) {
      if (ticks < p.since_ticks) return;
      ++records;
      std::int64_t& thread = p.thread_of_ring[ring];
      if (thread < 0) thread = p.threads++;
      const trace::recorded event = trace::read_record(ticks, r, stack_of(p, r.stack));
      merger_.add({p.number, static_cast<std::uint32_t>(thread)}, event);
      // Another thread may get the ring.
      if (event.kind == trace::ring_kind::end_thread && ring != 0) thread = -1;
    });
  }
  return records;
}

/// What gives the addresses and calls of stacks their names.
void recorder::note_names(recorded_process& p) {
  const segment::snapshot figures = p.reader->read();
  for (; p.modules < figures.modules.size(); ++p.modules) {
    const segment::module_figures& m = figures.modules[p.modules];
    writer_.add(trace::module{p.number, m.begin, m.end, m.base, m.path});
  }
  if (!figures.codes) return;
  // Records are only added: later ones have higher numbers.
  segment::reference last = p.last_code;
  for (const auto& [id, code] : *figures.codes) {
    if (id <= p.last_code) continue;
    last = std::max(last, id);
    writer_.add(trace::interpreted_code{.process = p.number,
                                        .id = id,
                                        .interpreter_at = figures.process.interpreter_at,
                                        .name = code.name,
                                        .file = code.file,
                                        .first_line = code.first_line,
                                        .lines = static_cast<std::uint32_t>(code.lines),
                                        .table = code.table});
  }
  p.last_code = last;
}

/// Bytes that are in memory of what the program itself has mapped.
std::uint64_t recorder::own_memory(const recorded_process& p) {
  const descriptor pages(::open(fmt::format("/proc/{}/pagemap", p.figures.process_id).c_str(), O_RDONLY | O_CLOEXEC));
  constexpr std::uint64_t page = 4096, present = std::uint64_t{1} << 63, of_file = std::uint64_t{1} << 61;
  std::array<std::uint64_t, 8192> entries{};
  std::uint64_t bytes = 0;
  p.rings->for_each_own_mapping([&](std::uint64_t begin, std::uint64_t length) {
    for (std::uint64_t at = begin / page, end = (begin + length + page - 1) / page; at < end;) {
      const std::uint64_t wanted = std::min<std::uint64_t>(entries.size(), end - at);
      const ssize_t got =
          ::pread(pages.get(), entries.data(), wanted * sizeof entries[0], static_cast<off_t>(at * sizeof entries[0]));
      if (got <= 0) return;
      const std::uint64_t count = static_cast<std::uint64_t>(got) / sizeof entries[0];
      for (std::uint64_t i = 0; i < count; ++i) bytes += (entries[i] & (present | of_file)) == present ? page : 0;
      at += count;
    }
  });
  return bytes;
}

bool recorder::is_at_a_new_high(const recorded_process& p) {
  const std::uint64_t resident = resident_bytes(static_cast<pid_t>(p.figures.process_id)).value_or(0);
  return resident > p.most_resident + std::max<std::uint64_t>(p.most_resident / 100, 256 << 10);
}

/// Often while there is more than ever, so that a short peak is seen; else seldom, and most where
/// events wait to be read.
void recorder::note_memory(recorded_process& p, bool is_busy) {
  constexpr std::uint64_t millisecond = 1'000'000;
  const std::uint64_t rest = is_busy ? 40 : 4;
  const std::uint64_t began = clock_ns();
  if (began < p.next_growth_ns) return;
  if (began < p.next_memory_ns && !is_at_a_new_high(p)) {
    p.next_growth_ns = began + millisecond;
    return;
  }
  const trace::memory_look is = trace::look_at_memory(fmt::format("/proc/{}/smaps", p.figures.process_id).c_str());
  const std::uint64_t others = p.anonymous_before + own_memory(p);
  const std::uint64_t ended = clock_ns();
  p.next_memory_ns = ended + std::max(10 * millisecond, rest * (ended - began));
  p.next_growth_ns = ended + std::max(millisecond, 4 * (ended - began));
  p.most_resident = std::max(p.most_resident, resident_bytes(static_cast<pid_t>(p.figures.process_id)).value_or(0));
  // Of another program, which the process has become meanwhile, it is not: with the probe its state
  // says so, and without the probe it has no rings.
  if (is.anonymous > 0 && is.has_rings && p.reader->process().state == segment::process_state::running)
    writer_.add(trace::memory{p.number, ended - began_ns_, is.anonymous - std::min(is.anonymous, others)});
}

void recorder::note_waits(recorded_process& p) {
  for (std::uint32_t ring = 0; ring < p.rings->rings(); ++ring) {
    const std::uint64_t more = p.rings->waited_ns(ring) - p.waited_ns[ring];
    if (more == 0) continue;
    p.waited_ns[ring] += more;
    writer_.add(
        trace::note{p.number, clock_ns() - began_ns_,
                    fmt::format("a thread waited {:.1f} ms for the recorder", static_cast<double>(more) / 1e6)});
  }
}

void recorder::note_end(recorded_process& p) {
  p.is_gone = true;
  note_names(p);
  const auto process = p.reader->process();
  const auto state = process.state;
  const char* const how = state == segment::process_state::exited ? "has exited"
                          : state == segment::process_state::replaced
                              ? "has become another program"
                              : "is seen to be gone: it was killed, ended without "
                                "exit, or has become a program without the probe";
  // A process that was killed does not say when it ended.
  const std::uint64_t ended_ns = process.ended_ns != 0 ? process.ended_ns : clock_ns();
  writer_.add(trace::note{p.number, std::max(ended_ns, began_ns_) - began_ns_,
                          fmt::format("process {} {}", p.figures.process_id, how)});
  std::error_code ignored;
  std::filesystem::remove(attached_ != nullptr ? attached_->rings() : p.segment->path(), ignored);
  p.rings.reset();
  p.reader.reset();
  p.segment.reset();
}

std::uint64_t recorder::look() {
  constexpr std::uint64_t looks_per_search = 8, looks_per_round = 512;
  const bool searches = looks_++ % looks_per_search == 0;
  if (searches) find_processes();
  const std::uint64_t before = trace::ticks_now();
  std::uint64_t records = 0;
  std::vector<recorded_process*> ended;
  for (const auto& p : processes_) {
    if (p->is_gone) continue;
    // Asked before its rings are read: what it has recorded by its end is read then.
    const bool is_there = !searches || segment::is_there(p->figures);
    const bool is_replaced = searches && p->reader->process().state == segment::process_state::replaced;
    const std::uint64_t its_records = read(*p, !is_there || is_replaced);
    constexpr std::uint64_t many = 2000;
    note_memory(*p, its_records > many);
    records += its_records;
    if (!is_there || is_replaced) {
      merger_.settle(before);
      note_waits(*p);
      note_lost_children(*p);
      ended.push_back(p.get());
    }
  }
  // In the order of their ends: a child's before that of its parent, as a rule.
  std::ranges::sort(ended, {}, [](const recorded_process* p) { return p->reader->process().ended_ns; });
  for (recorded_process* const p : ended) note_end(*p);
  merger_.settle(before - static_cast<std::uint64_t>(ns_of_margin / clock_.ns_per_tick));
  if (looks_ % looks_per_round == 0) {
    for (const auto& p : processes_) {
      if (p->is_gone) continue;
      note_names(*p);
      note_waits(*p);
      note_lost_children(*p);
    }
    writer_.flush();
  }
  return records;
}

bool recorder::has_running_processes() {
  find_processes();  // one may have begun and ended since the last look
  return std::ranges::any_of(processes_, [](const auto& p) { return !p->is_gone; });
}

void recorder::stop() {
  is_stopped_ = true;
  if (attached_ != nullptr) attached_->detach();
  for (const auto& p : processes_) {
    if (!p->is_gone && attached_ == nullptr) p->segment->control().recording.store(0, std::memory_order_relaxed);
  }
  for (const auto& p : processes_) {
    if (!p->is_gone) (void)read(*p, false);
  }
}

void recorder::end(const std::string& reason) {
  for (const auto& p : processes_) {
    if (p->is_gone) continue;
    note_names(*p);
    note_waits(*p);
    note_lost_children(*p);
  }
  merger_.finish();
  writer_.end({.reason = reason});
}

}  // namespace heapwright::tool
