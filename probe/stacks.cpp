#include "stacks.hpp"

#include <cstring>

namespace heapwright::probe {

using namespace segment;

namespace {

std::uint64_t* addresses_of(stack* s) noexcept { return reinterpret_cast<std::uint64_t*>(s + 1); }
const std::uint64_t* addresses_of(const stack* s) noexcept { return reinterpret_cast<const std::uint64_t*>(s + 1); }

}  // namespace

void stack_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.stacks_at), h.sample_index_at - h.stacks_at, &h.stacks_used);
  buckets_ = at_offset<link>(&h, h.stack_index_at);
  mask_ = h.stack_buckets - 1;
}

/// Goes by the hash alone: of a million stacks no two have the same 64 bits, but in one of thirty
/// million programs.
stack* stack_table::find(std::uint64_t hash, stack_owner owner) const noexcept {
  for (reference r = bucket_of(hash, owner.slot).load(std::memory_order_acquire); r != 0;) {
    stack& s = at(r);
    if (s.hash == hash && stack_owner{s.owner, s.name_of_threads} == owner) return &s;
    r = s.next.load(std::memory_order_relaxed);
  }
  return nullptr;
}

template <class Calls>
stack* stack_table::find_or_add(const Calls& calls, stack_owner owner) noexcept {
  if (calls.depth() == 0) return nullptr;
  const std::uint64_t hash = calls.hash() | 1;  // never 0
  if (stack* const known = find(hash, owner)) return known;
  if (owner.slot != 0 && part_.is_half_full()) return find_or_add(calls, {0, owner.name});
  stack* const s = take(calls.depth(), calls.is_cut(), owner);
  if (s == nullptr) return nullptr;
  for (unsigned i = 0; i < calls.depth(); ++i) addresses_of(s)[i] = calls.address(i);
  complete(*s, hash);
  return s;
}

template stack* stack_table::find_or_add(const call_memo&, stack_owner) noexcept;
template stack* stack_table::find_or_add(const merged_calls&, stack_owner) noexcept;

stack* stack_table::everyones(stack& of) noexcept {
  if (counts_for_all(of)) return &of;
  if (const reference known = of.everyones.load(std::memory_order_acquire); known != 0) return &at(known);
  stack* const s = find_or_copy(of, 0);
  if (s != nullptr) of.everyones.store(refer(s), std::memory_order_release);
  return s;
}

stack* stack_table::inherited(const stack& parents) noexcept { return find_or_copy(parents, inherited_owner); }

/// The calls alone, not what has been counted there.
stack* stack_table::find_or_copy(const stack& of, std::uint32_t slot) noexcept {
  const stack_owner owner{slot, of.name_of_threads};
  if (stack* const known = find(of.hash, owner)) return known;
  stack* const s = take(of.depth, of.is_cut != 0, owner);
  if (s == nullptr) return nullptr;
  std::memcpy(addresses_of(s), addresses_of(&of), of.depth * sizeof(std::uint64_t));
  complete(*s, of.hash);
  return s;
}

stack* stack_table::take(std::uint32_t depth, bool is_cut, stack_owner owner) noexcept {
  auto* const s = static_cast<stack*>(part_.take(stack_length(depth)));
  if (s == nullptr) return nullptr;
  s->depth = depth;
  s->is_cut = is_cut ? 1 : 0;
  s->owner = owner.slot;
  s->name_of_threads = owner.name;
  return s;
}

void stack_table::complete(stack& s, std::uint64_t hash) noexcept {
  std::atomic_signal_fence(std::memory_order_release);  // with a hash it is complete
  s.hash = hash;
  insert(s);
}

void stack_table::insert(stack& s) noexcept {
  link& bucket = bucket_of(s.hash, s.owner);
  reference first = bucket.load(std::memory_order_relaxed);
  do s.next.store(first, std::memory_order_relaxed);
  while (!bucket.compare_exchange_weak(first, refer(&s), std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace heapwright::probe
