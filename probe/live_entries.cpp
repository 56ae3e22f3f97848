// What programs themselves tell the probe (include/heapwright/live.h, whose functions find these by
// name): marks, memory that no malloc gave out, meters.
//
// Meters lie in the segment's header: unused -> being_made -> open -> closed -> being_made -> ...;
// a place is taken by exchanging its state, so no lock has to be seen to when the process forks.
// While there is no segment the header is the process's own, and is copied into the segment when it
// is made.
#include <algorithm>
#include <cstring>

#include <heapwright/live.h>

#include "../abi/export.hpp"
#include "clocks.hpp"
#include "observer.hpp"

using namespace heapwright;
using namespace heapwright::probe;

namespace {

template <std::size_t Size>
void set_text(std::array<char, Size>& to, const char* from) noexcept {
  const std::size_t n = from != nullptr ? std::min(std::strlen(from), Size - 1) : 0;
  std::memcpy(to.data(), from, n);
  std::memset(to.data() + n, 0, Size - n);
}

int mark(const char* name) noexcept {
  begin_thread();  // in the child of a fork: the mark is its own
  if (name == nullptr || !has_segment()) return 0;
  segment::segment_header& h = *the_segment;
  const std::uint64_t index = h.mark_count.fetch_add(1, relaxed);
  if (index >= h.marks.size()) return 0;
  set_text(h.marks[index].name, name);
  h.marks[index].at_ns.store(monotonic_ns(), std::memory_order_release);
  return 1;
}

int reset() noexcept { return begin_peak_again() ? 1 : 0; }

/// What samples have room for. Pointers have tags beyond, if anything.
void* without_tag(const void* p) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) << (64 - segment::sample::address_bits) >>
                                 (64 - segment::sample::address_bits));
}

int record_allocation(const void* p, std::size_t bytes) noexcept {
  const counted now = counted_now();
  if (p == nullptr || now == counted::nothing) return 0;
  if (now == counted::each_call) {
    (void)allocated(without_tag(p), bytes, bytes, segment::size_scale::index(bytes));
  } else {
    (void)estimated(without_tag(p), bytes, bytes);
  }
  return 1;
}

void record_free(const void* p, std::size_t bytes) noexcept {
  if (p == nullptr) return;
  const counted now = counted_now();
  if (now == counted::each_call) return freeing(without_tag(p), bytes);
  if (now == counted::samples && the_sampler.may_have(without_tag(p))) freeing_sample(without_tag(p), bytes);
}

bool take(segment::named_meter& m, segment::meter_state from) noexcept {
  auto expected = static_cast<std::uint32_t>(from);
  return m.state.compare_exchange_strong(expected, static_cast<std::uint32_t>(segment::meter_state::being_made));
}

int open_meter(const char* name) noexcept {
  auto& meters = the_segment->meters;
  for (const auto from : {segment::meter_state::unused, segment::meter_state::closed}) {
    for (std::size_t i = 0; i < meters.size(); ++i) {
      segment::named_meter& m = meters[i];
      if (!take(m, from)) continue;
      set_text(m.name, name);
      for (segment::counter& figure : m.figures) figure.store(0, relaxed);
      m.state.store(static_cast<std::uint32_t>(segment::meter_state::open), std::memory_order_release);
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool is_meter(int number) noexcept { return static_cast<std::size_t>(number) < the_segment->meters.size(); }

void set_meter(int number, const heapwright_live_meter* to) noexcept {
  if (!is_meter(number)) return;
  auto& figures = the_segment->meters[static_cast<std::size_t>(number)].figures;
  const std::uint64_t values[] = {to->allocations, to->deallocations, to->failures,
                                  to->total_bytes, to->in_use,        to->peak};
  static_assert(std::size(values) == std::tuple_size_v<std::remove_reference_t<decltype(figures)>>);
  for (std::size_t i = 0; i < std::size(values); ++i) figures[i].store(values[i], relaxed);
}

void close_meter(int number) noexcept {
  if (is_meter(number))
    the_segment->meters[static_cast<std::size_t>(number)].state.store(
        static_cast<std::uint32_t>(segment::meter_state::closed), std::memory_order_release);
}

}  // namespace

extern "C" {
HEAPWRIGHT_EXPORT extern const heapwright_live_probe heapwright_live_probe_functions;
const heapwright_live_probe heapwright_live_probe_functions{mark,       reset,     record_allocation, record_free,
                                                            open_meter, set_meter, close_meter};
}
