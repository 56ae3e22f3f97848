// Between the kit and std::pmr, both ways: an allocator as a memory resource for pmr containers,
// and a memory resource as a source.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>

namespace heapwright {

/// An allocator as a memory resource. Owns A; to share one, own an `upstream<A>`. Throws
/// std::bad_alloc when A has no memory. Equal to itself only. As thread-safe as A.
template <allocator A>
class resource final : public std::pmr::memory_resource {
 public:
  /// Arguments are those of A.
  template <class... Arguments>
  explicit resource(Arguments&&... arguments) : memory_(make(std::forward<Arguments>(arguments)...)) {}

  /// The allocator that it owns.
  [[nodiscard]] A& memory() noexcept { return memory_; }

 private:
  // A member initializer alone would say that a copy constructor is deleted.
  template <class... Arguments>
  static A make(Arguments&&... arguments) {
    constexpr bool can_be_made = std::is_constructible_v<A, Arguments...>;
    static_assert(can_be_made,
                  "resource: it owns its allocator, and an A cannot be made of these arguments. To share an allocator "
                  "that is there: resource<upstream<A>>");
    if constexpr (can_be_made) return A(std::forward<Arguments>(arguments)...);
  }

  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const p = memory_.allocate({size, alignment});
    if (p == nullptr) [[unlikely]]
      throw std::bad_alloc();
    return p;
  }

  void do_deallocate(void* p, std::size_t size, std::size_t alignment) override {
    memory_.deallocate(p, {size, alignment});
  }

  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  A memory_;
};

/// A memory resource as an allocator: where the kit draws from what std::pmr has. The resource must
/// outlive it. Null when the resource throws.
class upstream_resource {
 public:
  /// Draws from this resource, which must outlive the object.
  explicit upstream_resource(std::pmr::memory_resource& from) noexcept : from_(&from) {}

  /// As the concept allocator says. Null when the resource throws.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::size_t size = rounded(l);
    if (size < l.size) return nullptr;
    try {
      return from_->allocate(size, l.alignment);
    } catch (...) {
      return nullptr;
    }
  }

  /// `p` came from allocate(l). Null does nothing.
  void deallocate(void* p, layout l) noexcept {
    if (p != nullptr) from_->deallocate(p, rounded(l), l.alignment);
  }

  friend bool operator==(upstream_resource a, upstream_resource b) noexcept { return a.from_->is_equal(*b.from_); }

 private:
  /// The pool resources of GCC 12 align only sizes that are multiples of the alignment, as those of
  /// C++ types are.
  [[nodiscard]] static std::size_t rounded(layout l) noexcept { return align_up(l.size, l.alignment); }

  std::pmr::memory_resource* from_;
};

}  // namespace heapwright
