#include "watched_family.hpp"

#include <algorithm>
#include <charconv>

#include "failure.hpp"
#include "segment_choice.hpp"

namespace heapwright::tool {
namespace {

std::string name_of(const std::filesystem::path& segment) { return segment.stem().string(); }

bool is_of_process(const std::filesystem::path& segment, const segment::process_figures& process) {
  try {
    const segment::process_figures of = segment::segment_reader(segment).process();
    return of.process_id == process.process_id && of.process_start == process.process_start;
  } catch (const segment::bad_segment&) {
    return false;
  }
}

/// Which process each has been forked from, by process id. An id may have been another process's
/// before.
using fork_parents = std::map<std::uint32_t, std::uint64_t>;

/// Whether it comes of the other one by forks alone, or is the same.
bool is_descendant(const fork_parents& parents, std::uint32_t id, std::uint32_t of) {
  for (std::size_t steps = 0; steps < parents.size() && id != of; ++steps) {
    const auto found = parents.find(id);
    if (found == parents.end()) return false;
    id = static_cast<std::uint32_t>(found->second);
  }
  return id == of;
}

}  // namespace

watched_family::watched_family(std::shared_ptr<watched_process> first, const std::filesystem::path& segment,
                               std::filesystem::path folder, function_patterns wrappers, found_by how)
    : folder_(std::move(folder)),
      first_segment_(segment),
      wrappers_(std::move(wrappers)),
      how_(how),
      first_(std::move(first)),
      first_name_(name_of(segment)) {
  first_ = prepared(std::move(first_));
  if (how_ == found_by::id) leave_out_ended();
}

watched_family::watched_family(const opened_run& run, function_patterns wrappers)
    : folder_(run.folder()),
      first_segment_(run.processes().front().segment),
      run_(&run),
      wrappers_(std::move(wrappers)),
      first_name_(run.processes().front().name) {
  bool may_control = false;
  segment::segment_reader reader = open_segment(first_segment_, may_control);
  const auto& past = run.processes().front().past;
  first_ = past ? std::make_shared<watched_process>(std::move(reader), *past, wrappers_)
                : std::make_shared<watched_process>(std::move(reader), may_control, wrappers_);
}

/// Null: it went since it was found.
std::shared_ptr<watched_process> watched_family::open(const std::filesystem::path& segment) const {
  try {
    bool may_control = false;
    segment::segment_reader reader = open_segment(segment, may_control);
    if (run_ != nullptr) {
      const auto& all = run_->processes();
      const auto saved = std::ranges::find(all, segment, &saved_process::segment);
      if (saved != all.end() && saved->past)
        return prepared(std::make_shared<watched_process>(std::move(reader), *saved->past, wrappers_));
    }
    return prepared(std::make_shared<watched_process>(std::move(reader), may_control, wrappers_));
  } catch (const failure&) {
    return nullptr;
  }
}

std::shared_ptr<watched_process> watched_family::prepared(std::shared_ptr<watched_process> process) const {
  if (!may_control_) process->forbid_control();
  if (how_ == found_by::start && run_ == nullptr) process->ask_jvm_for_names();
  if (other_) process->compare_with(other_->of_program(process->now(false)->figures.process.program));
  return process;
}

void watched_family::forbid_control() {
  may_control_ = false;
  first_ = prepared(std::move(first_));
}

void watched_family::compare_with(std::shared_ptr<const other_run> other) {
  other_ = std::move(other);
  first_ = prepared(std::move(first_));
}

/// The folder that all programs share has what the last ones have left, of whatever program: that
/// is for `live --list` and `--file`, and would hide what runs.
void watched_family::leave_out_ended() {
  const segment::process_figures first = first_->now(false)->figures.process;
  std::vector<std::pair<std::string, segment::process_figures>> ended;
  fork_parents parents;
  for (const auto& path : segment::segments_in(folder_)) {
    try {
      segment::process_figures process = segment::segment_reader(path).process();
      parents.emplace(process.process_id, process.forked_from);  // the newest of this id comes first
      if (process.state == segment::process_state::exited || !segment::is_there(process))
        ended.emplace_back(name_of(path), std::move(process));
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  for (const auto& [name, process] : ended) {
    // Older ones had a parent of the same id.
    const bool is_child = process.process_id != first.process_id && process.process_start >= first.process_start &&
                          is_descendant(parents, process.process_id, first.process_id);
    if (!is_child && name != first_name_) ended_before_.insert(name);
  }
}

std::size_t watched_family::ended_before() const {
  // Those that begin make room for themselves.
  return static_cast<std::size_t>(std::ranges::count_if(ended_before_, [&](const std::string& name) {
    std::error_code unknown;
    return std::filesystem::exists(folder_ / (name + ".segment"), unknown);
  }));
}

void watched_family::follow_first() {
  const auto seen = first_->now(false);
  if (seen->state != life::replaced || is_stopped_) return;
  const segment::process_figures& before = seen->figures.process;
  for (const auto& path : segment::segments_in(folder_)) {
    if (!is_of_process(path, before)) continue;
    // The newest comes first: where that is the one we have, nothing follows it yet.
    const auto next = name_of(path) == first_name_ ? nullptr : open(path);
    if (!next) return;
    first_->stop();
    first_ = next;
    first_name_ = name_of(path);
    first_segment_ = path;
    return;
  }
}

std::string watched_family::name_among(const std::string& name_or_id) const {
  std::uint32_t id = 0;
  const char* const end = name_or_id.data() + name_or_id.size();
  if (const auto read = std::from_chars(name_or_id.data(), end, id); read.ec != std::errc() || read.ptr != end)
    return name_or_id;
  if (first_->now(false)->figures.process.process_id == id) return {};
  // The newest comes first: what has been replaced by exec goes on as another.
  for (const auto& path : segment::segments_in(folder_)) {
    try {
      if (segment::segment_reader(path).process().process_id == id) return name_of(path);
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  return name_or_id;
}

std::shared_ptr<watched_process> watched_family::find(const std::string& name_or_id) {
  const std::lock_guard hold(mutex_);
  const std::string name = name_among(name_or_id);
  if (name.empty()) follow_first();
  if (name.empty() || name == first_name_) return first_;
  const auto known = std::find(asked_for_.begin(), asked_for_.end(), name);
  if (known != asked_for_.end()) {
    std::rotate(known, known + 1, asked_for_.end());
    return others_[name];
  }
  if (is_stopped_) return nullptr;
  // A name is compared, never made into a path: it comes from a stranger.
  for (const auto& path : segment::segments_in(folder_)) {
    if (name_of(path) != name) continue;
    auto opened = open(path);
    if (!opened) return nullptr;
    others_[name] = opened;
    asked_for_.push_back(name);
    if (asked_for_.size() > most_watched) {
      others_.erase(asked_for_.front());  // who still looks at it keeps it
      asked_for_.erase(asked_for_.begin());
    }
    return opened;
  }
  return nullptr;
}

std::optional<std::string> watched_family::name_of_asked(const std::string& name_or_id) {
  if (!find(name_or_id)) return std::nullopt;
  const std::lock_guard hold(mutex_);
  const std::string name = name_among(name_or_id);
  return name.empty() ? first_name_ : name;
}

std::vector<family_member> watched_family::members(std::size_t most, bool with_ended_before) {
  const auto first = find("");
  std::string first_name;
  std::map<std::uint32_t, std::string> ends;
  {
    const std::lock_guard hold(mutex_);
    first_name = first_name_;
    ends = ends_;
  }
  std::vector<family_member> result;
  const auto add = [&](const std::string& name, const std::shared_ptr<const moment>& seen) {
    const bool is_running = seen->state == life::running;
    const auto end = ends.find(seen->figures.process.process_id);
    result.push_back({name, seen->figures.process, seen->live(), is_running, seen,
                      is_running || end == ends.end() ? "" : end->second});
  };
  add(first_name, first->now());
  if (folder_.empty()) return result;
  for (const auto& path : segment::segments_in(folder_)) {
    if (result.size() == most) break;
    if (name_of(path) == first_name) continue;
    if (!with_ended_before && ended_before_.contains(name_of(path))) continue;
    try {
      auto other = std::make_shared<const moment>(moment_of(segment::segment_reader(path), run_ == nullptr));
      if (other->state == life::replaced) continue;  // it goes on as another
      add(name_of(path), other);
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  return result;
}

std::vector<family_member> watched_family::all_members() {
  std::vector<family_member> all = members(SIZE_MAX);
  for (std::size_t i = 1; i < std::min(all.size(), most_watched); ++i)
    if (const auto process = find(all[i].name)) all[i].seen = process->now();
  return all;
}

std::vector<std::pair<std::string, std::shared_ptr<watched_process>>> watched_family::watched_members() {
  std::vector<std::pair<std::string, std::shared_ptr<watched_process>>> result;
  for (const family_member& m : members(most_watched))
    if (auto process = find(m.name)) result.emplace_back(m.name, std::move(process));
  return result;
}

std::vector<std::pair<std::string, std::shared_ptr<watched_process>>> watched_family::watched_run() {
  auto result = watched_members();
  if (!is_asked_for()) return result;
  fork_parents parents;
  const auto id_of = [](const auto& member) { return member.second->now(false)->figures.process.process_id; };
  for (const auto& [name, process] : result) {
    const segment::process_figures& p = process->now(false)->figures.process;
    parents.emplace(p.process_id, p.forked_from);
  }
  const std::uint32_t first = id_of(result.front());
  std::erase_if(result, [&](const auto& member) { return !is_descendant(parents, id_of(member), first); });
  return result;
}

void watched_family::watch_all() {
  for (const auto& [name, process] : watched_members()) process->keep_memory_map();
}

void watched_family::set_end(std::uint32_t process_id, std::string how) {
  const std::lock_guard hold(mutex_);
  ends_[process_id] = std::move(how);
}

std::vector<saved_process> watched_family::saved(bool only_descendants) {
  std::map<std::string, process_past> pasts;
  fork_parents parents;
  for (const auto& [name, process] : watched_members()) pasts[name] = process->past();
  const auto all = members(SIZE_MAX);
  for (const family_member& m : all) parents[m.process.process_id] = m.process.forked_from;
  const std::uint32_t first = all.front().process.process_id;
  std::vector<saved_process> result;
  for (const family_member& m : all) {
    if (only_descendants && !is_descendant(parents, m.process.process_id, first)) continue;
    const bool is_first = result.empty();
    saved_process one{m.name, is_first ? first_segment_ : folder_ / (m.name + ".segment"), std::nullopt};
    if (const auto past = pasts.find(m.name); past != pasts.end()) one.past = std::move(past->second);
    result.push_back(std::move(one));
  }
  return result;
}

void watched_family::stop() {
  const std::lock_guard hold(mutex_);
  is_stopped_ = true;
  first_->stop();
  for (auto& [name, process] : others_) process->stop();
}

}  // namespace heapwright::tool
