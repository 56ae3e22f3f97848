#include "perl_interpreter.hpp"

#include "../unwind/frame.hpp"

namespace heapwright::probe {

using unwind::word_at;

namespace {

// Distances within structures, in bytes: of the interpreter, of which this is the size, a statement
// (COP), a stack of contexts (PERL_SI), a context, an SV, and the bodies of subs, globs, packages.
constexpr std::uint16_t interpreter_bytes = 3768;
constexpr unsigned running_statement = 208, innermost_stack = 224;
constexpr unsigned line_of_statement = 36, file_of_statement = 48;
constexpr unsigned contexts_of_stack = 8, outer_stack = 16, innermost_context = 32;
constexpr unsigned context_bytes = 104;
constexpr unsigned kind_of_context = 0, calling_statement = 16, returns_to = 48, sub_of_context = 72;
constexpr unsigned body_of_sv = 0, flags_of_sv = 12;
constexpr unsigned package_of_sub = 32, name_of_sub = 56, flags_of_sub = 92;
constexpr unsigned name_of_glob = 32, package_of_glob = 40;
constexpr unsigned name_of_package = 32, names_of_package = 60;
constexpr unsigned hash_of_name = 0, length_of_name = 4, bytes_of_name = 8;

constexpr std::uint8_t context_kinds = 15, sub_context = 9, eval_context = 11, is_try = 0x40;
constexpr std::uint8_t glob_kind = 9, package_kind = 12, sub_kind = 13;
constexpr std::uint32_t sub_has_name = 0x8000;  // and no glob

constexpr std::size_t longest_text = 1024;

bool is_of_kind(memory_reader& by, std::uintptr_t sv, std::uint8_t kind) noexcept {
  std::uint8_t is = 0;
  return by.number(sv + flags_of_sv, is) && is == kind;
}

/// The name of a sub: that of its package, and its own.
struct sub_name {
  std::uintptr_t package = 0, own = 0;  ///< 0: none
  std::uint64_t version = 1;

  /// False: it is no sub.
  bool read(memory_reader& by, std::uintptr_t sub) noexcept {
    std::uintptr_t its_body = 0, of_package = 0;
    std::uint32_t flags = 0;
    if (!is_of_kind(by, sub, sub_kind) || !by.word(sub + body_of_sv, its_body) ||
        !by.number(its_body + flags_of_sub, flags) || !by.word(its_body + name_of_sub, own))
      return false;
    if (own == 0) return true;
    if ((flags & sub_has_name) != 0) {
      if (!by.word(its_body + package_of_sub, of_package)) return false;
    } else {
      const std::uintptr_t glob = own;
      if (!is_of_kind(by, glob, glob_kind) || !by.word(glob + body_of_sv, its_body) ||
          !by.word(its_body + name_of_glob, own) || !by.word(its_body + package_of_glob, of_package))
        return false;
    }
    return (of_package == 0 || read_package(by, of_package)) && add(by, own) && (package == 0 || add(by, package));
  }

 private:
  /// A package may have several names, the first one first.
  bool read_package(memory_reader& by, std::uintptr_t at) noexcept {
    constexpr std::uint32_t has_name = 0x2000000;
    std::uintptr_t its_body = 0;
    std::uint32_t flags = 0, names = 0;
    if (!is_of_kind(by, at, package_kind) || !by.number(at + flags_of_sv, flags)) return false;
    if ((flags & has_name) == 0) return true;
    if (!by.word(at + body_of_sv, its_body) || !by.word(its_body + name_of_package, package) ||
        !by.number(its_body + names_of_package, names))
      return false;
    return names == 0 || package == 0 || by.word(package, package);
  }

  bool add(memory_reader& by, std::uintptr_t name) noexcept {
    std::uint32_t hash = 0, length = 0;
    if (!by.number(name + hash_of_name, hash) || !by.number(name + length_of_name, length) || length > longest_text)
      return false;
    version = mixed_into(mixed_into(mixed_into(version, name), hash), length);
    return true;
  }
};

/// A text that ends with a zero byte. Each statement has a copy of its file's name: copies are the
/// same by what is in them. Text that is evaluated has a number, "(eval 7)", which is left out: a
/// program may evaluate one text a thousand times.
struct file_name {
  const char* bytes = nullptr;
  std::size_t length = 0;
  std::uint64_t version = 1;

  /// False: there is none, or no end to it.
  bool read(memory_reader& by, std::uintptr_t at) noexcept {
    if (at == 0) return false;
    bytes = reinterpret_cast<const char*>(at);
    std::uintptr_t word = 0;
    for (; length < longest_text; ++length) {
      const std::uintptr_t byte_at = at + length, in_word = byte_at % sizeof word;
      if ((length == 0 || in_word == 0) && !by.word(byte_at - in_word, word)) return false;
      const std::uintptr_t byte = word >> in_word * 8 & 0xff;
      if (byte == 0) return true;
      constexpr std::string_view evaluated = "(eval ";
      if (length == evaluated.size() && std::memcmp(bytes, evaluated.data(), length) == 0) {
        bytes = "(eval)";
        return true;
      }
      version = mixed_into(version, byte);
    }
    return false;
  }
};

/// A name is UTF-8, where the flags behind it say so, or Latin-1.
bool add_perl_name(bounded_text<256>& to, std::uintptr_t name) noexcept {
  constexpr char is_utf8 = 1;
  std::uint32_t length = 0;
  std::memcpy(&length, reinterpret_cast<const void*>(name + length_of_name), sizeof length);
  const auto* const bytes = reinterpret_cast<const char*>(name + bytes_of_name);
  if (!is_readable(name + bytes_of_name, length + 2)) return false;
  const bool is_ready = (bytes[length + 1] & is_utf8) != 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    const auto c = static_cast<std::uint8_t>(bytes[i]);
    const char as_utf8[] = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    if (!(is_ready || c < 0x80 ? to.add(bytes + i, 1) : to.add(as_utf8, sizeof as_utf8))) break;
  }
  return true;
}

/// `name`: of a sub; otherwise `instead` is it.
bool add_perl_call(memory_reader& by, const sub_name& name, const char* instead, std::uintptr_t statement,
                   code_records& codes, interpreted_calls& calls) noexcept {
  std::uint32_t line = 0;
  std::uintptr_t text = 0;
  file_name file;
  if (statement == 0) return true;  // it has been freed
  if (!by.number(statement + line_of_statement, line) || !by.word(statement + file_of_statement, text)) return false;
  if (text == 0) return true;  // before the first statement
  if (!file.read(by, text)) return false;
  const std::uint64_t version = mixed_into(name.version, file.version);
  const std::uintptr_t code = mixed_into(version, reinterpret_cast<std::uintptr_t>(instead)) | 1;
  const auto known = codes.find_or_add(code, version, [&](described_code& is) {
    (void)is.file.add(file.bytes, file.length);
    if (name.own == 0) return is.name.add(instead);
    if (name.package != 0 && (!add_perl_name(is.name, name.package) || !is.name.add("::"))) return false;
    return add_perl_name(is.name, name.own);
  });
  if (!known) return false;
  calls.add(segment::interpreted_call_of(*known, line));
  return true;
}

}  // namespace

code_range perl_interpreter::find_in(const exported_symbols& symbols) noexcept {
  const auto* const bytes = static_cast<const std::uint16_t*>(symbols.find("PL_interp_size"));
  key_ = static_cast<const pthread_key_t*>(symbols.find("PL_thr_key"));
  moving_ = symbols.code_of("Perl_cxinc");
  if (bytes == nullptr || moving_.begin == 0 || *bytes != interpreter_bytes || key_ == nullptr) return {};
  return symbols.code_of("Perl_runops_standard");
}

bool perl_interpreter::walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept {
  constexpr unsigned most_contexts = 64 * interpreted_calls::most;  // a ring would have no end
  const auto perl = reinterpret_cast<std::uintptr_t>(::pthread_getspecific(*key_));
  std::uintptr_t statement = 0, stack = 0;
  if (perl == 0) return true;
  if (!by.word(perl + running_statement, statement) || !by.word(perl + innermost_stack, stack)) return false;
  unsigned n = 0;
  while (stack != 0 && n < most_contexts) {
    std::uintptr_t contexts = 0;
    std::int32_t i = -1;
    if (!by.word(stack + contexts_of_stack, contexts) || !by.number(stack + innermost_context, i)) return false;
    for (; i >= 0 && n < most_contexts; --i, ++n) {
      const std::uintptr_t context = contexts + static_cast<std::uintptr_t>(i) * context_bytes;
      std::uint8_t kind = 0;
      std::uintptr_t back = 0, sub = 0;
      if (!by.number(context + kind_of_context, kind)) return false;
      const bool is_sub = (kind & context_kinds) == sub_context;
      if (!is_sub && (kind & context_kinds) != eval_context) continue;
      if (!by.word(context + returns_to, back)) return false;
      if ((kind & (context_kinds | is_try)) == (eval_context | is_try) && back == 0) continue;  // of C that calls a sub
      sub_name name;
      if (is_sub && (!by.word(context + sub_of_context, sub) || !name.read(by, sub))) return false;
      if (!add_perl_call(by, name, is_sub ? "__ANON__" : "(eval)", statement, codes, calls) ||
          !by.word(context + calling_statement, statement))
        return false;
      if (calls.is_cut()) {  // further out there may be thousands
        calls.end_loop(interpreted_calls::somewhere);
        return true;
      }
      if (back == 0) calls.end_loop(interpreted_calls::somewhere);
    }
    if (!by.word(stack + outer_stack, stack)) return false;
    if (stack != 0) calls.end_loop(interpreted_calls::somewhere);
  }
  if (stack != 0) calls.cut();
  const bool is_good = add_perl_call(by, {}, "(main)", statement, codes, calls);
  calls.end_loop(interpreted_calls::somewhere);
  return is_good;
}

}  // namespace heapwright::probe
