#include "stacks.hpp"

#include <cstring>

namespace heapwright::probe {

using namespace segment;

namespace {

std::uint64_t* addresses_of(stack* s) noexcept { return reinterpret_cast<std::uint64_t*>(s + 1); }

}  // namespace

void stack_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.stacks_at), h.sample_index_at - h.stacks_at, &h.stacks_used);
  buckets_ = at_offset<link>(&h, h.stack_index_at);
  mask_ = h.stack_buckets - 1;
}

/// Goes by the hash alone: of a million stacks no two have the same 64 bits, but in one of thirty
/// million programs.
stack* stack_table::find(std::uint64_t hash, std::uint32_t owner) const noexcept {
  for (reference r = bucket_of(hash, owner).load(std::memory_order_acquire); r != 0;) {
    stack& s = at(r);
    if (s.hash == hash && s.owner == owner) return &s;
    r = s.next.load(std::memory_order_relaxed);
  }
  return nullptr;
}

stack* stack_table::find_or_add(const call_memo& calls, std::uint32_t owner) noexcept {
  if (calls.depth() == 0) return nullptr;
  const std::uint64_t hash = calls.hash() | 1;  // never 0
  if (stack* const known = find(hash, owner)) return known;
  if (owner != 0 && part_.is_half_full()) return find_or_add(calls, 0);
  stack* const s = take(calls.depth(), calls.is_cut(), owner);
  if (s == nullptr) return nullptr;
  for (unsigned i = 0; i < calls.depth(); ++i) addresses_of(s)[i] = calls.address(i);
  complete(*s, hash);
  return s;
}

stack* stack_table::everyones(stack& of) noexcept {
  if (of.owner == 0) return &of;
  if (const reference known = of.everyones.load(std::memory_order_acquire); known != 0) return &at(known);
  stack* s = find(of.hash, 0);
  if (s == nullptr) {
    s = take(of.depth, of.is_cut != 0, 0);
    if (s == nullptr) return nullptr;
    std::memcpy(addresses_of(s), addresses_of(&of), of.depth * sizeof(std::uint64_t));
    complete(*s, of.hash);
  }
  of.everyones.store(refer(s), std::memory_order_release);
  return s;
}

stack* stack_table::take(std::uint32_t depth, bool is_cut, std::uint32_t owner) noexcept {
  auto* const s = static_cast<stack*>(part_.take(stack_length(depth)));
  if (s == nullptr) return nullptr;
  s->depth = depth;
  s->is_cut = is_cut ? 1 : 0;
  s->owner = owner;
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

bool stack_table::copy_from(segment_header& other) noexcept {
  const std::uint64_t used = other.stacks_used.load(std::memory_order_acquire);
  auto* const to = static_cast<std::byte*>(part_.take(used));
  if (to == nullptr) return false;
  std::memcpy(to, at_offset<std::byte>(&other, other.stacks_at), used);
  for (std::uint64_t at = 0; at < used;) {
    auto* const s = reinterpret_cast<stack*>(to + at);
    if (s->hash != 0) insert(*s);  // 0: a thread of the parent was adding it
    if (s->depth == 0) break;
    at += stack_length(s->depth);
  }
  return true;
}

}  // namespace heapwright::probe
