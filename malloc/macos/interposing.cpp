// The entries of libheapwright.dylib. dyld binds calls of the functions in the section
// __DATA,__interpose to the ones beside them, in all images but this one: in here, ::free is the
// system's.
//
// A pointer that is not ours goes to the system, which finds its zone: libraries of the system free
// what others of it have made, and dyld has made blocks before this library was loaded (the storage
// of thread-local variables).
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <malloc/malloc.h>

#include <heapwright/core/bits.hpp>

#include "process_heap.hpp"

// malloc for a compiler that says which type is meant: of macOS 15 and later, and so null
// elsewhere. Names of our own, as the system's header does not let them be used where they may be
// missing.
extern "C" {
#define HEAPWRIGHT_IF_THERE(name) __asm("_" name) __attribute__((weak_import))
void* typed_malloc(std::size_t, unsigned long long) HEAPWRIGHT_IF_THERE("malloc_type_malloc");
void* typed_calloc(std::size_t, std::size_t, unsigned long long) HEAPWRIGHT_IF_THERE("malloc_type_calloc");
void typed_free(void*, unsigned long long) HEAPWRIGHT_IF_THERE("malloc_type_free");
void* typed_realloc(void*, std::size_t, unsigned long long) HEAPWRIGHT_IF_THERE("malloc_type_realloc");
void* typed_valloc(std::size_t, unsigned long long) HEAPWRIGHT_IF_THERE("malloc_type_valloc");
void* typed_aligned_alloc(std::size_t, std::size_t, unsigned long long)
    HEAPWRIGHT_IF_THERE("malloc_type_aligned_alloc");
int typed_posix_memalign(void**, std::size_t, std::size_t, unsigned long long)
    HEAPWRIGHT_IF_THERE("malloc_type_posix_memalign");
#undef HEAPWRIGHT_IF_THERE
}

namespace heapwright::process {

malloc_zone_t* zone_of_process() noexcept;

namespace {

[[nodiscard]] void* or_errno(void* p) noexcept {
  if (p == nullptr) [[unlikely]]
    errno = ENOMEM;
  return p;
}

void* our_malloc(std::size_t size) { return or_errno(allocate(size)); }

void our_free(void* p) {
  if (!deallocate(p)) [[unlikely]]
    ::free(p);
}

void* our_calloc(std::size_t count, std::size_t size) {
  std::size_t bytes;
  return or_errno(__builtin_mul_overflow(count, size, &bytes) ? nullptr : allocate_zeroed(bytes));
}

/// A size of zero gives a block of the least size, and frees p: as macOS does.
void* our_realloc(void* p, std::size_t size) {
  if (p == nullptr) return our_malloc(size);
  const std::size_t usable = usable_size(p);
  return usable != 0 ? or_errno(reallocate(p, usable, size)) : ::realloc(p, size);
}

void* our_reallocf(void* p, std::size_t size) {
  void* const moved = our_realloc(p, size);
  if (moved == nullptr && p != nullptr) our_free(p);
  return moved;
}

void* our_aligned_alloc(std::size_t alignment, std::size_t size) {
  if (is_power_of_two(alignment)) return or_errno(allocate_aligned(size, alignment));
  errno = EINVAL;
  return nullptr;
}

void* our_valloc(std::size_t size) { return our_aligned_alloc(macos_os::page_size(), size); }

int our_posix_memalign(void** to, std::size_t alignment, std::size_t size) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const p = allocate_aligned(size, alignment);
  if (p == nullptr) return ENOMEM;
  *to = p;
  return 0;
}

std::size_t our_malloc_size(const void* p) {
  const std::size_t usable = usable_size(p);
  return usable != 0 ? usable : ::malloc_size(p);
}

std::size_t our_malloc_good_size(std::size_t size) { return rounded_up(size); }

malloc_zone_t* our_malloc_default_zone() { return zone_of_process(); }

malloc_zone_t* our_malloc_zone_from_ptr(const void* p) {
  return usable_size(p) != 0 ? zone_of_process() : ::malloc_zone_from_ptr(p);
}

void* our_type_malloc(std::size_t size, unsigned long long) { return our_malloc(size); }
void* our_type_calloc(std::size_t count, std::size_t size, unsigned long long) { return our_calloc(count, size); }
void our_type_free(void* p, unsigned long long) { our_free(p); }
void* our_type_realloc(void* p, std::size_t size, unsigned long long) { return our_realloc(p, size); }
void* our_type_valloc(std::size_t size, unsigned long long) { return our_valloc(size); }
void* our_type_aligned_alloc(std::size_t alignment, std::size_t size, unsigned long long) {
  return our_aligned_alloc(alignment, size);
}
int our_type_posix_memalign(void** to, std::size_t alignment, std::size_t size, unsigned long long) {
  return our_posix_memalign(to, alignment, size);
}

/// As dyld reads it.
struct interposed {
  const void* with;
  const void* instead_of;
};

template <class F>
[[nodiscard]] const void* code(F* function) noexcept {
  return reinterpret_cast<const void*>(function);
}

[[gnu::used, gnu::section("__DATA,__interpose")]] const interposed all_interposed[] = {
    {code(our_malloc), code(::malloc)},
    {code(our_free), code(::free)},
    {code(our_calloc), code(::calloc)},
    {code(our_realloc), code(::realloc)},
    {code(our_reallocf), code(::reallocf)},
    {code(our_aligned_alloc), code(::aligned_alloc)},
    {code(our_valloc), code(::valloc)},
    {code(our_posix_memalign), code(::posix_memalign)},
    {code(our_malloc_size), code(::malloc_size)},
    {code(our_malloc_good_size), code(::malloc_good_size)},
    {code(our_malloc_default_zone), code(::malloc_default_zone)},
    {code(our_malloc_zone_from_ptr), code(::malloc_zone_from_ptr)},
    {code(our_type_malloc), code(::typed_malloc)},
    {code(our_type_calloc), code(::typed_calloc)},
    {code(our_type_free), code(::typed_free)},
    {code(our_type_realloc), code(::typed_realloc)},
    {code(our_type_valloc), code(::typed_valloc)},
    {code(our_type_aligned_alloc), code(::typed_aligned_alloc)},
    {code(our_type_posix_memalign), code(::typed_posix_memalign)},
};

}  // namespace
}  // namespace heapwright::process
