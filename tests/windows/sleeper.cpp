// Loads a library, or keeps 1000 blocks of 1000 bytes and one of 10 MiB, if it is told to; says its
// number, and ends when it is told to, if ever.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <windows.h>

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "forever") == 0) ::Sleep(INFINITE);
  if (argc > 1 && std::strcmp(argv[1], "blocks") == 0) {
    for (int i = 0; i < 1000; ++i)
      if (std::malloc(1000) == nullptr) return 1;
    if (std::malloc(10 << 20) == nullptr) return 1;
  } else if (argc > 1 && ::LoadLibraryA(argv[1]) == nullptr) {
    return 1;
  }
  std::printf("%lu\n", ::GetCurrentProcessId());
  std::fflush(stdout);
  std::getchar();
}
