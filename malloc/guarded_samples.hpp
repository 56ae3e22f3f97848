// Sampled guarding: one allocation in a while has pages of its own between two that cannot be
// touched, and when it is freed, nothing of it can be touched. So a mistake with it is a fault, and
// a handler of the fault says what it was and where the block was allocated and freed. After
// GWP-ASan (Serebryany et al., "GWP-ASan: Sampling-Based Detection of Memory-Safety Bugs in
// Production", ICSE-SEIP 2024).
//
//   slow step of malloc ── is_due ── allocate ── a place: unused, or freed first
//   slow step of free   ── not of the heap ── owns ── deallocate
//   fault               ── explain ── the handler that the program had
//
// States of a place   unused  no pages
//                     live    pages that the program may touch, between guard pages
//                     freed   pages that nobody may touch
//
// Memory     a sample takes the pages of its block; 64 places, so 256 KiB for short blocks.
// Locking    lock_ guards the places. Nothing of the heap is called while it is held. A thread that
//            finds it held allocates as always.
//
// Invariant  the block of a live sample is surrounded by `filler` to the ends of its pages.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <heapwright/heap/block_claim.hpp>
#include <heapwright/heap/misuse.hpp>
#include <heapwright/malloc/process_record.hpp>
#include <heapwright/platform/linux/linux_os.hpp>
#include <heapwright/sync/lock.hpp>

#include "calls.hpp"

namespace heapwright::process {

/// All zero guards nothing.
class guarded_samples {
 public:
  /// From now on one in so many allocations, on average, is guarded, and faults are explained.
  /// Once, before there are threads.
  void begin(std::uint32_t interval) noexcept;

  [[nodiscard]] bool is_on() const noexcept { return interval_ != 0; }

  /// A slow step of malloc stands for `count` allocations. Whether its block is to be guarded.
  [[nodiscard]] bool is_due(std::uint32_t count) noexcept {
    return left_.fetch_sub(count, std::memory_order_relaxed) <= static_cast<std::int64_t>(count) && draw();
  }

  /// A block of `size` bytes, aligned to `alignment`, a power of two up to a page, or 0. Null: all
  /// places are live, or another thread is here, or there is no memory.
  [[nodiscard, gnu::noinline]] void* allocate(std::size_t size, std::size_t alignment,
                                              block_origin origin = block_origin::malloc) noexcept;

  /// False: p lies in no sample. A mistake where it lies in one and is no live block, or the block
  /// was written beyond, or is not what is said. That is looked at of the blocks of which the
  /// heap's own free looks at it.
  [[nodiscard]] bool deallocate(void* p, const block_claim& said) noexcept;

  /// Freed samples are known no more, and their pages go back to the system: the program has no
  /// memory. False: there are none, or another thread is here.
  bool give_up_freed() noexcept;

  /// Of a live block. False: p is none.
  bool set_origin(const void* p, block_origin origin) noexcept;

  /// Of a live block; nothing where p lies in no sample. A mistake as in deallocate; 0 where the
  /// process goes on.
  [[nodiscard]] std::optional<std::size_t> size(void* p, const call_names& by) noexcept;

  /// Of a live block; 0 for what is none, which is no mistake.
  [[nodiscard]] std::size_t size_if_live(const void* p) noexcept;

  /// Bytes: of live blocks, and of the pages of all places.
  struct total {
    std::uint64_t live = 0, mapped = 0;
  };
  [[nodiscard]] total sum() noexcept;

  [[nodiscard]] lock<linux_os>& fork_lock() noexcept { return lock_; }

  /// What is known of an address that was touched. False: nothing. In a handler of a fault.
  bool explain(const void* p, const char* access, const unwind::machine_state& where) noexcept;

  /// For the process_record.
  [[nodiscard]] constexpr guarded_sample_places describe() const noexcept;

 private:
  enum class state : std::uint8_t { unused, live, freed };

  struct place {
    state is;
    std::byte* begin;  ///< of the first guard page
    std::size_t bytes;
    std::byte* block;
    std::size_t size;
    block_origin origin;
    std::size_t asked_alignment;  ///< 0: none was asked for
    std::uint64_t freed_as;       ///< in which order
    bool is_told;                 ///< of a fault at its pages: once
    calls allocated, freed;

    [[nodiscard]] bool contains(const void* p) const noexcept;
  };

  static constexpr std::size_t places = 64;
  static constexpr std::byte filler{0xA7};

  bool draw() noexcept;
  place* free_place() noexcept;
  place* find(const void* p) noexcept;
  place* find_live(const void* p) noexcept;
  static bool is_live(const place& s, const void* p, const call_names& by = free_names) noexcept;
  static void check_claim(const place& s, const block_claim& said) noexcept;
  /// The first byte beside the block, in its pages, that is no filler; null: there is none.
  static const std::byte* written_beside(const place& s) noexcept;
  /// `claim`: what the caller says of the block and what is known, or null.
  static void mistake(const place& s, const char* what, const void* p, unwind::machine_state from,
                      const char* claim = nullptr) noexcept;
  static void say(const place& s, const char* mistake, const void* p, const calls& here,
                  const char* claim = nullptr) noexcept;

  std::uint32_t interval_ = 0;  ///< allocations; 0: nothing is guarded
  std::atomic<std::int64_t> left_{0};
  lock<linux_os> lock_;
  std::uint64_t frees_ = 0;
  std::array<place, places> places_{};
};

constexpr guarded_sample_places guarded_samples::describe() const noexcept {
  static_assert(sizeof(place::is) == 1 && sizeof(place::bytes) == 8 && sizeof(place::size) == 8);
  static_assert(static_cast<int>(state::live) == 1 && static_cast<int>(state::freed) == 2);
  return {.first = &places_,
          .count = places,
          .stride = sizeof(place),
          .state = offsetof(place, is),
          .begin = offsetof(place, begin),
          .bytes = offsetof(place, bytes),
          .block = offsetof(place, block),
          .asked_for = offsetof(place, size)};
}

extern constinit guarded_samples the_samples;

}  // namespace heapwright::process
