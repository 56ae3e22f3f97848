// How a page heap gets address space from the system, and returns it: what the recipe asks for
// beside bare pages.
//
// The system may refuse each of them. Reserved huge pages run out, transparent ones are switched
// off, locking has a quota, a NUMA node is missing. Then the heap uses what it gets, and
// heap_figures count how much memory has which property.
//
// Memory is in pages of the grain: the system's page, or 2 MiB where the recipe asks for reserved
// huge pages; the system takes those back as a whole only, and those that stand in for them are
// treated alike.
#pragma once

#include <algorithm>
#include <cstddef>

#include <heapwright/heap/figures.hpp>
#include <heapwright/heap/recipe.hpp>
#include <heapwright/source/os_pages.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class page_supply {
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr std::size_t huge_page = 2 * MiB;

 public:
  /// Bytes; a power of two.
  [[nodiscard]] static std::size_t grain() noexcept {
    if constexpr (R.pages.huge == huge_page_use::reserved) return std::max(OS::page_size(), huge_page);
    return OS::page_size();
  }

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept { return align_up(bytes, grain()); }

  /// What is mapped at once: whole huge pages, where the recipe wants any.
  [[nodiscard]] static std::size_t mapped_for(std::size_t bytes) noexcept {
    return align_up(bytes, R.pages.huge == huge_page_use::none ? grain() : std::max(grain(), huge_page));
  }

  /// Zeroed memory aligned to the grain, `bytes` as mapped_for says; null when there is none.
  [[nodiscard]] static void* map(std::size_t bytes, heap_figures& figures) noexcept {
    void* const p = map_pages(bytes, figures);
    if (p == nullptr) return nullptr;
    if constexpr (R.pages.numa_node >= 0) {
      if (OS::bind(p, bytes, R.pages.numa_node)) figures.bound_total.add(bytes);
    }
    return p;
  }

  /// Brings pages of what map returned into memory: locks them, and touches them where the recipe
  /// says so.
  static void make_resident(void* p, std::size_t bytes, bool is_locked, heap_figures& figures) noexcept {
    if (is_locked && os_pages<OS>::lock(p, bytes)) figures.locked_total.add(bytes);
    if constexpr (R.pages.prefault) OS::touch(p, bytes);
  }

 private:
  static void* map_pages(std::size_t bytes, heap_figures& figures) noexcept {
    if constexpr (R.pages.huge == huge_page_use::none) return OS::map(bytes);
    if constexpr (R.pages.huge == huge_page_use::reserved) {
      if (void* const p = OS::map_huge(bytes)) {
        figures.huge_reserved_total.add(bytes);
        return p;
      }
    }
    void* const p = os_pages<OS>{}.allocate({bytes, huge_page});
    if (p != nullptr && OS::advise_huge(p, bytes)) figures.huge_transparent_total.add(bytes);
    return p;
  }
};

}  // namespace heapwright
