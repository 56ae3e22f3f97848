// Follows the rules of execvp(3), execve(2) and ld.so(8), in this order.
#include "program.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "heap_record.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// The file execvp would run. A directory or a file without permission is passed over as long as
/// PATH has more to offer.
std::string find_command(const std::string& name) {
  const auto runnable = [](const std::string& path) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return false;
    errno = S_ISDIR(about.st_mode) ? EISDIR : EACCES;
    return S_ISREG(about.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  const auto refuse = [&](const std::string& path, int error) -> failure {
    if (name.empty()) return {exit_code::not_found, "the command is empty"};
    if (error == ENOENT || error == ENOTDIR) return {exit_code::not_found, fmt::format("no such command: {}", name)};
    return {exit_code::not_executable, fmt::format("{} cannot be executed: {}", path, std::strerror(error))};
  };
  if (name.find('/') != std::string::npos) {
    if (runnable(name)) return name;
    throw refuse(name, errno);
  }
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin");
  std::string in_the_way;
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (runnable(path)) return path;
    if (errno == EACCES && in_the_way.empty()) in_the_way = path;
  }
  throw in_the_way.empty() ? refuse(name, ENOENT) : refuse(in_the_way, EACCES);
}

/// The command a script hands itself to, from its `#!` line; empty if it has none. Of env(1), what
/// follows its options.
std::string interpreter_of(const std::string& script) {
  const descriptor file(open(script.c_str(), O_RDONLY | O_CLOEXEC));
  char start[256];  // The kernel looks no further either.
  const ssize_t length = file ? read(file.get(), start, sizeof start) : 0;
  if (length < 3 || start[0] != '#' || start[1] != '!') return {};
  const std::string text(start + 2, static_cast<std::size_t>(length) - 2);
  std::istringstream words(text.substr(0, text.find('\n')));
  std::string word;
  words >> word;
  if (word == "/usr/bin/env" || word == "/bin/env") {
    while (words >> word && (word[0] == '-' || word.find('=') != std::string::npos)) {
    }
  }
  return word;
}

/// Will the kernel start it in "secure execution", in which the loader drops LD_PRELOAD?
bool gains_privileges(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return false;
  if ((about.st_mode & S_ISUID) != 0 && about.st_uid != getuid()) return true;
  if ((about.st_mode & S_ISGID) != 0 && (about.st_mode & S_IXGRP) != 0 && about.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// What serves in place of another malloc.
constexpr const char* tools_of_go =
    "GOGC, GOMEMLIMIT and GODEBUG set how it works, and `go tool pprof` shows the program's heap";

/// Of a program that libheapwright.a is linked into.
constexpr const char* linked_already =
    "has heapwright's malloc linked in already, and a preloaded library does not take its place: it runs on "
    "heapwright's malloc when it is started by itself, and `heapwright live PID` shows its heap then";

}  // namespace

std::string why_not_preloadable(const elf_file& elf, const std::string& path) {
  if (!elf.is_native())
    return "is built for another kind of machine than heapwright; allocators of this machine cannot load into it";
  if (elf.loader().empty() && elf.is_go_with_c())
    return fmt::format(
        "is a Go program, and statically linked: Go has an allocator of its own and does not call malloc, and "
        "LD_PRELOAD has no effect on the malloc of its C code (cgo); linked dynamically, that can be replaced and "
        "observed. For Go's own heap {}",
        tools_of_go);
  if (elf.loader().empty() && elf.is_go())
    return fmt::format(
        "is a Go program without C code: Go has an allocator of its own and does not call malloc, so "
        "that no other malloc changes or sees anything; {}",
        tools_of_go);
  if (elf.loader().empty())
    return "is statically linked: LD_PRELOAD has no effect on it; link libheapwright.a into it instead";
  if (gains_privileges(path))
    return "is setuid, setgid or has file capabilities: the loader ignores LD_PRELOAD for it; run it as its own user, "
           "or try a copy without those bits";
  if (elf.exports("malloc"))
    return "defines malloc itself, and what is preloaded cannot replace that: build it without a malloc of its own";
  return {};
}

program program::resolve(const std::vector<std::string>& command) {
  std::string path = find_command(command.front());
  auto elf = elf_file::open(path);
  for (int hops = 0; !elf; ++hops) {
    if (access(path.c_str(), R_OK) != 0)
      throw failure(
          exit_code::bad_input,
          fmt::format("{} cannot be read ({}), so that no allocator can be put under it", path, std::strerror(errno)));
    const std::string interpreter = interpreter_of(path);
    if (interpreter.empty() || hops == 5)
      throw failure(exit_code::not_executable,
                    fmt::format("{} is neither an ELF program nor a script that names its interpreter with #!", path));
    try {
      path = find_command(interpreter);
    } catch (const failure& why) {
      throw failure(why.code(), fmt::format("{} names its interpreter with #!: {}", path, why.what()));
    }
    elf = elf_file::open(path);
  }

  // The loader finds $ORIGIN by the real path of what it runs, not by the link that led there.
  path = std::filesystem::canonical(path);

  const auto refuse = [&](const std::string& why) {
    return failure(exit_code::bad_input, fmt::format("{} {}", path, why));
  };
  if (const std::string why = why_not_preloadable(*elf, path); !why.empty())
    throw refuse(elf->is_native() && heap_record::is_kept_by(path) ? linked_already : why);
  if (elf->is_go())
    tell(
        "heapwright: {} is a Go program: only what its C code allocates (cgo) comes from malloc. Go has an allocator "
        "of "
        "its own; {}\n",
        path, tools_of_go);
  return {path, elf->loader(), elf->is_go()};
}

}  // namespace heapwright::tool
