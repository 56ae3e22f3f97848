// Loads a library, if it is given one; says its number, and ends when it is told to.
#include <cstdio>

#include <windows.h>

int main(int argc, char** argv) {
  if (argc > 1 && ::LoadLibraryA(argv[1]) == nullptr) return 1;
  std::printf("%lu\n", ::GetCurrentProcessId());
  std::fflush(stdout);
  std::getchar();
}
