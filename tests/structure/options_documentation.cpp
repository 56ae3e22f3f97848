// Prints docs/options.md.
#include <cstdio>

#include "options.hpp"

int main() {
  std::puts("# Options of libheapwright\n");
  std::puts(
      "Set in the environment of the program. Programs that run with raised privileges (setuid, setgid, file "
      "capabilities)");
  std::puts(
      "ignore them. A value that is not a number in the option's range is reported on stderr, and the default is "
      "used.\n");
  std::puts("| variable | default | up to | meaning |");
  std::puts("|---|---|---|---|");
  for (const auto& o : heapwright::process::option_table) {
    std::printf("| `%s` | %llu | %llu | %s |\n", o.name, static_cast<unsigned long long>(o.default_value),
                static_cast<unsigned long long>(o.max), o.meaning);
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
