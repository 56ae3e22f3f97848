// Why a process's resident memory is what it is: what its blocks take, what its malloc keeps, and
// what is not malloc's at all.
//
//   rss = requested + rounding + thread_caches + free_in_spans + free_kept + lazily_freed + records
//         + other_anonymous - not_resident + stacks + files + shared                         always
//
// The kernel says what is resident of each mapping (smaps), libheapwright where each byte of its
// heap is (heap_record.hpp), the probe what the program has asked for. Neither says which of the
// heap's pages are resident: so where the heap has more than there is anonymous memory in RAM, some
// of it has never been touched, or was swapped out (not_resident); otherwise the rest is
// other_anonymous. Of a malloc that tells nothing, what it keeps is in the rest as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "heap_reading.hpp"
#include "jvm.hpp"
#include "recipe_findings.hpp"

namespace heapwright::tool {

/// `kernel`: [vdso], [vvar], [vsyscall].
enum class mapping_kind { program_break, anonymous, stack, file, shared, kernel };

/// The mappings of one kind and name together. Bytes.
struct mapping_group {
  mapping_kind kind;
  std::string name;  ///< path; empty for anonymous memory
  std::uint64_t count = 0, size = 0, rss = 0, pss = 0, private_dirty = 0, swap = 0, lazily_freed = 0, huge = 0;
};

/// What the process's smaps say; empty if that cannot be read. `stacks`: an address in the stack of
/// each thread that is known. Costs the process some time: the kernel walks its pages, and it can
/// map nothing meanwhile.
[[nodiscard]] std::vector<mapping_group> read_mappings(pid_t pid, const std::vector<std::uint64_t>& stacks);

/// The groups of the mappings in the text of a smaps file.
[[nodiscard]] std::vector<mapping_group> mappings_in(const std::string& smaps,
                                                     const std::vector<std::uint64_t>& stacks);

/// What of the live blocks is known. Nothing where there is no probe, or it has not counted from
/// the start.
struct live_blocks {
  std::uint64_t bytes = 0;
  std::uint64_t rounding = 0;  ///< of these, by the share that rounding has in all allocations of a size class
};

struct memory_parts {
  std::uint64_t rss = 0;
  std::optional<std::uint64_t> requested, rounding;  ///< with the probe
  std::optional<std::uint64_t> thread_caches;        ///< with the probe and libheapwright
  std::optional<std::uint64_t> outside;              ///< libheapwright alone: blocks and thread_caches together
  std::optional<std::uint64_t> free_in_spans, free_kept, records;  ///< with libheapwright
  std::uint64_t lazily_freed = 0, other_anonymous = 0, not_resident = 0, stacks = 0, files = 0, shared = 0;
  std::uint64_t swap = 0, huge = 0;  ///< beside the sum
};

/// What a process's memory consisted of at one moment.
struct memory_picture {
  std::uint64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  memory_parts parts;
  std::optional<heap_reading> heap;
  std::vector<mapping_group> mappings;            ///< empty: they cannot be read
  std::optional<std::vector<jvm_part>> jvm = {};  ///< as memory_of_jvm has it
};

/// What the recipe's rules need; of a picture with a heap.
[[nodiscard]] recipe_evidence evidence_of(const memory_picture& picture);

[[nodiscard]] memory_parts parts_of(const std::vector<mapping_group>& mappings, const heap_reading* heap,
                                    const live_blocks* live);

}  // namespace heapwright::tool
