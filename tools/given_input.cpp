#include "given_input.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal.hpp"

namespace heapwright::tool {

std::optional<scratch_file> given_input() {
  struct stat about {};
  if (fstat(STDIN_FILENO, &about) != 0) return std::nullopt;
  if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode)) return std::nullopt;
  pollfd waiting{STDIN_FILENO, POLLIN, 0};
  if (poll(&waiting, 1, 1000) == 0)
    tell("heapwright: reading standard input for the command; give it </dev/null if it needs none\n");
  std::optional<scratch_file> input(std::in_place);
  input->fill_from(STDIN_FILENO);
  return input;
}

}  // namespace heapwright::tool
