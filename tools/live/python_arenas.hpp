// How much memory a Python keeps in arenas of its own.
//
// Problem     CPython takes most objects of up to 512 bytes not from malloc, but from arenas that
//             it maps itself. The probe does not see them, so a view of malloc alone misleads.
// Rule        an arena consists of pools. A pool begins with a header, whose fields depend on each
//             other: the last offset at which a block may begin is the pool's size less the size of
//             its blocks, which follows from its size class. Anonymous memory that has such a
//             header at the beginning of 16 KiB counts as an arena, 16 KiB at a time.
// Figures     an estimate. Of much memory only a sample is looked at. Pools that Python has not
//             used yet have no header and no memory.
//
// CPython up to 3.9 has pools of 4 KiB, later ones of 16 KiB. With PYTHONMALLOC=malloc, and in a
// build without the Global Interpreter Lock, there are no such pools, and nothing is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/types.h>

namespace heapwright::tool {

/// What is read at the beginning of a pool.
inline constexpr std::size_t pool_header_bytes = 48;

/// Whether these bytes can be the header of a pool at this address.
[[nodiscard]] bool is_python_pool(std::span<const std::byte, pool_header_bytes> header, std::uint64_t address);

/// About how many bytes the process has in arenas. Nothing: it is no Python, or cannot be read.
/// Reads only pages that are in memory, at most some thousand.
[[nodiscard]] std::optional<std::uint64_t> python_arena_bytes(pid_t process);

}  // namespace heapwright::tool
