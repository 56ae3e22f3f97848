// Linux as a platform for tests: its pages have the size that a test asks for, its calls are
// counted, the n-th of them fails on request, and time stands still until a test moves it. Checks
// what the heap owes a platform: whole pages, aligned.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>
#include <heapwright/platform/native.hpp>

namespace heapwright::testing {

template <std::size_t PageSize>
class fake_os : public native_os {
 public:
  static std::size_t page_size() noexcept { return PageSize; }

  static void* map(std::size_t bytes) noexcept {
    check(nullptr, bytes);
    if (fails()) return nullptr;
    const std::size_t slack = PageSize - native_os::page_size();
    auto* raw = static_cast<std::byte*>(native_os::map(bytes + slack));
    if (raw == nullptr || slack == 0) return raw;
    auto* const p = reinterpret_cast<std::byte*>(align_up(address_of(raw), PageSize));
    if (p > raw) native_os::unmap(raw, static_cast<std::size_t>(p - raw));
    if (raw + slack > p) native_os::unmap(p + bytes, static_cast<std::size_t>(raw + slack - p));
    return p;
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    check(p, bytes);
    return !fails() && native_os::unmap(p, bytes);
  }

  static bool discard(void* p, std::size_t bytes) noexcept {
    check(p, bytes);
    return !fails() && native_os::discard(p, bytes);
  }

  static void* remap(void* p, std::size_t from, std::size_t to) noexcept {
    check(p, from);
    check(p, to);
    if (fails()) return nullptr;
#ifndef _WIN32  // it moves no pages
    if (PageSize == native_os::page_size()) return native_os::remap(p, from, to);
#endif
    void* const fresh = map(to);  // the real one would not align it
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, from);
    native_os::unmap(p, from);
    return fresh;
  }

  static std::uint64_t milliseconds() noexcept { return now.load(); }

  static constexpr std::uint64_t never = ~std::uint64_t{0};

  static inline std::atomic<std::uint64_t> now{1000};
  static inline std::atomic<std::uint64_t> calls{0};
  static inline std::atomic<std::uint64_t> fail_from{never};   ///< the first call to fail, counted like `calls`
  static inline std::atomic<std::uint64_t> fail_until{never};  ///< the first call after it to succeed again

 private:
  static void check(void* p, std::size_t bytes) noexcept {
    EXPECT_TRUE(is_aligned(p, PageSize)) << p;
    EXPECT_EQ(bytes % PageSize, 0u);
    EXPECT_GT(bytes, 0u);
  }

  static bool fails() noexcept {
    const std::uint64_t call = calls.fetch_add(1);
    return call >= fail_from.load() && call < fail_until.load();
  }
};

/// A heap with the cache of one thread, for tests that need no threads.
template <class Heap>
struct single_threaded {
  typename Heap::cache* cache = heap().open_cache();

  // Static: a heap is never destroyed.
  static Heap& heap() {
    static constinit Heap instance;
    return instance;
  }

  /// The cache may be the one that the last test left, with its cache.
  single_threaded() { heap().trim(*cache); }
  ~single_threaded() { heap().close_cache(cache); }

  void* allocate(std::size_t size) {
    void* p = cache->pop(size);
    return p != nullptr ? p : heap().allocate_slow(*cache, size);
  }

  void* allocate_aligned(std::size_t size, std::size_t alignment) {
    return heap().allocate_aligned(*cache, size, alignment);
  }

  void free(void* p) {
    if (!cache->push(p)) heap().deallocate_slow(*cache, p);
  }
};

}  // namespace heapwright::testing
