// What a replay does: the events of one process of a trace, as operations on numbered slots.
//
// `plan_builder` writes it once, and each run of `heapwright-replayer` maps it. A slot holds the
// address of one block at a time. Two ways to carry it out:
//
//   in turns   one thread at a time, in the order of the recorded times: each run is the same, and
//              memory can be looked at between two operations
//   at once    all threads as fast as they can. One waits where a slot is empty whose block another
//              thread has yet to allocate, and at the end of each round
//
// What an advice would change (tools/advise) is a plan too: its operations have a part, and the
// replayer takes those blocks from that part of the kit. Its numbers are from 1; 0 is malloc.
//
// Invariant: a slot is used again in the same round only by the thread that has emptied it, for a
// block that it frees itself in this round, or anybody in a later one. So nobody takes one block
// for another.
#pragma once

#include <array>
#include <cstdint>

namespace heapwright::replay {

enum class operation_kind : std::uint8_t {
  allocate,
  deallocate,
  take,        ///< the first half of a reallocation: the block before, out of its slot
  reallocate,  ///< the second half: the block now, into its slot
  // In plans of an advice: a block that has room for all that it will become.
  nothing,  ///< in place of a call that is not needed. `size`: what the block has by now
  grow,     ///< from there to this size, in place
};

struct operation {
  std::uint64_t size : 48;  ///< bytes
  std::uint64_t site : 16;  ///< which place of the program has asked for the block; 0: it was not looked for
  std::uint32_t slot;
  std::uint16_t touched;  ///< how much of the size the program has touched, of whole_size
  operation_kind kind : 4;
  std::uint8_t part : 4;
  std::uint8_t alignment : 6;  ///< the binary logarithm; 0: what every block has
  std::uint8_t zeroed : 1;
  std::uint8_t by_new : 1;  ///< operator new has asked for it, so operator delete frees it

  static constexpr std::uint16_t whole_size = 0xFFFF;
  static constexpr std::uint64_t largest_size = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint16_t last_site = 0xFFFF;
  static constexpr std::uint8_t last_part = 15;
};
static_assert(sizeof(operation) == 16);

enum class part_kind : std::uint32_t {
  arena,         ///< freed as a whole when no block of it lives
  stack_arena,   ///< `bytes` of its own, frees in reverse order; as a whole when no block of it lives
  pool,          ///< blocks of `bytes`
  shared_pool,   ///< that, of all threads
  small_buffer,  ///< blocks up to `bytes` within what owns them: no allocator at all
};

/// A part of the kit: for each thread one, unless it is shared. What does not fit is malloc's.
struct kit_part {
  part_kind kind;
  std::uint32_t unused;
  std::uint64_t bytes;
};

/// Operations of one thread, when replayed in turns.
struct turn {
  std::uint64_t first_operation;
  std::uint64_t at_ns;  ///< when the first of them was, since the recording began
  std::uint64_t live;   ///< bytes that were asked for and are not freed, behind the last of them
  std::uint32_t thread;
  std::uint32_t operations;
  std::uint64_t is_measured;  ///< 1: memory is looked at behind it
};
static_assert(sizeof(turn) == 40);

/// Operations of one thread in one round.
struct stint {
  std::uint64_t first_operation;
  std::uint32_t operations;
  std::uint32_t round;
  std::uint32_t next_plus_one;  ///< the thread's next stint; 0: none
  std::uint32_t unused;
};

/// In the order in which they begin.
struct thread {
  std::uint32_t first_stint;
  std::uint32_t turns;  ///< that it has
  std::uint32_t ends;   ///< 1: behind its last operation; 0: it is there to the end
};

struct round {
  std::uint32_t threads;  ///< that have a stint in it
  std::uint32_t begun;    ///< threads that have begun by then, those of this round too
};

/// The file ends with it. Places are bytes from the beginning.
struct plan_footer {
  static constexpr std::array<char, 16> right_magic{'h', 'e', 'a', 'p', 'w', 'r', 'i', 'g',
                                                    'h', 't', ' ', 'p', 'l', 'a', 'n', '2'};

  std::array<char, 16> magic;
  std::uint64_t slots;
  std::uint64_t operations;  ///< the file begins with them
  std::uint64_t turns_at, turns;
  std::uint64_t stints_at, stints;
  std::uint64_t threads_at, threads;
  std::uint64_t rounds_at, rounds;
  std::uint64_t parts_at, parts;
  std::uint64_t measured;  ///< turns
};

}  // namespace heapwright::replay
