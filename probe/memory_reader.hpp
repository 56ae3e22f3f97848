// Words of structures that may be something else than they are taken for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../unwind/frame.hpp"
#include "../unwind/readable.hpp"

namespace heapwright::probe {

using unwind::is_readable;

/// Reads them. Lives as long as one look at them.
class memory_reader {
 public:
  /// `asks`: whether memory is there is asked for each page; otherwise it is known to be.
  constexpr explicit memory_reader(bool asks) noexcept : asks_(asks) {}

  /// False: what is at `at` cannot be a word.
  [[nodiscard]] bool word(std::uintptr_t at, std::uintptr_t& value) noexcept {
    if (at % sizeof value != 0 || at < page_bytes || (asks_ && !has_page(at))) return false;
    value = unwind::word_at(at);
    return true;
  }

  /// A field of one byte, or of four, at any distance from such a structure: in the word that it is
  /// in.
  template <class Number>
  [[nodiscard]] bool number(std::uintptr_t at, Number& value) noexcept {
    std::uintptr_t whole = 0;
    if (!word(at & ~(sizeof whole - 1), whole)) return false;
    value = static_cast<Number>(whole >> at % sizeof whole * 8);
    return true;
  }

 private:
  static constexpr std::uintptr_t page_bytes = 4096;

  [[nodiscard]] bool has_page(std::uintptr_t at) noexcept {
    const std::uintptr_t page = at / page_bytes;
    std::uintptr_t& known = known_[page % known_pages];
    if (known == page) return true;
    if (!is_readable(at)) return false;
    known = page;
    return true;
  }

  static constexpr std::size_t known_pages = 16;

  bool asks_;
  std::uintptr_t known_[known_pages] = {};
};

}  // namespace heapwright::probe
