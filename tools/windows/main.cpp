// heapwright.exe: the command on Windows, as far as it goes.
#include <cstdio>

#include "command.hpp"

namespace heapwright::tool {
namespace {

constexpr const char* usage =
    "usage: heapwright run [--stats] [--verbose] -- PROGRAM ARGUMENT...   runs a program on heapwright.dll\n"
    "       heapwright compare [--rounds N] [--with NAME=LIBRARY.dll]... -- PROGRAM ARGUMENT...\n"
    "                                                                    beside the malloc of its C library\n"
    "       heapwright info PID                                          what is redirected in a process\n"
    "       heapwright --version\n";

int main_of(const words& given) {
  if (given.empty()) throw failure(exit_code::bad_words, "which subcommand?");
  const words rest(given.begin() + 1, given.end());
  if (given[0] == L"run") return run(rest);
  if (given[0] == L"compare") return compare(rest);
  if (given[0] == L"info") return info(rest);
  if (given[0] == L"--version") return std::puts("heapwright " HEAPWRIGHT_VERSION), 0;
  if (given[0] == L"--help" || given[0] == L"-h") return std::fputs(usage, stdout), 0;
  throw failure(exit_code::bad_words, "unknown subcommand " + narrow(given[0]));
}

}  // namespace

std::string narrow(std::wstring_view s) {
  const int n = ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(n), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), out.data(), n, nullptr, nullptr);
  return out;
}

std::string message_of(DWORD error) {
  char text[300];
  constexpr DWORD how = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  std::string_view s(text, ::FormatMessageA(how, nullptr, error, 0, text, sizeof text, nullptr));
  s = s.substr(0, s.find_last_not_of("\r\n. ") + 1);
  return s.empty() ? "error " + std::to_string(error) : std::string(s);
}

}  // namespace heapwright::tool

int wmain(int count, wchar_t** given) {
  using namespace heapwright::tool;
  try {
    return main_of(words(given + 1, given + count));
  } catch (const failure& f) {
    std::fprintf(stderr, "heapwright: %s\n", f.what());
    if (f.code == exit_code::bad_words) std::fputs(usage, stderr);
    return f.code;
  }
}
