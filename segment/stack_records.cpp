#include "stack_records.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace heapwright::segment {
namespace {

static_assert(stack_length(deepest_stack) <= record_window::longest);

stack_figures figures_of(reference id, const stack& s, const std::uint64_t* addresses, std::uint64_t peak_number) {
  const auto blocks = [](const counter& c) { return static_cast<double>(c.load(relaxed)) / 1024; };
  // A damaged segment has any bits.
  const auto real = [](const counter& c) {
    const auto v = std::bit_cast<double>(c.load(relaxed));
    return std::abs(v) < std::numeric_limits<double>::infinity() ? v : 0;
  };
  const auto variance = [&](const counter& c) { return std::max(real(c), 0.0); };
  const stack_counters& c = s.counters;
  stack_figures f;
  f.id = id;
  f.addresses.assign(addresses, addresses + s.depth);
  f.is_cut = s.is_cut != 0;
  f.name_of_threads = s.name_of_threads;
  f.samples = c.samples.load(relaxed);
  f.allocations = blocks(c.allocations);
  f.allocated_bytes = c.allocated_bytes.load(relaxed);
  f.frees = blocks(c.frees);
  f.freed_bytes = c.freed_bytes.load(relaxed);
  f.short_lived = blocks(c.short_lived);
  f.short_lived_bytes = c.short_lived_bytes.load(relaxed);
  f.freed_samples = c.freed_samples.load(relaxed);
  const bool has_changed_since = c.peak_number.load(relaxed) == peak_number;
  const std::uint64_t thinned_bytes = c.thinned_bytes.load(relaxed);
  f.at_peak = static_cast<std::int64_t>(has_changed_since ? c.at_peak.load(relaxed)
                                                          : f.allocated_bytes - f.freed_bytes + thinned_bytes);
  f.allocated_variance = variance(c.allocated_variance);
  f.freed_variance = variance(c.freed_variance);
  f.thinned_samples = c.thinned_samples.load(relaxed);
  f.thinned_bytes = static_cast<std::int64_t>(thinned_bytes);
  f.thinned_blocks = static_cast<double>(static_cast<std::int64_t>(c.thinned_blocks.load(relaxed))) / 1024;
  f.thinned_variance = real(c.thinned_variance);
  f.first_ns = c.first_ns.load(relaxed);
  f.last_ns = c.last_ns.load(relaxed);
  for (unsigned i = 0; i < lifetime_buckets; ++i) f.lifetimes[i] = c.lifetimes[i].load(relaxed);
  return f;
}

/// A live sample that is thinned stands for more from then on, but in what is live alone. What
/// lives was allocated: that is the better estimate where it is more.
void raise_allocated(stack_figures& f) {
  const std::uint64_t most = std::max<std::uint64_t>(f.live_bytes(), std::max<std::int64_t>(f.at_peak, 0));
  if (f.allocated_bytes < most) {
    f.freed_bytes += most - f.allocated_bytes;
    f.allocated_bytes = most;
  }
  if (const double more = f.live_blocks() - f.allocations; more > 0) {
    f.allocations += more;
    f.frees += more;
  }
  if (const double more = f.live_variance() - f.allocated_variance; more > 0) {
    f.allocated_variance += more;
    f.freed_variance += more;
  }
}

std::uint64_t live_samples_of(const stack_figures& f) {
  const std::uint64_t gone = f.thinned_samples + f.freed_samples;
  return f.samples > gone ? f.samples - gone : 0;
}

}  // namespace

stack_records::stack_records(const segment_file& file, const segment_header& header, which wanted)
    : file_(file),
      header_(header),
      wanted_(wanted),
      used_(std::min(header.stacks_used.load(relaxed), reference_reach)),
      window_(file) {}

stack_records::known_stacks stack_records::all() {
  std::uint64_t at = 0;
  while (at < used_) {
    const record r = visit(static_cast<reference>(at / reference_unit + 1));
    if (r.length == 0) break;
    at += r.length;
  }
  if (at < used_)
    file_.for_each_record(header_.stack_index_at, std::uint64_t{header_.stack_buckets} * sizeof(reference),
                          sizeof(reference), [this](std::uint64_t, const std::byte* bytes) {
                            follow_chain(reinterpret_cast<const std::atomic<reference>*>(bytes)->load(relaxed));
                          });
  known_stacks result = merged(std::move(found_));
  for (stack_figures& s : result.stacks) s.interval = unseen_interval(header_);
  return result;
}

/// Those with the same addresses and name of threads become one, with the id of the first of them,
/// which stays the first.
stack_records::known_stacks stack_records::merged(std::vector<stack_figures> records) {
  std::ranges::sort(records, [](const stack_figures& a, const stack_figures& b) {
    return std::tie(a.is_cut, a.addresses, a.name_of_threads, a.id) <
           std::tie(b.is_cut, b.addresses, b.name_of_threads, b.id);
  });
  known_stacks result;
  for (stack_figures& r : records) {
    auto& stacks = result.stacks;
    const reference id = r.id;
    const bool has_calls_of_last =
        !stacks.empty() && stacks.back().is_cut == r.is_cut && stacks.back().addresses == r.addresses;
    if (has_calls_of_last && stacks.back().name_of_threads == r.name_of_threads) {
      stacks.back() += r;
    } else {
      r.first_with_calls = has_calls_of_last ? stacks.back().first_with_calls : id;
      stacks.push_back(std::move(r));
    }
    result.id_of_record.emplace(id, stacks.back().id);
  }
  for (stack_figures& s : result.stacks) {
    s.live_samples = live_samples_of(s);
    raise_allocated(s);
  }
  std::ranges::sort(result.stacks, {}, &stack_figures::id);
  return result;
}

stack_records::record stack_records::visit(reference id) {
  if (const auto known = visited_.find(id); known != visited_.end()) return known->second;
  const std::uint64_t offset = (id - std::uint64_t{1}) * reference_unit;
  record& result = visited_[id];
  if (offset >= used_ || used_ - offset < sizeof(stack)) return result;
  if (header_.stacks_at > std::numeric_limits<std::uint64_t>::max() - reference_reach) return result;

  const std::byte* bytes = window_.at(header_.stacks_at + offset, sizeof(stack));
  if (bytes == nullptr) return result;
  const auto* s = reinterpret_cast<const stack*>(bytes);
  const std::uint64_t length = stack_length(std::min(s->depth, deepest_stack));
  // Nothing but zeros is a stack that is not yet written: how long it will be is not known.
  if (s->depth > deepest_stack || length > used_ - offset || (s->hash == 0 && s->depth == 0)) return result;
  bytes = window_.at(header_.stacks_at + offset, length);
  if (bytes == nullptr) return result;
  s = reinterpret_cast<const stack*>(bytes);
  // This may be a second copy, which another writer than the probe could have changed.
  if (s->depth > deepest_stack || stack_length(s->depth) != length) return result;
  result = {length, s->next.load(relaxed)};
  if (s->hash != 0 && (wanted_ == which::all || s->owner != inherited_owner))
    found_.push_back(figures_of(id, *s, reinterpret_cast<const std::uint64_t*>(bytes + sizeof(stack)),
                                header_.peak_number.load(relaxed)));
  return result;
}

void stack_records::follow_chain(reference first) {
  // Chains do not share stacks: what has been followed before is a circle, or the doing of a
  // stranger.
  for (reference id = first; id != 0 && followed_.insert(id).second;) id = visit(id).next;
}

}  // namespace heapwright::segment
