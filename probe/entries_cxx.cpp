// All replaceable forms of operator new and delete: malloc with the new-handler loop, then
// bad_alloc or null, and free. A malloc that has operators of its own is reached by its malloc and
// free: so each block is counted once, whichever way it was asked for.
#include <cstddef>
#include <new>

#include "../abi/cxx_runtime.hpp"
#include "../abi/default_operators.hpp"
#include "recording.hpp"

using heapwright::block_claim;
using heapwright::block_origin;
using namespace heapwright::probe;
using heapwright::process::defaults;

namespace {

constexpr std::size_t natural_alignment = alignof(std::max_align_t);

// What a caller says of a block goes by value from function to function: it stays in registers.

/// `alignment` 0: none was asked for.
void* try_allocate(std::size_t size, std::size_t alignment, block_origin origin) noexcept {
  if (next.allocate_as != nullptr) return next.allocate_as(size, alignment, origin);
  return alignment <= natural_alignment ? next.allocate(size) : next.allocate_aligned(alignment, size);
}

inline void* noted(void* p, std::size_t size, std::size_t alignment) noexcept {
  const bool is_natural = alignment <= natural_alignment;
  const counted now = counted_now();
  if (now != counted::each_call) return noted_otherwise(now, p, size, is_natural ? 0 : alignment, false);
  return is_natural ? allocated_anew(p, size) : allocated(p, size);
}

[[gnu::noinline, gnu::cold]] void* allocate_failed(std::size_t size, std::size_t alignment, block_origin origin) {
  for (;;) {
    const std::new_handler handler = heapwright::process::current_new_handler();
    if (handler == nullptr) heapwright::process::throw_bad_alloc();
    handler();
    if (void* const p = try_allocate(size, alignment, origin)) return p;
  }
}

inline void* allocate(std::size_t size, block_origin origin, std::size_t alignment = 0) {
  void* p = try_allocate(size, alignment, origin);
  if (p == nullptr) [[unlikely]]
    p = allocate_failed(size, alignment, origin);
  return noted(p, size, alignment);
}

/// The runtime's own nothrow form calls the throwing one of new, which is ours and notes the block.
[[gnu::noinline, gnu::cold]] void* allocate_nothrow_failed(std::size_t size, std::size_t alignment,
                                                           block_origin origin) noexcept {
  if (heapwright::process::current_new_handler() == nullptr) return nullptr;
  void* const p = heapwright::process::new_caught(size, alignment);
  if (p != nullptr && next.set_origin != nullptr) next.set_origin(p, origin);
  return p;
}

inline void* allocate_nothrow(std::size_t size, block_origin origin, std::size_t alignment = 0) noexcept {
  if (void* const p = try_allocate(size, alignment, origin)) [[likely]]
    return noted(p, size, alignment);
  return allocate_nothrow_failed(size, alignment, origin);
}

/// The last three are a block_claim.
[[gnu::noinline]] void deallocate(void* p, block_origin origin, std::size_t size = block_claim::not_said,
                                  std::size_t alignment = 0) noexcept {
  note_free(p);
  deallocate_next(p, origin, size, alignment);
}

std::size_t number(std::align_val_t a) noexcept { return static_cast<std::size_t>(a); }

constexpr block_origin object = block_origin::new_object, array = block_origin::new_array;

}  // namespace

void* operator new(std::size_t size) { return allocate(size, object); }
void* operator new[](std::size_t size) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array(size);
  return allocate(size, array);
}
void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_nothrow(size, tag);
  return allocate_nothrow(size, object);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_nothrow(size, tag);
  return allocate_nothrow(size, array);
}
void* operator new(std::size_t size, std::align_val_t a) { return allocate(size, object, number(a)); }
void* operator new[](std::size_t size, std::align_val_t a) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned(size, a);
  return allocate(size, array, number(a));
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_aligned_nothrow(size, a, tag);
  return allocate_nothrow(size, object, number(a));
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned_nothrow(size, a, tag);
  return allocate_nothrow(size, array, number(a));
}

void operator delete(void* p) noexcept { deallocate(p, object); }
void operator delete[](void* p) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array(p);
  deallocate(p, array);
}
void operator delete(void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_sized(p, size);
  deallocate(p, object, size);
}
void operator delete[](void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_sized(p, size);
  deallocate(p, array, size);
}
void operator delete(void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_nothrow(p, tag);
  deallocate(p, object);
}
void operator delete[](void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_nothrow(p, tag);
  deallocate(p, array);
}
void operator delete(void* p, std::align_val_t a) noexcept { deallocate(p, object, block_claim::not_said, number(a)); }
void operator delete[](void* p, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned(p, a);
  deallocate(p, array, block_claim::not_said, number(a));
}
void operator delete(void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_sized(p, size, a);
  deallocate(p, object, size, number(a));
}
void operator delete[](void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_sized(p, size, a);
  deallocate(p, array, size, number(a));
}
void operator delete(void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_nothrow(p, a, tag);
  deallocate(p, object, block_claim::not_said, number(a));
}
void operator delete[](void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_nothrow(p, a, tag);
  deallocate(p, array, block_claim::not_said, number(a));
}
