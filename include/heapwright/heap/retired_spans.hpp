// Empty spans that stay with their size class, so that no block of another class ever has their
// addresses (recipe.hardening.separate_classes; hardened_malloc has a region for each class).
//
// States of a retired span   resident     its contents are in memory
//                            decommitted  they were given back
//
// Invariant  a retired span counts in the heap's figures as free memory of its state. The lock of
//            the page heap guards all of this.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <heapwright/heap/page_memory.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class retired_spans {
  using memory = page_memory<R, OS>;

 public:
  /// A span of its class that has no block any more; resident.
  void put(span* s, memory& pages) noexcept {
    s->state = span_state::retired;
    s->zeroed = false;
    pages.figures().free_resident.add(s->bytes());
    push(of_class_[s->size_class].resident, s);
  }

  /// The span that take would return; null: class c has none.
  [[nodiscard]] span* next(unsigned c) noexcept { return list_of(c); }

  /// Takes the next span of class c, which has one: a resident one before others. True: it was
  /// resident.
  bool take(unsigned c, memory& pages) noexcept {
    const bool is_resident = of_class_[c].resident != nullptr;
    span* const s = pop(list_of(c));
    (is_resident ? pages.figures().free_resident : pages.figures().free_decommitted).subtract(s->bytes());
    return is_resident;
  }

  /// Gives the memory of resident spans back, about `bytes` of it. Returns the bytes.
  std::size_t empty(std::size_t bytes, memory& pages) noexcept {
    std::size_t done = 0;
    for (lists& of_class : of_class_) {
      for (span** place = &of_class.resident; *place != nullptr && done < bytes;) {
        if (!pages.empty(*place)) {
          place = &(*place)->next;
          continue;
        }
        span* const s = pop(*place);
        push(of_class.decommitted, s);
        pages.figures().free_resident.subtract(s->bytes());
        pages.figures().free_decommitted.add(s->bytes());
        done += s->bytes();
      }
    }
    return done;
  }

 private:
  struct lists {
    span* resident = nullptr;
    span* decommitted = nullptr;
  };

  static void push(span*& first, span* s) noexcept { s->next = std::exchange(first, s); }
  static span* pop(span*& first) noexcept {
    span* const s = first;
    first = std::exchange(s->next, nullptr);
    return s;
  }

  span*& list_of(unsigned c) noexcept {
    lists& all = of_class_[c];
    return all.resident != nullptr ? all.resident : all.decommitted;
  }

  std::array<lists, class_table<R>::count> of_class_{};
};

}  // namespace heapwright
