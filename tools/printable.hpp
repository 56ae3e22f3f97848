// Text from elsewhere, to be shown in a terminal or a message.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace heapwright::tool {

/// Control characters, also those that UTF-8 has in two bytes, which a terminal would obey, become
/// \xNN, tabs spaces. Cut after `limit` bytes, between characters.
[[nodiscard]] inline std::string printable(std::string_view text, std::size_t limit = std::string_view::npos) {
  std::string result;
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  std::size_t end = text.size() < limit ? text.size() : limit;
  while (end > 0 && end < text.size() && (at(end) & 0xC0U) == 0x80U) --end;
  for (std::size_t i = 0; i < end; ++i) {
    const char c = text[i];
    const unsigned byte = at(i);
    const bool is_wide_control = (byte == 0xC2 && at(i + 1) >= 0x80 && at(i + 1) < 0xA0) ||
                                 (byte >= 0x80 && byte < 0xA0 && i > 0 && at(i - 1) == 0xC2);
    if (byte >= 0x20 && byte != 0x7f && !is_wide_control)
      result += c;
    else if (c == '\t')
      result += ' ';
    else
      result += fmt::format("\\x{:02x}", byte);
  }
  return end < text.size() ? result + "..." : result;
}

/// A command as one gives it to a shell: its words in quotes where that is needed. Printable.
[[nodiscard]] inline std::string shown_command(std::span<const std::string> words) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string result;
  for (const std::string& word : words) {
    if (!result.empty()) result += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      result += word;
      continue;
    }
    result += '\'';
    for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    result += '\'';
  }
  return printable(result);
}

}  // namespace heapwright::tool
