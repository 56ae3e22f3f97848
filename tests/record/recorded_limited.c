// Lowers the limit of the length of its files before its first call of malloc. The argument is the
// exit code.
#include <stdlib.h>

#include <sys/resource.h>

int main(int argc, char** argv) {
  const struct rlimit few = {100000, 100000};
  setrlimit(RLIMIT_FSIZE, &few);
  void* volatile kept = malloc(70001);
  free(kept);
  return argc > 1 ? atoi(argv[1]) : 0;
}
