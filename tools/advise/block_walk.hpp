// A walk over a plan in turns that knows each block: when it begins and ends, who frees it, which
// one is the newest of its call site, and which one takes over from it.
//
// A block takes over from another one that grows. A realloc says so itself. A container allocates
// the larger block first, and frees the former one soon afterwards: then the newest block of the
// same site and thread is larger, and hardly older.
#pragma once

#include <cstdint>
#include <vector>

#include <tsl/robin_map.h>

#include "mapped_plan.hpp"

namespace heapwright::tool {

struct walked_block {
  std::uint64_t size = 0;       ///< bytes
  std::uint64_t begun_at = 0;   ///< the number of its operation
  std::uint64_t before_it = 0;  ///< allocations of its thread
  std::uint32_t thread = 0;
  std::uint32_t older_plus_one = 0, newer_plus_one = 0;  ///< slots of the same site and thread; 0: none
  std::uint16_t site = 0;
  bool has_taken_over = false;     ///< from a former block
  std::uint32_t row_plus_one = 0;  ///< for those who watch: which row of blocks it belongs to
};

/// What lives of a site, for one thread.
struct living_blocks {
  std::uint32_t newest_plus_one = 0;  ///< slot
  std::uint64_t blocks = 0, bytes = 0;
  std::uint64_t gathered = 0;  ///< bytes of all since none lived; behind the end of the last one, too
  std::uint64_t ever = 0;      ///< blocks
};

/// How a block ends.
enum class block_end { freed, taken_over, resized };

class block_walk {
 public:
  /// A container frees the former block at most so many allocations of its thread later.
  static constexpr std::uint64_t soon_taken_over = 8;

  explicit block_walk(const mapped_plan& plan)
      : plan_(plan), blocks_(plan.footer().slots), threads_(plan.footer().threads) {}

  /// Tells `watcher`, in turns:
  ///   begins(block, living)            it lives now; `living` of its site and thread
  ///   ends(block, living, how, thread, operation)   who frees it; it does not live any more
  ///   takes_over(former, next, first, second)       the operations that did it, the earlier first
  /// A realloc is an end (resized), a beginning, and, if the block has grown, a takeover.
  template <class Watcher>
  void run(Watcher& watcher) {
    for (const replay::turn& t : plan_.turns()) {
      std::uint64_t number = t.first_operation;
      for (const replay::operation& o : plan_.operations_of(t)) carry_out(watcher, o, t.thread, number++);
    }
  }

  [[nodiscard]] std::uint64_t allocations_of(std::uint32_t thread) const noexcept {
    return threads_[thread].allocations;
  }

 private:
  struct walking_thread {
    std::uint64_t allocations = 0;
    walked_block taken;  ///< by a realloc
    std::uint64_t taken_at = 0;
  };

  living_blocks& living(const walked_block& b) { return living_[std::uint64_t{b.thread} << 16 | b.site]; }

  template <class Watcher>
  void carry_out(Watcher& watcher, const replay::operation& o, std::uint32_t thread, std::uint64_t number) {
    using enum replay::operation_kind;
    walking_thread& by = threads_[thread];
    switch (o.kind) {
      case allocate: begin(watcher, o, thread, number); break;
      case deallocate: end(watcher, o, thread, number); break;
      case take:
        by.taken = blocks_[o.slot];
        by.taken_at = number;
        unlink(o.slot);
        watcher.ends(by.taken, living(by.taken), block_end::resized, thread, number);
        break;
      case reallocate:
        begin(watcher, o, thread, number);
        if (by.taken.size < o.size) take_over(watcher, by.taken, blocks_[o.slot], by.taken_at, number);
        break;
      case nothing:
      case grow: break;
    }
  }

  template <class Watcher>
  void begin(Watcher& watcher, const replay::operation& o, std::uint32_t thread, std::uint64_t number) {
    walked_block& b = blocks_[o.slot];
    b = {.size = o.size,
         .begun_at = number,
         .before_it = threads_[thread].allocations++,
         .thread = thread,
         .site = static_cast<std::uint16_t>(o.site)};
    living_blocks& all = living(b);
    b.older_plus_one = all.newest_plus_one;
    if (b.older_plus_one != 0) blocks_[b.older_plus_one - 1].newer_plus_one = o.slot + 1;
    all.newest_plus_one = o.slot + 1;
    all.gathered = (all.blocks == 0 ? 0 : all.gathered) + b.size;
    ++all.blocks;
    ++all.ever;
    all.bytes += b.size;
    watcher.begins(b, all);
  }

  template <class Watcher>
  void end(Watcher& watcher, const replay::operation& o, std::uint32_t thread, std::uint64_t number) {
    const walked_block ended = blocks_[o.slot];
    living_blocks& all = living(ended);
    walked_block* next = nullptr;
    if (ended.thread == thread && all.newest_plus_one != o.slot + 1) {
      next = &blocks_[all.newest_plus_one - 1];
      const bool is_taken_over = next->size > ended.size && !next->has_taken_over &&
                                 next->before_it > ended.before_it &&
                                 threads_[thread].allocations - next->before_it <= soon_taken_over;
      if (!is_taken_over) next = nullptr;
    }
    unlink(o.slot);
    watcher.ends(ended, all, next == nullptr ? block_end::freed : block_end::taken_over, thread, number);
    if (next != nullptr) take_over(watcher, ended, *next, next->begun_at, number);
  }

  template <class Watcher>
  void take_over(Watcher& watcher, const walked_block& former, walked_block& next, std::uint64_t first,
                 std::uint64_t second) {
    next.has_taken_over = true;
    watcher.takes_over(former, next, first, second);
  }

  void unlink(std::uint32_t slot) {
    const walked_block& b = blocks_[slot];
    living_blocks& all = living(b);
    if (b.older_plus_one != 0) blocks_[b.older_plus_one - 1].newer_plus_one = b.newer_plus_one;
    if (b.newer_plus_one != 0)
      blocks_[b.newer_plus_one - 1].older_plus_one = b.older_plus_one;
    else
      all.newest_plus_one = b.older_plus_one;
    --all.blocks;
    all.bytes -= b.size;
  }

  const mapped_plan& plan_;
  std::vector<walked_block> blocks_;  ///< by slot
  std::vector<walking_thread> threads_;
  tsl::robin_map<std::uint64_t, living_blocks> living_;  ///< by thread and site
};

}  // namespace heapwright::tool
