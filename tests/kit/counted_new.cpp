// A program with the counting operator new: it counts every form, prints when asked, and the forms
// that fail still fail.
#include <heapwright/adapt/counted_new.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define REQUIRE(condition) \
  ((condition) ? void() : (std::fprintf(stderr, "required: %s, line %d\n", #condition, __LINE__), std::exit(1)))

struct alignas(128) wide {
  char c[128];
};

int main() {
  heapwright::new_counts& counts = heapwright::counted_new();
  const std::uint64_t before = counts.allocations, freed = counts.deallocations, bytes = counts.bytes;
  {
    const auto one = std::make_unique<int>(1);
    const auto array = std::make_unique<int[]>(10);
    const auto aligned = std::make_unique<wide>();
    REQUIRE(reinterpret_cast<std::uintptr_t>(aligned.get()) % 128 == 0);
    const std::vector<std::string> words(3, std::string(100, 'x'));
    int* const quiet = new (std::nothrow) int(2);
    delete quiet;
    REQUIRE(counts.allocations - before >= 8);
    REQUIRE(counts.bytes - bytes >= 4 + 40 + 128 + 3 * 101 + 4);
  }
  REQUIRE(counts.allocations - before == counts.deallocations - freed);
  volatile std::size_t most = SIZE_MAX / 2;
  REQUIRE(::operator new(most, std::nothrow) == nullptr);
  counts.prints = true;
  delete new int(3);
  counts.prints = false;
}
