#include "watched_family.hpp"

#include <algorithm>

#include "failure.hpp"
#include "segment_choice.hpp"

namespace heapwright::tool {
namespace {

std::string name_of(const std::filesystem::path& segment) { return segment.stem().string(); }

bool is_of_process(const std::filesystem::path& segment, const trace::process_figures& process) {
  try {
    const trace::process_figures of = trace::segment_reader(segment).process();
    return of.process_id == process.process_id && of.process_start == process.process_start;
  } catch (const trace::bad_segment&) {
    return false;
  }
}

}  // namespace

watched_family::watched_family(std::shared_ptr<watched_process> first, const std::filesystem::path& segment,
                               std::filesystem::path folder, function_patterns wrappers)
    : folder_(std::move(folder)), wrappers_(std::move(wrappers)), first_(std::move(first)), first_name_(name_of(segment)) {}

/// Null: it went since it was found.
std::shared_ptr<watched_process> watched_family::open(const std::filesystem::path& segment) const {
  try {
    bool may_control = false;
    trace::segment_reader reader = open_segment(segment, may_control);
    return std::make_shared<watched_process>(std::move(reader), may_control, wrappers_);
  } catch (const failure&) {
    return nullptr;
  }
}

void watched_family::follow_first() {
  const auto seen = first_->now(false);
  if (seen->state != life::replaced || is_stopped_) return;
  const trace::process_figures& before = seen->figures.process;
  for (const auto& path : trace::segments_in(folder_)) {
    if (!is_of_process(path, before)) continue;
    // The newest comes first: where that is the one we have, nothing follows it yet.
    const auto next = name_of(path) == first_name_ ? nullptr : open(path);
    if (!next) return;
    first_->stop();
    first_ = next;
    first_name_ = name_of(path);
    return;
  }
}

std::shared_ptr<watched_process> watched_family::find(const std::string& name) {
  const std::lock_guard hold(mutex_);
  if (name.empty()) follow_first();
  if (name.empty() || name == first_name_) return first_;
  const auto known = std::find(asked_for_.begin(), asked_for_.end(), name);
  if (known != asked_for_.end()) {
    std::rotate(known, known + 1, asked_for_.end());
    return others_[name];
  }
  if (is_stopped_) return nullptr;
  // A name is compared, never made into a path: it comes from a stranger.
  for (const auto& path : trace::segments_in(folder_)) {
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

std::vector<family_member> watched_family::members(std::size_t most) {
  const auto first = find("");
  std::string first_name;
  {
    const std::lock_guard hold(mutex_);
    first_name = first_name_;
  }
  std::vector<family_member> result;
  const auto seen = first->now();
  result.push_back({first_name, seen->figures.process, seen->live(), seen->state == life::running});
  if (folder_.empty()) return result;
  for (const auto& path : trace::segments_in(folder_)) {
    if (result.size() == most) break;
    if (name_of(path) == first_name) continue;
    try {
      const trace::snapshot other = trace::segment_reader(path).read();
      if (other.process.state == trace::process_state::replaced) continue;  // it goes on as another
      const trace::class_figures total = other.total();
      result.push_back({name_of(path), other.process,
                        static_cast<std::int64_t>(total.allocated_bytes - total.freed_bytes),
                        other.process.state == trace::process_state::running && trace::is_there(other.process)});
    } catch (const trace::bad_segment&) {
      continue;
    }
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
