// heapwright.exe: what the command is on Windows so far.
//
//   run    starts a program with heapwright.dll as its first library
//   info   what is redirected in a running process, module by module
//
// run starts the program's process without letting it run, has it load the DLL by a thread of its
// own, and then lets it run. The loader has loaded by then what the program imports. So blocks that
// those libraries have allocated as they were loaded are the C library's, and go back there.
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heapwright/core/text.hpp>
#include "../../malloc/windows/windows_headers.hpp"

#include "../../malloc/windows/module_list.hpp"

namespace {

using heapwright::process::module_list;

constexpr int not_started = 125;  ///< exit code: the program did not run, or not redirected
constexpr int not_found = 127;

constexpr const char* usage =
    "usage: heapwright run [--stats] [--verbose] -- PROGRAM ARGUMENT...   runs a program on heapwright.dll\n"
    "       heapwright info PID                                          what is redirected in a process\n"
    "       heapwright --version\n";

/// Closes what the system has given.
struct handle {
  explicit handle(HANDLE h = nullptr) noexcept : is(h) {}
  ~handle() {
    if (is != nullptr && is != INVALID_HANDLE_VALUE) ::CloseHandle(is);
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  HANDLE is;
};

std::string message_of(DWORD error) {
  char text[300];
  const DWORD n = ::FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error, 0, text,
                                   sizeof text, nullptr);
  std::string_view s(text, n);
  while (!s.empty() && (s.back() == '\n' || s.back() == '\r' || s.back() == '.' || s.back() == ' ')) s.remove_suffix(1);
  return s.empty() ? "error " + std::to_string(error) : std::string(s);
}

int fail(int code, const std::string& what) {
  std::fprintf(stderr, "heapwright: %s\n", what.c_str());
  return code;
}

std::string narrow(std::wstring_view s) {
  const int n = ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(n), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, s.data(), static_cast<int>(s.size()), out.data(), n, nullptr, nullptr);
  return out;
}

/// heapwright.dll, beside this program; empty: it is not there.
std::wstring path_of_dll() {
  std::wstring path(32'768, L'\0');
  path.resize(::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  path.resize(path.find_last_of(L"\\/") + 1);
  path += L"heapwright.dll";
  return ::GetFileAttributesW(path.c_str()) == INVALID_FILE_ATTRIBUTES ? std::wstring() : path;
}

/// As CommandLineToArgvW reads it back.
void append_argument(std::wstring& line, std::wstring_view argument) {
  if (!line.empty()) line += L' ';
  if (!argument.empty() && argument.find_first_of(L" \t\n\v\"") == argument.npos) {
    line += argument;
    return;
  }
  line += L'"';
  std::size_t backslashes = 0;
  for (const wchar_t c : argument) {
    if (c == L'"') line.append(backslashes + 1, L'\\');  // these, doubled, and one for the quote
    line += c;
    backslashes = c == L'\\' ? backslashes + 1 : 0;
  }
  line.append(backslashes, L'\\');
  line += L'"';
}

/// Has a process load a library. Empty: it has; or what went wrong.
std::string load_into(HANDLE process, const std::wstring& path) {
  const std::size_t bytes = (path.size() + 1) * sizeof(wchar_t);
  void* const there = ::VirtualAllocEx(process, nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (there == nullptr || ::WriteProcessMemory(process, there, path.c_str(), bytes, nullptr) == 0)
    return message_of(::GetLastError());
  // kernel32 lies at one place in all processes.
  const auto load = reinterpret_cast<LPTHREAD_START_ROUTINE>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW")));
  const handle thread(::CreateRemoteThread(process, nullptr, 0, load, there, 0, nullptr));
  if (thread.is == nullptr) return message_of(::GetLastError());
  ::WaitForSingleObject(thread.is, INFINITE);
  DWORD loaded = 0;
  ::GetExitCodeThread(thread.is, &loaded);
  ::VirtualFreeEx(process, there, 0, MEM_RELEASE);
  return loaded != 0 ? std::string() : "the process has refused to load it";
}

int run(const std::vector<std::wstring>& words) {
  std::size_t i = 0;
  for (; i < words.size() && words[i].starts_with(L"--"); ++i) {
    if (words[i] == L"--") {
      ++i;
      break;
    }
    if (words[i] == L"--stats")
      ::SetEnvironmentVariableW(L"HEAPWRIGHT_STATS", L"1");
    else if (words[i] == L"--verbose")
      ::SetEnvironmentVariableW(L"HEAPWRIGHT_VERBOSE", L"1");
    else
      return fail(2, "run: unknown option " + narrow(words[i]) + "\n" + usage);
  }
  if (i == words.size()) return fail(2, std::string("run: which program?\n") + usage);
  const std::wstring dll = path_of_dll();
  if (dll.empty()) return fail(not_started, "heapwright.dll is not in the folder of heapwright.exe");

  std::wstring line;
  for (std::size_t k = i; k < words.size(); ++k) append_argument(line, words[k]);
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION made{};
  if (::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr, &start, &made) == 0) {
    const DWORD error = ::GetLastError();
    const bool is_missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
    return fail(is_missing ? not_found : not_started, narrow(words[i]) + ": " + message_of(error));
  }
  const handle process(made.hProcess), thread(made.hThread);
  const auto end_it = [&](const std::string& why) {
    ::TerminateProcess(process.is, not_started);
    return fail(not_started, narrow(words[i]) + ": " + why);
  };
  BOOL is_32_bit = FALSE;
  if (::IsWow64Process(process.is, &is_32_bit) != 0 && is_32_bit)
    return end_it("it is a program of 32 bits; heapwright.dll is of 64 bits, and cannot be loaded into it");
  if (const std::string error = load_into(process.is, dll); !error.empty())
    return end_it("heapwright.dll cannot be loaded into it: " + error);
  ::ResumeThread(thread.is);
  ::WaitForSingleObject(process.is, INFINITE);
  DWORD code = 0;
  ::GetExitCodeProcess(process.is, &code);
  return static_cast<int>(code);
}

/// The list of a process; empty: it has no heapwright.dll, or another version of it.
std::optional<module_list> read_list(HANDLE process, std::string& why) {
  std::vector<HMODULE> modules(4096);
  DWORD bytes = 0;
  if (::K32EnumProcessModules(process, modules.data(), static_cast<DWORD>(modules.size() * sizeof(HMODULE)), &bytes) == 0) {
    why = "its modules cannot be read: " + message_of(::GetLastError());
    return std::nullopt;
  }
  modules.resize(std::min(modules.size(), bytes / sizeof(HMODULE)));
  for (const HMODULE module : modules) {
    wchar_t path[MAX_PATH];
    const DWORD n = ::K32GetModuleFileNameExW(process, module, path, MAX_PATH);
    const std::wstring_view name(path, n);
    if (!name.ends_with(L"\\heapwright.dll")) continue;
    // Where the list lies in it is seen in a copy of the file, of which nothing runs here.
    const HMODULE copy = ::LoadLibraryExW(path, nullptr, DONT_RESOLVE_DLL_REFERENCES);
    const auto* const here =
        copy == nullptr ? nullptr : reinterpret_cast<const char*>(::GetProcAddress(copy, "heapwright_modules"));
    const auto offset = here == nullptr ? 0 : here - reinterpret_cast<const char*>(copy);
    module_list list{};
    if (here != nullptr &&
        ::ReadProcessMemory(process, reinterpret_cast<const char*>(module) + offset, &list, sizeof list, nullptr) != 0 &&
        std::memcmp(list.magic, module_list::expected_magic, sizeof list.magic) == 0 && list.bytes == sizeof list)
      return list;
    why = "its " + narrow(name) + " is of another version than this command";
    return std::nullopt;
  }
  why = "heapwright.dll is not in it: it runs on the malloc of its C library";
  return std::nullopt;
}

int info(const std::vector<std::wstring>& words) {
  wchar_t* end = nullptr;
  const unsigned long pid = words.size() == 1 ? std::wcstoul(words[0].c_str(), &end, 10) : 0;
  if (pid == 0 || *end != L'\0') return fail(2, std::string("info: of which process? Its number\n") + usage);
  const handle process(::OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, pid));
  if (process.is == nullptr)
    return fail(1, "process " + std::to_string(pid) + ": " + message_of(::GetLastError()));
  std::string why;
  const std::optional<module_list> list = read_list(process.is, why);
  if (!list) return fail(1, "process " + std::to_string(pid) + ": " + why);
  for (std::uint32_t i = 0; i < list->count && i < module_list::most; ++i) {
    heapwright::text<300> line;
    list->modules[i].write(line);
    std::fputs(line.c_str(), stdout);
  }
  return 0;
}

}  // namespace

int wmain(int count, wchar_t** words) {
  const std::vector<std::wstring> all(words + 1, words + count);
  if (all.empty()) return fail(2, usage);
  const std::vector<std::wstring> rest(all.begin() + 1, all.end());
  if (all[0] == L"run") return run(rest);
  if (all[0] == L"info") return info(rest);
  if (all[0] == L"--version") return std::puts("heapwright " HEAPWRIGHT_VERSION), 0;
  if (all[0] == L"--help" || all[0] == L"-h") return std::fputs(usage, stdout), 0;
  return fail(2, "unknown subcommand " + narrow(all[0]) + "\n" + usage);
}
