#include "python_code.hpp"

#include <algorithm>
#include <cstring>

#include "../unwind/frame.hpp"
#include "memory_reader.hpp"

namespace heapwright::probe {

using unwind::word_at;

namespace {

/// From the state of a text: two bits, or a byte, that are of no concern here, three with the bytes
/// of a character, one that is set where the characters follow, and one for ASCII alone.
struct shape_of_text {
  unsigned character_bytes = 0;
  bool is_ascii = false;

  bool read(std::uintptr_t state_at) noexcept {
    std::uint32_t state = 0;
    std::memcpy(&state, reinterpret_cast<const void*>(state_at), sizeof state);
    for (const unsigned skipped : {2U, 8U, 16U}) {
      const std::uint32_t bits = state >> skipped;
      character_bytes = bits & 7;
      is_ascii = (bits & 16) != 0;
      const bool follow = (bits & 8) != 0;
      if (follow && (character_bytes == 1 || character_bytes == 2 || character_bytes == 4)) return true;
    }
    return false;
  }
};

/// In UTF-8. False: there is no room for it.
template <std::size_t Room>
bool add_character(bounded_text<Room>& text, std::uint32_t c) noexcept {
  char bytes[4];
  unsigned size = 0;
  const auto put = [&](std::uint32_t byte) { bytes[size++] = static_cast<char>(byte); };
  const auto put_rest = [&](unsigned shift) { put(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put_rest(0);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xf0 | (c >> 18 & 7));
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
  return text.size() + sizeof bytes <= Room && text.add(bytes, size);
}

/// One of Python's texts. False: there is no text.
template <std::size_t Room>
bool read_text(std::uintptr_t at, const python_layout& layout, std::uintptr_t text_type,
               bounded_text<Room>& text) noexcept {
  if (!is_readable(at, layout.other_text) || word_at(at + layout.type) != text_type) return false;
  shape_of_text is;
  if (!is.read(at + layout.text_state)) return false;
  const std::uint64_t length = std::min<std::uint64_t>(word_at(at + layout.text_length), Room);
  const std::uintptr_t characters = at + (is.is_ascii ? layout.ascii_text : layout.other_text);
  if (length > 0 && !is_readable(characters, length * is.character_bytes)) return false;
  for (std::uint64_t i = 0; i < length; ++i) {
    std::uint32_t character = 0;
    std::memcpy(&character, reinterpret_cast<const void*>(characters + i * is.character_bytes), is.character_bytes);
    if (!add_character(text, character)) break;
  }
  return true;
}

}  // namespace

std::uint64_t version_of_python_code(std::uintptr_t code, const python_layout& layout) noexcept {
  std::uint64_t version = 1;
  for (const unsigned field : {layout.file_name, layout.name, layout.line_table, layout.first_line})
    version = mixed_into(version, word_at(code + field));
  return version;
}

bool describe_python_code(std::uintptr_t code, const python_layout& layout, std::uintptr_t text_type,
                          described_code& is) noexcept {
  constexpr std::uint64_t longest_table = 4 << 20;  // of a million lines
  if (!is_readable(code, layout.line_table + sizeof(std::uintptr_t))) return false;
  if (!read_text(word_at(code + layout.name), layout, text_type, is.name) ||
      !read_text(word_at(code + layout.file_name), layout, text_type, is.file))
    return false;
  std::memcpy(&is.first_line, reinterpret_cast<const void*>(code + layout.first_line), sizeof is.first_line);
  is.lines = layout.lines;
  const std::uintptr_t bytes = word_at(code + layout.line_table);
  if (!is_readable(bytes, layout.bytes)) return false;
  const std::uint64_t count = word_at(bytes + layout.byte_count);
  if (count > longest_table) is.first_line = 0;  // the function's first line would pass for the right one
  if (count == 0 || count > longest_table || !is_readable(bytes + layout.bytes, count)) return true;
  is.table = bytes + layout.bytes;
  is.table_bytes = static_cast<std::uint32_t>(count);
  return true;
}

}  // namespace heapwright::probe
