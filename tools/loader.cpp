// The loader answers in text made for people, stable for decades; its two forms are quoted where
// they are parsed.
#include "loader.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

std::string listing::malloc() const {
  for (const std::string& path : objects) {
    const auto elf = elf_file::open(path);
    if (elf && elf->exports("malloc")) return path;
  }
  return {};
}

listing ask_loader(const program& target, const std::string& library) {
  const std::string ld_preload = preload_value(library);
  const scratch_file output;
  const scratch_file errors;
  const pid_t child = fork();
  if (child == 0) {
    dup2(output.fd(), STDOUT_FILENO);
    dup2(errors.fd(), STDERR_FILENO);
    setenv("LD_PRELOAD", ld_preload.c_str(), 1);
    execl(target.loader.c_str(), target.loader.c_str(), "--list", target.path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (output.size() == 0 && !output.has_room())
    throw failure(exit_code::bad_input,
                  fmt::format("there is no room left in {}, where temporary files go; set TMPDIR", scratch_place()));
  if (status != 0) {
    const bool musl = target.loader.find("/ld-musl-") != std::string::npos;
    throw failure(
        exit_code::bad_input,
        fmt::format(
            "{} cannot be loaded by {}: {}{}", target.path, target.loader, errors.tail(3),
            musl ? "\nThe program uses musl, and the library another libc; libheapwright.so runs on both" : ""));
  }

  listing result{{target.path}, {}};
  // "\tlibc.so.6 => /lib/libc.so.6 (0x...)", "\t/lib64/ld-linux.so.2 (0x...)", "\tlinux-vdso.so.1
  // (0x...)"
  std::istringstream lines(output.content());
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.rfind(" (0x");
    const auto start = line.find('/');
    if (start != std::string::npos && end != std::string::npos && start < end)
      result.objects.push_back(line.substr(start, end - start));
  }
  // "ERROR: ld.so: object 'X' from LD_PRELOAD cannot be preloaded (reason): ignored." Others that
  // the user preloads are theirs.
  const std::string text = errors.content();
  const std::string marker = fmt::format("'{}' from LD_PRELOAD cannot be preloaded (", library);
  if (const auto at = text.find(marker); at != std::string::npos) {
    const auto reason = at + marker.size();
    result.complaint = text.substr(reason, text.find("): ignored", reason) - reason);
    if (result.complaint == "cannot open shared object file")
      result.complaint = "there is no such file, neither here nor where ld.so looks for libraries";
  }
  return result;
}

std::string preload_value(const std::string& library) {
  const char* const existing = std::getenv("LD_PRELOAD");
  if (existing == nullptr || *existing == '\0') return library;
  if (library.empty()) return existing;
  // The loader takes colons and spaces.
  std::string_view rest = existing;
  const std::string_view first = rest.substr(0, rest.find_first_of(": "));
  const std::string_view name = first.substr(first.rfind('/') + 1);
  if (!name.starts_with("libheapwright-probe.so")) return fmt::format("{}:{}", library, rest);
  rest.remove_prefix(first.size());
  return fmt::format("{}:{}{}", first, library, rest);
}

bool can_be_preloaded(const std::string& path) { return path.find_first_of(": \t\n") == std::string::npos; }

bool is_header(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".hpp" || extension == ".h" || extension == ".hh" || extension == ".hxx";
}

std::string library_path(const std::string& given) {
  std::error_code error;
  const bool here = std::filesystem::exists(given, error);
  if (!here && is_header(given)) throw failure(exit_code::bad_input, fmt::format("no such file: {}", given));
  if (!here && given.find('/') == std::string::npos) return given;
  if (!here) throw failure(exit_code::bad_input, fmt::format("no such library: {}", given));
  std::string path = std::filesystem::absolute(given);
  if (is_header(path))
    throw failure(exit_code::bad_input, fmt::format("{0} is a header, not a shared library: make a library of its "
                                                    "recipe first: heapwright build {0} -o libmine.so",
                                                    given));
  if (!can_be_preloaded(path))
    throw failure(exit_code::bad_input,
                  fmt::format("{}: LD_PRELOAD cannot express a path with a space or a colon; use a link to it", path));
  if (access(path.c_str(), R_OK) != 0)
    throw failure(exit_code::bad_input, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  const auto elf = elf_file::open(path);
  if (!elf || !elf->is_shared_object())
    throw failure(exit_code::bad_input, fmt::format("{} is not a shared library", path));
  if (!elf->exports("malloc"))
    throw failure(exit_code::bad_input, fmt::format("{} defines no malloc: it is not an allocator to preload", path));
  return path;
}

bool is_probe(const std::string& path) {
  return std::filesystem::path(path).filename().string().starts_with("libheapwright-probe");
}

bool is_libc(const std::string& path) { return std::filesystem::path(path).filename().string().starts_with("libc.so"); }

}  // namespace heapwright::tool
