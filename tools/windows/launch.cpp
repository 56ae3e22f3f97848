#include "launch.hpp"

#include "../../malloc/windows/library_into_process.hpp"
#include "../build_surroundings.hpp"

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

std::wstring line_of(const words& command) {
  std::wstring line;
  for (const std::wstring& word : command) append_argument(line, word);
  return line;
}

/// Has a process load a library. Empty: it has; or what went wrong.
std::string load_into(HANDLE made, const std::wstring& path) {
  const DWORD error = process::load_library_into(made, path.c_str());
  if (error == ERROR_DLL_INIT_FAILED) return "the process has refused to load it";
  return error != 0 ? message_of(error) : std::string();
}

}  // namespace

std::wstring path_of_dll() {
  const std::wstring path = wide(folder_of_this_program()) + L"\\heapwright.dll";
  if (::GetFileAttributesW(path.c_str()) == INVALID_FILE_ATTRIBUTES)
    throw failure(exit_code::not_started, "heapwright.dll is not in the folder of heapwright.exe");
  if (!is_malloc(narrow(path)))
    throw failure(exit_code::not_started, "heapwright.dll in the folder of heapwright.exe is another library");
  return path;
}

launched launch(const words& command, const std::wstring& dll, standard_handles handles, HANDLE job) {
  if (command.front().empty()) throw failure(exit_code::not_found, "the name of the program is empty");
  const std::string name = narrow(command.front());
  STARTUPINFOW start{};
  start.cb = sizeof start;
  if (handles.input != nullptr || handles.output != nullptr || handles.error != nullptr) {
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = handles.input != nullptr ? handles.input : ::GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = handles.output != nullptr ? handles.output : ::GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = handles.error != nullptr ? handles.error : ::GetStdHandle(STD_ERROR_HANDLE);
  }
  PROCESS_INFORMATION made{};
  const auto create = [&](std::wstring words_of_it) {
    const BOOL is_made = ::CreateProcessW(nullptr, words_of_it.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED,
                                          nullptr, nullptr, &start, &made);
    return is_made != 0 ? DWORD{0} : ::GetLastError();
  };
  const auto is_missing = [](DWORD error) { return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND; };
  DWORD error = create(line_of(command));
  // Windows itself adds .exe only where the name has no dot.
  if (is_missing(error)) {
    words with_exe = command;
    with_exe.front() += L".exe";
    if (create(line_of(with_exe)) == 0) error = 0;
  }
  if (error != 0)
    throw failure(is_missing(error) ? exit_code::not_found : exit_code::not_started, name + ": " + message_of(error));
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
    if (const std::string why = load_into(made.hProcess, dll); !why.empty())
      give_up(narrow(dll.substr(dll.find_last_of(L"\\/") + 1)) + " cannot be loaded into it: " + why);
  }
  ::ResumeThread(made.hThread);
  return result;
}

}  // namespace heapwright::tool
