#include "samples.hpp"

#include "newer_libc.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

bool take_if_free(counter& address, std::uint64_t value) noexcept {
  std::uint64_t none = address.load(relaxed);
  if (none != 0) return false;
  if (!is_single_threaded()) return address.compare_exchange_strong(none, value, std::memory_order_acquire, relaxed);
  address.store(value, relaxed);
  return true;
}

}  // namespace

void sample_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.samples_at), h.bytes - h.samples_at, &h.samples_used);
  buckets_ = at_offset<link>(&h, h.sample_index_at);
  mask_ = h.sample_buckets - 1;
  filter_.clear();
}

/// A record with this address, in this chain; null: there is no room.
sample* sample_table::claim(link& bucket, std::uint64_t address_and_interval) noexcept {
  reference first = bucket.load(std::memory_order_acquire);
  for (reference r = first; r != 0;) {
    sample& s = at(r);
    if (take_if_free(s.address_and_interval, address_and_interval)) return &s;
    r = s.next.load(relaxed);
  }
  auto* const s = static_cast<sample*>(part_.take(sizeof(sample)));
  if (s == nullptr) return nullptr;
  s->address_and_interval.store(address_and_interval, relaxed);
  do s->next.store(first, relaxed);
  while (!bucket.compare_exchange_weak(first, part_.refer(s), std::memory_order_release, relaxed));
  return s;
}

bool sample_table::add(const void* p, const taken_sample& of) noexcept {
  if (address_of(p) >> sample::address_bits != 0) return false;
  const std::uint64_t code = of.interval.code();
  sample* const s = claim(bucket_of(address_of(p)), address_of(p) | code << sample::address_bits);
  if (s == nullptr) return false;
  s->bytes = of.bytes;
  s->at_ns = of.at_ns;
  s->at_stack.store(of.at_stack, std::memory_order_release);
  filter_.add(p);
  return true;
}

taken_sample sample_table::take(const void* p) noexcept {
  for (reference r = bucket_of(address_of(p)).load(std::memory_order_acquire); r != 0;) {
    sample& s = at(r);
    const std::uint64_t of = s.address_and_interval.load(relaxed);
    if (sample::address_of(of) == address_of(p)) {
      const auto code = static_cast<std::uint16_t>(of >> sample::address_bits);
      const taken_sample taken{s.at_stack.load(relaxed), sampling_interval::of_code(code), s.bytes, s.at_ns};
      s.at_stack.store(0, relaxed);
      s.address_and_interval.store(0, std::memory_order_release);
      filter_.remove(p);
      return taken;
    }
    r = s.next.load(relaxed);
  }
  return {};
}

void sample_table::copy_from(segment_header& other, std::uint64_t until_ns, reference last) noexcept {
  const std::uint64_t used = other.samples_used.load(std::memory_order_acquire);
  const auto* const from = at_offset<sample>(&other, other.samples_at);
  for (std::uint64_t i = 0; i < used / sizeof(sample); ++i) {
    const std::uint64_t of = from[i].address_and_interval.load(std::memory_order_acquire);
    const reference at_stack = from[i].at_stack.load(std::memory_order_acquire);
    if (of == 0 || at_stack == 0 || at_stack > last || from[i].at_ns > until_ns) continue;
    const auto interval = sampling_interval::of_code(static_cast<std::uint16_t>(of >> sample::address_bits));
    const auto* const p = reinterpret_cast<const void*>(sample::address_of(of));
    (void)add(p, {at_stack, interval, from[i].bytes, from[i].at_ns});
  }
}

}  // namespace heapwright::probe
