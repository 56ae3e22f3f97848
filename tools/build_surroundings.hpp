// What a build of a malloc asks of the system: a folder to work in, where this program lies, and
// whether what was linked is a malloc. Each system has a source of its own: build_surroundings.cpp
// here, and the one in windows/.
#pragma once

#include <filesystem>
#include <string>

namespace heapwright::tool {

// Names of files are UTF-8 in the command, also where the system has them otherwise.
[[nodiscard]] inline std::filesystem::path path_of(const std::string& name) {
  return std::u8string(name.begin(), name.end());
}
/// With "/" between folders.
[[nodiscard]] inline std::string name_of(const std::filesystem::path& path) {
  const std::u8string name = path.generic_u8string();
  return {name.begin(), name.end()};
}

/// Goes away with all that is in it. Other users can read what is in it: a server may run as one.
class scratch_folder {
 public:
  /// Throws `failure`.
  scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

[[nodiscard]] std::string folder_of_this_program();

/// Whether programs can run on this library as their malloc.
[[nodiscard]] bool is_malloc(const std::string& library);

}  // namespace heapwright::tool
