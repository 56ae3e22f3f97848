// The keys of a heap's seals (block_seal.hpp), and when that of links comes (block_links.hpp). A
// process has one, and the child of a fork gets one more: blocks of the parent keep their seals, so
// older keys stay valid; what the child seals has the newest.
//
// Invariant: keys are added only where there is no other thread, or for the first block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/heap/block_links.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

/// All zero is before the first block: `begin` comes before it.
template <platform OS>
class seal_keys {
  friend struct heap_describer;

 public:
  /// Gives the process its key, if it has none. From any thread.
  void begin() noexcept {
    std::uint64_t none = 0;
    if (newest() == 0) newest_.compare_exchange_strong(none, fresh(), std::memory_order_relaxed);
    if (link_key::get() == 0) link_key::set(fresh());
  }

  [[nodiscard]] std::uint64_t newest() const noexcept { return newest_.load(std::memory_order_relaxed); }

  /// Calls f(key) for those before the newest, until one returns true.
  template <class F>
  void for_each_older(F f) const noexcept {
    for (std::size_t i = older_count_; i-- > 0;)
      if (f(older_[i])) return;
  }

  /// In the child of a fork. Beyond so many forks, one within the other, keys stay.
  void after_fork_in_child() noexcept {
    if (newest() == 0 || older_count_ == older_.size()) return;
    older_[older_count_++] = newest();
    newest_.store(fresh(), std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::uint64_t fresh() noexcept { return OS::random_number() | 1; }

  std::atomic<std::uint64_t> newest_{0};
  std::array<std::uint64_t, 7> older_{};
  std::size_t older_count_ = 0;
};

}  // namespace heapwright
