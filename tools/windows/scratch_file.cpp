#include "scratch_file.hpp"

namespace heapwright::tool {
namespace {

SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};

}  // namespace

handle scratch_file() {
  wchar_t folder[MAX_PATH], path[MAX_PATH];
  if (::GetTempPathW(MAX_PATH, folder) == 0 || ::GetTempFileNameW(folder, L"hw", 0, path) == 0)
    throw failure(exit_code::trouble, "no temporary file: " + message_of(::GetLastError()));
  handle file(::CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                            CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (!file) throw failure(exit_code::trouble, narrow(path) + ": " + message_of(::GetLastError()));
  return file;
}

std::string content_of(HANDLE file) {
  std::string content;
  ::SetFilePointer(file, 0, nullptr, FILE_BEGIN);
  char piece[65'536];
  DWORD n = 0;
  while (::ReadFile(file, piece, sizeof piece, &n, nullptr) != 0 && n > 0) content.append(piece, n);
  return content;
}

handle no_input() {
  return handle(
      ::CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr));
}

handle ending_job() {
  handle job(::CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  ::SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

}  // namespace heapwright::tool
