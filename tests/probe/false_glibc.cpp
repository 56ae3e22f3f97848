// A malloc that passes for glibc's by its names, and has something else in the word before a block.
// Preloaded below the probe: that word must not be taken for the block's size.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

void* __libc_malloc(std::size_t size);
void __libc_free(void* p);

[[gnu::visibility("default")]] const char* gnu_get_libc_version() { return "2.99"; }

namespace {

struct header {
  void* taken;
  std::size_t bytes;
  std::size_t unused;
  std::size_t looks_like_a_size;
};

header& header_of(void* p) { return static_cast<header*>(p)[-1]; }

void* get(std::size_t size, std::size_t alignment) {
  const std::size_t bytes = (size + 15) & ~std::size_t{15};
  if (bytes < size || bytes + alignment + sizeof(header) < bytes) return nullptr;
  void* const taken = __libc_malloc(bytes + alignment + sizeof(header));
  if (taken == nullptr) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(taken) + sizeof(header);
  void* const p = reinterpret_cast<void*>((begin + alignment - 1) & ~(alignment - 1));
  header_of(p) = {taken, bytes, 0, bytes + 72};
  return p;
}

void release(void* p) {
  if (p != nullptr) __libc_free(header_of(p).taken);
}

}  // namespace

[[gnu::visibility("default")]] void* malloc(std::size_t size) { return get(size, 16); }
[[gnu::visibility("default")]] void free(void* p) { release(p); }
[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  void* const p = __builtin_mul_overflow(count, size, &bytes) ? nullptr : get(bytes, 16);
  return p != nullptr ? std::memset(p, 0, bytes) : nullptr;
}
[[gnu::visibility("default")]] std::size_t malloc_usable_size(void* p) { return p != nullptr ? header_of(p).bytes : 0; }
[[gnu::visibility("default")]] void* realloc(void* p, std::size_t size) {
  void* const moved = get(size, 16);
  if (moved == nullptr || p == nullptr) return moved;
  const std::size_t before = header_of(p).bytes;
  std::memcpy(moved, p, before < size ? before : size);
  release(p);
  return moved;
}
[[gnu::visibility("default")]] void* memalign(std::size_t alignment, std::size_t size) {
  return get(size, alignment < 32 ? 32 : alignment);
}

}  // extern "C"
