// All replaceable forms of operator new and delete (C++20 [new.delete]): on failure the new-handler
// loop, then bad_alloc or null.
//
// The library is loaded into programs that have no C++ runtime, so it must not need one: what of
// the runtime is used here is looked up when memory has run out (cxx_runtime.hpp). A program that
// replaces some of the forms changes what the others do (default_operators.hpp).
#include <cstddef>
#include <new>

#include "../../abi/cxx_runtime.hpp"
#include "../../abi/default_operators.hpp"
#include "allocate.hpp"

namespace heapwright::process {
namespace {

/// What the throwing forms do: the new-handler frees some memory, throws or ends the process.
struct call_new_handler {
  static constexpr bool never_throws = false;
  [[gnu::noinline, gnu::cold]] static void* handle(std::size_t size, std::size_t alignment,
                                                   block_origin origin = block_origin::new_object) {
    for (;;) {
      const std::new_handler handler = current_new_handler();
      if (handler == nullptr) throw_bad_alloc();
      handler();
      if (void* const p = allocate_aligned<return_null>(size, alignment, origin)) return p;
    }
  }
};

/// What the nothrow forms do: as above, and null for an exception.
struct call_new_handler_nothrow {
  static constexpr bool never_throws = true;
  [[gnu::noinline, gnu::cold]] static void* handle(std::size_t size, std::size_t alignment,
                                                   block_origin origin = block_origin::new_object) noexcept {
    if (current_new_handler() == nullptr) return nullptr;
    void* const p = new_caught(size, alignment);
    if (p != nullptr) set_origin(p, origin);  // it has called new, also for new[]
    return p;
  }
};

/// Of any size, aligned as C++ promises: Clang relies on it where it clears an object of 24 bytes,
/// though no member needs it.
template <class OnFailure>
[[nodiscard, gnu::always_inline]] inline void* allocate_new(std::size_t size,
                                                            block_origin origin) noexcept(OnFailure::never_throws) {
  constexpr std::size_t promised = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  if constexpr (natural_alignment < promised) return allocate_aligned<OnFailure>(size, promised, origin);
  return allocate<OnFailure>(size, origin);
}

}  // namespace
}  // namespace heapwright::process

using heapwright::block_origin;
using namespace heapwright::process;

void* operator new(std::size_t size) { return allocate_new<call_new_handler>(size, block_origin::new_object); }
void* operator new[](std::size_t size) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array(size);
  return allocate_new<call_new_handler>(size, block_origin::new_array);
}
void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_nothrow(size, tag);
  return allocate_new<call_new_handler_nothrow>(size, block_origin::new_object);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_nothrow(size, tag);
  return allocate_new<call_new_handler_nothrow>(size, block_origin::new_array);
}

void* operator new(std::size_t size, std::align_val_t a) {
  return allocate_aligned<call_new_handler>(size, static_cast<std::size_t>(a), block_origin::new_object);
}
void* operator new[](std::size_t size, std::align_val_t a) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned(size, a);
  return allocate_aligned<call_new_handler>(size, static_cast<std::size_t>(a), block_origin::new_array);
}

void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_aligned_nothrow(size, a, tag);
  return allocate_aligned<call_new_handler_nothrow>(size, static_cast<std::size_t>(a), block_origin::new_object);
}

void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned_nothrow(size, a, tag);
  return allocate_aligned<call_new_handler_nothrow>(size, static_cast<std::size_t>(a), block_origin::new_array);
}

void operator delete(void* p) noexcept { deallocate(p, {.origin = block_origin::new_object, .alignment = 0}); }
void operator delete[](void* p) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array(p);
  deallocate(p, {.origin = block_origin::new_array, .alignment = 0});
}
void operator delete(void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_sized(p, size);
  deallocate_sized(p, {.origin = block_origin::new_object, .size = size, .alignment = 0});
}
void operator delete[](void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_sized(p, size);
  deallocate_sized(p, {.origin = block_origin::new_array, .size = size, .alignment = 0});
}
void operator delete(void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_nothrow(p, tag);
  deallocate(p, {.origin = block_origin::new_object, .alignment = 0});
}
void operator delete[](void* p, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_nothrow(p, tag);
  deallocate(p, {.origin = block_origin::new_array, .alignment = 0});
}
void operator delete(void* p, std::align_val_t a) noexcept {
  deallocate(p, {.origin = block_origin::new_object, .alignment = static_cast<std::size_t>(a)});
}
void operator delete[](void* p, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned(p, a);
  deallocate(p, {.origin = block_origin::new_array, .alignment = static_cast<std::size_t>(a)});
}
void operator delete(void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_sized(p, size, a);
  deallocate_sized(p, {.origin = block_origin::new_object, .size = size, .alignment = static_cast<std::size_t>(a)});
}
void operator delete[](void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_sized(p, size, a);
  deallocate_sized(p, {.origin = block_origin::new_array, .size = size, .alignment = static_cast<std::size_t>(a)});
}
void operator delete(void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_aligned_nothrow(p, a, tag);
  deallocate(p, {.origin = block_origin::new_object, .alignment = static_cast<std::size_t>(a)});
}
void operator delete[](void* p, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_nothrow(p, a, tag);
  deallocate(p, {.origin = block_origin::new_array, .alignment = static_cast<std::size_t>(a)});
}
