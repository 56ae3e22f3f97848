// What heapwright.dll has found of each module of its process. `heapwright info PID` reads it from
// outside, by the exported name.
#pragma once

#include <cstdint>

#include <heapwright/core/text.hpp>
#include "windows_headers.hpp"

namespace heapwright::process {

enum class module_kind : std::uint32_t {
  other,
  c_library,       ///< modules that import from it are redirected
  further_library  ///< a C library beyond those that can be redirected
};

/// A module of the process.
struct seen_module {
  HMODULE module;
  char name[84];  ///< of the file, cut off where it is longer
  module_kind kind;
  std::uint32_t imports;  ///< slots that lead to our entries

  /// A line for people.
  template <std::size_t N>
  void write(text<N>& out) const noexcept {
    out.add(name).add(": ");
    switch (kind) {
      case module_kind::c_library: out.add("a C library; what others import from it is redirected"); break;
      case module_kind::further_library:
        out.add("a C library, and not redirected: the process has more of them than can be");
        break;
      case module_kind::other:
        if (imports > 0)
          out.add("redirected, ").add(std::uint64_t{imports}).add(imports == 1 ? " import" : " imports");
        else
          out.add("no import of malloc and the like: it calls none, or has a C library within itself");
    }
    out.add("\n");
  }
};

struct module_list {
  static constexpr char expected_magic[16] = "heapwright mod1";
  static constexpr std::uint32_t most = 512;  ///< that are told of; all are redirected

  char magic[16];
  std::uint32_t bytes;  ///< sizeof(module_list)
  std::uint32_t count;
  seen_module modules[most];
};

}  // namespace heapwright::process
