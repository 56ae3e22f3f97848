// `heapwright run`: becomes the command, with our malloc preloaded. Nothing of this tool remains in the process.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "allocators.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "loader.hpp"
#include "program.hpp"

namespace heapwright::tool {

void run(const run_options& options) {
  const program target = program::resolve(options.command);
  const std::string library = options.library.empty() ? own_library() : library_path(options.library);
  const std::string preload = preload_value(library);
  if (const std::string complaint = ask_loader(target, preload).complaint; !complaint.empty())
    throw failure(exit_code::bad_input, fmt::format("{} does not load into {}: {}", library, target.path, complaint));

  setenv("LD_PRELOAD", preload.c_str(), 1);
  if (options.statistics) setenv("HEAPWRIGHT_STATS", "1", 1);
  std::vector<char*> arguments;
  for (const std::string& argument : options.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw failure(exit_code::not_executable,
                fmt::format("{} cannot be executed: {}", arguments[0], std::strerror(errno)));
}

}  // namespace heapwright::tool
