// `heapwright info`: what is redirected in a running process, module by module.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <cwchar>

#include <heapwright/core/text.hpp>

#include "../../malloc/windows/module_list.hpp"
#include "command.hpp"

namespace heapwright::tool {
namespace {

using process::module_list;

/// Where a library has its list, in bytes from its beginning; 0: it has none. That is seen in a
/// copy of the file, of which nothing runs here.
std::ptrdiff_t place_of_list(const wchar_t* path) {
  const HMODULE copy = ::LoadLibraryExW(path, nullptr, DONT_RESOLVE_DLL_REFERENCES);
  if (copy == nullptr) return 0;
  const auto* const list = reinterpret_cast<const char*>(::GetProcAddress(copy, "heapwright_modules"));
  const std::ptrdiff_t place = list == nullptr ? 0 : list - reinterpret_cast<const char*>(copy);
  ::FreeLibrary(copy);
  return place;
}

bool is_of_the_system(std::wstring_view path) {
  wchar_t system[MAX_PATH];
  const std::wstring_view folder(system, ::GetSystemDirectoryW(system, MAX_PATH));
  return path.size() > folder.size() && ::_wcsnicmp(path.data(), folder.data(), folder.size()) == 0;
}

/// The list of a process. Throws `failure` where it has none.
module_list read_list(HANDLE process, const std::string& name) {
  const auto refuse = [&](const std::string& why) { throw failure(exit_code::trouble, name + ": " + why); };
  std::vector<HMODULE> modules(4096);
  DWORD bytes = 0;
  const auto room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
  if (::K32EnumProcessModules(process, modules.data(), room, &bytes) == 0)
    refuse("its modules cannot be read: " + message_of(::GetLastError()));
  modules.resize(std::min(modules.size(), bytes / sizeof(HMODULE)));
  for (const HMODULE module : modules) {
    wchar_t path[MAX_PATH];
    const std::wstring_view file(path, ::K32GetModuleFileNameExW(process, module, path, MAX_PATH));
    const std::ptrdiff_t place = is_of_the_system(file) ? 0 : place_of_list(path);
    if (place == 0) continue;
    module_list list{};
    const bool is_read =
        ::ReadProcessMemory(process, reinterpret_cast<const char*>(module) + place, &list, sizeof list, nullptr) != 0;
    if (!is_read || std::memcmp(list.magic, module_list::expected_magic, sizeof list.magic) != 0 ||
        list.bytes != sizeof list)
      refuse("its " + narrow(file) + " is of another version than this command");
    if (list.count > 0) return list;  // of a second copy, which does nothing, it is empty
  }
  refuse("neither heapwright.dll nor a malloc of heapwright build is in it: it runs on the malloc of its C library");
  return {};
}

}  // namespace

int info(const words& given) {
  constexpr std::size_t most_digits = 10;  // of 32 bits
  const bool is_number = given.size() == 1 && given[0].size() <= most_digits &&
                         given[0].find_first_not_of(L"0123456789") == std::wstring::npos;
  const unsigned long long number = is_number ? std::wcstoull(given[0].c_str(), nullptr, 10) : 0;
  const auto pid = static_cast<DWORD>(number);
  if (pid == 0 || pid != number) throw failure(exit_code::bad_words, "info: of which process? Give its number");
  const std::string name = "process " + std::to_string(pid);
  const handle process(::OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, pid));
  if (!process) throw failure(exit_code::trouble, name + ": " + message_of(::GetLastError()));
  const module_list list = read_list(process.get(), name);
  for (std::uint32_t i = 0; i < std::min(list.count, module_list::most); ++i) {
    text<300> line;
    list.modules[i].write(line);
    std::fputs(line.c_str(), stdout);
  }
  return 0;
}

}  // namespace heapwright::tool
