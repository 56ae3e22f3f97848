// A small number for each running thread, the smallest that no other has: an index into per-thread
// tables. A thread that ends hands its number on, and with it what lies under it in the tables; the
// bitmap's release and acquire order the two.
//
// States of a number: free, or held by one thread from its first question until its thread-local
// destructors run.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include <heapwright/core/language.hpp>
#include <heapwright/sync/thread_record.hpp>

namespace heapwright {

class thread_index {
 public:
  static constexpr unsigned most = 1024;
  static constexpr unsigned none = most;  ///< more threads run than there are numbers, or this one is ending

  /// The calling thread's number, below `most`; or `none`.
  [[nodiscard]] static unsigned of_this_thread() noexcept {
    const unsigned mine = record::mine().number;
    return mine != unseen ? mine : take();
  }

 private:
  static constexpr unsigned unseen = most + 1;
  static constexpr unsigned words = most / 64;

  struct held_number {
    unsigned number = unseen;

    void at_end() noexcept {
      const unsigned mine = number;
      number = none;
      if (mine < most) taken_[mine / 64].fetch_and(~(std::uint64_t{1} << mine % 64), std::memory_order_release);
    }
    [[nodiscard]] static constexpr held_number ended() noexcept { return {none}; }
  };
  using record = thread_record<held_number>;

  [[gnu::noinline]] static unsigned take() noexcept {
    unsigned& mine = record::mine().number;
    mine = none;
    for (unsigned w = 0; w < words; ++w) {
      std::uint64_t seen = taken_[w].load(std::memory_order_relaxed);
      while (~seen != 0) {
        const auto bit = static_cast<unsigned>(std::countr_one(seen));
        if (taken_[w].compare_exchange_weak(seen, seen | std::uint64_t{1} << bit, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
          mine = w * 64 + bit;
          record::arm();
          return mine;
        }
      }
    }
    return none;
  }

  static inline constinit std::array<std::atomic<std::uint64_t>, words> taken_{};
};

}  // namespace heapwright
