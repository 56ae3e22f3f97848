// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): multiplication
// by 2^64 divided by the golden ratio spreads keys that lie close together, as addresses do.
#pragma once

#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// The upper bits of the product depend on all bits of the key below them: take the hash from
/// there, by a right shift. Distinct keys have distinct products.
[[nodiscard]] constexpr std::uint64_t fibonacci_hash(std::uint64_t key) noexcept { return key * 0x9E3779B97F4A7C15; }

}  // namespace heapwright
