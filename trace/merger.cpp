#include "merger.hpp"

#include <algorithm>

namespace heapwright::trace {

void merger::begin_process() { processes_.emplace_back(); }

void merger::begin_child(std::uint32_t parent, std::uint64_t fork) {
  process_state& child = processes_.emplace_back();
  auto& forks = processes_[parent].forks;
  if (const auto known = forks.find(fork); known != forks.end()) {
    child.live = std::move(known->second);
    forks.erase(known);
  } else {
    child.begins_with = {parent, fork};
  }
}

merger::thread& merger::begin_thread(thread_number by) {
  auto& threads = processes_[by.process].threads;
  while (threads.size() <= by.thread) {
    threads.push_back(std::make_unique<thread>());
    threads.back()->number = {by.process, static_cast<std::uint32_t>(threads.size() - 1)};
  }
  return *threads[by.thread];
}

std::uint64_t merger::thread::latest() const noexcept {
  const recorded& oldest = records.front();
  if (!oldest.is_early()) return oldest.ticks;
  const std::uint64_t next = records.size() > 1 ? records[1].ticks : UINT64_MAX;
  return std::max(std::min(oldest.read_at, next), oldest.ticks);
}

void merger::add(thread_number by, const recorded& r) {
  thread& t = of(by);
  t.records.push_back(r);
  if (t.is_waiting) return;
  if (t.records.size() == 1 || (t.records.size() == 2 && t.records.front().is_early())) make_ready(t);
}

void merger::make_ready(thread& t) {
  process_state& p = processes_[t.number.process];
  if (p.begins_with) return;
  t.due = t.latest();
  ready_.push({t.due, &t});
  const recorded& oldest = t.records.front();
  if (!oldest.is_early() || t.is_pending) return;
  t.is_pending = true;
  p.pending.emplace(oldest.address, &t);
  wake(p, oldest.address);
}

/// It has been written.
void merger::forget_oldest(process_state& p, thread& t) {
  if (t.is_pending) {
    const auto [begin, end] = p.pending.equal_range(t.records.front().address);
    p.pending.erase(std::find_if(begin, end, [&](const auto& one) { return one.second == &t; }));
    t.is_pending = false;
  }
  t.records.pop_front();
}

void merger::settle(std::uint64_t ticks) {
  do write_ready(ticks);
  while (force_one(ticks));
}

void merger::finish() {
  settle(UINT64_MAX);
  for (process_state& p : processes_) {
    if (!p.begins_with) continue;
    p.begins_with.reset();  // its parent did not record the fork
    for (const auto& t : p.threads) {
      if (!t->records.empty()) make_ready(*t);
    }
  }
  settle(UINT64_MAX);
}

void merger::write_ready(std::uint64_t ticks) {
  while (!ready_.empty() && ready_.top().due < ticks) {
    const auto [due, who] = ready_.top();
    ready_.pop();
    thread& t = *who;
    if (t.due != due || t.records.empty()) continue;
    t.due = 0;
    process_state& p = processes_[t.number.process];
    // As long as this thread has the oldest record the others need not be asked.
    const auto until = [&] { return ready_.empty() ? ticks : std::min(ticks, ready_.top().due); };
    do {
      if (!write_front(p, t, false)) break;
      forget_oldest(p, t);
    } while (!t.records.empty() && t.latest() <= until());
    if (!t.is_waiting && !t.records.empty()) make_ready(t);
  }
}

/// Writes the pending allocation that has given the block at this address, which was not live, by
/// then. False: there is none.
bool merger::write_pending(process_state& p, std::uint64_t address, std::uint64_t by) {
  thread* first = nullptr;
  const auto [begin, end] = p.pending.equal_range(address);
  for (auto one = begin; one != end; ++one) {
    thread* const t = one->second;
    if (t->records.front().ticks <= by + skew_ && (first == nullptr || t->latest() < first->latest())) first = t;
  }
  if (first == nullptr || !write_front(p, *first, false)) return false;
  forget_oldest(p, *first);
  if (!first->records.empty()) make_ready(*first);
  return true;
}

/// All of which it may be that they have happened by then.
void merger::write_all_pending(process_state& p, std::uint64_t by) {
  std::vector<std::uint64_t> addresses;
  for (const auto& [address, t] : p.pending) addresses.push_back(address);
  for (const std::uint64_t address : addresses)
    if (!p.live.contains(address)) (void)write_pending(p, address, by);
}

/// Of the threads that wait, the one with the oldest record goes on, if nothing that could let it
/// go on is to come.
bool merger::force_one(std::uint64_t ticks) {
  thread* oldest = nullptr;
  for (const process_state& p : processes_) {
    for (const auto& [address, t] : p.waiting) {
      if (oldest == nullptr || t->latest() < oldest->latest()) oldest = t;
    }
  }
  if (oldest == nullptr || (ticks != UINT64_MAX && oldest->latest() + skew_ >= ticks)) return false;
  process_state& p = processes_[oldest->number.process];
  std::erase_if(p.waiting, [&](const auto& waits) { return waits.second == oldest; });
  oldest->is_waiting = false;
  (void)write_front(p, *oldest, true);
  forget_oldest(p, *oldest);
  if (!oldest->records.empty()) make_ready(*oldest);
  return true;
}

void merger::wake(process_state& p, std::uint64_t address) {
  if (p.waiting.empty()) [[likely]]
    return;
  const auto [begin, end] = p.waiting.equal_range(address);
  std::vector<thread*> woken;
  for (auto waits = begin; waits != end; ++waits) woken.push_back(waits->second);
  p.waiting.erase(begin, end);
  for (thread* const t : woken) {
    t->is_waiting = false;
    make_ready(*t);
  }
}

/// What has waited is written with the time of what it has waited for.
std::uint64_t merger::time_of(const recorded& r) noexcept {
  last_ns_ = std::max(last_ns_, scale_.ns(r.ticks));
  return last_ns_;
}

bool merger::wait(process_state& p, thread& t, std::uint64_t address) {
  t.is_waiting = true;
  p.waiting.emplace(address, &t);
  return false;
}

/// The oldest record of this thread. False: it waits, and nothing is written. `is_forced`: it does
/// not, as nothing that could let it go on is to come.
bool merger::write_front(process_state& p, thread& t, bool is_forced) {
  const recorded& r = t.records.front();
  switch (r.kind) {
    case ring_kind::allocate: return give(p, t, r, is_forced);
    case ring_kind::deallocate:
    case ring_kind::reallocating: return take(p, t, r, is_forced);
    case ring_kind::reallocated:
      if (r.address != 0) return give(p, t, r, is_forced);
      // It has failed, and the block is as it was.
      if (const block_id before = std::exchange(t.before, std::nullopt).value_or(block_id{}); before.number != 0) {
        p.live[t.before_address] = before;
        wake(p, t.before_address);
      }
      return true;
    case ring_kind::freed_by_realloc:
      to_.deallocate(t.number, std::exchange(t.before, std::nullopt).value_or(block_id{}), time_of(r));
      return true;
    case ring_kind::end_thread: to_.end_thread(t.number, time_of(r)); return true;
    case ring_kind::touched:
      if (!p.live.contains(r.address)) (void)write_pending(p, r.address, r.ticks);
      if (const auto found = p.live.find(r.address); found != p.live.end())
        to_.add(trace::touched{found->second, r.asked.size});
      else if (!is_forced)
        return wait(p, t, r.address);
      return true;
    case ring_kind::fork:
      write_all_pending(p, r.ticks);
      give_fork(t.number.process, r.asked.size, p.live);
      return true;
  }
  return true;
}

/// A block for the program, at an address that must not be live.
bool merger::give(process_state& p, thread& t, const recorded& r, bool is_forced) {
  const auto [place, is_new] = p.live.try_emplace(r.address);
  if (!is_new && !is_forced) return wait(p, t, r.address);
  const std::uint64_t at_ns = time_of(r);
  const block_id missed = place->second;
  place.value() =
      r.kind == ring_kind::allocate
          ? to_.allocate(t.number, r.asked, at_ns)
          : to_.reallocate(t.number, std::exchange(t.before, std::nullopt).value_or(block_id{}), r.asked, at_ns);
  if (!is_new) {
    ++missed_frees_;
    to_.deallocate(t.number, missed, at_ns);
  }
  wake(p, r.address);
  return true;
}

/// A block from the program, at an address that must be live.
bool merger::take(process_state& p, thread& t, const recorded& r, bool is_forced) {
  auto found = p.live.find(r.address);
  if (found == p.live.end() && write_pending(p, r.address, r.ticks)) found = p.live.find(r.address);
  if (found == p.live.end() && !is_forced) return wait(p, t, r.address);
  block_id block;
  if (found == p.live.end()) {
    ++unknown_;
  } else {
    block = found->second;
    p.live.erase(found);
    wake(p, r.address);
  }
  if (r.kind == ring_kind::deallocate) {
    to_.deallocate(t.number, block, time_of(r));
  } else {
    t.before = block;
    t.before_address = r.address;
  }
  return true;
}

void merger::give_fork(std::uint32_t parent, std::uint64_t fork, const live_blocks& live) {
  for (process_state& child : processes_) {
    if (child.begins_with != std::pair{parent, fork}) continue;
    child.begins_with.reset();
    child.live = live;
    for (const auto& t : child.threads) {
      if (!t->records.empty()) make_ready(*t);
    }
    return;
  }
  processes_[parent].forks[fork] = live;
}

}  // namespace heapwright::trace
