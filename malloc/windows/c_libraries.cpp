// What the entries do is what Microsoft documents of the functions, with errno where it says so.
#include "c_libraries.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "process_heap.hpp"

namespace heapwright::process {

constinit std::array<c_library, c_library::most> c_libraries{};

namespace {

/// What stands in for the functions of c_libraries[K].
template <unsigned K>
struct entries {
  static void* malloc(std::size_t size) noexcept { return or_no_memory(allocate(size)); }

  static void free(void* p) noexcept {
    if (!deallocate(p)) library().free(p);
  }

  static void* calloc(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    return or_no_memory(allocate_zeroed(bytes));
  }

  static void* realloc(void* p, std::size_t size) noexcept {
    if (p == nullptr) return malloc(size);
    const std::size_t usable = usable_size(p);
    if (usable == 0) return library().realloc(p, size);
    if (size == 0) return free(p), nullptr;
    return or_no_memory(reallocate(p, usable, size));
  }

  /// Bytes that may be used, which may be more than were asked for.
  static std::size_t msize(void* p) noexcept {
    if (p == nullptr) return set_error(EINVAL), ~std::size_t{0};
    const std::size_t usable = usable_size(p);
    return usable != 0 ? usable : library().msize(p);
  }

  static void* expand(void* p, std::size_t size) noexcept {
    if (p == nullptr) return set_error(EINVAL), nullptr;
    const std::size_t usable = usable_size(p);
    if (usable == 0) return library().expand != nullptr ? library().expand(p, size) : nullptr;
    return size <= usable ? p : no_memory();
  }

  /// What is beyond the usable size of the block before is zero.
  static void* recalloc(void* p, std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    const std::size_t usable = p == nullptr ? 0 : usable_size(p);
    if (p != nullptr && usable == 0) return library().recalloc(p, count, size);
    return zeroed_from(usable, bytes, p == nullptr ? calloc(count, size) : realloc(p, bytes));
  }

  static void* aligned_malloc(std::size_t size, std::size_t alignment) noexcept {
    // The library takes an alignment of 0 for that of a pointer.
    if (alignment != 0 && !is_power_of_two(alignment)) return set_error(EINVAL), nullptr;
    return or_no_memory(process::allocate_aligned(size, std::max(alignment, sizeof(void*))));
  }

  static void aligned_free(void* p) noexcept {
    if (!deallocate(p)) library().aligned_free(p);
  }

  static void* aligned_realloc(void* p, std::size_t size, std::size_t alignment) noexcept {
    if (p == nullptr) return aligned_malloc(size, alignment);
    const std::size_t usable = usable_size(p);
    if (usable == 0) return library().aligned_realloc(p, size, alignment);
    if (size == 0) return aligned_free(p), nullptr;
    if (size <= usable && size >= usable / 2 && is_aligned(p, alignment)) return p;
    void* const fresh = aligned_malloc(size, alignment);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, std::min(usable, size));
    (void)deallocate(p);
    return fresh;
  }

  static void* aligned_recalloc(void* p, std::size_t count, std::size_t size, std::size_t alignment) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    const std::size_t usable = p == nullptr ? 0 : usable_size(p);
    if (p != nullptr && usable == 0) return library().aligned_recalloc(p, count, size, alignment);
    return zeroed_from(usable, bytes, aligned_realloc(p, bytes, alignment));
  }

  static std::size_t aligned_msize(void* p, std::size_t alignment, std::size_t offset) noexcept {
    if (p == nullptr) return set_error(EINVAL), ~std::size_t{0};
    const std::size_t usable = usable_size(p);
    return usable != 0 ? usable : library().aligned_msize(p, alignment, offset);
  }

  // A block whose byte at `offset` is aligned is the library's, unless its first byte is as well.

  static void* aligned_offset_malloc(std::size_t size, std::size_t alignment, std::size_t offset) noexcept {
    if (is_power_of_two(alignment) && offset % alignment == 0) return aligned_malloc(size, alignment);
    return library().aligned_offset_malloc(size, alignment, offset);
  }

  static void* aligned_offset_realloc(void* p, std::size_t size, std::size_t alignment, std::size_t offset) noexcept {
    const bool is_ours = p == nullptr || usable_size(p) != 0;
    if (is_ours && is_power_of_two(alignment) && offset % alignment == 0) return aligned_realloc(p, size, alignment);
    if (!is_ours || p == nullptr) return library().aligned_offset_realloc(p, size, alignment, offset);
    return moved_to_library(p, size, alignment, offset);
  }

  static void* aligned_offset_recalloc(void* p, std::size_t count, std::size_t size, std::size_t alignment,
                                       std::size_t offset) noexcept {
    const bool is_ours = p == nullptr || usable_size(p) != 0;
    if (is_ours && is_power_of_two(alignment) && offset % alignment == 0)
      return aligned_recalloc(p, count, size, alignment);
    if (!is_ours || p == nullptr) return library().aligned_offset_recalloc(p, count, size, alignment, offset);
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    const std::size_t usable = usable_size(p);
    return zeroed_from(usable, bytes, moved_to_library(p, bytes, alignment, offset));
  }

  static char* strdup(const char* s) noexcept {
    return s == nullptr ? nullptr : static_cast<char*>(copied(s, std::strlen(s) + 1));
  }

  static wchar_t* wcsdup(const wchar_t* s) noexcept {
    return s == nullptr ? nullptr : static_cast<wchar_t*>(copied(s, (std::wcslen(s) + 1) * sizeof(wchar_t)));
  }

  /// What the library does without memory (a new-handler, an exception) is its own.
  static void* new_object(std::size_t size) {
    void* const p = allocate(size);
    return p != nullptr ? p : library().new_object(size);
  }

 private:
  [[nodiscard]] static const c_library& library() noexcept { return c_libraries[K]; }

  static void set_error(int number) noexcept {
    if (library().error_number != nullptr) *library().error_number() = number;
  }

  [[gnu::noinline, gnu::cold]] static void* no_memory() noexcept { return set_error(ENOMEM), nullptr; }

  static void* or_no_memory(void* p) noexcept { return p != nullptr ? p : no_memory(); }

  static void* zeroed_from(std::size_t had, std::size_t bytes, void* p) noexcept {
    if (p != nullptr && bytes > had) std::memset(static_cast<std::byte*>(p) + had, 0, bytes - had);
    return p;
  }

  static void* copied(const void* from, std::size_t bytes) noexcept {
    void* const p = malloc(bytes);
    return p == nullptr ? nullptr : std::memcpy(p, from, bytes);
  }

  static void* moved_to_library(void* p, std::size_t size, std::size_t alignment, std::size_t offset) noexcept {
    void* const fresh = library().aligned_offset_malloc(size, alignment, offset);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, std::min(usable_size(p), size));
    (void)deallocate(p);
    return fresh;
  }
};

template <class Function>
void* address_of_function(Function* f) noexcept {
  return reinterpret_cast<void*>(f);
}

// One row for each function: its name, its entry, and where its original is kept.
#define HEAPWRIGHT_REDIRECT(name, entry, original) \
  redirected_function { name, {address_of_function(&entries<K>::entry)...}, original }
#define HEAPWRIGHT_KEPT(field) offsetof(c_library, field)

template <unsigned... K>
redirected_functions make_table(std::integer_sequence<unsigned, K...>) noexcept {
  constexpr std::size_t none = redirected_function::no_original;
  return {{
      HEAPWRIGHT_REDIRECT("malloc", malloc, none),
      HEAPWRIGHT_REDIRECT("free", free, HEAPWRIGHT_KEPT(free)),
      HEAPWRIGHT_REDIRECT("calloc", calloc, none),
      HEAPWRIGHT_REDIRECT("realloc", realloc, HEAPWRIGHT_KEPT(realloc)),
      HEAPWRIGHT_REDIRECT("_msize", msize, HEAPWRIGHT_KEPT(msize)),
      HEAPWRIGHT_REDIRECT("_expand", expand, HEAPWRIGHT_KEPT(expand)),
      HEAPWRIGHT_REDIRECT("_recalloc", recalloc, HEAPWRIGHT_KEPT(recalloc)),
      HEAPWRIGHT_REDIRECT("_malloc_base", malloc, none),
      HEAPWRIGHT_REDIRECT("_free_base", free, none),
      HEAPWRIGHT_REDIRECT("_calloc_base", calloc, none),
      HEAPWRIGHT_REDIRECT("_realloc_base", realloc, none),
      HEAPWRIGHT_REDIRECT("_msize_base", msize, none),
      HEAPWRIGHT_REDIRECT("_expand_base", expand, none),
      HEAPWRIGHT_REDIRECT("_recalloc_base", recalloc, none),
      // As libraries of Windows import them.
      HEAPWRIGHT_REDIRECT("_o_malloc", malloc, none),
      HEAPWRIGHT_REDIRECT("_o_free", free, none),
      HEAPWRIGHT_REDIRECT("_o_calloc", calloc, none),
      HEAPWRIGHT_REDIRECT("_o_realloc", realloc, none),
      HEAPWRIGHT_REDIRECT("_o__msize", msize, none),
      HEAPWRIGHT_REDIRECT("_o__expand", expand, none),
      HEAPWRIGHT_REDIRECT("_o__recalloc", recalloc, none),
      HEAPWRIGHT_REDIRECT("_o__aligned_malloc", aligned_malloc, none),
      HEAPWRIGHT_REDIRECT("_o__aligned_free", aligned_free, none),
      HEAPWRIGHT_REDIRECT("_o__strdup", strdup, none),
      HEAPWRIGHT_REDIRECT("_o__wcsdup", wcsdup, none),
      HEAPWRIGHT_REDIRECT("_aligned_malloc", aligned_malloc, none),
      HEAPWRIGHT_REDIRECT("_aligned_free", aligned_free, HEAPWRIGHT_KEPT(aligned_free)),
      HEAPWRIGHT_REDIRECT("_aligned_realloc", aligned_realloc, HEAPWRIGHT_KEPT(aligned_realloc)),
      HEAPWRIGHT_REDIRECT("_aligned_recalloc", aligned_recalloc, HEAPWRIGHT_KEPT(aligned_recalloc)),
      HEAPWRIGHT_REDIRECT("_aligned_msize", aligned_msize, HEAPWRIGHT_KEPT(aligned_msize)),
      HEAPWRIGHT_REDIRECT("_aligned_offset_malloc", aligned_offset_malloc, HEAPWRIGHT_KEPT(aligned_offset_malloc)),
      HEAPWRIGHT_REDIRECT("_aligned_offset_realloc", aligned_offset_realloc, HEAPWRIGHT_KEPT(aligned_offset_realloc)),
      HEAPWRIGHT_REDIRECT("_aligned_offset_recalloc", aligned_offset_recalloc,
                          HEAPWRIGHT_KEPT(aligned_offset_recalloc)),
      HEAPWRIGHT_REDIRECT("_strdup", strdup, none),
      HEAPWRIGHT_REDIRECT("strdup", strdup, none),
      HEAPWRIGHT_REDIRECT("_wcsdup", wcsdup, none),
      HEAPWRIGHT_REDIRECT("wcsdup", wcsdup, none),
      HEAPWRIGHT_REDIRECT("_mbsdup", strdup, none),
      // operator new, new[], delete, delete[], as Microsoft's compilers name them.
      HEAPWRIGHT_REDIRECT("??2@YAPEAX_K@Z", new_object, HEAPWRIGHT_KEPT(new_object)),
      HEAPWRIGHT_REDIRECT("??_U@YAPEAX_K@Z", new_object, none),
      HEAPWRIGHT_REDIRECT("??3@YAXPEAX@Z", free, none),
      HEAPWRIGHT_REDIRECT("??_V@YAXPEAX@Z", free, none),
      redirected_function{"_errno", {}, HEAPWRIGHT_KEPT(error_number)},
  }};
}

#undef HEAPWRIGHT_KEPT
#undef HEAPWRIGHT_REDIRECT

}  // namespace

const redirected_functions& functions_to_redirect() noexcept {
  static const redirected_functions all = make_table(std::make_integer_sequence<unsigned, c_library::most>());
  return all;
}

}  // namespace heapwright::process
