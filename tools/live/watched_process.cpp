#include "watched_process.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "failure.hpp"
#include "jvm.hpp"
#include "process_image.hpp"
#include "python_arenas.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t freshness_ns = 50'000'000;
constexpr std::uint64_t memory_age_ns = 2'000'000'000;
constexpr std::uint64_t memory_map_age_ns = 10'000'000'000;
constexpr std::size_t most_baselines = 8;
constexpr std::uint64_t jvm_names_age_ns = 10'000'000'000;

std::uint64_t clock_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

life life_of(const segment::process_figures& process, bool may_run = true) {
  if (process.state == segment::process_state::exited) return life::exited;
  if (process.state == segment::process_state::replaced) return life::replaced;
  if (!may_run) return life::left;
  return segment::is_there(process) ? life::running : life::killed;
}

/// Field 28 of /proc/PID/stat, where the first thread's stack begins: exec changes it. 0: it may
/// not be read.
std::uint64_t image_of(pid_t process) {
  const std::string all = read_file(fmt::format("/proc/{}/stat", process)).value_or("");
  const auto name_end = all.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(all.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 28; ++number) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

/// True where it cannot be found out.
bool has_mapped(pid_t process, const std::filesystem::path& segment) {
  struct stat file {};
  const auto all = mapped_files(process);
  if (all.empty() || stat(segment.c_str(), &file) != 0) return true;
  if (std::ranges::any_of(all, [&](const mapping& m) { return m.inode == file.st_ino; })) return true;
  // The list of a process that ends while it is read is cut off.
  return mapped_files(process).empty();
}

/// Of a process that has ended. Its reader dates a peak that threads had not published by the
/// reading, which is after the end.
void set_last_moment(segment::snapshot& figures, std::uint64_t at_ns) {
  figures.at_ns = at_ns;
  figures.process.peak_at_ns = std::min(figures.process.peak_at_ns, at_ns);
}

}  // namespace

std::vector<std::string> arguments_of(pid_t process) {
  std::vector<std::string> arguments =
      segment::arguments_in(read_file(fmt::format("/proc/{}/cmdline", process)).value_or(""));
  // A title that is shorter than the arguments were has nothing behind it.
  while (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  return arguments;
}

segment::process_figures describe(pid_t process) {
  segment::process_figures p;
  p.process_id = static_cast<std::uint32_t>(process);
  p.process_start = segment::process_start(p.process_id);
  p.started_ns = clock_ns();
  p.started_unix_ns =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  p.program = executable_of(process);
  p.arguments = arguments_of(process);
  return p;
}

moment moment_of(const segment::segment_reader& reader, bool may_run) {
  moment m;
  m.figures = reader.read();
  segment::process_figures& process = m.figures.process;
  m.state = life_of(process, may_run);
  if (m.state == life::running && !has_mapped(static_cast<pid_t>(process.process_id), reader.path()))
    m.state = life::replaced;
  if (m.state == life::running) {
    process.arguments = arguments_of(static_cast<pid_t>(process.process_id));
    if (const auto rss = resident_bytes(static_cast<pid_t>(process.process_id)); rss && *rss > 0)
      m.memory = resident_memory{.rss = *rss};
  }
  m.total = m.figures.total();
  return m;
}

double moment::unix_seconds(std::uint64_t ns) const noexcept {
  const auto since_start = static_cast<std::int64_t>(ns - figures.process.started_ns);
  const std::int64_t microseconds =
      static_cast<std::int64_t>(figures.process.started_unix_ns / 1000) + since_start / 1000;
  return static_cast<double>(microseconds) / 1e6;
}

std::uint64_t moment::nanoseconds(double unix_seconds) const noexcept {
  const segment::process_figures& p = figures.process;
  const double since_start = unix_seconds - static_cast<double>(p.started_unix_ns) / 1e9;
  return p.started_ns + static_cast<std::uint64_t>(std::clamp(since_start, 0.0, 1e9) * 1e9);
}

std::optional<live_blocks> moment::live_parts() const noexcept {
  if (!has_probe || !figures.process.counts_from_start() || live() < 0) return std::nullopt;
  live_blocks parts{static_cast<std::uint64_t>(live()), 0};
  double rounding = 0;
  for (const segment::class_figures& c : figures.by_class())
    if (c.allocated_bytes > std::max(c.freed_bytes, c.requested_bytes))
      rounding += static_cast<double>(c.allocated_bytes - c.freed_bytes) *
                  (1 - static_cast<double>(c.requested_bytes) / static_cast<double>(c.allocated_bytes));
  // Figures of a damaged segment may add up to anything.
  parts.rounding = static_cast<std::uint64_t>(std::min(static_cast<double>(parts.bytes), rounding));
  return parts;
}

watched_process::watched_process(segment::segment_reader reader, bool may_control, function_patterns wrappers)
    : reader_(std::move(reader)), may_control_(may_control), places_(std::move(wrappers)) {
  const segment::process_figures process = reader_->process();
  try {
    if (life_of(process) == life::running) heap_ = heap_record::find(static_cast<pid_t>(process.process_id));
  } catch (const failure&) {
    // Its memory may not be read: the heap's figures are missing, all others are there.
  }
  begin();
}

watched_process::watched_process(segment::segment_reader reader, process_past past, function_patterns wrappers)
    : reader_(std::move(reader)), past_(std::move(past)), places_(std::move(wrappers)) {
  for (const history_point& point : past_->points) history_.add(point);
  for (const auto& stacks : past_->stacks) stack_history_.add(stacks, 0, 0);
  memory_ = past_->picture;
  begin();
}

watched_process::watched_process(pid_t process) : bare_(describe(process)), heap_(heap_record::find(process)) {
  if (!heap_) throw failure(exit_code::unreadable, fmt::format("process {} does not run on libheapwright", process));
  bare_.allocator = heap_->path();
  begin();
}

void watched_process::begin() {
  {
    const std::lock_guard hold(mutex_);
    last_ = read(true);
    marks_seen_ = last_->figures.process.marks.size();
    keep_baselines(*last_);
    keep_stacks(*last_);
  }
  watcher_ = std::thread([this] { look_until_stopped(); });
}

watched_process::~watched_process() {
  stop();
  watcher_.join();
}

void watched_process::stop() {
  {
    const std::lock_guard hold(mutex_);
    is_stopped_ = true;
  }
  stopped_.notify_all();
}

bool watched_process::wait(std::chrono::seconds time) {
  std::unique_lock hold(mutex_);
  return !stopped_.wait_for(hold, time, [&] { return is_stopped_; });
}

void watched_process::look_until_stopped() {
  std::unique_lock hold(mutex_);
  while (!stopped_.wait_for(hold, 1s, [&] { return is_stopped_; })) {
    hold.unlock();
    const auto seen = now(false);
    look_at_memory_map();
    hold.lock();
    if (seen->state != life::running) {
      stopped_.wait(hold, [&] { return is_stopped_; });
      return;
    }
  }
}

void watched_process::keep_memory_map() { memory_map_every_ns_ = memory_map_age_ns; }

void watched_process::look_at_memory_map() {
  const std::uint64_t begun = clock_ns();
  if (memory_map_every_ns_ == 0 || begun < memory_map_due_ns_) return;
  (void)memory();
  // A process with much memory waits long for the kernel to walk it: once in a hundred times as
  // long, then.
  const std::uint64_t took = clock_ns() - begun;
  memory_map_due_ns_ = begun + std::max<std::uint64_t>(memory_map_every_ns_, 100 * took);
}

void watched_process::look_again() {
  const std::lock_guard hold(mutex_);
  if (last_->state == life::running) look(false);
}

process_past watched_process::past() {
  look_again();
  const auto seen = now(false);
  process_past result{seen->state, seen->figures.at_ns, seen->figures.process.arguments, {}, {}, seen->memory, {}};
  {
    const std::lock_guard hold(memory_mutex_);
    result.picture = memory_;
  }
  const std::lock_guard hold(mutex_);
  result.points = history_.points(0, SIZE_MAX);
  result.stacks = stack_history_.moments();
  return result;
}

std::shared_ptr<const moment> watched_process::now(bool with_details) {
  const std::lock_guard hold(mutex_);
  const bool is_final = last_->state != life::running;
  const std::uint64_t at = clock_ns();
  const bool is_stale = at >= last_->figures.at_ns + freshness_ns;
  const bool has_stale_details = with_details && detailed_looks_.are_old(at);
  if (!is_final && (is_stale || has_stale_details)) look(with_details);
  return last_;
}

void watched_process::look(bool with_details) noexcept {
  try {
    last_ = read(with_details);
    keep_baselines(*last_);
    keep_stacks(*last_);
  } catch (const std::exception&) {
    // Cut off or overwritten: what was read before is all there will be.
    auto end = std::make_shared<moment>(*last_);
    end->state = life::lost;
    last_ = std::move(end);
  }
}

std::shared_ptr<const moment> watched_process::read(bool with_details) {
  auto result = std::make_shared<moment>();
  moment& m = *result;
  read_figures(m);
  m.total = m.figures.total();
  const std::uint32_t id = m.figures.process.process_id;
  if (m.state == life::running) {
    const auto rss = resident_bytes(static_cast<pid_t>(id));
    if (!detailed_ || detailed_looks_.are_due(m.figures.at_ns, rss.value_or(0), with_details)) {
      const std::uint64_t begun = clock_ns();
      // A process that is ending cannot be read any more: what was seen before is more.
      const auto arenas_before = detailed_ ? detailed_->python_arenas : std::nullopt;
      detailed_ = resident_memory{0, proc_bytes(static_cast<pid_t>(id), "smaps_rollup", "Pss"),
                                  proc_bytes(static_cast<pid_t>(id), "smaps_rollup", "Anonymous"),
                                  proc_bytes(static_cast<pid_t>(id), "smaps_rollup", "Swap"),
                                  python_arena_bytes(static_cast<pid_t>(id))};
      if (!detailed_->python_arenas) detailed_->python_arenas = arenas_before;
      detailed_looks_.looked(m.figures.at_ns, clock_ns() - begun, rss.value_or(0));
    }
    if (rss && *rss > 0) {
      m.memory = detailed_;
      m.memory->rss = *rss;
    } else if (last_) {
      m.memory = last_->memory;
    }
  }
  if (m.state == life::running) {
    // Some programs say there what they do.
    if (auto now = arguments_of(static_cast<pid_t>(id)); !now.empty()) m.figures.process.arguments = std::move(now);
  } else if (past_) {
    m.memory = past_->memory;
    m.figures.process.arguments = past_->arguments;
    set_last_moment(m.figures, past_->at_ns);
    return result;
  } else {
    std::uint64_t at_ns = last_sign_of_life(m.figures);
    if (last_) {
      at_ns = std::max(at_ns, last_->figures.at_ns);
      m.memory = last_->memory;
      m.figures.process.arguments = last_->figures.process.arguments;
    }
    set_last_moment(m.figures, at_ns);
  }
  if (m.state == life::running && heap_) m.heap = heap_->read();
  if (!m.heap && last_) m.heap = last_->heap;
  const bool knows_rss = m.state == life::running && m.memory;
  history_.add(
      {m.figures.at_ns, m.live(), knows_rss ? m.memory->rss : 0, m.total.allocated_bytes, m.total.allocations});
  return result;
}

/// Of a process that has ended: ages are counted to its end, not to now.
std::uint64_t watched_process::last_sign_of_life(const segment::snapshot& figures) const {
  if (figures.process.ended_ns != 0) return figures.process.ended_ns;
  std::uint64_t last = figures.process.started_ns;
  if (!reader_) return last;
  for (const segment::stack_figures& s : reader_->stacks()) last = std::max(last, s.last_ns);
  return std::min(last, figures.at_ns);
}

/// It has executed one that the probe is not loaded into. One with the probe says so in the old
/// segment.
bool watched_process::runs_another_program(pid_t process) {
  const std::uint64_t image = image_of(process);
  if (!last_ || image != image_) is_without_segment_ = !has_mapped(process, reader_->path());
  image_ = image;
  return is_without_segment_;
}

void watched_process::read_figures(moment& m) {
  m.has_probe = reader_.has_value();
  if (!reader_) {
    m.state = segment::is_there(bare_) ? life::running : life::gone;
    m.figures.process = bare_;
    m.figures.at_ns = clock_ns();
    return;
  }
  // The end is looked for first: figures read after it are the last ones.
  const segment::process_figures process = reader_->process();
  m.state = past_ ? past_->state : life_of(process);
  if (!past_ && m.state == life::running && runs_another_program(static_cast<pid_t>(process.process_id)))
    m.state = life::replaced;
  if (past_ && m.state == life::running) m.state = life::left;
  m.figures = reader_->read();
}

std::shared_ptr<const memory_picture> watched_process::memory() {
  const auto seen = now();
  const std::lock_guard hold(memory_mutex_);
  if (seen->state != life::running || (memory_ && seen->figures.at_ns < memory_->at_ns + memory_age_ns)) return memory_;
  auto made = std::make_shared<memory_picture>();
  std::vector<std::uint64_t> stacks;
  for (const segment::thread_figures& t : seen->figures.threads)
    if (t.state == segment::slot_state::alive && t.stack_at != 0) stacks.push_back(t.stack_at);
  made->mappings = read_mappings(static_cast<pid_t>(seen->figures.process.process_id), stacks);
  made->at_ns = seen->figures.at_ns;
  made->heap = seen->heap;
  const segment::process_figures& p = seen->figures.process;
  if (const auto process = static_cast<pid_t>(p.process_id); is_jvm(process))
    made->jvm = memory_of_jvm(process, p.own_id);
  const auto live = seen->live_parts();
  made->parts = parts_of(made->mappings, made->heap ? &*made->heap : nullptr, live ? &*live : nullptr);
  // Gone between the two: what was seen before is more.
  if (!made->mappings.empty() || !memory_) memory_ = std::move(made);
  return memory_;
}

void watched_process::keep_baselines(const moment& m) {
  const auto& marks = m.figures.process.marks;
  const bool is_first = baselines_.empty();
  if (!is_first && marks.size() <= marks_seen_) return;
  auto made = std::make_shared<baseline>(baseline_of(read_stacks(), m.figures.at_ns));
  if (is_first) {
    made->name = "start";
    baselines_["start"] = std::move(made);
    return;
  }
  // Marks made within the same second share what was found then.
  for (; marks_seen_ < marks.size(); ++marks_seen_) {
    auto copy = std::make_shared<baseline>(*made);
    copy->name = marks[marks_seen_].name;
    baselines_[std::to_string(marks_seen_)] = std::move(copy);
  }
  while (baselines_.size() > most_baselines + 1) {
    auto oldest = std::min_element(baselines_.begin(), baselines_.end(), [](const auto& a, const auto& b) {
      return a.first != "start" && (b.first == "start" || a.second->at_ns < b.second->at_ns);
    });
    baselines_.erase(oldest);
  }
}

void watched_process::keep_stacks(const moment& m) {
  const std::uint64_t calls = m.total.allocations + m.total.frees;
  if (!reader_ || past_ || !stack_history_.is_due(m.figures.at_ns, calls)) return;
  const std::uint64_t begun = clock_ns();
  auto made = std::make_shared<const baseline>(baseline_of(read_stacks(), m.figures.at_ns));
  stack_history_.add(std::move(made), calls, clock_ns() - begun);
}

std::vector<std::shared_ptr<const baseline>> watched_process::past_stacks() const {
  const std::lock_guard hold(mutex_);
  return stack_history_.moments();
}

/// It takes the JVM some milliseconds: a hundredth of the time, at most.
void watched_process::name_code_of_jvm() {
  const std::unique_lock hold(jvm_mutex_, std::try_to_lock);
  const std::uint64_t begun = clock_ns();
  if (!hold || begun < names_of_jvm_due_ns_) return;
  const auto seen = now(false);
  const segment::process_figures& p = seen->figures.process;
  const auto process = static_cast<pid_t>(p.process_id);
  if (seen->state == life::running && is_jvm(process)) write_perf_map_of_jvm(process, p.own_id);
  names_of_jvm_due_ns_ = begun + std::max<std::uint64_t>(jvm_names_age_ns, 100 * (clock_ns() - begun));
}

seen_stacks watched_process::stacks() {
  if (wants_names_of_jvm_) name_code_of_jvm();
  return with_moment(read_stacks());
}

seen_stacks watched_process::own_stacks() {
  if (wants_names_of_jvm_) name_code_of_jvm();
  return with_moment(reader_ ? reader_->own_stacks() : std::vector<segment::stack_figures>());
}

seen_stacks watched_process::with_moment(std::vector<segment::stack_figures> stacks) {
  seen_stacks result{std::move(stacks), nullptr};
  const std::uint64_t read_ns = clock_ns();
  const std::lock_guard hold(mutex_);
  if (last_->state == life::running && last_->figures.at_ns < read_ns) look(true);
  result.seen = last_;
  return result;
}

std::vector<segment::stack_figures> watched_process::read_stacks() const {
  return reader_ ? reader_->stacks() : std::vector<segment::stack_figures>();
}

std::vector<segment::sample_figures> watched_process::live_samples() {
  return reader_ ? reader_->live_samples() : std::vector<segment::sample_figures>();
}

std::vector<segment::misuse_report_figures> watched_process::misuse_reports() {
  return reader_ ? reader_->misuse_reports() : std::vector<segment::misuse_report_figures>();
}

std::vector<history_point> watched_process::points(std::uint64_t since_ns, std::size_t most) const {
  const std::lock_guard hold(mutex_);
  return history_.points(since_ns, most);
}

std::shared_ptr<const baseline> watched_process::since(const std::string& mark) const {
  const std::lock_guard hold(mutex_);
  double seconds = 0;
  if (const char* const end = mark.data() + mark.size();
      mark.starts_with('@') && std::from_chars(mark.data() + 1, end, seconds).ptr == end)
    return stack_history_.nearest(last_->nanoseconds(seconds));
  if (const auto found = baselines_.find(mark); found != baselines_.end()) return found->second;
  // What was live then is not kept for long; moments near it are.
  const auto& marks = last_->figures.process.marks;
  const auto is_mark = [&](std::size_t number) { return std::to_string(number) == mark; };
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (is_mark(i) && stack_history_.covers(marks[i].at_ns)) return stack_history_.nearest(marks[i].at_ns);
  return nullptr;
}

void watched_process::set_counting(bool on) { reader_->set_counting(on); }
void watched_process::set_interval(std::uint64_t bytes) { reader_->set_interval(bytes); }
void watched_process::adapt_interval() { reader_->adapt_interval(); }
void watched_process::reset_peak() { reader_->reset_peak(); }

bool watched_process::add_mark(const std::string& name) {
  if (!reader_->add_mark(name)) return false;
  const std::lock_guard hold(mutex_);
  look(true);
  return true;
}

}  // namespace heapwright::tool
