// The C entries of malloc, each passed on to the malloc below and noted. What they promise is what
// the malloc below promises. malloc_usable_size is not among them: it changes nothing, and programs
// like redis ask it for each block.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>

#include "../abi/export.hpp"
#include "recording.hpp"

using namespace heapwright;
using namespace heapwright::probe;

namespace {

bool overflows(std::size_t count, std::size_t size, std::size_t& bytes) noexcept {
  if (!__builtin_mul_overflow(count, size, &bytes)) return false;
  errno = ENOMEM;
  return true;
}

void* get_aligned(std::size_t alignment, std::size_t size) noexcept {
  void* const p = next.allocate_aligned(alignment, size);
  const counted now = counted_now();
  if (now != counted::each_call) return noted_otherwise(now, p, size, alignment, false);
  return allocated(p, size);
}

void* aligned(std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return get_aligned(alignment, size);
}

}  // namespace

extern "C" {

HEAPWRIGHT_EXPORT void* malloc(std::size_t size) noexcept {
  void* const p = next.allocate(size);
  const counted now = counted_now();
  if (now != counted::each_call) return noted_otherwise(now, p, size, 0, false);
  return allocated_anew(p, size);
}

HEAPWRIGHT_EXPORT void free(void* p) noexcept {
  note_free(p);
  next.deallocate(p);
}

HEAPWRIGHT_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (overflows(count, size, bytes)) return nullptr;
  void* const p = next.allocate_zeroed(count, size);
  const counted now = counted_now();
  if (now != counted::each_call) return noted_otherwise(now, p, bytes, 0, true);
  return allocated_anew(p, bytes);
}

HEAPWRIGHT_EXPORT void* realloc(void* p, std::size_t size) noexcept {
  const counted now = counted_now();
  if (now == counted::samples) {
    if (p != nullptr && the_sampler.may_have(p)) [[unlikely]]
      return reallocate_sample(p, size);
    return estimated(next.reallocate(p, size), size);
  }
  if (now != counted::each_call) {
    if (!is_recording()) return next.reallocate(p, size);
    return p == nullptr ? record_allocation(next.allocate(size), size, 0, false) : record_reallocation(p, size);
  }
  if (p == nullptr) return allocated_anew(next.allocate(size), size);
  if (the_sampler.may_have(p)) [[unlikely]]
    return reallocate_sample(p, size);
  const std::uint64_t before = usable_size(p);
  void* const moved = next.reallocate(p, size);
  if (moved == nullptr) [[unlikely]] {
    if (size == 0) freed(before);
    return nullptr;
  }
  return reallocated(moved, size, before);
}

HEAPWRIGHT_EXPORT void* reallocarray(void* p, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  return overflows(count, size, bytes) ? nullptr : realloc(p, bytes);
}

HEAPWRIGHT_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return aligned(alignment, size);
}

HEAPWRIGHT_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return get_aligned(alignment, size);
}

HEAPWRIGHT_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept = errno;
  void* const p = get_aligned(alignment, size);
  errno = kept;
  if (p == nullptr) return ENOMEM;
  *result = p;
  return 0;
}

HEAPWRIGHT_EXPORT void* valloc(std::size_t size) noexcept { return aligned(linux_os::page_size(), size); }

HEAPWRIGHT_EXPORT void* pvalloc(std::size_t size) noexcept {
  const std::size_t page = linux_os::page_size();
  const std::size_t rounded = align_up(size, page);
  if (rounded < size) {
    errno = ENOMEM;
    return nullptr;
  }
  return aligned(page, rounded == 0 ? page : rounded);
}

HEAPWRIGHT_EXPORT void free_sized(void* p, std::size_t size) noexcept {
  note_free(p);
  deallocate_next(p, block_origin::malloc, size, 0);
}

HEAPWRIGHT_EXPORT void free_aligned_sized(void* p, std::size_t alignment, std::size_t size) noexcept {
  note_free(p);
  deallocate_next(p, block_origin::malloc, size, alignment);
}

HEAPWRIGHT_EXPORT void cfree(void* p) noexcept { free(p); }

}  // extern "C"
