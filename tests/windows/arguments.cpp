// Says what it was called with, and ends with what it is told to.
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) std::printf("[%s]\n", words[i]);
  return count > 1 ? std::atoi(words[1]) : 0;
}
