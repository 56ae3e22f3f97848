// All replaceable forms of operator new and delete: malloc with the new-handler loop, then
// bad_alloc or null, and free. A malloc that has operators of its own is reached by its malloc and
// free: so each block is counted once, whichever way it was asked for.
#include <cstddef>
#include <new>

#include "../abi/cxx_runtime.hpp"
#include "../abi/default_operators.hpp"
#include "recording.hpp"

using namespace heapwright::probe;
using heapwright::process::defaults;

namespace {

constexpr std::size_t natural_alignment = alignof(std::max_align_t);

void* try_allocate(std::size_t size, std::size_t alignment) noexcept {
  return alignment <= natural_alignment ? next.allocate(size) : next.allocate_aligned(alignment, size);
}

inline void* noted(void* p, std::size_t size, std::size_t alignment) noexcept {
  if (!is_counting())
    return is_recording() ? record_allocation(p, size, alignment <= natural_alignment ? 0 : alignment, false) : p;
  return alignment <= natural_alignment ? allocated_anew(p, size) : allocated(p, size);
}

[[gnu::noinline, gnu::cold]] void* allocate_failed(std::size_t size, std::size_t alignment) {
  for (;;) {
    const std::new_handler handler = heapwright::process::current_new_handler();
    if (handler == nullptr) heapwright::process::throw_bad_alloc();
    handler();
    if (void* const p = try_allocate(size, alignment)) return p;
  }
}

inline void* allocate(std::size_t size, std::size_t alignment = 1) {
  void* p = try_allocate(size, alignment);
  if (p == nullptr) [[unlikely]]
    p = allocate_failed(size, alignment);
  return noted(p, size, alignment);
}

inline void* allocate_nothrow(std::size_t size, std::size_t alignment = 1) noexcept {
  if (void* const p = try_allocate(size, alignment)) [[likely]]
    return noted(p, size, alignment);
  // The runtime's own nothrow form calls the throwing one, which is ours and notes the block.
  return heapwright::process::current_new_handler() == nullptr ? nullptr
                                                               : heapwright::process::new_caught(size, alignment);
}

inline void deallocate(void* p) noexcept {
  note_free(p);
  next.deallocate(p);
}

std::size_t number(std::align_val_t a) noexcept { return static_cast<std::size_t>(a); }

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array(size);
  return allocate(size);
}
void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_nothrow(size, tag);
  return allocate_nothrow(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_nothrow(size, tag);
  return allocate_nothrow(size);
}
void* operator new(std::size_t size, std::align_val_t a) { return allocate(size, number(a)); }
void* operator new[](std::size_t size, std::align_val_t a) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned(size, a);
  return allocate(size, number(a));
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_aligned_nothrow(size, a, tag);
  return allocate_nothrow(size, number(a));
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned_nothrow(size, a, tag);
  return allocate_nothrow(size, number(a));
}

void operator delete(void* p) noexcept { deallocate(p); }
void operator delete[](void* p) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array(p);
  deallocate(p);
}
void operator delete(void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_sized(p, size);
  deallocate(p);
}
void operator delete[](void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_sized(p, size);
  deallocate(p);
}
void operator delete(void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_nothrow(p, tag);
  deallocate(p);
}
void operator delete[](void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_nothrow(p, tag);
  deallocate(p);
}
void operator delete(void* p, std::align_val_t) noexcept { deallocate(p); }
void operator delete[](void* p, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned(p, a);
  deallocate(p);
}
void operator delete(void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_sized(p, size, a);
  deallocate(p);
}
void operator delete[](void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_sized(p, size, a);
  deallocate(p);
}
void operator delete(void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_nothrow(p, a, tag);
  deallocate(p);
}
void operator delete[](void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_nothrow(p, a, tag);
  deallocate(p);
}
