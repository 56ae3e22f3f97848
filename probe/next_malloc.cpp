#include "next_malloc.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/check.hpp>

#include "../segment/segment.hpp"
#include "malloc_mappings.hpp"

// jemalloc's, glibc's, and libheapwright's. Declared, not looked up: dlsym asks for memory when it
// finds nothing.
extern "C" {
[[gnu::weak]] std::size_t nallocx(std::size_t size, int flags) noexcept;
[[gnu::weak]] int mallctl(const char* name, void* old, std::size_t* old_bytes, void* set,
                          std::size_t set_bytes) noexcept;
[[gnu::weak]] const char* gnu_get_libc_version() noexcept;
[[gnu::weak]] std::size_t heapwright_size_for_probe(void* p) noexcept;
[[gnu::weak]] void* heapwright_allocate_for_probe(std::size_t size, std::size_t alignment,
                                                  heapwright::block_origin origin) noexcept;
[[gnu::weak]] void heapwright_deallocate_for_probe(void* p, heapwright::block_origin origin, std::size_t size,
                                                   std::size_t alignment) noexcept;
[[gnu::weak]] void heapwright_set_origin_for_probe(void* p, heapwright::block_origin origin) noexcept;
}

namespace heapwright::probe {
namespace {

/// What is asked for while dlsym runs. Each block has its size before it.
class early_room {
 public:
  void* allocate(std::size_t size, std::size_t alignment = 16) noexcept {
    std::size_t begin = used_.load(std::memory_order_relaxed), block = 0;
    do {
      block = align_up(begin + sizeof(std::size_t), std::max<std::size_t>(alignment, 16));
      if (size > sizeof bytes_ || block > sizeof bytes_ - size) return nullptr;
    } while (!used_.compare_exchange_weak(begin, block + size, std::memory_order_relaxed));
    std::memcpy(bytes_ + block - sizeof size, &size, sizeof size);
    return bytes_ + block;
  }

  [[nodiscard]] bool owns(const void* p) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(bytes_) < sizeof bytes_;
  }

  [[nodiscard]] static std::size_t size_of(const void* p) noexcept {
    std::size_t size = 0;
    std::memcpy(&size, static_cast<const std::byte*>(p) - sizeof size, sizeof size);
    return size;
  }

  [[nodiscard]] bool is_used() const noexcept { return used_.load(std::memory_order_relaxed) != 0; }

 private:
  alignas(4096) std::byte bytes_[32 * 1024]{};
  std::atomic<std::size_t> used_{0};
};

constinit early_room early;
constinit next_malloc found{};  // complete before `next` is
thread_local constinit bool is_searching [[gnu::tls_model("initial-exec")]] = false;

void* first_allocate(std::size_t size) noexcept {
  find_next_malloc();
  return is_searching ? early.allocate(size) : next.allocate(size);
}

void* first_allocate_zeroed(std::size_t count, std::size_t size) noexcept {
  find_next_malloc();
  if (!is_searching) return next.allocate_zeroed(count, size);
  return early.allocate(count * size);  // it has never been used
}

void* first_allocate_aligned(std::size_t alignment, std::size_t size) noexcept {
  find_next_malloc();
  return is_searching ? early.allocate(size, alignment) : next.allocate_aligned(alignment, size);
}

void first_deallocate(void* p) noexcept {
  if (early.owns(p)) return;
  find_next_malloc();
  if (!is_searching) found.deallocate(p);
}

void* first_reallocate(void* p, std::size_t size) noexcept {
  if (!early.owns(p) && p != nullptr) {
    find_next_malloc();
    return is_searching ? nullptr : found.reallocate(p, size);
  }
  void* const moved = first_allocate(size);
  if (moved != nullptr && p != nullptr) std::memcpy(moved, p, std::min(size, early_room::size_of(p)));
  return moved;
}

std::size_t first_usable_size(void* p) noexcept {
  if (early.owns(p)) return early_room::size_of(p);
  find_next_malloc();
  return is_searching ? 0 : found.usable_size(p);
}

void* first_allocate_as(std::size_t size, std::size_t alignment, block_origin origin) noexcept {
  find_next_malloc();
  if (is_searching) return early.allocate(size, alignment);
  if (next.allocate_as != nullptr) return next.allocate_as(size, alignment, origin);
  return alignment == 0 ? next.allocate(size) : next.allocate_aligned(alignment, size);
}

void first_deallocate_as(void* p, block_origin origin, std::size_t size, std::size_t alignment) noexcept {
  if (early.owns(p)) return;
  find_next_malloc();
  if (is_searching) return;
  if (found.deallocate_as != nullptr) return found.deallocate_as(p, origin, size, alignment);
  found.deallocate(p);
}

/// glibc's, of which each answer is a trial.
std::size_t glibc_usable_size(void* p) noexcept {
  const std::size_t bytes = found.usable_size(p);
  if (p != nullptr) glibc_blocks.try_on(p, bytes);
  return bytes;
}

template <class Function>
void look_up(Function*& function, const char* name) noexcept {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  if (function == nullptr)
    die("heapwright-probe: the program's malloc has not all of malloc, free, calloc, realloc, memalign, "
        "malloc_usable_size");
}

/// The library, or program, that a function is in.
template <class Function>
const void* object_of(Function* function) noexcept {
  Dl_info found_in{};
  return ::dladdr(reinterpret_cast<const void*>(function), &found_in) != 0 ? found_in.dli_fbase : nullptr;
}

bool is_glibc(void* (*allocate)(std::size_t size) noexcept) noexcept {
  return &gnu_get_libc_version != nullptr && object_of(allocate) == object_of(&gnu_get_libc_version);
}

/// Others have a nallocx too, which says what blocks usually have.
bool is_jemalloc(void* (*allocate)(std::size_t size) noexcept) noexcept {
  return nallocx != nullptr && mallctl != nullptr && object_of(allocate) == object_of(nallocx) &&
         object_of(allocate) == object_of(mallctl);
}

}  // namespace

constinit promised_sizes promised;
constinit glibc_block_sizes glibc_blocks;

void glibc_block_sizes::try_on(const void* p, std::size_t bytes) noexcept {
  std::uint32_t left = state_.load(std::memory_order_relaxed);
  if (left == off || left == on) return;
  const std::size_t word = word_before(p);
  if ((word & is_mapped) != 0) return;
  if (bytes_in(word) != bytes) return state_.store(off, std::memory_order_relaxed);
  state_.compare_exchange_strong(left, left - 1, std::memory_order_relaxed);
}

bool is_finding_next_malloc() noexcept { return is_searching; }

void promised_sizes::learn(std::size_t (*usable_size_of)(std::size_t requested, int flags)) noexcept {
  for (std::size_t i = 0; i < promises_.size(); ++i) {
    const std::size_t bytes = usable_size_of(i == 0 ? 1 : i * step, 0);
    const bool is_one_step = i == 0 || usable_size_of(i * step - step + 1, 0) == bytes;
    if (!is_one_step || bytes < i * step || bytes > UINT16_MAX) return;
    promises_[i] = {static_cast<std::uint16_t>(bytes), static_cast<std::uint16_t>(segment::size_scale::index(bytes))};
    end_ = i * step + 1;
  }
}

constinit next_malloc next{first_allocate,    first_deallocate,       first_allocate_zeroed,
                           first_reallocate,  first_allocate_aligned, first_usable_size,
                           first_allocate_as, first_deallocate_as,    nullptr};

void find_next_malloc() noexcept {
  if (is_searching || next.allocate != first_allocate) return;
  is_searching = true;
  next_malloc n{};
  look_up(n.allocate, "malloc");
  look_up(n.deallocate, "free");
  look_up(n.allocate_zeroed, "calloc");
  look_up(n.reallocate, "realloc");
  look_up(n.allocate_aligned, "memalign");
  look_up(n.usable_size, "malloc_usable_size");
  const bool is_ours =
      &heapwright_size_for_probe != nullptr && object_of(&heapwright_size_for_probe) == object_of(n.allocate);
  if (is_ours) {
    n.usable_size = &heapwright_size_for_probe;
    n.allocate_as = &heapwright_allocate_for_probe;
    n.deallocate_as = &heapwright_deallocate_for_probe;
    n.set_origin = &heapwright_set_origin_for_probe;
  }
  found = n;
  (void)n.usable_size(nullptr);  // tcmalloc allocates when it is first asked: now that comes from the early room
  if (early.is_used()) {         // blocks from there may come back at any time
    n.deallocate = first_deallocate;
    n.reallocate = first_reallocate;
    n.usable_size = first_usable_size;
    if (n.deallocate_as != nullptr) n.deallocate_as = first_deallocate_as;
  } else if (is_glibc(n.allocate)) {
    n.usable_size = glibc_usable_size;
    glibc_blocks.begin_trial();
  }
  is_searching = false;
  next = n;
  find_next_mappings();
  if (is_jemalloc(n.allocate)) promised.learn(nallocx);
}

}  // namespace heapwright::probe
