// An allocator that knows in checked builds which blocks are live and where each was asked for, and
// says so when it is destroyed. In release builds it is the allocator alone.
//
//   block of A:  [ padding | head | block ]      the heads of live blocks are linked, newest first
//
// A head has the call stack of the request, so that a block of a container is told by the program's
// own line and not by that of the container; and the place that the compiler tells, for programs
// without debugging information.
#pragma once

#include <algorithm>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/call_stack.hpp>
#include <heapwright/core/check.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/core/forwarding.hpp>
#include <heapwright/core/text.hpp>

#ifndef __cpp_lib_source_location
#error "leak_checked, and so kit.hpp, needs std::source_location: compile with GCC 11, Clang 15 or newer"
#include <leak_checked needs std::source_location>  // Not a header. It ends the compilation here.
#endif

namespace heapwright {

/// A, with a list of its live blocks. Owns A. Not thread-safe. In checked builds a block costs 200
/// bytes more, and a request some microseconds.
template <class A>
class leak_checked : public forwards<leak_checked<A>, true, A> {
  using base = forwards<leak_checked, true, A>;
  friend base;

  static_assert(
      allocator<A>,
      "leak_checked: the part must be an allocator: allocate(layout) and deallocate(void*, layout), both noexcept");

 public:
  /// Arguments are those of A.
  template <class... Arguments>
    requires(!takes_layout<A, Arguments...> && std::is_constructible_v<A, Arguments...>)
  explicit leak_checked(Arguments&&... arguments) : part_(std::forward<Arguments>(arguments)...) {}

  /// For a part made for one layout, which becomes that of the whole block.
  template <class... Arguments>
    requires takes_layout<A, layout, Arguments...>
  explicit leak_checked(layout block, Arguments&&... arguments)
      : block_{block}, part_(checks_callers ? widened(block) : block, std::forward<Arguments>(arguments)...) {}

  leak_checked(const leak_checked&) = delete;
  leak_checked& operator=(const leak_checked&) = delete;

  /// Reports what is live. See report.
  ~leak_checked() { report(); }

  /// A block of the layout that it was made for. Null when the part has no memory.
  [[nodiscard]] void* allocate(std::source_location where = std::source_location::current()) noexcept
    requires takes_layout<A, layout>
  {
    return allocate(block_.of, where);
  }

  /// `where` is the place of the call, unless the caller names another.
  [[nodiscard]] void* allocate(layout l, std::source_location where = std::source_location::current()) noexcept {
    if constexpr (!checks_callers) return part_.allocate(l);
    const layout whole = widened(l);
    if (whole.size < l.size) return nullptr;
    auto* const raw = static_cast<std::byte*>(part_.allocate(whole));
    if (raw == nullptr) return nullptr;
    std::byte* const p = raw + before(l);
    head* const h = head_of(p);
    *h = {newest_, nullptr, l, where, call_stack::here(), live_mark(h)};
    if (newest_ != nullptr) newest_->newer = h;
    newest_ = h;
    return p;
  }

  /// `p` came from allocate(l) of this object. Null does nothing. O(1) beyond what the part takes.
  void deallocate(void* p, layout l) noexcept {
    if constexpr (!checks_callers) return part_.deallocate(p, l);
    if (p == nullptr) return;
    head* const h = head_of(p);
    check_live(h, p);
    if (h->of != l) die("free with a wrong layout", p, "(not the one it was allocated with)");
    unlink(h);
    h->mark = ~live_mark(h);
    part_.deallocate(static_cast<std::byte*>(p) - before(l), widened(l));
  }

  /// Frees without a layout. Null does nothing.
  void deallocate(void* p) noexcept
    requires can_deallocate_unsized<A>
  {
    if constexpr (!checks_callers) return part_.deallocate(p);
    if (p == nullptr) return;
    check_live(head_of(p), p);
    deallocate(p, head_of(p)->of);
  }

  /// Bytes that may be used behind p: in checked builds those asked for, otherwise as the part
  /// says.
  [[nodiscard]] std::size_t usable_size(const void* p) const noexcept
    requires has_usable_size<A>
  {
    if constexpr (!checks_callers) return part_.usable_size(p);
    return head_of(p)->of.size;
  }

  /// In place. False where the part cannot, or, in checked builds, where another alignment would
  /// move the block; it is as it was then.
  [[nodiscard]] bool try_resize(void* p, layout from, layout to) noexcept
    requires can_resize<A>
  {
    if constexpr (!checks_callers) return part_.try_resize(p, from, to);
    const layout whole = widened(to);
    if (whole.size < to.size || before(to) != before(from)) return false;
    if (!part_.try_resize(static_cast<std::byte*>(p) - before(from), widened(from), whole)) return false;
    head_of(p)->of = to;
    return true;
  }

  /// As realloc of C. In checked builds the block always moves. Null: no memory, and p is as it
  /// was.
  [[nodiscard]] void* reallocate(void* p, std::size_t size) noexcept
    requires can_reallocate<A> && has_usable_size<A> && can_deallocate_unsized<A>
  {
    if constexpr (!checks_callers) return part_.reallocate(p, size);
    return reallocate_by_copy(*this, p, size);
  }

  /// What was live is freed, and no leak.
  void reset() noexcept
    requires can_reset<A>
  {
    newest_ = nullptr;
    part_.reset();
  }

  /// Writes to stderr each live block with its call stack, newest first, as many as are worth
  /// reading. Returns how many there are. 0 in release builds.
  std::size_t report() const noexcept {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    for (const head* h = newest_; h != nullptr; h = h->older) {
      bytes += h->of.size;
      if (++blocks <= shown) write(*h);
    }
    if (blocks > shown) {
      text<100> line;
      line.add("heapwright: leak: ")
          .add(std::uint64_t{blocks})
          .add(" blocks in all, ")
          .add_bytes(bytes)
          .add("\n")
          .write_to(2);
    }
    return blocks;
  }

  /// The part. What is allocated there directly is not reported.
  [[nodiscard]] A& part() noexcept { return part_; }

 private:
  struct head {
    head* older;
    head* newer;
    layout of;
    std::source_location where;
    call_stack stack;
    std::uintptr_t mark;  ///< behind all else, where a part that reuses the memory leaves it longest
  };

  static constexpr std::size_t shown = 20;

  static std::size_t before(layout l) noexcept { return align_up(sizeof(head), std::max(l.alignment, alignof(head))); }
  static layout widened(layout l) noexcept { return {before(l) + l.size, std::max(l.alignment, alignof(head))}; }
  static head* head_of(const void* p) noexcept { return reinterpret_cast<head*>(address_of(p) - sizeof(head)); }

  static std::uintptr_t live_mark(const head* h) noexcept { return address_of(h) ^ 0x11FE'B10C'11FE'B10CU; }

  static void check_live(const head* h, const void* p) noexcept {
    if (h->mark == ~live_mark(h)) die("double free", p, "(the block is free already)");
    if (h->mark != live_mark(h)) die("free of a foreign pointer", p, "(not a block of this allocator)");
  }

  void unlink(head* h) noexcept {
    (h->newer != nullptr ? h->newer->older : newest_) = h->older;
    if (h->older != nullptr) h->older->newer = h->newer;
  }

  static void write(const head& h) noexcept {
    const bool named = h.stack.for_each_own([&](unsigned number, const named_frame& frame) {
      if (number == 1 && frame.has_line())
        write_first(h, [&](auto& line) { line.add(frame.line).add(" (").add(frame.function); });
      if (number == 1 && !frame.has_line()) write_first_by_compiler(h);
      call_stack::write_frame(2, number, frame);
    });
    if (named) return;
    write_first_by_compiler(h);
    h.stack.write_raw(2);
  }

  static void write_first_by_compiler(const head& h) noexcept {
    write_first(h, [&](auto& line) {
      line.add(h.where.file_name()).add(":").add(std::uint64_t{h.where.line()}).add(" (").add(h.where.function_name());
    });
  }

  template <class Place>
  static void write_first(const head& h, Place place) noexcept {
    text<1000> line;
    line.add("heapwright: leak: ").add(std::uint64_t{h.of.size}).add(" bytes at ");
    line.add(static_cast<const void*>(&h + 1)).add(" from ");
    place(line);
    line.add(")\n").write_to(2);
  }

  head* newest_ = nullptr;
  [[no_unique_address]] block_layout<A> block_;
  A part_;
};

}  // namespace heapwright
