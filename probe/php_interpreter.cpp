#include "php_interpreter.hpp"

#include <cstring>

#include "../unwind/frame.hpp"

namespace heapwright::probe {

using unwind::word_at;

namespace {

// Distances within structures, in bytes: zend_executor_globals, zend_execute_data, zend_op,
// zend_function, zend_class_entry, zend_string.
constexpr unsigned current_frame = 488;
constexpr unsigned instruction_of_frame = 0, function_of_frame = 24, flags_of_frame = 40, outer_frame = 48;
constexpr unsigned line_of_instruction = 24;
constexpr unsigned kind_of_function = 0, name_of_function = 8, class_of_function = 16;
constexpr unsigned name_of_class = 8;
constexpr unsigned hash_of_text = 8, length_of_text = 16, bytes_of_text = 24;

constexpr std::uint32_t frame_is_outermost = 1U << 17;  // of flags_of_frame
constexpr std::uint8_t function_in_c = 1, function_in_php = 2, evaluated_code = 4;

/// Where a function's file is, which differs; its first line is behind that. 0: another version.
unsigned file_of_function(const char* version) noexcept {
  constexpr char begin[] = "Zend Engine v";
  if (std::strncmp(version, begin, sizeof begin - 1) != 0) return 0;
  const char* const number = version + sizeof begin - 1;
  const auto is = [number](const char* of) { return std::strncmp(number, of, 4) == 0; };
  if (is("3.4.")) return 136;                // PHP 7.4
  if (is("4.0.") || is("4.1.")) return 144;  // PHP 8.0, 8.1
  if (is("4.2.")) return 152;                // PHP 8.2
  if (is("4.3.")) return 144;                // PHP 8.3
  if (is("4.4.")) return 168;                // PHP 8.4
  return 0;
}

/// What a function consists of, as far as it is shown. Closures and functions of traits are copies
/// of one: their texts are the same.
struct php_function {
  std::uintptr_t name = 0;      ///< 0: code of a file, or evaluated code
  std::uintptr_t of_class = 0;  ///< name of its class; 0: none
  std::uintptr_t file = 0;
  std::uint32_t first_line = 0;
  std::uint64_t version = 1;

  /// False: it is none.
  bool read(memory_reader& by, std::uintptr_t at, unsigned file_at) noexcept {
    std::uintptr_t its_class = 0;
    if (!by.word(at + name_of_function, name) || !by.word(at + class_of_function, its_class) ||
        !by.word(at + file_at, file) || !by.number(at + file_at + sizeof file, first_line))
      return false;
    if (its_class != 0 && !by.word(its_class + name_of_class, of_class)) return false;
    version = mixed_into(version, first_line);
    return add_text(by, file) && (name == 0 || add_text(by, name)) && (of_class == 0 || add_text(by, of_class));
  }

 private:
  /// A text is freed at the end of a request, and another one may have its memory.
  bool add_text(memory_reader& by, std::uintptr_t text) noexcept {
    constexpr std::uintptr_t longest = 1 << 20;
    std::uintptr_t hash = 0, length = 0;
    if (!by.word(text + hash_of_text, hash) || !by.word(text + length_of_text, length) || length > longest)
      return false;
    version = mixed_into(mixed_into(mixed_into(version, text), hash), length);
    return true;
  }
};

/// False: there is no text. That of a class without a name has more behind a zero byte.
template <std::size_t Room>
bool add_php_text(bounded_text<Room>& to, std::uintptr_t text) noexcept {
  const std::uintptr_t length = word_at(text + length_of_text);
  const auto* const bytes = reinterpret_cast<const char*>(text + bytes_of_text);
  if (!is_readable(text + bytes_of_text, length + 1) || bytes[length] != '\0') return false;
  (void)to.add(bytes);
  return true;
}

bool describe_php(const php_function& f, std::uint8_t kind, described_code& is) noexcept {
  if (f.of_class != 0 && f.name != 0) {
    if (!add_php_text(is.name, f.of_class)) return false;
    (void)is.name.add("::");
  }
  if (f.name == 0) {
    (void)is.name.add(kind == evaluated_code ? "eval" : "{main}");
  } else if (!add_php_text(is.name, f.name)) {
    return false;
  }
  is.first_line = static_cast<std::int32_t>(f.first_line);
  return add_php_text(is.file, f.file);
}

}  // namespace

code_range php_interpreter::find_in(const exported_symbols& symbols) noexcept {
  globals_ = reinterpret_cast<std::uintptr_t>(symbols.find("executor_globals"));
  version_ = reinterpret_cast<text_function*>(reinterpret_cast<std::uintptr_t>(symbols.find("get_zend_version")));
  if (globals_ == 0 || version_ == nullptr) return {};
  return symbols.code_of("execute_ex");
}

/// 0: it is not known. While an exception is thrown the frame is at an instruction for that, which
/// lies in the globals; the word before it says where the frame was.
bool php_interpreter::read_line(memory_reader& by, std::uintptr_t frame, std::uint32_t& line) const noexcept {
  constexpr std::uintptr_t globals_bytes = 1024;  // up to there, and more
  std::uintptr_t at = 0;
  if (!by.word(frame + instruction_of_frame, at)) return false;
  if (at - globals_ < globals_bytes && !by.word(at - sizeof at, at)) return false;
  return at == 0 || by.number(at + line_of_instruction, line);
}

bool php_interpreter::walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept {
  constexpr unsigned most_frames = 16 * interpreted_calls::most;  // a ring would have no end
  constexpr std::uint32_t last_line = 1U << 28;
  const char* const version = version_();
  const unsigned file_at = version != nullptr ? file_of_function(version) : 0;
  std::uintptr_t frame = 0;
  if (file_at == 0 || !by.word(globals_ + current_frame, frame)) return false;
  for (unsigned n = 0; frame != 0 && n < most_frames; ++n) {
    std::uintptr_t called = 0;
    std::uint32_t flags = 0, line = 0;
    std::uint8_t kind = function_in_c;
    if (!by.word(frame + function_of_frame, called) || !by.number(frame + flags_of_frame, flags)) return false;
    // A frame without a function holds the place of a generator.
    if (called != 0 && !by.number(called + kind_of_function, kind)) return false;
    if (kind != function_in_c) {
      php_function is;
      if ((kind != function_in_php && kind != evaluated_code) || !is.read(by, called, file_at) ||
          !read_line(by, frame, line) || line > last_line)
        return false;
      const auto known = codes.find_or_add(
          is.file, is.version, [&](described_code& described) { return describe_php(is, kind, described); });
      if (!known) return false;
      calls.add(segment::interpreted_call_of(*known, line));
      if ((flags & frame_is_outermost) != 0) calls.end_loop(interpreted_calls::somewhere);
    }
    if (!by.word(frame + outer_frame, frame)) return false;
  }
  calls.end_loop(interpreted_calls::somewhere);
  if (frame != 0) calls.cut();
  return true;
}

}  // namespace heapwright::probe
