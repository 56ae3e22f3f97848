// A vector whose memory lies on the stack, and goes to malloc only if it does not fit.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <vector>

int main() {
  using memory = heapwright::stack_arena<4096>;
  memory here;
  std::vector<int, heapwright::std_allocator<int, memory>> squares(here);
  for (int i = 0; i < 100; ++i) squares.push_back(i * i);
  std::printf("the last is %d; it lies on the stack: %s\n", squares.back(),
              here.in_buffer(squares.data()) ? "yes" : "no");
}
