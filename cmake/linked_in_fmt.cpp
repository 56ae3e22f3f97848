// The definitions of fmt's functions, for programs that include its headers without
// FMT_HEADER_ONLY.
//
// With FMT_HEADER_ONLY a file gets a weak copy of each function that it uses. Compiled without
// inlining, the two calls below use all that the headers declare for char; what is missing fails at
// the link, by name.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace {

[[gnu::used]] std::string uses_all(fmt::string_view format, fmt::format_args arguments) {
  fmt::vprint(format, arguments);
  return fmt::vformat(format, arguments);
}

}  // namespace
