// Loses a block below a function with a namespace and parameters.
#include <cstring>

namespace legacy {
__attribute__((noinline)) void make_cache(int size) {
  char* volatile block = new char[static_cast<unsigned>(size)];
  std::memset(block, 0, static_cast<unsigned>(size));
  block = nullptr;
}
}  // namespace legacy

int main() {
  legacy::make_cache(1000);
  for (volatile char stack[16384]; volatile char& c : stack) c = 0;
  return 0;
}
