// The parts of the kit from which a plan of an advice takes blocks (plan.hpp).
//
// Each thread has a part of its own of each, but for shared ones, as an advised program would: only
// blocks that it frees itself come from there. The parts draw from malloc. An arena is emptied when
// no block of it lives, which is where a program would do it.
//
// Problem. The fastest of them take a nanosecond for a block. So nothing of this is a call, and
// what it takes to choose the part is measured with the rest of what the replay takes by itself: a
// replay without a malloc does `choose` in place of `allocate` and `deallocate`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include <heapwright/kit.hpp>

#include "plan.hpp"
#include "shared_table.hpp"

namespace heapwright::replay {

class kit_parts {
 public:
  /// What the advised code asks for (tools/advise/advice_code.cpp).
  static constexpr std::uint64_t usual_alignment = 8;

  /// A part of one thread.
  struct alignas(64) instance {
    using bump = arena<upstream_malloc, take_back::nothing>;
    using stacked = arena<upstream_malloc>;

    part_kind kind{};
    std::uint64_t bytes = 0;  ///< as in kit_part
    std::uint64_t live = 0;   ///< blocks of an arena
    std::byte* buffer = nullptr;
    concurrent_pool<>* shared = nullptr;
    // One of them, by `kind`; never destroyed.
    union {
      bump as_arena;
      stacked as_stack;
      pool<> as_pool;
    };

    instance() noexcept {}
    instance(const instance&) = delete;
    instance& operator=(const instance&) = delete;
    ~instance() {}

    /// Null: malloc had nothing more.
    [[nodiscard, gnu::always_inline]] void* allocate(const operation& o) noexcept {
      const layout wanted = layout_of(o);
      switch (kind) {
        case part_kind::arena: ++live; return as_arena.allocate(wanted);
        case part_kind::stack_arena: ++live; return as_stack.allocate(wanted);
        case part_kind::pool: return as_pool.fits(wanted) ? as_pool.allocate() : upstream_malloc{}.allocate(wanted);
        case part_kind::shared_pool:
          return wanted.size <= bytes ? shared->allocate() : upstream_malloc{}.allocate(wanted);
        case part_kind::small_buffer:
          return wanted.size <= bytes ? buffer + o.slot % small_buffers * bytes : upstream_malloc{}.allocate(wanted);
      }
      return nullptr;
    }

    /// All that `allocate` and `deallocate` do before a program would do it.
    [[gnu::always_inline]] void choose(const operation& o) const noexcept {
      const layout wanted = layout_of(o);
      switch (kind) {
        case part_kind::arena:
        case part_kind::stack_arena: asm volatile("" : : "r"(wanted.size), "r"(wanted.alignment)); break;
        case part_kind::pool:
          if (as_pool.fits(wanted)) asm volatile("" : : "r"(this));
          break;
        case part_kind::shared_pool:
        case part_kind::small_buffer:
          if (wanted.size <= bytes) asm volatile("" : : "r"(buffer));
          break;
      }
    }

    /// `o` has the size and alignment that the block was asked for with.
    [[gnu::always_inline]] void deallocate(const operation& o, void* p) noexcept {
      const layout wanted = layout_of(o);
      switch (kind) {
        case part_kind::arena:
          if (--live == 0) as_arena.reset();
          return;
        case part_kind::stack_arena:
          as_stack.deallocate(p, wanted);
          if (--live == 0) as_stack.reset();
          return;
        case part_kind::pool:
          if (as_pool.fits(wanted)) return as_pool.deallocate(p);
          break;
        case part_kind::shared_pool:
          if (wanted.size <= bytes) return shared->deallocate(p);
          break;
        case part_kind::small_buffer:
          if (wanted.size <= bytes) return;
          break;
      }
      upstream_malloc{}.deallocate(p, wanted);
    }
  };

  /// A program has a buffer in each owner; a thread uses some at any time.
  static constexpr std::uint32_t small_buffers = 32;

  void make(const kit_part* parts, std::uint64_t count, std::uint64_t threads) noexcept {
    count_ = count;
    if (count == 0) return;
    instances_ = shared_table<instance>(count * threads);
    for (std::uint64_t i = 0; i < count * threads; ++i) make(instances_[i], parts[i % count], instances_[i % count]);
  }

  /// For operations that have a part.
  [[nodiscard]] instance& find(const operation& o, std::uint32_t thread) noexcept {
    return instances_[thread * count_ + o.part - 1];
  }

 private:
  static layout layout_of(const operation& o) noexcept {
    return {o.size, o.alignment == 0 ? usual_alignment : std::size_t{1} << o.alignment};
  }

  /// `first`: of the first thread.
  static void make(instance& its, const kit_part& part, instance& first) noexcept {
    new (&its) instance;
    its.kind = part.kind;
    its.bytes = part.bytes;
    const layout block{part.bytes, usual_alignment};
    switch (part.kind) {
      case part_kind::arena: new (&its.as_arena) instance::bump; break;
      case part_kind::stack_arena:
        new (&its.as_stack) instance::stacked(std::span(shared_table<std::byte>(part.bytes), part.bytes));
        break;
      case part_kind::pool: new (&its.as_pool) pool<>(block); break;
      case part_kind::shared_pool:
        its.shared = &its == &first ? new (shared_table<concurrent_pool<>>(1)) concurrent_pool<>(block) : first.shared;
        break;
      case part_kind::small_buffer: its.buffer = shared_table<std::byte>(part.bytes * small_buffers); break;
    }
  }

  std::uint64_t count_ = 0;
  instance* instances_ = nullptr;  ///< of thread 0 first
};

}  // namespace heapwright::replay
