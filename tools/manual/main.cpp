// Writes the man pages and the completions of shells into a folder, when heapwright is built.
//
// usage: heapwright_manual FOLDER REFERENCE      REFERENCE: docs/reference
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "manual_page.hpp"
#include "recipe_page.hpp"
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

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace heapwright::tool;
  try {
    if (argc != 3) throw std::runtime_error("usage: heapwright_manual FOLDER REFERENCE");
    const std::filesystem::path folder = argv[1], reference = argv[2];
    CLI::App app;
    const auto all = add_subcommands(app, {});
    write(folder / "man1/heapwright.1", manual_page(app));
    for (const subcommand& one : all)
      write(folder / fmt::format("man1/heapwright-{}.1", one.app->get_name()), manual_page_of(*one.app));
    write(folder / "man5/heapwright-recipe.5",
          recipe_page(read(reference / "recipe.md"), read(reference / "size_classes.md")));
    write(folder / "completions/heapwright", bash_completion(app));
    write(folder / "completions/_heapwright", zsh_completion(app));
    write(folder / "completions/heapwright.fish", fish_completion(app));
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "heapwright_manual: %s\n", trouble.what());
    return 1;
  }
  return 0;
}
