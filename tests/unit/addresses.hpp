// Addresses that no heap has.
#pragma once

#include <cstdint>
#include <vector>

#include <heapwright/core/bits.hpp>

namespace heapwright::testing {

/// `p` with each of the upper 16 bits set, as AArch64's tagged pointers have them, and addresses of
/// the kernel.
inline std::vector<void*> addresses_beyond_48_bits(void* p) {
  std::vector<void*> all;
  for (unsigned bit = 48; bit < 64; ++bit)
    all.push_back(reinterpret_cast<void*>(address_of(p) | std::uintptr_t{1} << bit));
  for (const std::uintptr_t address :
       {std::uintptr_t{1} << 48, std::uintptr_t{0xFFFF'8000'0000'0000}, UINTPTR_MAX - 15})
    all.push_back(reinterpret_cast<void*>(address));
  return all;
}

}  // namespace heapwright::testing
