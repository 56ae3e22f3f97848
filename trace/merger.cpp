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

void merger::add(thread_number by, const recorded& r) {
  thread& t = of(by);
  t.records.push_back(r);
  if (t.records.size() == 1 && !t.is_waiting) make_ready(t);
}

void merger::make_ready(thread& t) {
  if (!processes_[t.number.process].begins_with) ready_.push(&t);
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
      if (!t->records.empty()) ready_.push(t.get());
    }
  }
  settle(UINT64_MAX);
}

void merger::write_ready(std::uint64_t ticks) {
  while (!ready_.empty() && ready_.top()->records.front().ticks < ticks) {
    thread& t = *ready_.top();
    ready_.pop();
    process_state& p = processes_[t.number.process];
    // As long as this thread has the oldest record the others need not be asked.
    const auto until = [&] { return ready_.empty() ? ticks : std::min(ticks, ready_.top()->records.front().ticks); };
    do {
      if (!write_front(p, t, false)) break;
      t.records.pop_front();
    } while (!t.records.empty() && t.records.front().ticks <= until());
    if (!t.is_waiting && !t.records.empty()) make_ready(t);
  }
}

/// Of the threads that wait, the one with the oldest record goes on, if nothing that could let it
/// go on is to come.
bool merger::force_one(std::uint64_t ticks) {
  thread* oldest = nullptr;
  for (const process_state& p : processes_) {
    for (const auto& [address, t] : p.waiting) {
      if (oldest == nullptr || t->records.front().ticks < oldest->records.front().ticks) oldest = t;
    }
  }
  if (oldest == nullptr || (ticks != UINT64_MAX && oldest->records.front().latest() + skew_ >= ticks)) return false;
  process_state& p = processes_[oldest->number.process];
  std::erase_if(p.waiting, [&](const auto& waits) { return waits.second == oldest; });
  oldest->is_waiting = false;
  (void)write_front(p, *oldest, true);
  oldest->records.pop_front();
  if (!oldest->records.empty()) make_ready(*oldest);
  return true;
}

bool merger::was_early(const block_id& block) const noexcept {
  return std::ranges::find(early_, block) != early_.end();
}

void merger::wake(process_state& p, std::uint64_t address) {
  if (p.waiting.empty()) [[likely]]
    return;
  const auto [begin, end] = p.waiting.equal_range(address);
  for (auto waits = begin; waits != end; ++waits) {
    waits->second->is_waiting = false;
    ready_.push(waits->second);
  }
  p.waiting.erase(begin, end);
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
      to_.deallocate(t.number, std::exchange(t.before, std::nullopt).value_or(block_id{}), scale_.ns(r.ticks));
      return true;
    case ring_kind::end_thread: to_.end_thread(t.number, scale_.ns(r.ticks)); return true;
    case ring_kind::touched:
      if (const auto found = p.live.find(r.address); found != p.live.end())
        to_.add(trace::touched{found->second, r.asked.size});
      else if (!is_forced)
        return wait(p, t, r.address);
      return true;
    case ring_kind::fork: give_fork(t.number.process, r.asked.size, p.live); return true;
  }
  return true;
}

/// A block for the program, at an address that must not be live.
bool merger::give(process_state& p, thread& t, const recorded& r, bool is_forced) {
  const auto [place, is_new] = p.live.try_emplace(r.address);
  if (!is_new && !is_forced) return wait(p, t, r.address);
  const std::uint64_t at_ns = scale_.ns(r.ticks);
  const block_id missed = place->second;
  place.value() =
      r.kind == ring_kind::allocate
          ? to_.allocate(t.number, r.asked, at_ns)
          : to_.reallocate(t.number, std::exchange(t.before, std::nullopt).value_or(block_id{}), r.asked, at_ns);
  if (r.read_at != 0) note_early(place->second);
  if (!is_new && was_early(missed)) {
    p.aside.emplace(r.address, missed);
  } else if (!is_new) {
    ++missed_frees_;
    to_.deallocate(t.number, missed, at_ns);
  }
  wake(p, r.address);
  return true;
}

/// A block from the program, at an address that must be live.
bool merger::take(process_state& p, thread& t, const recorded& r, bool is_forced) {
  const auto found = p.live.find(r.address);
  if (found == p.live.end() && !is_forced) return wait(p, t, r.address);
  block_id block;
  if (found == p.live.end()) {
    ++unknown_;
  } else {
    block = found->second;
    const auto aside = p.aside.empty() ? p.aside.end() : p.aside.find(r.address);
    if (aside == p.aside.end()) {
      p.live.erase(found);
    } else {
      found.value() = aside->second;
      p.aside.erase(aside);
    }
    wake(p, r.address);
  }
  if (r.kind == ring_kind::deallocate) {
    to_.deallocate(t.number, block, scale_.ns(r.ticks));
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
      if (!t->records.empty()) ready_.push(t.get());
    }
    return;
  }
  processes_[parent].forks[fork] = live;
}

}  // namespace heapwright::trace
