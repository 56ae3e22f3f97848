#include "build_surroundings.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>

#include "elf_file.hpp"
#include "failure.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {

namespace files = std::filesystem;

scratch_folder::scratch_folder() : path_(scratch_place() + "/heapwright-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr)
    throw failure(exit_code::bad_input, fmt::format("cannot make a folder {}: {}", path_, std::strerror(errno)));
  chmod(path_.c_str(), 0755);
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  files::remove_all(path_, ignored);
}

std::string folder_of_this_program() { return files::read_symlink("/proc/self/exe").parent_path(); }

bool is_malloc(const std::string& library) {
  const auto made = elf_file::open(library);
  return made && made->exports("malloc");
}

}  // namespace heapwright::tool
