// Says its number, and ends when it is told to.
#include <cstdio>

#include <windows.h>

int main() {
  std::printf("%lu\n", ::GetCurrentProcessId());
  std::fflush(stdout);
  std::getchar();
}
