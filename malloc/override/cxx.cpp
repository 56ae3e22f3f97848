// All replaceable forms of operator new and delete (C++20 [new.delete]): on failure the new-handler loop, then bad_alloc or
// null.
//
// The library is loaded into programs that have no C++ runtime, so it must not need one: what of the runtime is used here is
// looked up when memory has run out (cxx_runtime.hpp). A program that replaces some of the forms changes what the others do
// (default_operators.hpp).
#include <cstddef>
#include <new>

#include "../../abi/cxx_runtime.hpp"
#include "../../abi/default_operators.hpp"
#include "../process_heap.hpp"

namespace heapwright::process {
namespace {

void* try_allocate(std::size_t size, std::size_t alignment) noexcept {
  return alignment <= natural_alignment ? allocate(size) : allocate_aligned(size, alignment);
}

[[gnu::noinline]] void* new_slow(std::size_t size, std::size_t alignment) {
  for (;;) {
    if (void* const p = try_allocate(size, alignment)) return p;
    const std::new_handler handler = current_new_handler();
    if (handler == nullptr) throw_bad_alloc();
    handler();
  }
}

[[gnu::noinline]] void* new_nothrow_slow(std::size_t size, std::size_t alignment) noexcept {
  if (void* const p = try_allocate(size, alignment)) return p;
  return current_new_handler() == nullptr ? nullptr : new_caught(size, alignment);
}

[[gnu::noinline, gnu::cold]] void* new_slow_of_twice(std::size_t rounded_twice) {
  void* const p = allocate_slow_of_twice(rounded_twice);
  return p != nullptr ? p : new_slow(rounded_twice / 2, 1);
}

[[gnu::noinline]] void* new_larger(std::size_t size) {
  if (void* const p = this_cache->pop(size)) [[likely]]
    return p;
  return new_slow(size, 1);
}

[[gnu::noinline, gnu::cold]] void* new_nothrow_slow_of_twice(std::size_t rounded_twice) noexcept {
  return new_nothrow_slow(rounded_twice / 2, 1);
}

[[gnu::noinline]] void* new_nothrow_larger(std::size_t size) noexcept {
  if (void* const p = this_cache->pop(size)) [[likely]]
    return p;
  return new_nothrow_slow(size, 1);
}

}  // namespace
}  // namespace heapwright::process

using namespace heapwright::process;

void* operator new(std::size_t size) { return pop_or(size, new_larger, new_slow_of_twice); }
void* operator new[](std::size_t size) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array(size);
  return pop_or(size, new_larger, new_slow_of_twice);
}
void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_nothrow(size, tag);
  return pop_or(size, new_nothrow_larger, new_nothrow_slow_of_twice);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_nothrow(size, tag);
  return pop_or(size, new_nothrow_larger, new_nothrow_slow_of_twice);
}

void* operator new(std::size_t size, std::align_val_t a) { return new_slow(size, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t size, std::align_val_t a) {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned(size, a);
  return new_slow(size, static_cast<std::size_t>(a));
}

void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_aligned_nothrow(size, a, tag);
  return new_nothrow_slow(size, static_cast<std::size_t>(a));
}

void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t& tag) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.new_array_aligned_nothrow(size, a, tag);
  return new_nothrow_slow(size, static_cast<std::size_t>(a));
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
  deallocate_sized(p, size);
}
void operator delete[](void* p, std::size_t size) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_sized(p, size);
  deallocate_sized(p, size);
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
  deallocate_sized(p, size);
}
void operator delete[](void* p, std::size_t size, std::align_val_t a) noexcept {
  if (defaults.are_used) [[unlikely]]
    return defaults.delete_array_aligned_sized(p, size, a);
  deallocate_sized(p, size);
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
