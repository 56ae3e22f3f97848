#include "process_heap.hpp"

#include <algorithm>
#include <cstring>

#include "../heap_statistics_of.hpp"

extern "C" BOOLEAN NTAPI RtlDllShutdownInProgress(void);

namespace heapwright::process {

constinit heap_type the_heap;
DWORD cache_slot = TLS_OUT_OF_INDEXES;

namespace {

constexpr cache_type no_cache = the_heap.empty_cache();

// It is never written to: it has nothing to pop and matches no owner.
constexpr cache_type* no_cache_of_its_own = const_cast<cache_type*>(&no_cache);

/// The calling thread's cache, opened if it has none yet; null when it has ended or there is no
/// memory for one.
cache_type* cache_of_this_thread() noexcept {
  if (cache_type* const mine = this_cache()) return mine != no_cache_of_its_own ? mine : nullptr;
  cache_type* const fresh = the_heap.open_cache();
  if (fresh != nullptr) ::TlsSetValue(cache_slot, fresh);
  return fresh;
}

/// The calling thread's cache, or a borrowed one.
struct any_cache : heap_type::cache_for_now {
  any_cache() noexcept : cache_for_now(the_heap, cache_of_this_thread()) {}
};

[[nodiscard]] bool is_process_ending() noexcept { return ::RtlDllShutdownInProgress() != FALSE; }

/// Blocks of the last moments of a process, when one thread is left and no lock is taken. They are
/// cut from memory of the system, and stay. In front of each lies its size.
class last_blocks {
 public:
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment) noexcept {
    alignment = std::max(alignment, default_alignment);
    size = std::max<std::size_t>(size, 1);
    if (size > PTRDIFF_MAX - chunk || alignment > PTRDIFF_MAX / 4) return nullptr;
    std::uintptr_t begin = align_up(next_ + sizeof size, alignment);
    if (begin > end_ || end_ - begin < size) {
      if (!add_range(align_up(size + alignment + sizeof size, chunk))) return nullptr;
      begin = align_up(next_ + sizeof size, alignment);
    }
    next_ = begin + size;
    auto* const p = reinterpret_cast<std::byte*>(begin);
    std::memcpy(p - sizeof size, &size, sizeof size);
    return p;
  }

  /// 0: none of these.
  [[nodiscard]] std::size_t size_of(const void* p) const noexcept {
    const bool is_here = std::any_of(
        ranges_, ranges_ + count_, [p](const range& r) { return address_of(p) >= r.begin && address_of(p) <= r.end; });
    std::size_t size = 0;
    if (is_here) std::memcpy(&size, static_cast<const std::byte*>(p) - sizeof size, sizeof size);
    return size;
  }

 private:
  static constexpr std::size_t chunk = 1 * MiB;
  static constexpr std::size_t most = 256;

  struct range {
    std::uintptr_t begin, end;
  };

  [[nodiscard]] bool add_range(std::size_t bytes) noexcept {
    void* const p = count_ < most ? windows_os::map(bytes) : nullptr;
    if (p == nullptr) return false;
    next_ = address_of(p);
    end_ = next_ + bytes;
    ranges_[count_++] = {next_, end_};
    return true;
  }

  std::uintptr_t next_ = 0, end_ = 0;
  std::size_t count_ = 0;
  range ranges_[most]{};
};

constinit last_blocks at_the_end;

}  // namespace

bool begin() noexcept {
  constexpr DWORD slots_in_record = 64;
  // A slot beyond these is none for us: it is taken, so that the next one may be.
  cache_slot = ::TlsAlloc();
  return cache_slot < slots_in_record;
}

void end_this_thread() noexcept {
  cache_type* const mine = this_cache();
  if (mine == nullptr || mine == no_cache_of_its_own) return;
  ::TlsSetValue(cache_slot, no_cache_of_its_own);
  the_heap.close_cache(mine);
}

void* allocate_slow(std::size_t size) noexcept {
  if (is_process_ending()) [[unlikely]]
    return at_the_end.allocate(size, default_alignment);
  return the_heap.allocate_slow(*any_cache(), size);
}

void* allocate_aligned(std::size_t size, std::size_t alignment) noexcept {
  if (alignment <= default_alignment) return allocate(size);
  if (is_process_ending()) [[unlikely]]
    return at_the_end.allocate(size, alignment);
  return the_heap.allocate_aligned(*any_cache(), size, alignment);
}

void* allocate_zeroed(std::size_t size) noexcept {
  if (cache_type* const mine = this_cache()) {
    if (void* const p = mine->pop(size)) return std::memset(p, 0, size);
  }
  if (is_process_ending()) [[unlikely]]
    return at_the_end.allocate(size, default_alignment);
  return the_heap.allocate_zeroed_slow(*any_cache(), size);
}

void* reallocate(void* p, std::size_t usable, std::size_t size) noexcept {
  if (is_process_ending()) [[unlikely]] {
    void* const fresh = at_the_end.allocate(size, default_alignment);
    return fresh == nullptr ? nullptr : std::memcpy(fresh, p, std::min(usable, size));
  }
  return the_heap.reallocate(*any_cache(), p, usable, size);
}

bool deallocate_slow(void* p) noexcept {
  if (p == nullptr) return true;
  if (is_process_ending()) [[unlikely]]
    return true;
  return the_heap.deallocate_slow(*any_cache(), p);
}

std::size_t usable_size(const void* p) noexcept {
  const std::size_t usable = the_heap.usable_size(p);
  return usable != 0 || !is_process_ending() ? usable : at_the_end.size_of(p);
}

std::size_t trim() noexcept { return is_process_ending() ? 0 : the_heap.trim(*any_cache()); }

malloc_statistics collect_statistics() noexcept {
  // Where other threads were ended, a lock may never be free.
  const std::uint64_t patience_ms = is_process_ending() ? 0 : 1000;
  const census<chosen_recipe, windows_os> all(the_heap, patience_ms);
  return statistics_of(the_heap, all.taken(this_cache()));
}

}  // namespace heapwright::process
