// Starts itself in each way there is. Each process says whether heapwright.dll is in it, and how it
// was started.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <process.h>
#include <windows.h>

namespace {

constexpr unsigned code_of_child = 40;

void say(const char* started_by) {
  std::printf("%s: %s\n", started_by,
              ::GetModuleHandleW(L"heapwright.dll") != nullptr ? "redirected" : "not redirected");
  std::fflush(stdout);
}

void fail(const char* what) {
  std::printf("%s failed: error %lu\n", what, ::GetLastError());
  std::exit(1);
}

unsigned code_of(const PROCESS_INFORMATION& made) {
  DWORD code = 0;
  ::WaitForSingleObject(made.hProcess, INFINITE);
  ::GetExitCodeProcess(made.hProcess, &code);
  ::CloseHandle(made.hProcess);
  ::CloseHandle(made.hThread);
  return code;
}

void by_create_process_w(const wchar_t* self) {
  std::wstring line = std::wstring(L"\"") + self + L"\" CreateProcessW";
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION made{};
  if (!::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &made))
    fail("CreateProcessW");
  if (code_of(made) != code_of_child) fail("CreateProcessW's code");
}

// The caller lets it run.
void by_create_process_a(const char* self) {
  std::string line = std::string("\"") + self + "\" CreateProcessA";
  STARTUPINFOA start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION made{};
  if (!::CreateProcessA(self, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr, &start, &made))
    fail("CreateProcessA");
  if (::WaitForSingleObject(made.hProcess, 200) != WAIT_TIMEOUT) fail("CREATE_SUSPENDED");
  ::ResumeThread(made.hThread);
  if (code_of(made) != code_of_child) fail("CreateProcessA's code");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "grandparent") != 0) {
    say(argv[1]);
    return code_of_child;
  }
  char self[MAX_PATH];
  wchar_t wide_self[MAX_PATH];
  ::GetModuleFileNameA(nullptr, self, MAX_PATH);
  ::GetModuleFileNameW(nullptr, wide_self, MAX_PATH);
  if (argc > 1) {
    say("grandparent");
    if (::_spawnl(_P_WAIT, self, self, static_cast<const char*>(nullptr)) != 0) fail("_spawnl");
    return 0;
  }
  say("begin");
  by_create_process_w(wide_self);
  by_create_process_a(self);
  if (::_spawnl(_P_WAIT, self, self, "_spawnl", static_cast<const char*>(nullptr)) != static_cast<int>(code_of_child))
    fail("_spawnl");
  // What is not there is told as without us.
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION made{};
  wchar_t missing[] = L"nowhere.exe";
  if (::CreateProcessW(nullptr, missing, nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &made) ||
      ::GetLastError() != ERROR_FILE_NOT_FOUND)
    fail("nowhere.exe");
}
