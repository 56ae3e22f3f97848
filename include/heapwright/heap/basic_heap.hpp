// A heap of one's own, beside the process's malloc: with a recipe, a name and a limit of its own,
// and an end, at which all its memory goes back at once, whatever is still in use.
//
// <heapwright/heap.hpp> gives it its platform and its short name.
//
// States of a thread towards a heap with thread caches:
//   unregistered   its slot is not this heap's: the first operation opens a cache and sets the slot
//   registered     operations go to its cache
//   uncached       the thread is ending, there are too many heaps, or no memory: operations borrow
//                  a cache, under a lock
// In a heap for one thread, or for one at a time, every operation borrows the only cache.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <heapwright/core/text.hpp>
#include <heapwright/heap/census.hpp>
#include <heapwright/heap/heap_core.hpp>
#include <heapwright/heap/heap_slots.hpp>

namespace heapwright {

/// An allocator (docs/concepts.md) that owns all it hands out. Thread-safety: as recipe.concurrency
/// says; destruction is the business of one thread, with no other in the heap. Blocks are aligned
/// to 16 bytes unless asked otherwise; where recipe.classes has odd multiples of 8, those to 8.
/// Neither copied nor moved. A heap without blocks takes a few
/// KiB of memory, and a MiB of address space.
template <const recipe& R, platform OS>
class basic_heap {
  using core = heap_core<R, OS>;
  using cache = typename core::cache;
  using classes = class_table<R>;
  using slots = heap_slots<OS>;

  static_assert(!R.notes_requests || classes::natural_alignment == default_alignment,
                "recipe.notes_requests: not with classes that are odd multiples of 8: a block of 16 bytes would lie in "
                "one of 24");

  static constexpr bool has_caches = R.concurrency == concurrency_mode::thread_caching;
  static constexpr bool is_local = R.concurrency == concurrency_mode::single_threaded;

 public:
  using platform_type = OS;                                      ///< the system it runs on
  static constexpr std::uint64_t default_limit = R.pages.limit;  ///< bytes in memory for blocks

  /// `name` must outlive the heap. `limit`: bytes in memory for blocks, instead of
  /// recipe.pages.limit. Without memory for its records the heap is there, but has no memory for
  /// blocks either.
  explicit basic_heap(const char* name = "", std::uint64_t limit = default_limit) noexcept : name_(name) {
    start(limit);
  }

  /// Has its blocks in this memory, whole pages of it, and nowhere else: an array, a mapped file,
  /// memory that other processes see. Its records are apart, in this process. The memory must
  /// outlive the heap, and is then as the blocks have left it. attached() tells whether it was
  /// large enough.
  basic_heap(void* memory, std::size_t bytes, const char* name = "") noexcept : name_(name) {
    start(R.pages.limit);
    if (core_ == nullptr || core_->pages().adopt(memory, bytes)) return;
    core_->pages().set_limit(0);
    has_memory_ = false;
  }

  /// An array of char could be the memory or the name: pass a void* or a const char*.
  template <std::same_as<char> Char>
  basic_heap(Char* memory_or_name, std::uint64_t bytes_or_limit, const char* name = "") = delete;

  /// False: every request gets null, as there was no memory for the heap's records, or the caller's
  /// memory has no room for a block.
  [[nodiscard]] bool attached() const noexcept { return core_ != nullptr && has_memory_; }

  basic_heap(const basic_heap&) = delete;
  basic_heap& operator=(const basic_heap&) = delete;

  /// Gives all memory back. No thread may be in the heap, and none may use its blocks any more.
  ~basic_heap() {
    if (core_ == nullptr) return;
    if constexpr (!is_local) slots::remove(registration_);
    core_->pages().unmap_all();
    OS::unmap(core_, mapped_for_core());
  }

  // --- blocks

  /// `size` bytes, at least 1, aligned to 16; null when there is no memory, the limit is reached,
  /// or beyond PTRDIFF_MAX.
  [[nodiscard]] void* allocate(std::size_t size) noexcept {
    if constexpr (core::is_sealed) return allocate_sealed(size, 0);
    const std::size_t with_note = noted(size);
    void* const p = with_cache([&](cache& mine) -> void* {
      if (void* const popped = mine.pop(with_note)) [[likely]]
        return popped;
      return core_->allocate_slow(mine, with_note);
    });
    return note(p, size);
  }

  /// `l.size` bytes, aligned to `l.alignment`. Null as above.
  [[nodiscard]] void* allocate(layout l) noexcept {
    if (l.alignment <= classes::natural_alignment) return allocate(l.size);
    if constexpr (core::is_sealed) return allocate_sealed(l.size, l.alignment);
    const std::size_t with_note = noted(l.size);
    void* const p = with_cache([&](cache& mine) { return core_->allocate_aligned(mine, with_note, l.alignment); });
    return note(p, l.size);
  }

  /// `size` bytes that read as zero, aligned to 16. Null as from allocate.
  [[nodiscard]] void* allocate_zeroed(std::size_t size) noexcept {
    if constexpr (core::is_sealed) {
      void* const p = allocate_sealed(size, 0);
      return p == nullptr || R.hardening.check_reuse ? p : std::memset(p, 0, size);
    }
    const std::size_t with_note = noted(size);
    void* const zeroed = with_cache([&](cache& mine) {
      if (void* const popped = mine.pop(with_note)) return std::memset(popped, 0, with_note);
      return core_->allocate_zeroed_slow(mine, with_note);
    });
    return note(zeroed, size);
  }

  /// From any thread. Null is ignored. A pointer that is no block of this heap is ignored, or ends
  /// the process in checked builds and where recipe.hardening says so.
  void deallocate(void* p) noexcept {
    if constexpr (core::is_sealed) return deallocate_sealed(p, {});
    with_cache([&](cache& mine) {
      if (!mine.push(p)) [[unlikely]]
        core_->deallocate_slow(mine, p);
      return nullptr;
    });
  }

  /// As deallocate(p): the layout is not looked at, but for its size where recipe.hardening.sealed
  /// says so.
  void deallocate(void* p, [[maybe_unused]] layout l) noexcept {
    if constexpr (core::is_sealed) return deallocate_sealed(p, {.size = l.size});
    deallocate(p);
  }

  /// A block of `size` bytes with the contents of p, which is freed if the block is another; p may
  /// be null. A size of zero frees p and returns null. Null otherwise: no memory, p is as it was;
  /// or p is no block of this heap, which ends the process in checked builds and where
  /// recipe.hardening says so.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept {
    if (p == nullptr) return allocate(size);
    if (size == 0) {
      deallocate(p);
      return nullptr;
    }
    if constexpr (core::is_sealed)
      return with_cache([&](cache& mine) { return core_->reallocate_sealed(mine, p, size); });
    const std::size_t with_note = noted(size);
    void* const moved = with_cache([&](cache& mine) { return core_->reallocate(mine, p, with_note); });
    return note(moved, size);
  }

  /// Bytes that may be used behind p, a live block; 0 for memory that is not this heap's. O(1).
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept {
    const std::size_t bytes = core_ == nullptr ? 0 : core_->usable_size(p);
    if constexpr (core::is_sealed) return bytes == 0 ? 0 : core_->size_of_sealed(p);
    return bytes == 0 ? 0 : bytes - request_note::bytes_in<R>;
  }

  /// True for each live block, false for memory that is not this heap's; either for a pointer into
  /// a block. Any pointer value will do. O(1).
  [[nodiscard]] bool owns(const void* p) const noexcept { return core_ != nullptr && core_->owns(p); }

  // --- all of the heap

  /// Gives back to the system what is free and not in another thread's cache. Returns the bytes.
  std::size_t trim() noexcept {
    std::size_t bytes = 0;
    with_cache([&](cache& mine) {
      bytes = core_->trim(mine);
      return nullptr;
    });
    return bytes;
  }

  /// Bytes in memory for blocks from now on. Blocks in use stay; new ones are had as soon as there
  /// is room.
  void set_limit(std::uint64_t bytes) noexcept {
    if (core_ != nullptr) core_->pages().set_limit(bytes);
  }

  /// Locks in memory what the heap has in memory, blocks and free memory, so that touching it
  /// causes no page fault and it is not swapped out. Until unlock_pages, memory that the heap takes
  /// into use later is locked as it comes, as far as the system allows, and free memory goes back
  /// only by trim, to stay below the limit, or where the recipe says `at_once`. The heap's own
  /// records are not locked.
  ///
  /// False: the system refused (RLIMIT_MEMLOCK); a heap that was not locked has no locked page
  /// then, and works as before. Called again, it tells whether all is locked, and locks what was
  /// refused since. A forked child has no locked pages. Thread-safety as allocate; others wait for
  /// it in their slow steps. Complexity: a system call for each piece of memory between free memory
  /// that was given back, and a page fault for each page that was not touched yet.
  [[nodiscard]] bool lock_pages() noexcept {
    if (core_ == nullptr) return false;
    return alone([&] { return core_->pages().lock_pages(); });
  }

  /// Undoes lock_pages, or what recipe.pages.locked says. The heap's end does so too, for memory of
  /// the caller. False: the system refused (it has no more mappings); the heap counts as locked.
  [[nodiscard]] bool unlock_pages() noexcept {
    if (core_ == nullptr) return true;
    return alone([&] { return core_->pages().unlock_pages(); });
  }

  /// As given to the constructor.
  [[nodiscard]] const char* name() const noexcept { return name_; }

  /// Where each byte of the heap is. Every other thread waits for the time that this takes, as soon
  /// as its free list does not suffice: what threads keep is counted block by block.
  [[nodiscard]] heap_statistics statistics() noexcept {
    if (core_ == nullptr) return {.name = name_};
    return census<R, OS>(*core_).statistics(name_);
  }

  /// Calls f(std::uint32_t cache, std::uint64_t bytes) for what each thread keeps for its next
  /// requests, and for what threads that have ended have left to the next. The same holds as for
  /// statistics; f must not call this heap.
  template <class F>
  void for_each_cache(F f) noexcept {
    if (core_ == nullptr) return;
    census<R, OS>(*core_).for_each_cache(f);
  }

  /// Calls f(const void* block, std::size_t bytes) for each block in use, by address. Exact while
  /// no other thread is in the heap; otherwise a block that comes or goes meanwhile may be seen or
  /// not. f must not call this heap. False: no memory to do it in.
  template <class F>
  [[nodiscard]] bool for_each_block(F f) noexcept {
    if (core_ == nullptr) return true;
    return census<R, OS>(*core_).for_each_block(f);
  }

  /// Writes what is in use to a file descriptor, a line for each class of sizes and one for all
  /// that is longer: at the end of a program, what it has forgotten. With HEAPWRIGHT_DEFAULT_MALLOC
  /// a line for each call stack. Exact as for_each_block.
  [[gnu::cold]] void write_blocks(int fd) noexcept {
    std::uint64_t count[classes::count]{};
    std::uint64_t bytes[classes::count]{};
    const bool done = for_each_block([&](const void*, std::size_t size) {
      unsigned c = 1;  // class 0 has no blocks: what has no class counts there
      while (c < classes::cut_end && classes::of(c).size != size) ++c;
      if (c == classes::cut_end) c = 0;
      ++count[c];
      bytes[c] += size;
    });
    const auto write = [&](unsigned c, const char* size) {
      text<200> line;
      line.add("heapwright: ")
          .add(shown_name(name_))
          .add(": ")
          .add(count[c])
          .add(count[c] == 1 ? " block of " : " blocks of ")
          .add(size)
          .add(", ")
          .add_bytes(bytes[c]);
      if (count[c] > 0) line.add(" in use\n").write_to(fd);
    };
    for (unsigned c = 1; c < classes::cut_end; ++c) {
      text<40> size;
      write(c, size.add(std::uint64_t{classes::of(c).size}).add(" bytes").c_str());
    }
    write(0, "more");
    if (!done)
      text<200>().add("heapwright: ").add(shown_name(name_)).add(": no memory to look at the blocks\n").write_to(fd);
  }

 private:
  /// What to ask for, so that there is room for the note; beyond all limits stays beyond.
  static constexpr std::size_t noted(std::size_t size) noexcept {
    return size > SIZE_MAX - request_note::bytes_in<R> ? size : size + request_note::bytes_in<R>;
  }

  [[nodiscard]] void* allocate_sealed(std::size_t size, std::size_t alignment) noexcept {
    return with_cache([&](cache& mine) { return core_->allocate_sealed(mine, size, block_origin::malloc, alignment); });
  }

  void deallocate_sealed(void* p, const block_claim& said) noexcept {
    with_cache([&](cache& mine) {
      core_->deallocate_sealed(mine, p, said);
      return nullptr;
    });
  }

  void* note(void* p, [[maybe_unused]] std::size_t size) const noexcept {
    if constexpr (R.notes_requests) {
      if (p != nullptr) request_note::write(p, core_->usable_size(p), size);
    }
    return p;
  }

  void start(std::uint64_t limit) noexcept {
    void* const p = OS::map(mapped_for_core());
    if (p == nullptr) return;
    OS::advise_sparse(p, mapped_for_core());
    core_ = static_cast<core*>(p);  // all zero is one, and its constructor would write to all of it
    core_->pages().set_limit(limit);
    if constexpr (!is_local) registration_ = slots::add(this, how);
  }

  static std::size_t mapped_for_core() noexcept { return os_pages<OS>::rounded(sizeof(core)); }

  /// f(cache&) with the calling thread's cache, or a borrowed one; null for a heap that has no
  /// core.
  template <class F>
  [[gnu::always_inline]] void* with_cache(F f) noexcept {
    if constexpr (has_caches) {
      if (void* const mine = slots::cache_of(registration_)) [[likely]]
        return f(*static_cast<cache*>(mine));
      return with_new_cache(f);
    } else {
      if (core_ == nullptr) return nullptr;
      return core_->with_borrowed(f);
    }
  }

  template <class F>
  [[gnu::noinline, gnu::cold]] void* with_new_cache(F f) noexcept {
    if (core_ == nullptr) return nullptr;
    cache* const mine = slots::may_open(registration_) ? core_->open_cache() : nullptr;
    if (mine == nullptr) return core_->with_borrowed(f);
    slots::set_cache(registration_, mine);
    return f(*mine);
  }

  /// f(), while no other thread is in the heap, where all of it has one lock.
  template <class F>
  auto alone(F f) noexcept {
    if constexpr (has_caches) {
      return f();
    } else {
      return core_->with_borrowed([&](cache&) { return f(); });
    }
  }

  static basic_heap& of(void* self) noexcept { return *static_cast<basic_heap*>(self); }

  static constexpr typename slots::operations how{
      .close_cache = [](void* self, void* c) noexcept { of(self).core_->close_cache(static_cast<cache*>(c)); },
      .before_fork = [](void* self) noexcept { of(self).core_->lock_all(); },
      .after_fork_in_parent = [](void* self) noexcept { of(self).core_->unlock_all(); },
      .after_fork_in_child = [](void* self,
                                void* c) noexcept { of(self).core_->after_fork_in_child(static_cast<cache*>(c)); }};

  const char* name_;
  core* core_ = nullptr;
  bool has_memory_ = true;
  typename slots::registration registration_;
};

}  // namespace heapwright
