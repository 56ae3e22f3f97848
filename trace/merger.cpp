#include "merger.hpp"

#include <algorithm>

namespace heapwright::trace {

recorded read_record(std::uint64_t ticks, const ring_record& r, std::uint32_t stack) noexcept {
  constexpr unsigned kind_at = ring_record::address_bits, alignment_at = kind_at + ring_record::kind_bits,
                     zeroed_at = alignment_at + ring_record::alignment_bits;
  const unsigned logarithm = r.what >> alignment_at & ((1U << ring_record::alignment_bits) - 1);
  recorded result;
  result.ticks = ticks;
  result.kind = static_cast<ring_kind>(r.what >> kind_at & ((1U << ring_record::kind_bits) - 1));
  result.address = r.what & ((std::uint64_t{1} << ring_record::address_bits) - 1);
  result.asked = {.size = r.size,
                  .alignment = logarithm == 0 ? 0 : std::uint64_t{1} << logarithm,
                  .stack = stack,
                  .zeroed = (r.what >> zeroed_at & 1) != 0};
  result.fork = r.size;
  return result;
}

merger::merger(trace_writer& to, std::uint64_t skew, std::function<std::uint64_t(std::uint64_t)> ns_of)
    : to_(to), skew_(skew), ns_of_(std::move(ns_of)) {}

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

merger::thread& merger::of(thread_number by) {
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

std::optional<std::uint64_t> merger::blocked_on(const process_state& p, const recorded& r) {
  const bool takes =
      r.kind == ring_kind::deallocate || r.kind == ring_kind::reallocating || r.kind == ring_kind::touched;
  const bool gives = r.kind == ring_kind::allocate || (r.kind == ring_kind::reallocated && r.address != 0);
  if ((takes && !p.live.contains(r.address)) || (gives && p.live.contains(r.address))) return r.address;
  return std::nullopt;
}

void merger::write_ready(std::uint64_t ticks) {
  while (!ready_.empty() && ready_.top()->records.front().ticks < ticks) {
    thread& t = *ready_.top();
    ready_.pop();
    process_state& p = processes_[t.number.process];
    // As long as this thread has the oldest record the others need not be asked.
    const auto until = [&] { return ready_.empty() ? ticks : std::min(ticks, ready_.top()->records.front().ticks); };
    do {
      if (const auto address = blocked_on(p, t.records.front())) {
        t.is_waiting = true;
        p.waiting.emplace(*address, &t);
        break;
      }
      write_front(p, t);
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
  if (oldest == nullptr || (ticks != UINT64_MAX && oldest->records.front().ticks + skew_ >= ticks)) return false;
  process_state& p = processes_[oldest->number.process];
  std::erase_if(p.waiting, [&](const auto& waits) { return waits.second == oldest; });
  oldest->is_waiting = false;
  write_front(p, *oldest);
  oldest->records.pop_front();
  if (!oldest->records.empty()) make_ready(*oldest);
  return true;
}

block_id merger::take(process_state& p, std::uint64_t address) {
  const auto found = p.live.find(address);
  if (found == p.live.end()) {
    ++unknown_;
    return {};
  }
  const block_id block = found->second;
  p.live.erase(found);
  wake(p, address);
  return block;
}

void merger::set_live(process_state& p, thread& t, std::uint64_t address, const block_id& block, std::uint64_t at_ns) {
  const auto [place, is_new] = p.live.emplace(address, block);
  if (!is_new) {
    ++missed_frees_;
    to_.deallocate(t.number, place->second, at_ns);
    place.value() = block;
  }
  wake(p, address);
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

void merger::write_front(process_state& p, thread& t) {
  const recorded& r = t.records.front();
  const std::uint64_t at_ns = ns_of_(r.ticks);
  switch (r.kind) {
    case ring_kind::allocate: {
      const block_id block = to_.allocate(t.number, r.asked, at_ns);
      set_live(p, t, r.address, block, at_ns);
      break;
    }
    case ring_kind::deallocate: to_.deallocate(t.number, take(p, r.address), at_ns); break;
    case ring_kind::reallocating:
      t.before_address = r.address;
      t.before = take(p, r.address);
      break;
    case ring_kind::reallocated: {
      const block_id before = std::exchange(t.before, std::nullopt).value_or(block_id{});
      if (r.address == 0) {  // it has failed, and the block is as it was
        if (before.number != 0) set_live(p, t, t.before_address, before, at_ns);
      } else {
        const block_id block = to_.reallocate(t.number, before, r.asked, at_ns);
        set_live(p, t, r.address, block, at_ns);
      }
      break;
    }
    case ring_kind::freed_by_realloc:
      to_.deallocate(t.number, std::exchange(t.before, std::nullopt).value_or(block_id{}), at_ns);
      break;
    case ring_kind::end_thread: to_.end_thread(t.number, at_ns); break;
    case ring_kind::touched:
      if (const auto found = p.live.find(r.address); found != p.live.end())
        to_.add(trace::touched{found->second, r.asked.size});
      break;
    case ring_kind::fork: give_fork(t.number.process, r.fork, p.live); break;
  }
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
