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

/// What is asked for. `alignment` 0: none.
struct wanted {
  std::size_t size;
  std::size_t alignment = 0;
  block_origin origin = block_origin::new_object;
};

void* try_allocate(const wanted& w) noexcept {
  if (next.allocate_as != nullptr) return next.allocate_as(w.size, w.alignment, w.origin);
  return w.alignment <= natural_alignment ? next.allocate(w.size) : next.allocate_aligned(w.alignment, w.size);
}

inline void* noted(void* p, const wanted& w) noexcept {
  const bool is_natural = w.alignment <= natural_alignment;
  if (!is_counting()) return is_recording() ? record_allocation(p, w.size, is_natural ? 0 : w.alignment, false) : p;
  return is_natural ? allocated_anew(p, w.size) : allocated(p, w.size);
}

[[gnu::noinline, gnu::cold]] void* allocate_failed(const wanted& w) {
  for (;;) {
    const std::new_handler handler = heapwright::process::current_new_handler();
    if (handler == nullptr) heapwright::process::throw_bad_alloc();
    handler();
    if (void* const p = try_allocate(w)) return p;
  }
}

inline void* allocate(const wanted& w) {
  void* p = try_allocate(w);
  if (p == nullptr) [[unlikely]]
    p = allocate_failed(w);
  return noted(p, w);
}

/// The runtime's own nothrow form calls the throwing one of new, which is ours and notes the block.
[[gnu::noinline, gnu::cold]] void* allocate_nothrow_failed(const wanted& w) noexcept {
  if (heapwright::process::current_new_handler() == nullptr) return nullptr;
  void* const p = heapwright::process::new_caught(w.size, w.alignment);
  if (p != nullptr && next.set_origin != nullptr) next.set_origin(p, w.origin);
  return p;
}

inline void* allocate_nothrow(const wanted& w) noexcept {
  if (void* const p = try_allocate(w)) [[likely]]
    return noted(p, w);
  return allocate_nothrow_failed(w);
}

inline void deallocate(void* p, const block_claim& said) noexcept {
  note_free(p);
  deallocate_next(p, said);
}

std::size_t number(std::align_val_t a) noexcept { return static_cast<std::size_t>(a); }

constexpr block_origin object = block_origin::new_object, array = block_origin::new_array;

}  // namespace

void* operator new(std::size_t size) { return allocate({.size = size, .origin = object}); }
void* operator new[](std::size_t size) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array(size);
  return allocate({.size = size, .origin = array});
}
void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_nothrow(size, tag);
  return allocate_nothrow({.size = size, .origin = object});
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_nothrow(size, tag);
  return allocate_nothrow({.size = size, .origin = array});
}
void* operator new(std::size_t size, std::align_val_t a) {
  return allocate({.size = size, .alignment = number(a), .origin = object});
}
void* operator new[](std::size_t size, std::align_val_t a) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned(size, a);
  return allocate({.size = size, .alignment = number(a), .origin = array});
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_aligned_nothrow(size, a, tag);
  return allocate_nothrow({.size = size, .alignment = number(a), .origin = object});
}
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned_nothrow(size, a, tag);
  return allocate_nothrow({.size = size, .alignment = number(a), .origin = array});
}

void operator delete(void* p) noexcept { deallocate(p, {.origin = object, .alignment = 0}); }
void operator delete[](void* p) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array(p);
  deallocate(p, {.origin = array, .alignment = 0});
}
void operator delete(void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_sized(p, size);
  deallocate(p, {.origin = object, .size = size, .alignment = 0});
}
void operator delete[](void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_sized(p, size);
  deallocate(p, {.origin = array, .size = size, .alignment = 0});
}
void operator delete(void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_nothrow(p, tag);
  deallocate(p, {.origin = object, .alignment = 0});
}
void operator delete[](void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_nothrow(p, tag);
  deallocate(p, {.origin = array, .alignment = 0});
}
void operator delete(void* p, std::align_val_t a) noexcept {
  deallocate(p, {.origin = object, .alignment = number(a)});
}
void operator delete[](void* p, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned(p, a);
  deallocate(p, {.origin = array, .alignment = number(a)});
}
void operator delete(void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_sized(p, size, a);
  deallocate(p, {.origin = object, .size = size, .alignment = number(a)});
}
void operator delete[](void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_sized(p, size, a);
  deallocate(p, {.origin = array, .size = size, .alignment = number(a)});
}
void operator delete(void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_nothrow(p, a, tag);
  deallocate(p, {.origin = object, .alignment = number(a)});
}
void operator delete[](void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_nothrow(p, a, tag);
  deallocate(p, {.origin = array, .alignment = number(a)});
}
