#include "options.hpp"

#include <cstring>

#include <heapwright/core/text.hpp>

#include "../abi/export.hpp"

namespace heapwright::process {
namespace {

/// Whether `s` is a word of the option, or a decimal number up to its max.
bool parse(const char* s, const option& o, std::uint64_t& value) noexcept {
  if (o.words[0] != nullptr) {
    for (std::uint64_t i = 0; i < o.words.size(); ++i) {
      if (std::strcmp(s, o.words[i]) == 0) return value = i, true;
    }
    return false;
  }
  if (*s == '\0') return false;
  std::uint64_t n = 0;
  for (; *s != '\0'; ++s) {
    if (*s < '0' || *s > '9') return false;
    n = n * 10 + static_cast<std::uint64_t>(*s - '0');
    if (n > o.max) return false;
  }
  value = n;
  return true;
}

void report(const option& o, const char* given) noexcept {
  text<300> line;
  line.add("heapwright: ").add(o.name).add("=").add(given);
  if (o.words[0] != nullptr) {
    line.add(" is neither ").add(o.words[0]).add(" nor ").add(o.words[1]);
    line.add("; using ").add(o.words[o.default_value]);
  } else {
    line.add(" is not a number from 0 to ").add(o.max).add("; using ").add(o.default_value);
  }
  line.add("\n").write_to(2);
}

// The table as text, "NAME\tDEFAULT\tMEANING\n" for each option, for readers of the file
// (heapwright info).
constexpr std::size_t listed_bytes = 1536;

constexpr auto list_options() {
  std::array<char, listed_bytes> out{};
  std::size_t n = 0;
  const auto add = [&](const char* s) {
    while (*s != '\0') out[n++] = *s++;
  };
  for (const auto& [o, meaning] : described_options) {
    add(o.name);
    add("\t");
    char reversed[20];
    std::size_t digits = 0;
    if (o.words[0] != nullptr) {
      add(o.words[o.default_value]);
    } else {
      for (std::uint64_t v = o.default_value; digits == 0 || v != 0; v /= 10)
        reversed[digits++] = static_cast<char>('0' + v % 10);
    }
    while (digits > 0) out[n++] = reversed[--digits];
    add("\t");
    add(meaning);
    add("\n");
  }
  return out;
}

}  // namespace

void options::take(std::size_t option, const char* given) noexcept {
  if (!parse(given, option_table[option], values_[option])) report(option_table[option], given);
}

}  // namespace heapwright::process

extern "C" {
HEAPWRIGHT_EXPORT extern const std::array<char, heapwright::process::listed_bytes> heapwright_option_table;
constexpr std::array<char, heapwright::process::listed_bytes> heapwright_option_table =
    heapwright::process::list_options();
}
