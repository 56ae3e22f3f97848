#include "stacks.hpp"

#include <cstring>

#include <heapwright/core/bits.hpp>

namespace heapwright::probe {

using namespace trace;

namespace {

std::size_t bytes_of(std::uint32_t depth) noexcept { return sizeof(stack) + depth * sizeof(std::uint64_t); }

std::uint64_t* addresses_of(stack* s) noexcept { return reinterpret_cast<std::uint64_t*>(s + 1); }

bool is_of(stack& s, const call_memo& calls) noexcept {
  if (s.depth != calls.depth()) return false;
  const std::uint64_t* const addresses = addresses_of(&s);
  for (unsigned i = 0; i < s.depth; ++i) {
    if (addresses[i] != calls.address(i)) return false;
  }
  return true;
}

}  // namespace

void stack_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.stacks_at), h.sample_index_at - h.stacks_at, &h.stacks_used);
  buckets_ = at_offset<link>(&h, h.stack_index_at);
  mask_ = h.stack_buckets - 1;
}

stack* stack_table::find_or_add(const call_memo& calls) noexcept {
  if (calls.depth() == 0) return nullptr;
  const std::uint64_t hash = calls.hash() | 1;  // never 0
  for (reference r = buckets_[hash >> 32 & mask_].load(std::memory_order_acquire); r != 0;) {
    stack& s = at(r);
    if (s.hash == hash && is_of(s, calls)) return &s;
    r = s.next.load(std::memory_order_relaxed);
  }
  auto* const s = static_cast<stack*>(part_.take(bytes_of(calls.depth())));
  if (s == nullptr) return nullptr;
  s->depth = calls.depth();
  s->is_cut = calls.is_cut() ? 1 : 0;
  for (unsigned i = 0; i < calls.depth(); ++i) addresses_of(s)[i] = calls.address(i);
  std::atomic_signal_fence(std::memory_order_release);  // with a hash it is complete
  s->hash = hash;
  insert(s);
  return s;
}

void stack_table::insert(stack* s) noexcept {
  link& bucket = buckets_[s->hash >> 32 & mask_];
  reference first = bucket.load(std::memory_order_relaxed);
  do s->next.store(first, std::memory_order_relaxed);
  while (!bucket.compare_exchange_weak(first, refer(s), std::memory_order_release, std::memory_order_relaxed));
}

void stack_table::copy_from(segment_header& other) noexcept {
  const std::uint64_t used = other.stacks_used.load(std::memory_order_acquire);
  auto* const to = static_cast<std::byte*>(part_.take(used));
  if (to == nullptr) return;
  std::memcpy(to, at_offset<std::byte>(&other, other.stacks_at), used);
  for (std::uint64_t at = 0; at < used;) {
    auto* const s = reinterpret_cast<stack*>(to + at);
    if (s->hash != 0) insert(s);  // 0: a thread of the parent was adding it
    if (s->depth == 0) break;
    at += align_up(bytes_of(s->depth), reference_unit);
  }
}

}  // namespace heapwright::probe
