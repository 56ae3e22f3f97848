#include "output_file.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "failure.hpp"

namespace heapwright::tool {

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (std::filesystem::is_directory(path, error) || access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    throw failure(exit_code::bad_input, fmt::format("cannot write to {}", path));
}

}  // namespace heapwright::tool
