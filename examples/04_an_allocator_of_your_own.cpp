// Two functions make an allocator. This one hands out memory of malloc and says so; the kit's
// combinators take it as they take any other.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

struct talkative {
  void* allocate(heapwright::layout l) noexcept {
    void* const p = heapwright::upstream_malloc{}.allocate(l);
    std::printf("%zu bytes, please\n", l.size);
    return p;
  }
  void deallocate(void* p, heapwright::layout l) noexcept { heapwright::upstream_malloc{}.deallocate(p, l); }
};
static_assert(heapwright::allocator<talkative>);

int main() {
  using memory =
      heapwright::metered<heapwright::fallback<heapwright::stack_arena<64, heapwright::no_source>, talkative>>;
  memory here;
  {
    std::vector<char, heapwright::std_allocator<char, memory>> text(here);
    for (int i = 0; i < 100; ++i) text.push_back('x');
  }
  const heapwright::meter& m = here.reading();
  std::printf("%llu allocations, at most %zu bytes at once, %zu left\n", static_cast<unsigned long long>(m.allocations),
              m.peak, m.in_use);
}
