// The C entries (C23 7.24.3, POSIX.1-2024, and the GNU extensions). Each is the standard's
// behaviour around one call of the process's heap: malloc and friends set ENOMEM, free keeps errno,
// the aligned forms check their alignment.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../../abi/export.hpp"
#include "allocate.hpp"

namespace heapwright::process {
namespace {

[[nodiscard, gnu::noinline, gnu::cold]] void* calloc_missed(std::size_t size) noexcept {
  void* const p = allocate_zeroed_slow(size);
  return p != nullptr ? p : set_errno::handle(size, natural_alignment);
}

/// For the forms that say EINVAL through errno.
void* allocate_if_aligned(std::size_t alignment, std::size_t size) noexcept {
  if (is_power_of_two(alignment)) return allocate_aligned<set_errno>(size, alignment);
  errno = EINVAL;
  return nullptr;
}

}  // namespace
}  // namespace heapwright::process

using namespace heapwright;
using namespace heapwright::process;

extern "C" {

/// `size` bytes, aligned to 16. A size of zero gives a block too, which is freed like any other.
/// Null: no memory, with errno ENOMEM. Thread-safe, as all entries here.
HEAPWRIGHT_EXPORT void* malloc(std::size_t size) noexcept { return allocate<set_errno>(size); }

/// Null does nothing. Keeps errno. From any thread.
HEAPWRIGHT_EXPORT void free(void* p) noexcept { deallocate(p); }

/// `count` times `size` bytes that read as zero. Null with ENOMEM: no memory, or the product
/// overflows.
HEAPWRIGHT_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) [[unlikely]] {
    errno = ENOMEM;
    return nullptr;
  }
  if constexpr (heap_type::is_sealed) {
    void* const p = allocate_with_seal<set_errno>(bytes, block_origin::malloc, 0);
    const bool is_zero = chosen_recipe.hardening.check_reuse;
    return p == nullptr || is_zero ? p : std::memset(p, 0, bytes);
  }
  if (void* const p = this_cache->pop(bytes)) [[likely]]
    return std::memset(p, 0, bytes);
  return calloc_missed(bytes);
}

/// A block of `size` bytes with the contents of p; null allocates. A size of zero frees p and
/// returns null. Null otherwise: no memory, with ENOMEM, and p is as it was.
HEAPWRIGHT_EXPORT void* realloc(void* p, std::size_t size) noexcept {
  if (p == nullptr) return malloc(size);
  // Of the behaviours that C17 allows for size zero this is glibc's, on which programs rely.
  if (size == 0) {
    free(p);
    return nullptr;
  }
  void* const moved = reallocate(p, size);
  if (moved == nullptr) [[unlikely]]
    errno = ENOMEM;
  return moved;
}

/// As realloc for `count` times `size` bytes. Null with ENOMEM where the product overflows; p is as
/// it was.
HEAPWRIGHT_EXPORT void* reallocarray(void* p, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(p, bytes);
}

/// `size` bytes aligned to `alignment`, any power of two; `size` need not be a multiple of it.
/// Null: no memory, with ENOMEM; or no power of two, with EINVAL.
HEAPWRIGHT_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return allocate_if_aligned(alignment, size);
}

/// As aligned_alloc.
HEAPWRIGHT_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return allocate_if_aligned(alignment, size);
}

/// As aligned_alloc; `alignment` is a multiple of 8 too. Returns 0, EINVAL or ENOMEM, and leaves
/// errno and, unless it is 0, `*result` as they were.
HEAPWRIGHT_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const p = allocate_aligned<return_null>(size, alignment);
  if (p == nullptr) return ENOMEM;
  *result = p;
  return 0;
}

/// `size` bytes aligned to a page of the system.
HEAPWRIGHT_EXPORT void* valloc(std::size_t size) noexcept { return allocate_if_aligned(linux_os::page_size(), size); }

/// As valloc, with the size rounded up to whole pages; a size of zero gives one.
HEAPWRIGHT_EXPORT void* pvalloc(std::size_t size) noexcept {
  const std::size_t page = linux_os::page_size();
  const std::size_t rounded = align_up(size, page);
  if (rounded < size) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate_if_aligned(page, rounded == 0 ? page : rounded);
}

/// Bytes that may be used behind p, a live block; 0 for null.
HEAPWRIGHT_EXPORT std::size_t malloc_usable_size(void* p) noexcept { return usable_size(p); }

/// What malloc_usable_size says of a live block. 0 for all else, without a report: the probe asks
/// before the program's own call, which is the mistake.
HEAPWRIGHT_EXPORT std::size_t heapwright_size_for_probe(void* p) noexcept { return size_for_probe(p); }

// What operator new and delete do here, for the probe, whose operators stand before these: so what
// the caller says of a block is looked at under the probe too.

/// A block for operator new or new[], as `origin` says. `alignment` 0: none was asked for. Null:
/// no memory, with errno as it was.
HEAPWRIGHT_EXPORT void* heapwright_allocate_for_probe(std::size_t size, std::size_t alignment,
                                                      block_origin origin) noexcept {
  return alignment == 0 ? allocate<return_null>(size, origin) : allocate_aligned<return_null>(size, alignment, origin);
}

/// Frees a block; the last three are a block_claim.
HEAPWRIGHT_EXPORT void heapwright_deallocate_for_probe(void* p, block_origin origin, std::size_t size,
                                                       std::size_t alignment) noexcept {
  const block_claim said{.origin = origin, .size = size, .alignment = alignment};
  return size == block_claim::not_said ? deallocate(p, said) : deallocate_sized(p, said);
}

/// Of a live block that the first of these gave out.
HEAPWRIGHT_EXPORT void heapwright_set_origin_for_probe(void* p, block_origin origin) noexcept { set_origin(p, origin); }

/// As free. `size` is what malloc, calloc or realloc was asked for. Where it is not, a block of
/// more than 255 KiB ends the process, and so does any in checked builds.
HEAPWRIGHT_EXPORT void free_sized(void* p, std::size_t size) noexcept {
  deallocate_sized(p, {.size = size, .alignment = 0});
}

/// As free_sized, for blocks of aligned_alloc.
HEAPWRIGHT_EXPORT void free_aligned_sized(void* p, std::size_t alignment, std::size_t size) noexcept {
  deallocate_sized(p, {.size = size, .alignment = alignment});
}

/// As free.
HEAPWRIGHT_EXPORT void cfree(void* p) noexcept { deallocate(p); }

}  // extern "C"
