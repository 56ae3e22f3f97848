// A frame of a call stack as a reader of debugging information names it, and whether it is the
// program's own.
//
// The program's own frame is the innermost one whose function is not in the namespaces heapwright,
// std or __gnu_cxx: the line that uses a container, not the line of the container. addr2line is not
// always right:
// - The innermost of the functions that are inlined somewhere has the name of the one that it is
//   inlined into: so an inlined function of std whose line is in no header of the C++ library is
//   the program's own.
// - A function that is not inlined can have the first file of its translation unit in place of its
//   own (binutils 2.40, DWARF 5): so such a line of a function of std is left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <heapwright/core/language.hpp>

namespace heapwright {

namespace detail {

// What std::string_view has as members: those are functions of the C++ runtime, or would be in
// libheapwright.a beside the program's own.

/// Precondition: `from` is not behind the end.
[[nodiscard]] constexpr std::string_view part(std::string_view s, std::size_t from,
                                              std::size_t n = std::string_view::npos) noexcept {
  return {s.data() + from, std::min(n, s.size() - from)};
}

[[nodiscard]] constexpr bool has_at(std::string_view s, std::size_t at, std::string_view what) noexcept {
  if (at > s.size() || s.size() - at < what.size()) return false;
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (s[at + i] != what[i]) return false;
  }
  return true;
}

[[nodiscard]] constexpr bool is_same(std::string_view s, std::string_view t) noexcept {
  return s.size() == t.size() && has_at(s, 0, t);
}

/// Where `what` begins, from `from` on; npos: nowhere.
[[nodiscard]] constexpr std::size_t find(std::string_view s, std::string_view what, std::size_t from = 0) noexcept {
  for (std::size_t at = from; at + what.size() <= s.size(); ++at) {
    if (has_at(s, at, what)) return at;
  }
  return std::string_view::npos;
}

}  // namespace detail

/// A frame as addr2line names it. Valid during the call that it is passed to.
struct named_frame {
  std::string_view function;  ///< demangled; OBJECT+OFFSET if there is no symbol
  std::string_view line;      ///< FILE:LINE; "??:0" if it is not known; empty if the function is not either
  bool is_inlined = false;    ///< into the function of the frame that follows

  [[nodiscard]] bool has_line() const noexcept {
    return line.size() != 0 && !detail::has_at(line, 0, "??") &&
           (line.size() < 2 || !detail::has_at(line, line.size() - 2, ":?"));
  }

  /// Whether the function belongs to the program, and not to the libraries that lie between it and
  /// an allocator.
  [[nodiscard]] bool is_own() const noexcept {
    const std::string_view name = qualified_name(function);
    for (const std::string_view prefix : {"heapwright::", "operator new", "operator delete"}) {
      if (detail::has_at(name, 0, prefix)) return false;
    }
    if (line.size() == 0 && is_in_runtime()) return false;
    return !is_of_std() || (is_inlined && has_line() && !is_line_of_std());
  }

  /// Without a line that cannot be the function's.
  [[nodiscard]] named_frame corrected() const noexcept {
    const bool is_false = is_of_std() && !is_inlined && !is_line_of_std();
    return is_false ? named_frame{function, "??:0"} : *this;
  }

 private:
  [[nodiscard]] bool is_of_std() const noexcept {
    const std::string_view name = qualified_name(function);
    return detail::has_at(name, 0, "std::") || detail::has_at(name, 0, "__gnu_cxx::");
  }

  /// Of a function without a name: whether its object is the C++ library's.
  [[nodiscard]] bool is_in_runtime() const noexcept {
    return detail::find(function, "/libstdc++.so") != std::string_view::npos ||
           detail::find(function, "/libc++.so") != std::string_view::npos;
  }

  /// Whether the line is one of the C++ library's headers or sources.
  [[nodiscard]] bool is_line_of_std() const noexcept {
    for (const std::string_view folder : {"/c++/", "libstdc++", "libcxx", "heapwright/"}) {
      if (detail::find(line, folder) != std::string_view::npos) return true;
    }
    return false;
  }

  /// Without the type that a template function returns, and without arguments.
  [[nodiscard]] static std::string_view qualified_name(std::string_view f) noexcept {
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < f.size(); ++i) {
      if (f[i] == '<') ++depth;
      if (f[i] == '>') --depth;
      if (depth > 0) continue;
      if (f[i] == '(' && i > begin) return detail::part(f, begin, i - begin);
      if (f[i] == ' ' && !detail::is_same(detail::part(f, begin, i - begin), "operator")) begin = i + 1;
    }
    return detail::part(f, begin);
  }
};

}  // namespace heapwright
