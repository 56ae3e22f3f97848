#include "output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "failure.hpp"
#include "terminal.hpp"

namespace heapwright::tool {

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (std::filesystem::is_directory(path, error) || access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    throw failure(exit_code::bad_input, fmt::format("cannot write to {}", path));
}

namespace {

void write_output(const std::string& path, const std::string& text) {
  if (path == "-") {
    answer_text(text);
    finish_answers();
    return;
  }
  std::FILE* const file = std::fopen(path.c_str(), "we");
  bool is_good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  is_good = is_good && std::fflush(file) == 0;
  const int why = errno;
  const bool is_closed = file == nullptr || std::fclose(file) == 0;
  if (!is_good || !is_closed)
    throw failure(exit_code::bad_input,
                  fmt::format("could not write all of {}: {}", path, std::strerror(is_good ? errno : why)));
}

}  // namespace

void write_outputs(const std::vector<std::pair<std::string, std::string>>& texts_by_path, int code_if_lost) {
  std::string trouble;
  for (const auto& [path, text] : texts_by_path) {
    try {
      write_output(path, text);
    } catch (const failure& lost) {
      trouble += fmt::format("{}{}", trouble.empty() ? "" : "; ", lost.what());
    }
  }
  if (!trouble.empty()) throw failure(code_if_lost, trouble);
}

}  // namespace heapwright::tool
