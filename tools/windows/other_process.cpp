#include "other_process.hpp"

#include <algorithm>
#include <cwchar>

namespace heapwright::tool {
namespace {

/// Where a library has what it exports by this name, in bytes from its beginning; 0: it does not.
/// That is seen in a copy of the file, of which nothing runs here.
std::ptrdiff_t place_of_export(const wchar_t* path, const char* name) {
  const HMODULE copy = ::LoadLibraryExW(path, nullptr, DONT_RESOLVE_DLL_REFERENCES);
  if (copy == nullptr) return 0;
  const auto* const exported = reinterpret_cast<const char*>(::GetProcAddress(copy, name));
  const std::ptrdiff_t place = exported == nullptr ? 0 : exported - reinterpret_cast<const char*>(copy);
  ::FreeLibrary(copy);
  return place;
}

bool is_of_the_system(std::wstring_view path) {
  wchar_t system[MAX_PATH];
  const std::wstring_view folder(system, ::GetSystemDirectoryW(system, MAX_PATH));
  return path.size() > folder.size() && ::_wcsnicmp(path.data(), folder.data(), folder.size()) == 0;
}

}  // namespace

other_process::other_process(const words& given, const char* subcommand) {
  constexpr std::size_t most_digits = 10;  // of 32 bits
  const bool is_number = given.size() == 1 && given[0].size() <= most_digits &&
                         given[0].find_first_not_of(L"0123456789") == std::wstring::npos;
  const unsigned long long number = is_number ? std::wcstoull(given[0].c_str(), nullptr, 10) : 0;
  const auto pid = static_cast<DWORD>(number);
  if (pid == 0 || pid != number)
    throw failure(exit_code::bad_words, std::string(subcommand) + ": of which process? Give its number");
  name_ = "process " + std::to_string(pid);
  process_ = handle(::OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | SYNCHRONIZE, FALSE, pid));
  if (!process_) {
    const DWORD error = ::GetLastError();
    throw failure(exit_code::trouble,
                  name_ + ": " + (error == ERROR_INVALID_PARAMETER ? "there is no such process" : message_of(error)));
  }
  wchar_t path[MAX_PATH];
  DWORD length = MAX_PATH;
  if (::QueryFullProcessImageNameW(get(), 0, path, &length) == 0) return;
  const std::wstring_view whole(path, length);
  name_ += ", " + narrow(whole.substr(whole.find_last_of(L"\\/") + 1));
  // It stays, without its memory, as long as somebody has a handle of it.
  if (::WaitForSingleObject(get(), 0) == WAIT_OBJECT_0) throw failure(exit_code::trouble, name_ + " has ended");
}

bool other_process::read(const void* there, void* into, std::size_t bytes) const noexcept {
  return ::ReadProcessMemory(get(), there, into, bytes, nullptr) != 0;
}

std::vector<other_process::exported> other_process::exports_named(const char* name) const {
  std::vector<HMODULE> modules(4096);
  DWORD bytes = 0;
  const auto room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
  if (::K32EnumProcessModules(get(), modules.data(), room, &bytes) == 0)
    throw failure(exit_code::trouble, name_ + ": its modules cannot be read: " + message_of(::GetLastError()));
  modules.resize(std::min(modules.size(), bytes / sizeof(HMODULE)));
  std::vector<exported> found;
  for (const HMODULE module : modules) {
    wchar_t path[MAX_PATH];
    const std::wstring_view file(path, ::K32GetModuleFileNameExW(get(), module, path, MAX_PATH));
    const std::ptrdiff_t place = is_of_the_system(file) ? 0 : place_of_export(path, name);
    if (place != 0) found.push_back({narrow(file), reinterpret_cast<const char*>(module) + place});
  }
  return found;
}

failure no_malloc_in(const other_process& of) {
  return {exit_code::trouble, of.name() +
                                  ": neither heapwright.dll nor a malloc of heapwright build is in it: it runs on "
                                  "the malloc of its C library"};
}

failure other_version_in(const other_process& of, const std::string& library) {
  return {exit_code::trouble, of.name() + ": its " + library + " is of another version than this command"};
}

}  // namespace heapwright::tool
