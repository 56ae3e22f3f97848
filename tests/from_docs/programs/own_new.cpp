// A program that replaces the two basic forms of operator new and delete: the standard lets all
// other forms call these. The blocks are in an array, which only this program's operator delete can
// take back.
#include <cstdio>
#include <new>

namespace {
alignas(64) char memory[1 << 16];
std::size_t used;
int made;
int taken_back;
}  // namespace

void* operator new(std::size_t size) {
  ++made;
  void* const p = memory + used;
  used += (size + 63) & ~std::size_t{63};
  return p;
}

void operator delete(void* p) noexcept {
  if (p == nullptr) return;
  ++taken_back;
  if (p < memory || p >= memory + sizeof memory)
    std::puts("operator delete got a block that operator new did not give");
}

void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

int main() {
  int* volatile one = new int(1);
  delete one;
  int* volatile several = new int[10];
  delete[] several;
  int* volatile maybe = new (std::nothrow) int(2);
  delete maybe;
  std::printf("made %d, taken back %d\n", made, taken_back);
}
