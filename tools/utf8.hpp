// Names from a program may be any bytes, and most formats that tell of them want UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heapwright::tool {

/// How many bytes the character at the front has; 0: there is none, or what is there is no UTF-8
/// (RFC 3629: neither overlong forms nor surrogates).
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  std::size_t length = 0;
  unsigned lowest = 0x80, highest = 0xBF;  // of the second byte
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) lowest = 0xA0;
    if (first == 0xED) highest = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) lowest = 0x90;
    if (first == 0xF4) highest = 0x8F;
  } else {
    return 0;
  }
  if (at(1) < lowest || at(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

/// A byte that is no UTF-8 counts as a character.
[[nodiscard]] constexpr std::size_t characters_in(std::string_view text) noexcept {
  std::size_t count = 0;
  for (; !text.empty(); ++count) {
    const std::size_t length = utf8_length(text);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return count;
}

/// The text where it has at most `most` characters; else its first ones and "…", `most` in all. A
/// byte that is no UTF-8 counts as a character.
[[nodiscard]] inline std::string clipped(std::string_view text, std::size_t most) {
  std::size_t end = 0, fits = 0;  // `fits`: the end of the first most - 1 characters
  for (std::size_t count = 0; end < text.size(); ++count) {
    if (count + 1 == most) fits = end;
    if (count == most) return std::string(text.substr(0, fits)) + (most > 0 ? "…" : "");
    const std::size_t length = utf8_length(text.substr(end));
    end += length == 0 ? 1 : length;
  }
  return std::string(text);
}

/// As `clipped`, but without its middle: names of templates often differ at their ends alone. Of
/// few characters the first say most.
[[nodiscard]] inline std::string shortened(std::string_view text, std::size_t most) {
  constexpr std::size_t few = 25;
  const std::size_t all = characters_in(text);
  if (all <= most || most < few) return clipped(text, most);
  const std::size_t end = (most - 1) / 3;
  std::string_view last = text;
  for (std::size_t before = all - end; before > 0; --before) {
    const std::size_t length = utf8_length(last);
    last.remove_prefix(length == 0 ? 1 : length);
  }
  return clipped(text, most - end).append(last);
}

/// The text, with U+FFFD for each byte that is no UTF-8.
[[nodiscard]] inline std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    result += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace heapwright::tool
