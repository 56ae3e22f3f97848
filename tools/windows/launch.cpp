#include "launch.hpp"

namespace heapwright::tool {
namespace {

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
  if (!thread) return message_of(::GetLastError());
  ::WaitForSingleObject(thread.get(), INFINITE);
  DWORD loaded = 0;
  ::GetExitCodeThread(thread.get(), &loaded);
  ::VirtualFreeEx(process, there, 0, MEM_RELEASE);
  return loaded != 0 ? std::string() : "the process has refused to load it";
}

}  // namespace

std::wstring path_of_dll() {
  std::wstring path(32'768, L'\0');
  path.resize(::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  path.resize(path.find_last_of(L"\\/") + 1);
  path += L"heapwright.dll";
  if (::GetFileAttributesW(path.c_str()) == INVALID_FILE_ATTRIBUTES)
    throw failure(exit_code::not_started, "heapwright.dll is not in the folder of heapwright.exe");
  return path;
}

launched launch(const words& command, const std::wstring& dll, standard_handles handles, HANDLE job) {
  std::wstring line;
  for (const std::wstring& word : command) append_argument(line, word);
  const std::string name = narrow(command.front());
  STARTUPINFOW start{};
  start.cb = sizeof start;
  if (handles.input != nullptr || handles.output != nullptr) {
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = handles.input != nullptr ? handles.input : ::GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = handles.output != nullptr ? handles.output : ::GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = ::GetStdHandle(STD_ERROR_HANDLE);
  }
  PROCESS_INFORMATION made{};
  if (::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr, &start,
                       &made) == 0) {
    const DWORD error = ::GetLastError();
    const bool is_missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
    throw failure(is_missing ? exit_code::not_found : exit_code::not_started, name + ": " + message_of(error));
  }
  launched result{handle(made.hProcess), handle(made.hThread)};
  const auto give_up = [&](const std::string& why) {
    ::TerminateProcess(made.hProcess, exit_code::not_started);
    throw failure(exit_code::not_started, name + ": " + why);
  };
  if (job != nullptr && ::AssignProcessToJobObject(job, made.hProcess) == 0) give_up(message_of(::GetLastError()));
  BOOL is_32_bit = FALSE;
  if (!dll.empty() && ::IsWow64Process(made.hProcess, &is_32_bit) != 0 && is_32_bit)
    give_up("it is a program of 32 bits; heapwright.dll is of 64 bits, and cannot be loaded into it");
  if (!dll.empty()) {
    if (const std::string error = load_into(made.hProcess, dll); !error.empty())
      give_up(narrow(dll.substr(dll.find_last_of(L"\\/") + 1)) + " cannot be loaded into it: " + error);
  }
  ::ResumeThread(made.hThread);
  return result;
}

}  // namespace heapwright::tool
