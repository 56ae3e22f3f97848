// Text from elsewhere, to be shown in a terminal or a message.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace heapwright::tool {

/// Control characters, which a terminal would obey, become \xNN, tabs spaces. Cut after `limit` bytes.
[[nodiscard]] inline std::string printable(std::string_view text, std::size_t limit = std::string_view::npos) {
  std::string result;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      result += c;
    else if (c == '\t')
      result += ' ';
    else
      result += fmt::format("\\x{:02x}", byte);
  }
  return text.size() > limit ? result + "..." : result;
}

}  // namespace heapwright::tool
