#include "operations.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>

#include <malloc.h>

#include "../support/opaque.h"
#include "../support/ordinary_alignment.hpp"
#include "../support/pattern.h"

// C23's, which glibc 2.36 does not declare.
extern "C" [[gnu::weak]] void free_sized(void*, std::size_t);

namespace test {
namespace {

bool wrong(const char* what, const owned_block& b) noexcept {
  std::fprintf(stderr, "%s: block %p of %zu bytes, alignment %zu, seed %llx\n", what, b.address, b.size, b.alignment,
               static_cast<unsigned long long>(b.seed));
  return false;
}

constexpr unsigned by_calloc = 0, by_aligned_alloc = 2, by_memalign = 3, by_posix_memalign = 4, by_new = 5,
                   by_new_array = 6, by_valloc = 8, by_malloc = 9;

bool is_aligned_entry(unsigned entry) noexcept {
  return entry == by_aligned_alloc || entry == by_memalign || entry == by_posix_memalign || entry == by_new_array;
}

bool is_of_malloc(unsigned entry) noexcept { return entry != by_new && entry != by_new_array; }

void* allocate_by(unsigned entry, std::size_t size, std::size_t alignment) noexcept {
  void* p = nullptr;
  switch (entry) {
    case by_calloc: return std::calloc(1, size);
    case 1: return std::realloc(nullptr, size);
    case by_aligned_alloc: return std::aligned_alloc(alignment, size);
    case by_memalign: return ::memalign(alignment, size);
    case by_posix_memalign: return ::posix_memalign(&p, alignment < 8 ? 8 : alignment, size) == 0 ? p : nullptr;
    case by_new: return ::operator new(size, std::nothrow);
    case by_new_array: return ::operator new[](size, std::align_val_t{alignment}, std::nothrow);
    case 7: return ::reallocarray(nullptr, 1, size);
    case by_valloc: return ::valloc(size);
    default: return std::malloc(size);
  }
}

/// By one of the functions that belong to its entry, chosen by `which`.
void free_one(const owned_block& b, std::size_t which) noexcept {
  const std::align_val_t alignment{b.alignment};
  if (b.entry == by_new) {
    if (which == 0) return ::operator delete(b.address);
    if (which == 1) return ::operator delete(b.address, b.size);
    return ::operator delete(b.address, std::nothrow);
  }
  if (b.entry == by_new_array) {
    if (which == 0) return ::operator delete[](b.address, alignment);
    if (which == 1) return ::operator delete[](b.address, b.size, alignment);
    return ::operator delete[](b.address, alignment, std::nothrow);
  }
  const bool has_alignment = is_aligned_entry(b.entry) || b.entry == by_valloc;
  if (which == 0 && !has_alignment && &free_sized != nullptr) return ::free_sized(b.address, b.size);
  std::free(b.address);
}

}  // namespace

bool exchange::drain() noexcept {
  bool right = true;
  for (auto& cell : cells_) {
    owned_block* const b = cell.exchange(nullptr);
    if (b == nullptr) continue;
    if (!pattern_holds(b->address, b->size, b->seed)) right = wrong("lost contents in the exchange", *b);
    free_one(*b, 1);
    delete b;
  }
  return right;
}

bool operations::run(std::size_t count) noexcept {
  bool right = true;
  for (std::size_t i = 0; i < count && right; ++i) right = step();
  for (owned_block& b : slots_) right = release(b) && right;
  return right;
}

bool operations::step() noexcept {
  owned_block& b = slots_[random_.below(slot_count)];
  if (b.address == nullptr) return allocate(b);
  switch (random_.below(16)) {
    case 0:
    case 1:
    case 2: return resize(b);
    case 3:
    case 4: return hand_over(b);
    case 5:
      if (random_.below(2000) == 0) ::malloc_trim(0);
      return true;
    default: return release(b);
  }
}

std::size_t operations::next_size() noexcept {
  const std::size_t kind = random_.below(1000);
  return random_.size(kind == 0 ? 24 : kind < 20 ? 19 : kind < 200 ? 15 : 10);
}

bool operations::allocate(owned_block& b) noexcept {
  b.size = next_size();
  b.seed = random_.next();
  b.entry = static_cast<unsigned>(random_.below(24));
  b.alignment = is_aligned_entry(b.entry) ? std::size_t{1} << random_.below(random_.below(50) == 0 ? 19 : 10)
                                          : ordinary_alignment(b.size);
  b.address = opaque(allocate_by(b.entry, opaque_size(b.size), b.alignment));
  if (b.address == nullptr) return may_fail_ ? true : wrong("no memory", b);
  if (reinterpret_cast<std::uintptr_t>(b.address) % b.alignment != 0) return wrong("not aligned", b);
  if (::malloc_usable_size(b.address) < b.size) return wrong("too small", b);
  if (b.entry == by_calloc && !all_zero(b.address, b.size)) return wrong("calloc: not zero", b);
  pattern_fill(b.address, b.size, b.seed, 0);
  return true;
}

bool operations::resize(owned_block& b) noexcept {
  if (!is_of_malloc(b.entry)) return true;
  const std::size_t size = next_size() + 1;
  if (!pattern_holds(b.address, b.size, b.seed)) return wrong("lost contents before realloc", b);
  void* const moved = opaque(std::realloc(b.address, opaque_size(size)));
  if (moved == nullptr) return may_fail_ ? true : wrong("realloc: no memory", b);
  const std::size_t kept = size < b.size ? size : b.size;
  b.address = moved;
  b.size = size;
  b.alignment = ordinary_alignment(size);
  b.entry = by_malloc;
  if (reinterpret_cast<std::uintptr_t>(moved) % b.alignment != 0) return wrong("realloc: not aligned", b);
  if (!pattern_holds(moved, kept, b.seed)) return wrong("realloc: lost contents", b);
  pattern_fill(moved, size, b.seed, kept);
  return true;
}

bool operations::hand_over(owned_block& b) noexcept {
  auto* const given = new (std::nothrow) owned_block(b);
  if (given == nullptr) return true;
  b = {};
  if (owned_block* const taken = shared_.swap(random_.below(64), given)) {
    b = *taken;
    delete taken;
  }
  return true;
}

bool operations::release(owned_block& b) noexcept {
  if (b.address == nullptr) return true;
  if (!pattern_holds(b.address, b.size, b.seed)) return wrong("lost contents before free", b);
  free_one(b, random_.below(4));
  b = {};
  return true;
}

}  // namespace test
