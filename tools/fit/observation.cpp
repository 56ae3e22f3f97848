#include "observation.hpp"

#include <algorithm>

#include <tsl/robin_map.h>
#include <heapwright/heap/recipe.hpp>

#include "mapped_plan.hpp"

namespace heapwright::tool {
namespace {

using replay::operation;
using replay::operation_kind;

constexpr std::uint64_t soon_ns = 1'000'000;

/// What lives goes up and down by some blocks all the time: smaller moves are none.
constexpr std::uint64_t smallest_move = 1 << 20;

constexpr std::size_t most_moments = 600;

/// Thread caches that keep up to a limit of each size class, several limits at once. They are those
/// of the default recipe, but for the limit: a refill brings a batch, and a cache that is full
/// flushes one.
class cache_model {
 public:
  explicit cache_model(std::uint64_t threads) : kept_(threads * classes.count()) {}

  void take(std::uint32_t thread, std::uint64_t size) { move(thread, size, true); }
  void put(std::uint32_t thread, std::uint64_t size) { move(thread, size, false); }

  [[nodiscard]] std::vector<cache_use> uses() const {
    std::vector<cache_use> all;
    for (std::size_t i = 0; i < limits.size(); ++i) all.push_back({limits[i], transfers_[i]});
    return all;
  }

 private:
  static constexpr const size_class_plan& classes = default_recipe.classes;
  static constexpr const auto& limits = observation::cache_limits;

  void move(std::uint32_t thread, std::uint64_t size, bool takes) {
    if (size > classes.largest) return;
    const unsigned c = classes.index(size);
    const std::uint64_t bytes = classes.size(c);
    const auto& plan = default_recipe.thread_cache;
    const std::uint64_t batch = std::clamp<std::uint64_t>(plan.batch_bytes / bytes, 1, plan.max_batch);
    auto& kept = kept_[thread * classes.count() + c - 1];
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (takes) {
        if (kept[i] > 0) {
          --kept[i];
        } else {
          ++transfers_[i];
          kept[i] = static_cast<std::uint32_t>(batch - 1);
        }
      } else if ((kept[i] + 1) * bytes > std::max(limits[i], batch * bytes)) {
        ++transfers_[i];
        kept[i] = static_cast<std::uint32_t>(kept[i] + 1 - batch);
      } else {
        ++kept[i];
      }
    }
  }

  std::vector<std::array<std::uint32_t, limits.size()>> kept_;
  std::array<std::uint64_t, limits.size()> transfers_{};
};

/// What lives, at each moment of a walk.
class walk {
 public:
  explicit walk(const mapped_plan& plan) : plan_(plan), slots_(plan.footer().slots) {}

  observation first() {
    observation all;
    all.threads = plan_.footer().threads;
    cache_model caches(all.threads);
    std::vector<bool> has_begun(all.threads);
    std::vector<std::uint32_t> turns_left;
    for (const replay::thread& t : plan_.threads()) turns_left.push_back(t.turns);
    std::uint64_t running = 0, before_ns = 0, lowest = 0, highest = 0;
    double byte_ns = 0;
    const std::uint64_t step = std::max<std::uint64_t>(plan_.turns().size() / most_moments, 1);
    for (std::size_t i = 0; i < plan_.turns().size(); ++i) {
      const replay::turn& t = plan_.turns()[i];
      if (!has_begun[t.thread]) {
        has_begun[t.thread] = true;
        all.threads_at_once = std::max(all.threads_at_once, ++running);
      }
      if (--turns_left[t.thread] == 0 && plan_.threads()[t.thread].ends != 0) --running;
      all.longest_pause_ns = std::max(all.longest_pause_ns, t.at_ns - std::min(before_ns, t.at_ns));
      byte_ns += static_cast<double>(live_) * static_cast<double>(t.at_ns - std::min(before_ns, t.at_ns));
      before_ns = std::max(before_ns, t.at_ns);
      for (const operation& o : plan_.operations_of(t)) count(all, caches, o, t);
      // Up again, from the lowest since it was last this high.
      if (live_ + smallest_move < highest) lowest = std::min(lowest, live_);
      if (live_ > lowest + smallest_move && lowest < highest) {
        all.regrown += std::min(live_, highest) - lowest;
        lowest = std::min(live_, highest);
      }
      if (live_ >= highest) lowest = highest = live_;
      if (i % step == 0 || i + 1 == plan_.turns().size()) all.history.push_back({t.at_ns, live_});
    }
    all.duration_ns = before_ns;
    all.live_at_end = live_;
    all.live_mean = before_ns == 0 ? live_ : static_cast<std::uint64_t>(byte_ns / static_cast<double>(before_ns));
    all.caches = caches.uses();
    for (const auto& [size, counted] : uses_) all.sizes.push_back(counted.use);
    std::ranges::sort(all.sizes, {}, &size_use::size);
    return all;
  }

  /// What lived at the peak, by size.
  void second(observation& all) {
    for (const replay::turn& t : plan_.turns()) {
      for (const operation& o : plan_.operations_of(t)) {
        apply(o, t);
        if (live_ != all.live_peak) continue;
        for (const slot& s : slots_)
          if (s.is_live) std::ranges::lower_bound(all.sizes, s.size, {}, &size_use::size)->live_at_peak += 1;
        return;
      }
    }
  }

 private:
  struct slot {
    std::uint64_t size = 0, since_ns = 0;
    std::uint32_t thread = 0;
    bool is_live = false;
  };

  struct counted_use {
    size_use use;
    std::uint64_t live = 0;
  };

  static bool gives(const operation& o) noexcept {
    return o.kind == operation_kind::allocate || o.kind == operation_kind::reallocate;
  }

  void apply(const operation& o, const replay::turn& t) {
    slot& s = slots_[o.slot];
    if (gives(o)) {
      s = {o.size, t.at_ns, t.thread, true};
      live_ += o.size;
    } else {
      s.is_live = false;
      live_ -= o.size;
    }
  }

  void count(observation& all, cache_model& caches, const operation& o, const replay::turn& t) {
    if (gives(o)) {
      auto& [use, live] = uses_[o.size];
      use.size = o.size;
      ++use.allocations;
      use.live_at_most = std::max(use.live_at_most, ++live);
      use.threads |= std::uint64_t{1} << t.thread % 64;
      ++(o.kind == operation_kind::allocate ? all.allocations : all.resizes);
      all.allocated_bytes += o.size;
      if (o.size > default_recipe.classes.largest) {
        ++all.large_allocations;
        all.large_bytes += o.size;
      }
      caches.take(t.thread, o.size);
    } else {
      const slot& s = slots_[o.slot];
      --uses_[o.size].live;
      if (o.kind == operation_kind::deallocate) ++all.frees;
      if (s.thread == t.thread)
        caches.put(t.thread, o.size);
      else
        ++all.freed_by_others;
      if (t.at_ns - s.since_ns < soon_ns) ++all.short_lived;
    }
    apply(o, t);
    if (live_ > all.live_peak) {
      all.live_peak = live_;
      all.live_peak_ns = t.at_ns;
    }
  }

  const mapped_plan& plan_;
  std::vector<slot> slots_;
  tsl::robin_map<std::uint64_t, counted_use> uses_;
  std::uint64_t live_ = 0;
};

}  // namespace

observation observe(int plan) {
  const mapped_plan mapped(plan);
  observation all = walk(mapped).first();
  walk(mapped).second(all);
  return all;
}

}  // namespace heapwright::tool
