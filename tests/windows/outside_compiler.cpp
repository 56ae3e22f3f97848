// A C++ compiler for heapwright.exe under wine, where none can be installed: the one that has built
// this program, which runs outside of wine (outside_compiler.sh).
//
// wine starts programs that are not of Windows, but does not wait for them. So the script writes
// how it has ended to a file, which is awaited here.
#include <cstdio>
#include <string>

#include <windows.h>

namespace {

std::string content_of(const std::wstring& path) {
  std::string content;
  if (FILE* const file = ::_wfopen(path.c_str(), L"rb")) {
    char piece[4096];
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, file)) content.append(piece, n);
    std::fclose(file);
  }
  return content;
}

std::wstring in_quotes(const std::wstring& path) { return L'"' + path + L'"'; }

}  // namespace

int main() {
  wchar_t folder[MAX_PATH], output[MAX_PATH];
  if (::GetTempPathW(MAX_PATH, folder) == 0 || ::GetTempFileNameW(folder, L"out", 0, output) == 0) return 125;
  const std::wstring status = std::wstring(output) + L".status";
  // The words behind the name of this program, as they were given.
  std::wstring given = ::GetCommandLineW();
  const std::size_t end_of_name = given.starts_with(L'"') ? given.find(L'"', 1) : given.find(L' ');
  given = end_of_name == given.npos ? L"" : given.substr(end_of_name + 1);
  std::wstring line =
      in_quotes(L"" OUTSIDE_COMPILER) + L" " + in_quotes(output) + L" " + in_quotes(status) + L" " + given;
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION made{};
  if (::CreateProcessW(L"" OUTSIDE_COMPILER, line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &start,
                       &made) == 0) {
    std::fprintf(stderr, "outside_compiler: error %lu\n", ::GetLastError());
    return 125;
  }
  while (::GetFileAttributesW(status.c_str()) == INVALID_FILE_ATTRIBUTES) ::Sleep(10);
  const std::string said = content_of(output);
  std::fwrite(said.data(), 1, said.size(), stderr);
  const int code = std::atoi(content_of(status).c_str());
  ::DeleteFileW(output);
  ::DeleteFileW(status.c_str());
  return code;
}
