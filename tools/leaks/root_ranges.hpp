// Which memory of a process holds references of the program's own: the roots of a leak scan.
//
// Roots are data of programs and libraries, stacks from the stack pointer on, thread-local storage,
// and memory that the program has mapped itself. The malloc's memory is not: of that only live
// blocks are looked at, once they are reached.
//
// The kernel joins neighbouring mappings, so a malloc's memory and the program's own can be one
// mapping:
// - glibc says before each block which memory it belongs to: the program break, a heap of 64 MiB,
//   or a mapping of its own. Only these are left out.
// - Of a malloc in a library of its own the probe knows what it has mapped (segment.hpp).
// - Of another malloc's mapping the parts between blocks that are no longer than `longest_gap` are
//   left out, except what is known to be a stack or thread-local storage.
//
// Of the child of a fork some blocks that it has inherited may not be known: those that its parent
// freed before the child first called malloc. So all of its heap but its own blocks counts as
// roots. So does that of a process some of whose blocks have no record, for want of memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "process_memory.hpp"
#include "reachability.hpp"
#include "thread_state.hpp"

namespace heapwright::tool {

/// What glibc has in front of a block: the two words before its address.
struct glibc_header {
  std::uint64_t previous_bytes = 0, bytes_and_flags = 0;
};

/// The memory that glibc has for a block besides the program break; empty: it is in the program
/// break, or not glibc's. `has_mapping` is set where the mapping is the block's own.
struct glibc_place {
  address_range at;
  bool has_own_mapping = false;
  bool is_glibcs = false;
};
[[nodiscard]] glibc_place place_of(const heap_block& block, const glibc_header& header);

struct scanned_process {
  std::vector<memory_mapping> mappings;   ///< by address
  std::span<const heap_block> blocks;     ///< by address
  std::vector<address_range> heap;        ///< the malloc's memory outside of the program break, as far as it is known
  bool knows_heap = false;                ///< that is all of it
  bool is_heap_root = false;              ///< all of the heap but `blocks`
  bool is_glibc = false;                  ///< whether it is the malloc below
  std::vector<std::string> observers;     ///< files whose data is not looked at: the malloc and the probe
  std::string segment;                    ///< what the probe writes: not looked at
  std::vector<thread_state> threads;      ///< that are left
  std::vector<std::uint64_t> old_stacks;  ///< where the stack of each thread that has ended began
  std::vector<std::uint64_t> loader;      ///< where the loader describes what is loaded
};

inline constexpr std::uint64_t longest_gap = 128UL * 1024;

[[nodiscard]] root_set roots_of(const scanned_process& process);

}  // namespace heapwright::tool
