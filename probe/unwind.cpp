#include "unwind.hpp"

#include <atomic>
#include <bit>
#include <cstring>

#include "../abi/own_object.hpp"
#include "../unwind/readable.hpp"

namespace heapwright::probe {

using unwind::find_frame_rule;
using unwind::frame_kind;
using unwind::frame_rule;
using unwind::places;
using unwind::stack_bounds;
using unwind::step;
using unwind::without_signature;
using unwind::word_at;

namespace {

/// Rules by address. Entries are written and read without a lock: one that was torn has a check
/// that does not fit (Hyatt, Mann, "A lock-less transposition table implementation").
class rule_table {
 public:
  bool find(std::uintptr_t pc, frame_rule& rule) const noexcept {
    const entry& e = entries_[index(pc)];
    const std::uint64_t bits = e.rule.load(std::memory_order_relaxed);
    if (e.check.load(std::memory_order_relaxed) != (bits ^ key(pc))) return false;
    rule = std::bit_cast<frame_rule>(bits);
    return true;
  }

  void put(std::uintptr_t pc, frame_rule rule) noexcept {
    entry& e = entries_[index(pc)];
    const auto bits = std::bit_cast<std::uint64_t>(rule);
    e.rule.store(bits, std::memory_order_relaxed);
    e.check.store(bits ^ key(pc), std::memory_order_relaxed);
  }

  void forget() noexcept { generation_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t count = 8192;

  struct entry {
    std::atomic<std::uint64_t> check{0};
    std::atomic<std::uint64_t> rule{0};
  };

  static std::size_t index(std::uintptr_t pc) noexcept { return fibonacci_hash(pc) >> (64 - 13); }
  static_assert(count == 1 << 13);

  /// Addresses have 57 bits at most.
  std::uint64_t key(std::uintptr_t pc) const noexcept {
    return pc ^ (generation_.load(std::memory_order_relaxed) + 1) << 57;
  }

  entry entries_[count];
  std::atomic<std::uint64_t> generation_{0};
};

constinit rule_table rules;

frame_rule rule_at(std::uintptr_t pc, void (*new_object)(const code_object&) noexcept) noexcept {
  // A call may be the last instruction of its function: its return address belongs to the next one.
  const std::uintptr_t call = pc - 1;
  frame_rule rule;
  if (rules.find(call, rule)) [[likely]]
    return rule;
  code_object object{};
  rule = find_frame_rule(call, object);
  rules.put(call, rule);
  if (object.begin != 0) new_object(object);
  return rule;
}

std::uint64_t mixed(std::uint64_t hash, std::uintptr_t pc) noexcept {
  hash = fibonacci_hash(hash ^ pc);
  return hash ^ hash >> 32;
}

}  // namespace

/// If so, the outer one has the frame pointer that there is now.
bool call_memo::still_leads_to(const entry& inner, entry& outer) noexcept {
  if (inner.return_address_at == 0 || without_signature(word_at(inner.return_address_at)) != outer.at.pc) return false;
  const std::uintptr_t fp = inner.frame_pointer_at == 0 ? inner.at.fp : word_at(inner.frame_pointer_at);
  if (outer.needs_frame_pointer && outer.at.fp != fp) return false;
  outer.at.fp = fp;
  return true;
}

void call_memo::walk(machine_state f, std::uintptr_t stack_end,
                     void (*new_object)(const code_object&) noexcept) noexcept {
  stack_bounds stack(f.sp, stack_end);
  // Of a stack that is not known well, or was too deep, or with code that is gone, nothing is
  // believed.
  unsigned known = stack.is_known() && is_known_ && !is_cut_ && generation_ == rules.generation() ? count_ : 0;
  generation_ = rules.generation();
  is_known_ = stack.is_known();
  is_cut_ = false;
  // Go keeps goroutines for ever, and a thread often goes on with the same one.
  const auto is_readable = [this](std::uintptr_t goroutine, std::size_t bytes) {
    if (goroutine == goroutine_ && goroutine != 0) return true;
    if (!unwind::is_readable(goroutine, bytes)) return false;
    goroutine_ = goroutine;
    return true;
  };
  unsigned n = 0;
  const auto met = [&] {
    while (known > 0 && entries_[known - 1].at.sp < f.sp) --known;
    if (known == 0) return false;
    entry& e = entries_[known - 1];
    if (e.at.sp != f.sp || e.at.pc != f.pc || (e.needs_frame_pointer && e.at.fp != f.fp)) return false;
    e.at.fp = f.fp;
    return true;
  };
  while (n < most) {
    if (met()) {
      unsigned same = known - 1;
      while (same > 0 && still_leads_to(entries_[same], entries_[same - 1])) --same;
      if (same == 0) return keep(known, n);
      while (known > same + 1 && n < most - 1) inner_[n++] = entries_[--known];
      f = entries_[--known].at;
    }
    entry& e = inner_[n++];
    e = {f, 0, 0, 0, false, false};
    places read;
    const frame_rule rule = rule_at(f.pc, new_object);
    e.uses_frame_pointer = rule.kind != frame_kind::none && rule.kind != frame_kind::stack_pointer;
    if (!step(f, rule, stack, read, is_readable)) return keep(0, n);
    if (rule.kind == frame_kind::on_other_stack) known = 0;  // what is there may be another goroutine's by now
    e.return_address_at = read.return_address;
    e.frame_pointer_at = read.frame_pointer;
  }
  is_cut_ = true;
  keep(0, n);
}

/// The first `kept` entries stay; behind them come the new ones.
void call_memo::keep(unsigned kept, unsigned n) noexcept {
  if (kept + n > most) {  // the outermost do not fit
    is_cut_ = true;
    const unsigned too_many = kept + n - most;
    std::memmove(entries_, entries_ + too_many, (kept - too_many) * sizeof(entry));
    kept -= too_many;
    for (unsigned i = 0; i < kept; ++i) entries_[i].hash = mixed(i == 0 ? 0 : entries_[i - 1].hash, entries_[i].at.pc);
  }
  count_ = kept + n;
  for (unsigned i = kept; i < count_; ++i) {
    entry& e = entries_[i];
    e = inner_[count_ - 1 - i];
    e.hash = mixed(i == 0 ? 0 : entries_[i - 1].hash, e.at.pc);
    const bool passes_it_on = i > 0 && e.frame_pointer_at == 0;
    e.needs_frame_pointer = e.uses_frame_pointer || (passes_it_on && entries_[i - 1].needs_frame_pointer);
  }
  depth_ = count_;
  while (depth_ > 0 && process::is_in_own_object(entries_[depth_ - 1].at.pc)) --depth_;
}

bool call_memo::remembered_stack::is_unchanged() const noexcept {
  for (unsigned i = 0; i < count; ++i) {
    if (word_at(from.sp + at[i]) != words[i]) return false;
  }
  return true;
}

bool call_memo::remembered_stack::add(std::uintptr_t address) noexcept {
  const std::uintptr_t offset = address - from.sp;
  if (count == most_words || offset > UINT32_MAX) return false;
  at[count] = static_cast<std::uint32_t>(offset);
  words[count++] = word_at(address);
  return true;
}

/// Each word is compared only when those before it are what they were: so nothing is read that a
/// walk would not read.
std::uint32_t call_memo::recall(const machine_state& from, std::uintptr_t caller, std::uint64_t interpreted,
                                std::uintptr_t stack_end) const noexcept {
  if (from.sp >= stack_end) return 0;
  for (const remembered_stack& s : remembered_[set_of(from, caller, interpreted)]) {
    if (s.from.sp != from.sp || s.from.pc != from.pc || s.generation != rules.generation()) continue;
    if (s.interpreted != interpreted) continue;
    if (s.needs_frame_pointer && s.from.fp != from.fp) continue;
    if (s.is_unchanged()) return s.what;
  }
  return 0;
}

void call_memo::remember(const machine_state& from, std::uintptr_t caller, std::uint64_t interpreted,
                         std::uint32_t what) noexcept {
  if (is_cut_ || !is_known_) return;
  const unsigned set = set_of(from, caller, interpreted);
  remembered_stack& s = remembered_[set][next_way_[set]++ % ways];
  s.what = 0;
  s.from = from;
  s.generation = generation_;
  s.interpreted = interpreted;
  s.needs_frame_pointer = entries_[count_ - 1].needs_frame_pointer;
  s.count = 0;
  for (unsigned i = count_ - 1; i > 0; --i) {
    const entry& e = entries_[i];
    if (e.return_address_at == 0 || !s.add(e.return_address_at)) return;
    if (e.frame_pointer_at != 0 && entries_[i - 1].needs_frame_pointer && !s.add(e.frame_pointer_at)) return;
  }
  s.what = what;
}

void call_memo::forget_remembered() noexcept {
  for (auto& set : remembered_) {
    for (auto& s : set) {
      if (s.what != 0) s.what = 0;  // what was never written to is not in memory
    }
  }
}

void forget_rules() noexcept { rules.forget(); }

}  // namespace heapwright::probe
