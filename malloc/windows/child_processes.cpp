#include "child_processes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "library_into_process.hpp"

namespace heapwright::process {
namespace {

/// Programs import from kernel32; system libraries from kernelbase, to which kernel32 passes on.
constexpr std::array<const wchar_t*, 2> system_names{L"kernel32.dll", L"kernelbase.dll"};

struct system_library {
  HMODULE module = nullptr;
  decltype(&::CreateProcessW) create_w = nullptr;
  decltype(&::CreateProcessA) create_a = nullptr;
};
constinit std::array<system_library, system_names.size()> systems{};

constexpr std::size_t longest_path = 32'768;
constinit wchar_t path_of_this[longest_path]{};

/// A process that has been made without letting it run, by a caller that has asked for `flags`.
void enter(const PROCESS_INFORMATION& made, DWORD flags) noexcept {
  // A debugger's process would wait for the debugger, and that for us.
  constexpr DWORD is_debugged = DEBUG_PROCESS | DEBUG_ONLY_THIS_PROCESS;
  const DWORD error = ::GetLastError();
  BOOL is_32_bit = FALSE;
  if ((flags & is_debugged) == 0 && ::IsWow64Process(made.hProcess, &is_32_bit) != 0 && is_32_bit == FALSE)
    (void)load_library_into(made.hProcess, path_of_this);
  if ((flags & CREATE_SUSPENDED) == 0) ::ResumeThread(made.hThread);
  ::SetLastError(error);
}

/// In the place of CreateProcessW and CreateProcessA: `Create` is the member of system_library.
template <std::size_t I, auto Create, class Letter, class Start>
BOOL WINAPI create(const Letter* program, Letter* line, LPSECURITY_ATTRIBUTES process, LPSECURITY_ATTRIBUTES thread,
                   BOOL inherits, DWORD flags, LPVOID environment, const Letter* folder, Start* start,
                   LPPROCESS_INFORMATION made) {
  const BOOL is_made = (systems[I].*Create)(program, line, process, thread, inherits, flags | CREATE_SUSPENDED,
                                            environment, folder, start, made);
  if (is_made != FALSE) enter(*made, flags);
  return is_made;
}

template <class F>
[[nodiscard]] void* as_address(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

template <std::size_t I>
[[nodiscard]] void* entry_of(const void* address) noexcept {
  const system_library& s = systems[I];
  if (s.create_w != nullptr && address == as_address(s.create_w))
    return as_address(&create<I, &system_library::create_w, WCHAR, STARTUPINFOW>);
  if (s.create_a != nullptr && address == as_address(s.create_a))
    return as_address(&create<I, &system_library::create_a, CHAR, STARTUPINFOA>);
  return nullptr;
}

}  // namespace

void follow_children(HMODULE self) noexcept {
  const DWORD length = ::GetModuleFileNameW(self, path_of_this, longest_path);
  if (length == 0 || length == longest_path) return;
  for (std::size_t i = 0; i < systems.size(); ++i) {
    system_library& s = systems[i];
    s.module = ::GetModuleHandleW(system_names[i]);
    if (s.module == nullptr) continue;
    s.create_w = reinterpret_cast<decltype(s.create_w)>(as_address(::GetProcAddress(s.module, "CreateProcessW")));
    s.create_a = reinterpret_cast<decltype(s.create_a)>(as_address(::GetProcAddress(s.module, "CreateProcessA")));
  }
}

void* entry_for_start(const void* address) noexcept {
  void* const entry = entry_of<0>(address);
  return entry != nullptr ? entry : entry_of<1>(address);
}

bool starts_for_others(HMODULE module) noexcept {
  return std::any_of(systems.begin(), systems.end(), [&](const system_library& s) { return s.module == module; });
}

}  // namespace heapwright::process
