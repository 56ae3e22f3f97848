#include "../build_surroundings.hpp"

#include <atomic>
#include <filesystem>

#include <fmt/format.h>

#include "command.hpp"

namespace heapwright::tool {

namespace files = std::filesystem;

scratch_folder::scratch_folder() {
  wchar_t folder[MAX_PATH];
  const DWORD length = ::GetTempPathW(MAX_PATH, folder);
  static std::atomic<unsigned> made{0};
  path_ = fmt::format("{}heapwright-{}-{}", narrow({folder, length}), ::GetCurrentProcessId(), ++made);
  if (::CreateDirectoryW(wide(path_).c_str(), nullptr) == 0)
    throw failure(exit_code::bad_input,
                  fmt::format("cannot make a folder {}: {}", path_, message_of(::GetLastError())));
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  files::remove_all(path_of(path_), ignored);
}

std::string folder_of_this_program() {
  std::wstring path(32'768, L'\0');
  path.resize(::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return narrow(path.substr(0, path.find_last_of(L"\\/")));
}

bool is_malloc(const std::string& library) {
  // Nothing of it runs here.
  const HMODULE copy = ::LoadLibraryExW(wide(library).c_str(), nullptr, DONT_RESOLVE_DLL_REFERENCES);
  if (copy == nullptr) return false;
  const bool is_ours = ::GetProcAddress(copy, "heapwright_modules") != nullptr;
  ::FreeLibrary(copy);
  return is_ours;
}

}  // namespace heapwright::tool
