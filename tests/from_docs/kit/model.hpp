// What docs/concepts.md promises of every allocator, as a model: a block is aligned, does not
// overlap another live block, and keeps what the program wrote to it. Written from the
// documentation alone, without the code.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <vector>

#include <heapwright/core/concepts.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define FROM_DOCS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FROM_DOCS_ASAN 1
#endif
#endif
#ifndef FROM_DOCS_ASAN
#define FROM_DOCS_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define FROM_DOCS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FROM_DOCS_TSAN 1
#endif
#endif
#ifndef FROM_DOCS_TSAN
#define FROM_DOCS_TSAN 0
#endif

namespace from_docs {

using heapwright::layout;
using random_bits = std::mt19937;

inline bool lies_at(const void* p, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}
inline std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// The live blocks of one allocator. Fills each with a pattern of its own, and looks at the pattern
/// when the block is freed.
class live_blocks {
 public:
  struct block {
    std::byte* at;
    layout asked;
    unsigned char mark;
  };

  void add(void* p, layout asked);
  /// Removes the i-th block from the model, after a look at its contents. The caller frees it.
  block remove(std::size_t i);
  /// As remove, but the block was freed by a reset or a rewind.
  void forget_from(std::size_t i);
  /// The block has changed its size in place.
  void resized(std::size_t i, layout to);
  void look_at(std::size_t i) const;

  const block& operator[](std::size_t i) const { return blocks_[i]; }
  std::size_t size() const { return blocks_.size(); }
  bool empty() const { return blocks_.empty(); }
  std::size_t bytes() const;

 private:
  void fill(const block& b, std::size_t from) const;

  std::vector<block> blocks_;
  std::map<const std::byte*, std::size_t> ranges_;  // of blocks that have bytes
  unsigned char next_mark_ = 1;
};

/// Any allocator behind two functions, so that the walks below are compiled once.
struct any_allocator {
  std::function<void*(layout)> allocate;
  std::function<void(void*, layout)> deallocate;
};

template <heapwright::allocator A>
any_allocator refer_to(A& a) {
  return {[&a](layout l) { return a.allocate(l); }, [&a](void* p, layout l) { a.deallocate(p, l); }};
}

/// As above, and frees without a layout.
template <class A>
  requires heapwright::can_deallocate_unsized<A>
any_allocator refer_to_unsized(A& a) {
  return {[&a](layout l) { return a.allocate(l); }, [&a](void* p, layout) { a.deallocate(p); }};
}

using layouts = std::function<layout(random_bits&)>;

/// Sizes 0, 1, odd and large up to `largest`; alignments 1 to `most_aligned`. Few sizes are
/// multiples of the alignment.
layouts any_layout(std::size_t largest, std::size_t most_aligned = 64);
layouts always(layout l);

/// Allocates and frees in the given order, in the end everything. Null is allowed. Returns how many
/// requests got memory.
enum class order { last_first, first_first, random };
std::size_t walk(const any_allocator& a, const layouts& next, order frees, unsigned steps = 400, unsigned seed = 1);

/// All three orders.
inline void walk_all(const any_allocator& a, const layouts& next, unsigned steps = 300) {
  for (const order frees : {order::last_first, order::first_first, order::random}) {
    EXPECT_GT(walk(a, next, frees, steps), 0u);
  }
}

/// A source that holds its callers to the concept: each free names a live block and the layout of
/// its request. Fails beyond `limit` requests. Nothing may be live at its end.
class strict_source {
 public:
  explicit strict_source(std::size_t most_requests = SIZE_MAX) : limit(most_requests) {}
  strict_source(const strict_source&) = delete;
  strict_source& operator=(const strict_source&) = delete;
  ~strict_source();

  void* allocate(layout l) noexcept;
  void deallocate(void* p, layout l) noexcept;

  std::size_t live() const { return live_.size(); }
  std::size_t live_bytes() const;
  std::size_t largest_live() const;

  std::size_t limit;
  std::vector<layout> requests;

 private:
  std::map<void*, layout> live_;
};

/// A buffer of exactly `size` bytes, `offset` bytes beyond an address that is aligned to 64. The
/// bytes around it are watched.
class odd_buffer {
 public:
  odd_buffer(std::size_t size, std::size_t offset);
  ~odd_buffer();
  odd_buffer(const odd_buffer&) = delete;
  odd_buffer& operator=(const odd_buffer&) = delete;

  std::span<std::byte> span() const { return {begin_, size_}; }
  bool contains(const void* p, std::size_t bytes) const {
    const auto* const at = static_cast<const std::byte*>(p);
    return at >= begin_ && at + bytes <= begin_ + size_;
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* begin_;
  std::size_t size_;
};

}  // namespace from_docs
