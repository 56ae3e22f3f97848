// heapwright.exe: the command on Windows, as far as it goes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "../build_surroundings.hpp"
#include "command.hpp"

namespace heapwright::tool {
namespace {

constexpr const char* usage =
    "usage: heapwright run [--stats] [--verbose] [--no-children] [--with LIBRARY.dll] -- PROGRAM ARGUMENT...\n"
    "                                                                    runs a program, and the processes that it\n"
    "                                                                    starts, on heapwright.dll\n"
    "       heapwright compare [--rounds N] [--with NAME=MALLOC]... -- PROGRAM ARGUMENT...\n"
    "                                                                    beside the malloc of its C library; MALLOC "
    "is\n"
    "                                                                    another LIBRARY.dll, or a RECIPE.hpp\n"
    "       heapwright build [--recipe NAME] [--compiler COMPILER] -o LIBRARY.dll RECIPE.hpp\n"
    "                                                                    makes a malloc from a recipe\n"
    "       heapwright top [--every SECONDS] [--looks N] PID             the heap of a process, and what changes in "
    "it\n"
    "       heapwright info PID                                          what is redirected in a process\n"
    "       heapwright --version\n";

constexpr std::array<std::wstring_view, 8> for_linux{L"advise", L"diff",   L"fit",    L"leaks",
                                                     L"live",   L"record", L"replay", L"trace"};

bool is_help(std::wstring_view word) { return word == L"--help" || word == L"-h"; }

int main_of(const words& given) {
  if (given.empty()) throw failure(exit_code::bad_words, "which subcommand?");
  const words rest(given.begin() + 1, given.end());
  if (is_help(given[0]) || given[0] == L"help" || (!rest.empty() && is_help(rest[0])))
    return std::fputs(usage, stdout), 0;
  if (std::find(for_linux.begin(), for_linux.end(), given[0]) != for_linux.end())
    throw failure(exit_code::bad_words,
                  narrow(given[0]) + " is for Linux alone" +
                      (given[0] == L"live" ? "; heapwright top PID shows the heap of a process" : ""));
  if (given[0] == L"run") return run(rest);
  if (given[0] == L"build") return build(rest);
  if (given[0] == L"compare") return compare(rest);
  if (given[0] == L"info") return info(rest);
  if (given[0] == L"top") return top(rest);
  if (given[0] == L"--version") return std::puts("heapwright " HEAPWRIGHT_VERSION), 0;
  throw failure(exit_code::bad_words, "unknown subcommand " + narrow(given[0]));
}

}  // namespace

std::string narrow(std::wstring_view s) {
  const int n = ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(n), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), out.data(), n, nullptr, nullptr);
  return out;
}

std::wstring wide(std::string_view s) {
  const int n = ::MultiByteToWideChar(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), nullptr, 0);
  std::wstring out(static_cast<std::size_t>(n), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), out.data(), n);
  return out;
}

std::wstring library_named(const std::wstring& name, const char* subcommand) {
  if (name.empty() || ::GetFileAttributesW(name.c_str()) == INVALID_FILE_ATTRIBUTES)
    throw failure(exit_code::bad_words, std::string(subcommand) + ": no such library: " + narrow(name));
  std::wstring whole(32'768, L'\0');
  whole.resize(::GetFullPathNameW(name.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
  if (!is_malloc(narrow(whole)))
    std::fprintf(
        stderr,
        "heapwright: %s: %s was not built by heapwright: whether a program takes its blocks from it is not known\n",
        subcommand, narrow(name).c_str());
  return whole;
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
    const int code = main_of(words(given + 1, given + count));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw failure(exit_code::trouble, "the answer was lost: standard output does not take it");
    return code;
  } catch (const interrupted&) {
    return static_cast<int>(STATUS_CONTROL_C_EXIT);
  } catch (const failure& f) {
    std::fprintf(stderr, "heapwright: %s\n", f.what());
    if (f.code() == exit_code::bad_words) std::fputs("heapwright --help says how it is used\n", stderr);
    return f.code();
  }
}
