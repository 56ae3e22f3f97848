// `heapwright run`: a program on heapwright.dll.
#include "../../malloc/windows/child_processes.hpp"
#include "command.hpp"
#include "launch.hpp"

namespace heapwright::tool {

int run(const words& given) {
  bool follows_children = true;
  std::wstring library;
  std::size_t i = 0;
  for (; i < given.size() && given[i].starts_with(L"--"); ++i) {
    if (given[i] == L"--") {
      ++i;
      break;
    }
    if (given[i] == L"--stats") {
      ::SetEnvironmentVariableW(L"HEAPWRIGHT_STATS", L"1");
      ::SetEnvironmentVariableA(process::stats_once_variable, "1");
    } else if (given[i] == L"--with")
      library = library_named(++i < given.size() ? given[i] : L"", "run");
    else if (given[i] == L"--no-children")
      follows_children = false;
    else if (given[i] == L"--verbose")
      ::SetEnvironmentVariableW(L"HEAPWRIGHT_VERBOSE", L"1");
    else
      throw failure(exit_code::bad_words, "run: unknown option " + narrow(given[i]));
  }
  if (i == given.size()) throw failure(exit_code::bad_words, "run: which program?");
  if (follows_children) ::SetEnvironmentVariableA(process::children_variable, "1");
  const launched program = launch(words(given.begin() + static_cast<std::ptrdiff_t>(i), given.end()),
                                  library.empty() ? path_of_dll() : library);
  ::WaitForSingleObject(program.process.get(), INFINITE);
  DWORD code = 0;
  ::GetExitCodeProcess(program.process.get(), &code);
  return static_cast<int>(code);
}

}  // namespace heapwright::tool
