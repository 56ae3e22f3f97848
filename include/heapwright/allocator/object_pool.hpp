// A pool of objects: construction and destruction where the blocks are.
#pragma once

#include <memory>
#include <utility>

#include <heapwright/allocator/pool.hpp>

namespace heapwright {

/// Objects of type T from a pool. Not thread-safe. Objects that are alive when the pool is
/// destroyed lose their memory without being destroyed: enough for what has a trivial destructor,
/// and a way to drop a whole tree at once.
template <class T, allocator Source = upstream_malloc>
class object_pool {
 public:
  /// Draws chunks of `chunk_bytes` from `source`, a power of two. See pool.
  explicit object_pool(Source source = {}, std::size_t chunk_bytes = pool<Source>::usual_chunk) noexcept
      : blocks_(layout::of<T>(), source, chunk_bytes) {}

  /// A new T; null when the source has no more. What its constructor throws goes on to the caller,
  /// and the block is free again.
  template <class... Arguments>
  [[nodiscard]] T* make(Arguments&&... arguments) noexcept(std::is_nothrow_constructible_v<T, Arguments...>) {
    void* const p = blocks_.allocate();
    if (p == nullptr) [[unlikely]]
      return nullptr;
    if constexpr (std::is_nothrow_constructible_v<T, Arguments...>) {
      return std::construct_at(static_cast<T*>(p), std::forward<Arguments>(arguments)...);
    } else {
      block_guard guard{blocks_, p};
      T* const object = std::construct_at(static_cast<T*>(p), std::forward<Arguments>(arguments)...);
      guard.block = nullptr;
      return object;
    }
  }

  /// `object` came from make; null is ignored.
  void destroy(T* object) noexcept {
    if (object == nullptr) return;
    std::destroy_at(object);
    blocks_.deallocate(object);
  }

  /// Gives chunks without objects back to the source; returns the bytes. O(free objects + chunks).
  std::size_t trim() noexcept { return blocks_.trim(); }

  /// Frees the memory of all objects. Does not destroy them. The chunks stay. O(chunks).
  void reset() noexcept { blocks_.reset(); }

  /// Whether p points into a chunk of this pool. Any pointer value will do. O(chunks).
  [[nodiscard]] bool owns(const void* p) const noexcept { return blocks_.owns(p); }

  /// O(free objects + chunks).
  [[nodiscard]] pool_stats stats() const noexcept { return blocks_.stats(); }

 private:
  struct block_guard {
    pool<Source>& blocks;
    void* block;
    ~block_guard() {
      if (block != nullptr) blocks.deallocate(block);
    }
  };

  pool<Source> blocks_;
};

}  // namespace heapwright
