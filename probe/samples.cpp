#include "samples.hpp"

#include <utility>

#include "newer_libc.hpp"
#include "poisson.hpp"

namespace heapwright::probe {

using namespace segment;

namespace {

std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

/// False: it is something else meanwhile.
bool replace(counter& address_and_interval, std::uint64_t is, std::uint64_t by) noexcept {
  if (!is_single_threaded())
    return address_and_interval.compare_exchange_strong(is, by, std::memory_order_acq_rel, relaxed);
  if (address_and_interval.load(relaxed) != is) return false;
  address_and_interval.store(by, relaxed);
  return true;
}

std::uint64_t code_of(const void* p, sampling_interval interval) noexcept {
  return address_of(p) | std::uint64_t{interval.code()} << sample::address_bits;
}

sampling_interval interval_of(std::uint64_t address_and_interval) noexcept {
  return sampling_interval::of_code(static_cast<std::uint16_t>(address_and_interval >> sample::address_bits));
}

taken_sample read(const sample& s, std::uint64_t address_and_interval) noexcept {
  return {s.at_stack.load(relaxed), interval_of(address_and_interval), s.bytes.load(relaxed), s.at_ns.load(relaxed)};
}

bool is_live(std::uint64_t address_and_interval) noexcept {
  return address_and_interval != 0 && address_and_interval != sample::being_written;
}

}  // namespace

void sample_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.samples_at), h.bytes - h.samples_at, &h.samples_used);
  buckets_ = at_offset<link>(&h, h.sample_index_at);
  mask_ = h.sample_buckets - 1;
  given_back_.store(0, relaxed);
  filter_.clear();
}

void sample_table::give_back(spare_record spare) noexcept {
  if (spare == 0) return;
  holding guard(part_.fork_lock());
  at(spare).next.store(given_back_.load(relaxed), relaxed);
  given_back_.store(spare, relaxed);
}

/// Of no chain; null: there is no room.
sample* sample_table::new_record(spare_record& spare) noexcept {
  if (spare != 0) return &at(std::exchange(spare, 0));
  if (given_back_.load(relaxed) != 0) {
    holding guard(part_.fork_lock());
    if (const spare_record first = given_back_.load(relaxed); first != 0) {
      given_back_.store(at(first).next.load(relaxed), relaxed);
      return &at(first);
    }
  }
  auto* const pair = static_cast<sample*>(part_.take(2 * sizeof(sample)));
  if (pair != nullptr) spare = part_.refer(pair + 1);
  return pair;
}

/// A record of this chain that is being written; null: there is no room.
sample* sample_table::claim(link& bucket, spare_record& spare) noexcept {
  reference first = bucket.load(std::memory_order_acquire);
  for (reference r = first; r != 0;) {
    sample& s = at(r);
    if (s.address_and_interval.load(relaxed) == 0 && replace(s.address_and_interval, 0, sample::being_written))
      return &s;
    r = s.next.load(relaxed);
  }
  sample* const s = new_record(spare);
  if (s == nullptr) return nullptr;
  s->address_and_interval.store(sample::being_written, relaxed);
  do s->next.store(first, relaxed);
  while (!bucket.compare_exchange_weak(first, part_.refer(s), std::memory_order_release, relaxed));
  return s;
}

bool sample_table::add(const void* p, const taken_sample& of, spare_record& spare) noexcept {
  if (address_of(p) >> sample::address_bits != 0) return false;
  sample* const s = claim(bucket_of(address_of(p)), spare);
  if (s == nullptr) return false;
  s->bytes.store(of.bytes, relaxed);
  s->at_ns.store(of.at_ns, relaxed);
  s->at_stack.store(of.at_stack, relaxed);
  filter_.add(p);
  s->address_and_interval.store(code_of(p, of.interval), std::memory_order_release);
  return true;
}

taken_sample sample_table::take(const void* p) noexcept {
  for (reference r = bucket_of(address_of(p)).load(std::memory_order_acquire); r != 0;) {
    sample& s = at(r);
    const std::uint64_t of = s.address_and_interval.load(std::memory_order_acquire);
    if (sample::address_of(of) == address_of(p)) {
      const taken_sample taken = read(s, of);
      if (!replace(s.address_and_interval, of, 0)) continue;  // it has been thinned
      filter_.remove(p);
      return taken;
    }
    r = s.next.load(relaxed);
  }
  return {};
}

/// Other threads may take samples out meanwhile, and add others.
template <class Visit>
void sample_table::for_each_live(Visit visit) noexcept {
  const std::uint64_t n = records();
  for (std::uint64_t i = 0; i < n; ++i) {
    sample& s = at(static_cast<reference>(1 + i * (sizeof(sample) / reference_unit)));
    const std::uint64_t of = s.address_and_interval.load(std::memory_order_acquire);
    if (is_live(of)) visit(s, of, read(s, of));
  }
}

void sample_table::thin(std::uint64_t most, std::uint64_t& random,
                        void (*note)(const void* p, const taken_sample& was,
                                     const sampling_interval* is) noexcept) noexcept {
  counts_.begin(next_random(random));
  for_each_live([this](const sample&, std::uint64_t, const taken_sample& is) {
    counts_.add(is.at_stack, is.bytes, is.interval);
  });
  if (counts_.samples() <= most) return;
  for_each_live([&](sample& s, std::uint64_t of, const taken_sample& is) {
    if (is.bytes == 0 || !counts_.is_thinned(is.at_stack, is.bytes, is.interval)) return;
    const thinned_sample coarser = thinned(is.bytes, is.interval);
    const auto* const p = reinterpret_cast<const void*>(sample::address_of(of));
    const bool is_kept = static_cast<double>(next_random(random) >> 11) < coarser.kept * 0x1p53;
    // False: the block has been freed. Should it be another one at the same address, of the same
    // interval, by now, what it stands for is that of the one before: this once.
    if (!replace(s.address_and_interval, of, is_kept ? code_of(p, coarser.interval) : 0)) return;
    if (!is_kept) filter_.remove(p);
    note(p, is, is_kept ? &coarser.interval : nullptr);
  });
}

void sample_table::for_each_in(segment_header& other, std::uint64_t until_ns,
                               void (*visit)(segment_header& other, const void* p,
                                             const taken_sample& s) noexcept) noexcept {
  const std::uint64_t used = other.samples_used.load(std::memory_order_acquire);
  const auto* const from = at_offset<sample>(&other, other.samples_at);
  for (std::uint64_t i = 0; i < used / sizeof(sample); ++i) {
    const std::uint64_t of = from[i].address_and_interval.load(std::memory_order_acquire);
    const taken_sample s = read(from[i], of);
    if (is_live(of) && s.at_ns <= until_ns) visit(other, reinterpret_cast<const void*>(sample::address_of(of)), s);
  }
}

}  // namespace heapwright::probe
