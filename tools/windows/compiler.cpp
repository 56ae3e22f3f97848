#include "../compiler.hpp"

#include <algorithm>
#include <csignal>
#include <thread>

#include <fmt/format.h>

#include "../compiler_text.hpp"
#include "ctrl_c.hpp"
#include "launch.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {
namespace {

/// One that was started, and where it writes.
struct running {
  std::size_t index;  ///< of what is to be run
  launched compiler;
  handle messages;
};

running start(const std::vector<std::string>& command, std::size_t index, HANDLE job) {
  words wide_words;
  for (const std::string& word : command) wide_words.push_back(wide(word));
  const handle nothing = no_input();
  handle messages = scratch_file();
  try {
    launched made =
        launch(wide_words, {}, {.input = nothing.get(), .output = messages.get(), .error = messages.get()}, job);
    return {index, std::move(made), std::move(messages)};
  } catch (const failure& why) {
    throw failure(exit_code::bad_input,
                  fmt::format("the C++ compiler cannot be run: {}; install one (MSYS2's g++, say), or name one that is "
                              "installed, in CXX or by --compiler",
                              why.what()));
  }
}

}  // namespace

compiler::compiler(const std::string& command) : words_(compiler_words(command)) {}

std::vector<compiler_result> compiler::run(const std::vector<compiler_run>& runs,
                                           const std::function<void(std::size_t)>& done) const {
  const std::size_t most =
      std::min<std::size_t>(std::max(std::thread::hardware_concurrency(), 1U), MAXIMUM_WAIT_OBJECTS - 1);
  const handle job = ending_job();
  std::vector<compiler_result> results;
  std::vector<running> now;
  bool all_good = true;
  std::size_t finished = 0;
  while ((all_good && results.size() < runs.size()) || !now.empty()) {
    if (all_good && results.size() < runs.size() && now.size() < most) {
      std::vector<std::string> command = words_;
      const auto& more = runs[results.size()].arguments;
      command.insert(command.end(), more.begin(), more.end());
      now.push_back(start(command, results.size(), job.get()));
      results.push_back({});
      continue;
    }
    std::vector<HANDLE> processes;
    for (const running& one : now) processes.push_back(one.compiler.process.get());
    processes.push_back(awaited_ctrl_c::event());
    const DWORD which =
        ::WaitForMultipleObjects(static_cast<DWORD>(processes.size()), processes.data(), FALSE, INFINITE);
    if (awaited_ctrl_c::has_come()) throw interrupted{SIGINT};
    if (which >= now.size())
      throw failure(exit_code::bad_input, fmt::format("{}: {}", name(), message_of(::GetLastError())));
    const auto ended = now.begin() + which;
    DWORD code = 0;
    ::GetExitCodeProcess(ended->compiler.process.get(), &code);
    compiler_result& result = results[ended->index];
    result = {code == 0, content_of(ended->messages.get())};
    std::erase(result.complaints, '\r');
    if (!result.good && result.complaints.empty())
      result.complaints = fmt::format("error: {} exited with status {} and said nothing\n", name(), code);
    all_good = all_good && result.good;
    now.erase(ended);
    if (done) done(++finished);
  }
  return results;
}

}  // namespace heapwright::tool
