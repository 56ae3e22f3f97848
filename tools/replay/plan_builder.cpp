#include "plan_builder.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "failure.hpp"
#include "quantities.hpp"
#include "trace_reader.hpp"

namespace heapwright::tool {

using replay::operation;
using replay::operation_kind;
using trace::event;
using trace::event_kind;

namespace {

/// As many looks at memory at least, evenly over the events and over the time.
constexpr std::uint64_t looks = 400;

template <class F>
trace::ending each_part(const std::string& file, const plan_builder::progress& told, F f) {
  try {
    trace::trace_reader reader(file);
    return trace::for_each_part(reader, [&](const trace::part& p) {
      f(p);
      told(static_cast<double>(reader.position()) / static_cast<double>(reader.size()));
    });
  } catch (const trace::bad_trace& why) {
    throw failure(exit_code::bad_input, why.what());
  }
}

/// Up to when a torn trace has all events of a process.
class known_time {
 public:
  void add(const trace::events& some) {
    if (some.all.empty()) return;
    if (some.round != round_) before_round_ns_ = last_ns_;
    round_ = some.round;
    has_others_ = has_others_ || (thread_ && *thread_ != some.by.thread);
    thread_ = some.by.thread;
    last_ns_ = std::max(last_ns_, some.all.back().at_ns);
  }
  [[nodiscard]] std::uint64_t ns() const noexcept { return has_others_ ? before_round_ns_ : last_ns_; }

 private:
  std::uint32_t round_ = 0;
  std::optional<std::uint32_t> thread_;
  bool has_others_ = false;  ///< more than one thread has events
  std::uint64_t before_round_ns_ = 0, last_ns_ = 0;
};

}  // namespace

plan_builder::plan_builder(std::string file, std::optional<std::uint32_t> process, const progress& told)
    : file_(std::move(file)) {
  std::map<std::uint32_t, traced_process> all;
  std::map<std::uint32_t, decltype(touched_)> touched;
  std::map<std::uint32_t, known_time> known;
  const trace::ending ended = each_part(file_, told, [&](const trace::part& p) {
    if (const auto* const one = std::get_if<trace::process>(&p)) all[one->number].described = *one;
    if (const auto* const some = std::get_if<trace::events>(&p)) {
      traced_process& by = all[some->by.process];
      by.events += some->all.size();
      known[some->by.process].add(*some);
      if (!some->all.empty()) by.last_event_ns = std::max(by.last_event_ns, some->all.back().at_ns);
    }
    if (const auto* const one = std::get_if<trace::memory>(&p)) all[one->process].memory.push_back(*one);
    if (const auto* const one = std::get_if<trace::touched>(&p))
      touched[one->block.by.process][key_of(one->block)] = one->bytes;
  });
  const auto chosen = process ? all.find(*process)
                              : std::ranges::max_element(all, {}, [](const auto& one) { return one.second.events; });
  if (chosen == all.end()) {
    throw failure(exit_code::bad_input,
                  process ? fmt::format("{} has no process {}; it has {}, numbered from 0", file_, *process, all.size())
                          : fmt::format("{} has no process: {}", file_,
                                        ended.is_torn ? "it is " + ended.reason
                                                      : "its command ran without the probe, or never called malloc"));
  }
  if (chosen->second.events == 0)
    throw failure(exit_code::bad_input,
                  fmt::format("process {} of {} has no events: {}", chosen->first, file_,
                              ended.is_torn || ended.is_piece ? "it is " + ended.reason
                                                              : "it allocated nothing while it was recorded"));
  process_ = std::move(chosen->second);
  process_.described.number = chosen->first;
  process_.ended = ended;
  for (const auto& [number, one] : all) process_.others += number != chosen->first && one.events > 0 ? 1 : 0;
  process_.known_to_ns = ended.is_torn ? known[chosen->first].ns() : std::numeric_limits<std::uint64_t>::max();
  std::erase_if(process_.memory, [&](const trace::memory& m) { return m.at_ns > process_.known_to_ns; });
  touched_ = std::move(touched[chosen->first]);
}

std::string traced_process::note_on_others(bool is_chosen) const {
  if (is_chosen || others == 0) return "";
  return fmt::format(
      "the trace has {} other process{}; this is the one with most events; --process NUMBER takes another", others,
      others == 1 ? "" : "es");
}

std::string traced_process::note_on_left_out(std::uint64_t frees) const {
  return fmt::format("{} of blocks from before the {} {} left out", show_count_of(frees, "free"), what_it_is(),
                     frees == 1 ? "is" : "are");
}

plan_summary plan_builder::build(int descriptor, const progress& told, bool touches_all,
                                 std::span<const stack_site> stacks) {
  to_ = descriptor;
  stacks_ = stacks;
  if (touches_all) touched_.clear();
  std::uint32_t round = 0;
  (void)each_part(file_, told, [&](const trace::part& p) {
    const auto* const some = std::get_if<trace::events>(&p);
    if (some == nullptr || some->by.process != process_.described.number || some->all.empty()) return;
    if (!round_.empty() && some->round != round) end_round();
    round = some->round;
    const auto same = std::ranges::find(round_, some->by.thread, &thread_round::thread);
    if (same == round_.end())
      round_.push_back({.thread = some->by.thread, .events = some->all});
    else
      same->events.insert(same->events.end(), some->all.begin(), some->all.end());
  });
  end_round();
  if (!turns_.empty()) turns_.back().is_measured = 1;

  replay::plan_footer footer{};
  footer.magic = replay::plan_footer::right_magic;
  footer.slots = slots_;
  footer.operations = summary_.operations;
  put_table(turns_, footer.turns_at, footer.turns);
  put_table(stints_, footer.stints_at, footer.stints);
  put_table(rounds_, footer.rounds_at, footer.rounds);
  put_table(plan_threads_, footer.threads_at, footer.threads);
  footer.measured =
      static_cast<std::uint64_t>(std::ranges::count_if(turns_, [](const auto& t) { return t.is_measured != 0; }));
  put(&footer, sizeof footer);
  flush();
  summary_.threads = plan_threads_.size();
  summary_.rounds = rounds_.size();
  return summary_;
}

plan_builder::planned_thread& plan_builder::of(std::uint32_t thread) {
  if (thread >= threads_.size()) threads_.resize(thread + std::size_t{1});
  return threads_[thread];
}

// --- the order of a round

void plan_builder::end_round() {
  if (round_.empty()) return;
  find_handed_over();
  std::size_t last = round_.size() - 1;
  for (std::size_t next = next_thread(last); next != round_.size(); next = next_thread(last)) {
    run(round_[next]);
    last = next;
  }
  write_round();
  round_.clear();
}

void plan_builder::find_handed_over() {
  handed_over_.clear();
  to_come_.clear();
  decltype(to_come_) allocated;
  for (const thread_round& t : round_) {
    for (const event& e : t.events) {
      const trace::block_id& ended = e.kind == event_kind::reallocate ? e.before : e.block;
      if ((e.kind == event_kind::deallocate || e.kind == event_kind::reallocate) && ended.number != 0 &&
          ended.by.process == process_.described.number && ended.by.thread != t.thread &&
          !live_.contains(key_of(ended)))
        handed_over_.insert(key_of(ended));
    }
  }
  if (handed_over_.empty()) return;
  for (const thread_round& t : round_) {
    for (const event& e : t.events) {
      if ((e.kind == event_kind::allocate || e.kind == event_kind::reallocate) &&
          handed_over_.contains(key_of(e.block)))
        to_come_.insert(key_of(e.block));
    }
  }
}

/// Whether the event needs a block that another thread allocates later in this round.
bool plan_builder::must_wait(const event& e) const {
  if (to_come_.empty() || (e.kind != event_kind::deallocate && e.kind != event_kind::reallocate)) return false;
  const trace::block_id& ended = e.kind == event_kind::reallocate ? e.before : e.block;
  return ended.by.process == process_.described.number && to_come_.contains(key_of(ended));
}

/// The one whose next event is the oldest, and needs not wait; none: round_.size(). Of several,
/// the first behind the last one.
std::size_t plan_builder::next_thread(std::size_t last) const {
  std::size_t found = round_.size(), held_back = round_.size();
  for (std::size_t i = 1; i <= round_.size(); ++i) {
    const std::size_t at = (last + i) % round_.size();
    const thread_round& t = round_[at];
    if (t.next == t.events.size()) continue;
    if (must_wait(t.events[t.next])) {
      held_back = at;
    } else if (found == round_.size() || t.events[t.next].at_ns < round_[found].events[round_[found].next].at_ns) {
      found = at;
    }
  }
  if (found == round_.size() && held_back != found)
    throw failure(exit_code::bad_input, fmt::format("{} is damaged: threads wait for each other's blocks", file_));
  return found;
}

/// Until another thread has an older event, or this one must wait.
void plan_builder::run(thread_round& t) {
  std::uint64_t until = UINT64_MAX;
  for (const thread_round& other : round_) {
    if (&other != &t && other.next != other.events.size()) until = std::min(until, other.events[other.next].at_ns);
  }
  const std::uint64_t begin_ns = t.events[t.next].at_ns;
  std::uint64_t at_ns = begin_ns;
  planned_thread& planned = of(t.thread);
  if (planned.number_plus_one == 0) {
    plan_threads_.push_back({.first_stint = 0, .turns = 0, .ends = 0});
    planned.number_plus_one = static_cast<std::uint32_t>(plan_threads_.size());
  }
  while (t.next != t.events.size() && !must_wait(t.events[t.next])) {
    const event& e = t.events[t.next];
    // A waiting thread's event is older, and comes when it can.
    if (e.at_ns > until && e.at_ns > begin_ns) break;
    if (e.at_ns != at_ns) {
      end_turn(t, at_ns);
      at_ns = e.at_ns;
    }
    add(t, e);
    ++t.next;
    if (measures_here_) end_turn(t, at_ns);
  }
  end_turn(t, at_ns);
}

void plan_builder::end_turn(thread_round& t, std::uint64_t at_ns) {
  if (!first_ns_) first_ns_ = at_ns;
  summary_.duration_ns = std::max(summary_.duration_ns, at_ns - *first_ns_);
  if (t.operations.size() == t.in_turns && !ends_here_) return;
  const std::uint32_t number = of(t.thread).number_plus_one - 1;
  const auto operations = static_cast<std::uint32_t>(t.operations.size() - t.in_turns);
  turns_.push_back({.first_operation = t.in_turns,
                    .at_ns = at_ns,
                    .live = live_bytes_,
                    .thread = number,
                    .operations = operations,
                    .is_measured = measures_here_ ? 1U : 0});
  ++plan_threads_[number].turns;
  t.in_turns = t.operations.size();
  measures_here_ = ends_here_ = false;
}

// --- events

void plan_builder::add(thread_round& t, const event& e) {
  switch (e.kind) {
    case event_kind::allocate: put_block(t, e, operation_kind::allocate); break;
    case event_kind::deallocate: (void)take_block(t, e.block, operation_kind::deallocate); break;
    case event_kind::reallocate: {
      const bool is_known = take_block(t, e.before, operation_kind::take);
      put_block(t, e, is_known ? operation_kind::reallocate : operation_kind::allocate);
      break;
    }
    case event_kind::end_thread:
      plan_threads_[of(t.thread).number_plus_one - 1].ends = 1;
      ends_here_ = true;
      break;
  }
  ++events_;
  const bool is_new_peak = live_bytes_ > measured_peak_ + measured_peak_ / 100 + (64 << 10);
  const bool is_due = (events_ - events_measured_) * looks >= process_.events ||
                      (e.at_ns - std::min(e.at_ns, measured_ns_)) * looks > process_.last_event_ns;
  if (!is_new_peak && !is_due) return;
  measures_here_ = true;
  events_measured_ = events_;
  measured_ns_ = e.at_ns;
  measured_peak_ = std::max(measured_peak_, live_bytes_);
}

operation plan_builder::operation_on(const live_block& block, operation_kind kind) {
  operation o{};
  o.size = block.size & operation::largest_size;
  o.site = block.asked_at.site;
  o.by_new = block.asked_at.by_new ? 1 : 0;
  o.slot = block.slot;
  o.touched = block.touched;
  o.kind = kind;
  return o;
}

void plan_builder::put_block(thread_round& t, const event& e, operation_kind kind) {
  const block_key key = key_of(e.block);
  const auto known = touched_.find(key);
  const std::uint64_t size = std::min<std::uint64_t>(e.asked.size, operation::largest_size);
  const stack_site asked_at = e.asked.stack < stacks_.size() ? stacks_[e.asked.stack] : stack_site{};
  live_block block{
      .slot = slot_for(t.thread, key), .touched = operation::whole_size, .asked_at = asked_at, .size = size};
  if (known != touched_.end() && known->second < size)
    block.touched = static_cast<std::uint16_t>((known->second * operation::whole_size + size - 1) / size);
  operation o = operation_on(block, kind);
  o.alignment = static_cast<std::uint8_t>(e.asked.alignment == 0 ? 0 : std::countr_zero(e.asked.alignment)) & 63;
  o.zeroed = e.asked.zeroed ? 1 : 0;
  t.operations.push_back(o);
  live_[key] = block;
  to_come_.erase(key);
  live_bytes_ += size;
  summary_.live_peak = std::max(summary_.live_peak, live_bytes_);
}

/// False: there is no such block.
bool plan_builder::take_block(thread_round& t, const trace::block_id& block, operation_kind kind) {
  const auto found = block.by.process == process_.described.number ? live_.find(key_of(block)) : live_.end();
  if (block.number == 0 || found == live_.end()) {
    ++summary_.left_out;
    return false;
  }
  const live_block& was = found->second;
  t.operations.push_back(operation_on(was, kind));
  live_bytes_ -= was.size;
  of(t.thread).empty_slots.push_back(was.slot);
  live_.erase(found);
  return true;
}

std::uint32_t plan_builder::slot_for(std::uint32_t thread, const block_key& block) {
  planned_thread& t = of(thread);
  auto& own = t.empty_slots;
  std::size_t& before = t.empty_since_before;
  std::uint32_t slot = 0;
  if (handed_over_.contains(block)) {
    if (before > 0) {
      slot = std::exchange(own[--before], own.back());
      own.pop_back();
      return slot;
    }
  } else if (!own.empty()) {
    slot = own.back();
    own.pop_back();
    before = std::min(before, own.size());
    return slot;
  }
  if (rested_slots_.empty()) return slots_++;
  slot = rested_slots_.back();
  rested_slots_.pop_back();
  return slot;
}

// --- the file

void plan_builder::write_round() {
  std::vector<std::uint64_t> begin_of(plan_threads_.size());
  replay::round r{.threads = 0, .begun = static_cast<std::uint32_t>(plan_threads_.size())};
  for (const thread_round& t : round_) {
    planned_thread& planned = of(t.thread);
    // What another thread could use now that nobody waits for these slots.
    constexpr std::size_t most_kept = 1024;
    if (planned.empty_slots.size() > most_kept) {
      rested_slots_.insert(rested_slots_.end(), planned.empty_slots.begin() + most_kept, planned.empty_slots.end());
      planned.empty_slots.resize(most_kept);
    }
    planned.empty_since_before = planned.empty_slots.size();
    const std::uint32_t number = planned.number_plus_one - 1;
    begin_of[number] = summary_.operations;
    const auto this_stint = static_cast<std::uint32_t>(stints_.size());
    (planned.last_stint_plus_one == 0 ? plan_threads_[number].first_stint
                                      : stints_[planned.last_stint_plus_one - 1].next_plus_one) =
        planned.last_stint_plus_one == 0 ? this_stint : this_stint + 1;
    planned.last_stint_plus_one = this_stint + 1;
    stints_.push_back({.first_operation = summary_.operations,
                       .operations = static_cast<std::uint32_t>(t.operations.size()),
                       .round = static_cast<std::uint32_t>(rounds_.size()),
                       .next_plus_one = 0,
                       .unused = 0});
    put(t.operations.data(), t.operations.size() * sizeof(operation));
    summary_.operations += t.operations.size();
    ++r.threads;
  }
  for (; turns_placed_ < turns_.size(); ++turns_placed_)
    turns_[turns_placed_].first_operation += begin_of[turns_[turns_placed_].thread];
  rounds_.push_back(r);
}

void plan_builder::put(const void* bytes, std::size_t size) {
  constexpr std::size_t enough = 1 << 20;
  const auto* const from = static_cast<const std::byte*>(bytes);
  waiting_.insert(waiting_.end(), from, from + size);
  written_ += size;
  if (waiting_.size() >= enough) flush();
}

void plan_builder::flush() {
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t n = write(to_, waiting_.data() + done, waiting_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw failure(exit_code::bad_input,
                    fmt::format("the plan of the replay cannot be written: {}; it lies in $TMPDIR, or in /tmp",
                                n == 0 ? "no room" : std::strerror(errno)));
    done += static_cast<std::size_t>(n);
  }
  waiting_.clear();
}

template <class T>
void plan_builder::put_table(const std::vector<T>& all, std::uint64_t& at, std::uint64_t& count) {
  at = written_;
  count = all.size();
  put(all.data(), all.size() * sizeof(T));
}

}  // namespace heapwright::tool
