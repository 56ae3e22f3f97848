// Multiplicative hashing (Knuth, The Art of Computer Programming, 6.4): the high bits of key *
// golden_ratio are well distributed, also where keys differ by a constant step, as addresses do.
#pragma once

#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// 2^64 divided by the golden ratio; odd.
inline constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;

}  // namespace heapwright
