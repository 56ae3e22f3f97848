// Prints docs/options.md.
#include <cstdio>

#include "options.hpp"

int main() {
  std::puts("# Options of libheapwright\n");
  std::puts(
      "Set in the environment of the program. Programs that run with raised privileges (setuid, setgid, file "
      "capabilities)");
  std::puts(
      "ignore them. A value that is none of the option's words, or not a number in its range, is reported on stderr, "
      "and "
      "the default is used.\n");
  std::puts("| variable | default | up to, or words | meaning |");
  std::puts("|---|---|---|---|");
  for (const auto& [o, meaning] : heapwright::process::described_options) {
    if (o.words[0] != nullptr) {
      std::printf("| `%s` | %s | %s, %s | %s |\n", o.name, o.words[o.default_value], o.words[0], o.words[1], meaning);
      continue;
    }
    std::printf("| `%s` | %llu | %llu | %s |\n", o.name, static_cast<unsigned long long>(o.default_value),
                static_cast<unsigned long long>(o.max), meaning);
  }
  std::printf(
      "\n`%s=FILE` appends the statistics to a file that exists instead, as records for `heapwright run --stats`, "
      "which sets it.\n",
      heapwright::process::stats_file_variable);
  std::puts(
      "\nStatistics are written by exit, and with the shared library by _exit. A process that is killed by a signal "
      "writes none.");
  std::puts("\nThis page is made from the table in malloc/options.hpp; a test compares the two.");
}
