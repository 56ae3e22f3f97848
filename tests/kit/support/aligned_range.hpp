// Memory that is aligned to its own length, as slabs are: more than Windows aligns a program's
// data.
#pragma once

#include <cstddef>
#include <new>
#include <span>

namespace heapwright::testing {

template <std::size_t Bytes, std::size_t Alignment = Bytes>
class aligned_range {
 public:
  aligned_range() = default;
  ~aligned_range() { ::operator delete(first_, std::align_val_t{Alignment}); }
  aligned_range(const aligned_range&) = delete;
  aligned_range& operator=(const aligned_range&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {first_, Bytes}; }

 private:
  std::byte* const first_ = static_cast<std::byte*>(::operator new(Bytes, std::align_val_t{Alignment}));
};

}  // namespace heapwright::testing
