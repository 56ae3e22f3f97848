// Looks at all of a heap while it stands still: where its bytes are, which blocks are in use.
//
// While a census lives it holds every lock of the heap, so spans stay as they are and no thread
// gets beyond its own free lists. The lists go on changing: a thread that pops and pushes needs no
// lock. Their lists are followed all the same, each step only to what the page map says is a block
// of that class, so whatever is read there is harmless; blocks that move meanwhile may be counted
// or not. With no thread at work everything is exact.
//
// Between its construction and its end nothing may be asked of the heap by the same thread: it
// would wait for itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/heap/heap_core.hpp>
#include <heapwright/heap/heap_statistics.hpp>

namespace heapwright {

/// At the end of a block: how much was asked for (recipe.notes_requests).
struct request_note {
  template <const recipe& R>
  static constexpr std::size_t bytes_in = R.notes_requests ? sizeof(std::uint64_t) : 0;

  static void write(void* block, std::size_t usable, std::uint64_t requested) noexcept {
    std::memcpy(static_cast<std::byte*>(block) + usable - sizeof requested, &requested, sizeof requested);
  }

  /// A block that a thread has just got may not have been written to yet.
  [[nodiscard, gnu::no_sanitize_thread]] static std::uint64_t read(const void* block, std::size_t usable) noexcept {
    std::uint64_t requested = 0;
    std::memcpy(&requested, static_cast<const std::byte*>(block) + usable - sizeof requested, sizeof requested);
    return std::min<std::uint64_t>(requested, usable - sizeof requested);
  }
};

template <const recipe& R, platform OS>
class census {
  using core = heap_core<R, OS>;
  using classes = class_table<R>;
  using cache = typename core::cache;

 public:
  /// Waits for every lock.
  explicit census(core& of) noexcept : heap_(of) { heap_.lock_all(); }

  /// Waits no longer than so many milliseconds: a lock may be held by the code that the caller has
  /// interrupted. Without the locks only the caller's own cache may be counted, and all else is as
  /// of different moments.
  census(core& of, std::uint64_t for_ms) noexcept : heap_(of), is_locked_(of.try_lock_all(for_ms)) {}

  ~census() {
    if (is_locked_) heap_.unlock_all();
  }
  census(const census&) = delete;
  census& operator=(const census&) = delete;

  [[nodiscard]] bool is_locked() const noexcept { return is_locked_; }

  /// Bytes of the memory that is taken from the page heap.
  struct taken_bytes {
    std::uint64_t in_use_in_spans;  ///< live blocks that are cut from spans
    std::uint64_t in_use_large;     ///< live blocks that are a run of pages each
    std::uint64_t in_caches;        ///< free, kept by threads
    std::uint64_t free_in_spans;    ///< free in central free lists, and what is too short for a block
  };

  /// Complexity: the blocks that threads keep. `own` is counted where the census is not locked.
  [[nodiscard]] taken_bytes taken(const cache* own = nullptr) const noexcept {
    std::uint64_t kept_small = 0;
    std::uint64_t kept_runs = 0;
    const auto count = [&](const block*, unsigned c) {
      (classes::is_page_run(c) ? kept_runs : kept_small) += classes::held_bytes(c);
    };
    std::uint64_t outside = 0;
    for (unsigned c = 1; c < classes::cut_end; ++c) outside += outside_of(c) * classes::of(c).size;
    if (is_locked_) {
      for_each_kept(count);
      outside += uncounted();
    } else if (own != nullptr) {
      kept_small = own->cached_bytes(1, classes::cut_end);
      kept_runs = own->cached_bytes(classes::cut_end, classes::count);
    }
    const heap_figures& f = heap_.figures();
    // Threads go on meanwhile: no difference may wrap.
    const auto minus = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    kept_small = std::min(kept_small, outside);
    kept_runs = std::min<std::uint64_t>(kept_runs, f.large);
    return {.in_use_in_spans = outside - kept_small,
            .in_use_large = minus(f.large, kept_runs),
            .in_caches = kept_small + kept_runs,
            .free_in_spans = minus(f.spans, outside)};
  }

  /// Complexity: the blocks that threads keep.
  [[nodiscard]] heap_statistics statistics(const char* name) noexcept {
    const heap_figures& f = heap_.figures();
    const taken_bytes t = taken();
    const std::uint64_t in_use = t.in_use_in_spans + t.in_use_large;
    return {.name = name,
            .mapped = f.mapped,
            .in_use = in_use,
            .requested = std::min(requested(), in_use),
            .in_caches = t.in_caches,
            .free_in_spans = t.free_in_spans,
            .free_resident = f.free_resident,
            .free_decommitted = f.free_decommitted,
            .metadata = f.metadata,
            .metadata_resident =
                resident_metadata(f.metadata, f.page_map, f.spans / heap_page * page_map_of<R, OS>::bytes_per_page),
            .mapped_peak = f.mapped_peak,
            .decommitted_total = f.decommitted_total,
            .limit = heap_.pages().limit(),
            .huge_reserved_total = f.huge_reserved_total,
            .huge_transparent_total = f.huge_transparent_total,
            .locked_total = f.locked_total,
            .bound_total = f.bound_total,
            .huge_excess = huge_excess(),
            .threads = f.threads,
            .threads_total = f.threads_total};
  }

  /// Of the blocks in use; 0 where the recipe has it not noted.
  [[nodiscard]] std::uint64_t requested() noexcept {
    std::uint64_t bytes = 0;
    if constexpr (R.notes_requests) {
      (void)for_each_block([&](const void* p, std::size_t) { bytes += request_note::read(p, heap_.usable_size(p)); });
    }
    return bytes;
  }

  /// Calls f(std::uint32_t cache, std::uint64_t bytes) for what each thread keeps. Complexity: the
  /// blocks that threads keep.
  template <class F>
  void for_each_cache(F f) const {
    heap_.for_each_cache_held([&](const cache& of) {
      std::uint64_t bytes = 0;
      for_each_kept_by(of, [&](const block*, unsigned c) { bytes += classes::held_bytes(c); });
      f(of.id, bytes);
    });
  }

  /// Calls f(const void* block, std::size_t bytes) for each block in use, by address; bytes as its
  /// class has them. False: there was no memory to note what threads keep, and f was not called.
  /// Complexity: all blocks, and n log n of those that threads keep.
  template <class F>
  [[nodiscard]] bool for_each_block(F f) noexcept {
    noted kept;
    std::size_t count = 0;
    for_each_kept([&](const block*, unsigned) { ++count; });
    if (!kept.reserve(count + count / 8 + 1024)) return false;  // threads may go on
    for_each_kept([&](const block* b, unsigned) { kept.add(b); });
    if constexpr (classes::has_mixed) {
      heap_.for_each_waiting_held([&](const block* b) { kept.add(b); });
      heap_.for_each_cache_held([&](const cache& of) { kept.add(of.strip().rest()); });
      kept.add(heap_.tail_of_mixed_held());
    }
    kept.sort();
    heap_.for_each_span_held([&](const span& s) {
      if (s.state == span_state::large) {
        const bool is_hidden = heap_.tag_of(s.start) == 0;  // page_heap::hides_large
        if (!is_hidden && !kept.has(s.block_begin()))
          f(static_cast<const void*>(s.block_begin()), heap_.usable_size(s.block_begin()));
      } else if (s.state == span_state::cut) {
        blocks_of(s, kept, f);
      } else if (s.state == span_state::mixed) {
        blocks_of_mixed(s, kept, f);
      }
    });
    return true;
  }

 private:
  /// Blocks that threads keep.
  class noted {
   public:
    noted() noexcept = default;
    noted(const noted&) = delete;
    noted& operator=(const noted&) = delete;
    ~noted() {
      if (first_ != nullptr) OS::unmap(first_, bytes_);
    }

    [[nodiscard]] bool reserve(std::size_t most) noexcept {
      bytes_ = os_pages<OS>::rounded(most * sizeof(const void*));
      first_ = static_cast<const void**>(OS::map(bytes_));
      return first_ != nullptr;
    }

    void add(const void* p) noexcept {
      if ((count_ + 1) * sizeof(const void*) <= bytes_) first_[count_++] = p;
    }
    void sort() noexcept { std::sort(first_, first_ + count_); }
    [[nodiscard]] bool has(const void* p) const noexcept { return std::binary_search(first_, first_ + count_, p); }

   private:
    const void** first_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
  };

  static constexpr std::size_t most_blocks() {
    std::size_t most = 0;
    for (unsigned c = 1; c < classes::cut_end; ++c) {
      most = std::max<std::size_t>(most, classes::of(c).last_pages * heap_page / classes::of(c).size);
    }
    return most;
  }

  template <class F>
  static void blocks_of(const span& s, const noted& kept, F f) {
    const std::size_t size = classes::of(s.size_class).size;
    std::array<bool, most_blocks()> is_free{};
    for (const block* b = s.free; b != nullptr; b = block_links<R>::next(b))
      is_free[(address_of(b) - address_of(s.block_begin())) / size] = true;
    for (std::size_t i = 0; i < s.carved; ++i) {
      const std::byte* const p = s.block_begin() + i * size;
      if (!is_free[i] && !kept.has(p)) f(static_cast<const void*>(p), size);
    }
  }

  template <class F>
  void blocks_of_mixed(const span& s, const noted& kept, F f) const {
    const mixed_bits& bits = heap_.bits_of_mixed(s.start);
    for (const std::byte* p = s.start; p != s.end(); p += bits.size_at(p)) {
      if (bits.block_at(p) != 0 && !kept.has(p)) f(static_cast<const void*>(p), bits.size_at(p));
    }
  }

  /// Of mixed spans: bytes outside that are not in the figures.
  [[nodiscard]] std::uint64_t uncounted() const noexcept {
    std::uint64_t bytes = 0;
    if constexpr (classes::has_mixed) {
      heap_.for_each_cache_held([&](const cache& of) { bytes += of.strip().uncounted(); });
      heap_.for_each_waiting_held([&](const block* b) { bytes -= heap_.usable_size(b); });
    }
    return bytes;
  }

  /// Calls f(block, class) for what threads keep.
  template <class F>
  void for_each_kept(F f) const noexcept {
    heap_.for_each_cache_held([&](const cache& of) { for_each_kept_by(of, f); });
  }

  template <class F>
  void for_each_kept_by(const cache& of, F f) const noexcept {
    of.for_each_remote([&](const block* b) { follow(b, any_class, f); });
    of.quarantine().for_each([&](unsigned c, const block* b) {
      if (is_block(b, c)) f(b, c);
    });
    for (unsigned c = 1; c < classes::count; ++c) {
      for (const block* b : of.lists_of(c)) follow(b, c, f);
      const auto fresh = of.fresh_of(c);
      const std::byte* p = fresh.first;
      for (std::uint32_t n = 0; n < fresh.count && is_block(reinterpret_cast<const block*>(p), c); ++n) {
        f(reinterpret_cast<const block*>(p), c);
        p += classes::of(c).size;
      }
    }
  }

  /// Where a page of 2 MiB has a part in use, the system has all of it in memory.
  std::uint64_t huge_excess() const noexcept {
    std::uint64_t bytes = 0;
    heap_.for_each_span_held([&](const span& s) {
      if (s.state == span_state::free_decommitted) bytes += OS::resident(s.start, s.bytes());
    });
    return bytes;
  }

  /// Calls f(block, class) for the blocks of a list; c is the class of all, or any_class.
  template <class F>
  [[gnu::noinline, gnu::no_sanitize_thread]] void follow(const block* b, unsigned c, F& f) const noexcept {
    constexpr int longest = 1 << 16;  // a list that changes under our eyes might lead in a circle
    for (int n = 0; n < longest && is_block(b, c); ++n) {
      f(b, class_of(heap_.tag_of(b)));
      b = block_links<R>::next_relaxed(b);
    }
  }

  bool is_block(const block* b, unsigned c) const noexcept {
    const page_tag tag = heap_.tag_of(b);
    if (tag == 0 || tag == large_tag || (c != any_class && class_of(tag) != c)) return false;
    const span* const s = heap_.span_of(b);
    if (s == nullptr || !s->contains(b)) return false;
    if (s->state == span_state::large) return address_of(b) == address_of(s->block_begin());
    if (s->state == span_state::mixed) return heap_.bits_of_mixed(b).block_at(b) != 0;
    return s->state == span_state::cut &&
           (address_of(b) - address_of(s->block_begin())) % classes::of(class_of(tag)).size == 0;
  }

  static constexpr unsigned any_class = 0;

  /// Whole also where the class's lock is not held.
  [[nodiscard]] std::uint64_t outside_of(unsigned c) const noexcept {
    return __atomic_load_n(&heap_.figures_of(c).outside, __ATOMIC_RELAXED);
  }

  core& heap_;
  bool is_locked_ = true;
};

}  // namespace heapwright
