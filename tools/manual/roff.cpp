#include "roff.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace heapwright::tool::roff {
namespace {

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '\'': result += "\\(aq"; break;
      case '`': result += "\\(ga"; break;
      case '^': result += "\\(ha"; break;
      case '~': result += "\\(ti"; break;
      default: result += c;
    }
  }
  return result.starts_with('.') ? "\\&" + result : result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", plain(text)); }

std::string heading(const std::string& page, int number, const std::string& about) {
  return fmt::format(".TH {} {} \"\" \"heapwright {}\" \"heapwright\"\n.SH NAME\n{} \\- {}\n", plain(in_capitals(page)),
                     number, HEAPWRIGHT_VERSION, plain(page), plain(about));
}

std::string section(std::string title) { return fmt::format(".SH {}\n", plain(in_capitals(std::move(title)))); }

std::string entry(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", bold(name), text);
}

}  // namespace heapwright::tool::roff
