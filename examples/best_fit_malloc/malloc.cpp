// A malloc for any program from a part of the kit: best-fit heaps side by side in one range of
// address space.
//
//   LD_PRELOAD=build/release/lib/libexample_best_fit_malloc.so python3
//
// Memory that was touched stays with the process: a best-fit heap gives no pages back to the
// system.
#include <heapwright/kit.hpp>

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace {

using namespace heapwright;
using process_heap = concurrent_best_fit<best_fit_plan{.merging = merge::deferred}, 16>;

// Only what is touched takes memory. Less where a limit is set, and nothing is allocated where even
// that is refused.
std::span<std::byte> reserve() noexcept {
  for (std::size_t bytes = 1024 * GiB; bytes >= 64 * MiB; bytes /= 2) {
    void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) return {static_cast<std::byte*>(p), bytes};
  }
  return {};
}

// Begins with the first request, which may come before any constructor runs. Is never destroyed:
// others free after it would be.
process_heap& heap() noexcept {
  alignas(process_heap) static std::byte storage[sizeof(process_heap)];
  static process_heap& made = *new (storage) process_heap(reserve());
  return made;
}

[[gnu::constructor]] void survive_fork() {
  pthread_atfork([] { heap().lock_all(); }, [] { heap().unlock_all(); }, [] { heap().unlock_all(); });
}

void* or_no_memory(void* p) noexcept {
  if (p == nullptr) errno = ENOMEM;
  return p;
}

void* aligned(std::size_t alignment, std::size_t size) noexcept {
  if (is_power_of_two(alignment)) return or_no_memory(heap().allocate({size, alignment}));
  errno = EINVAL;
  return nullptr;
}

constexpr std::size_t page = 4 * KiB;

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept { return or_no_memory(heap().allocate(size)); }

void free(void* p) noexcept { heap().deallocate(p); }

void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  void* const p = __builtin_mul_overflow(count, size, &bytes) ? nullptr : heap().allocate(bytes);
  return p == nullptr ? or_no_memory(p) : std::memset(p, 0, bytes);
}

void* realloc(void* p, std::size_t size) noexcept {
  void* const moved = heap().reallocate(p, size);
  return p != nullptr && size == 0 ? nullptr : or_no_memory(moved);
}

void* reallocarray(void* p, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? or_no_memory(nullptr) : realloc(p, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return aligned(alignment, size); }

void* memalign(std::size_t alignment, std::size_t size) noexcept { return aligned(alignment, size); }

void* valloc(std::size_t size) noexcept { return aligned(page, size); }

void* pvalloc(std::size_t size) noexcept {
  const std::size_t whole_pages = align_up(std::max(size, page), page);
  return whole_pages < size ? or_no_memory(nullptr) : aligned(page, whole_pages);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const p = heap().allocate({size, alignment});
  if (p == nullptr) return ENOMEM;
  *result = p;
  return 0;
}

std::size_t malloc_usable_size(void* p) noexcept { return p == nullptr ? 0 : heap().usable_size(p); }

}  // extern "C"
