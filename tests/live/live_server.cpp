// `heapwright live --file` alone: SEGMENT [HOST [TOKEN]].
#include <cstdio>
#include <exception>

#include "live.hpp"

int main(int argc, char** argv) try {
  heapwright::tool::live_options options;
  options.no_browser = true;
  if (argc > 1) options.file = argv[1];
  if (argc > 2) options.host = argv[2];
  if (argc > 3) options.token = argv[3];
  return heapwright::tool::live(options);
} catch (const std::exception& trouble) {
  std::fprintf(stderr, "%s\n", trouble.what());
  return 125;
}
