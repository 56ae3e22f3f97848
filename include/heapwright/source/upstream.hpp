// Memory that somebody else manages: any allocator, by reference; operator new; malloc. Each is an
// allocator itself, so that whatever draws from a source can draw from these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/source/process_malloc.hpp>

namespace heapwright {

/// Refers to an allocator that others use too, and has its capabilities. Copies refer to the same
/// one, which must outlive them. As thread-safe as that one.
template <allocator A>
class upstream : public forwards<upstream<A>, true, A> {
  using base = forwards<upstream, true, A>;
  friend base;

 public:
  /// Refers to `shared`. Not explicit: where an allocator by value is wanted, naming one that
  /// exists means sharing it.
  upstream(A& shared) noexcept : shared_(&shared) {}

  using base::allocate;

  /// As that allocator does.
  [[nodiscard]] void* allocate(layout l) noexcept { return shared_->allocate(l); }

  using base::deallocate;

  /// As that allocator does.
  void deallocate(void* p, layout l) noexcept { shared_->deallocate(p, l); }

  /// The allocator that it refers to.
  [[nodiscard]] A& get() const noexcept { return *shared_; }

  friend bool operator==(upstream a, upstream b) noexcept { return a.shared_ == b.shared_; }

 private:
  template <class F>
  static void each_part(const upstream& self, F f) noexcept {
    f(*self.shared_);
  }

  template <class F>
  static auto with_owner(const upstream& self, const void*, F f) noexcept {
    return f(*self.shared_);
  }

  A* shared_;
};

/// The program's operator new, which may be replaced. Thread-safe. Null when it has no memory: its
/// new-handler has been called then.
class upstream_new {
 public:
  /// As the concept allocator says. Null when operator new has no memory.
  [[nodiscard]] void* allocate(layout l) noexcept {
    // The aligned forms of GCC 12 round the size up without a look at overflow.
    const std::size_t size = std::min<std::size_t>(l.size, PTRDIFF_MAX);
    if (l.alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(size, std::nothrow);
    return ::operator new(size, std::align_val_t{l.alignment}, std::nothrow);
  }

  /// As the concept allocator says.
  void deallocate(void* p, layout l) noexcept {
    if (l.alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete(p);
    } else {
      ::operator delete(p, std::align_val_t{l.alignment});
    }
  }

  friend bool operator==(upstream_new, upstream_new) noexcept { return true; }
};

/// The process's malloc. Thread-safe.
class upstream_malloc {
 public:
  /// As the concept allocator says. Null when malloc has no memory.
  [[nodiscard]] void* allocate(layout l) noexcept {
    const std::size_t size = l.size == 0 ? 1 : l.size;
    return is_aligned_more(l) ? detail::malloc_aligned(l.alignment, size) : std::malloc(size);
  }

  /// Calls free; or, for an alignment above default_alignment, what Windows has to free such
  /// blocks.
  void deallocate(void* p, layout l) noexcept { is_aligned_more(l) ? detail::free_aligned(p) : std::free(p); }
#ifndef _WIN32
  /// Calls free. Not on Windows.
  void deallocate(void* p) noexcept { std::free(p); }
#endif

  friend bool operator==(upstream_malloc, upstream_malloc) noexcept { return true; }

 private:
  [[nodiscard]] static bool is_aligned_more(layout l) noexcept { return l.alignment > default_alignment; }
};

/// Has nothing: what draws from it is left with what it was given at the start.
class no_source {
 public:
  /// Null.
  [[nodiscard]] void* allocate(layout) noexcept { return nullptr; }

  /// Only null can come here.
  void deallocate(void*, layout) noexcept {}
  friend bool operator==(no_source, no_source) noexcept { return true; }
};

static_assert(allocator<upstream_new> && allocator<upstream_malloc> && allocator<no_source>);

}  // namespace heapwright
