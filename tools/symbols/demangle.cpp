// By libiberty, binutils' own, which reads both of Rust's schemes too; the C++ library's demangler
// knows only C++ and always writes parameters.
#include "demangle.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

// libiberty declares a basename() of its own unless told that there is one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace heapwright::tool {
namespace {

constexpr std::array<std::string_view, 8> suffixes{".constprop.", ".isra.", ".part.",  ".cold",
                                                   ".lto_priv.",  ".llvm.", ".clone.", "@"};

std::string without_suffixes(std::string name) {
  for (const std::string_view suffix : suffixes)
    if (const std::size_t at = name.find(suffix, 1); at != std::string::npos) name.resize(at);
  return name;
}

}  // namespace

std::string demangled(const std::string& name) {
  // The time that demangling takes is not bounded by a name's length alone; a program has no longer
  // names that one wants to read.
  constexpr std::size_t longest = 32 * 1024;
  std::string plain = without_suffixes(name);
  if (plain.size() > longest || !(plain.starts_with("_Z") || plain.starts_with("_R"))) return plain;
  const std::unique_ptr<char, decltype(&std::free)> text(cplus_demangle(plain.c_str(), DMGL_AUTO), &std::free);
  return text ? std::string(text.get()) : plain;
}

}  // namespace heapwright::tool
