// Of ../terminal.hpp, what is used here.
#include "../terminal.hpp"

#include <cstdio>

#include <io.h>

namespace heapwright::tool {

bool tell_text(const std::string& text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), stderr) == text.size() && std::fflush(stderr) == 0;
}

void show_step(const std::string& text) noexcept {
  if (::_isatty(::_fileno(stderr)) != 0) tell("\r  {:60}\r", text);
}

}  // namespace heapwright::tool
