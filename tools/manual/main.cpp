// Writes the man pages and the completions of shells into a folder, when heapwright is built.
//
// usage: heapwright_manual FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "manual_page.hpp"
#include "shell_completion.hpp"
#include "subcommands.hpp"

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file);
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out << text;
  out.close();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace heapwright::tool;
  try {
    if (argc != 2) throw std::runtime_error("usage: heapwright_manual FOLDER");
    const std::filesystem::path folder = argv[1];
    CLI::App app;
    const auto all = add_subcommands(app, {});
    write(folder / "man1/heapwright.1", manual_page(app));
    for (const subcommand& one : all)
      write(folder / fmt::format("man1/heapwright-{}.1", one.app->get_name()), manual_page_of(*one.app));
    write(folder / "completions/heapwright", bash_completion(app));
    write(folder / "completions/_heapwright", zsh_completion(app));
    write(folder / "completions/heapwright.fish", fish_completion(app));
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "heapwright_manual: %s\n", trouble.what());
    return 1;
  }
  return 0;
}
