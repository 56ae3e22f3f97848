// Powers of two only: fewer classes, so fewer spans that are not full, and up to half of a block
// unused. What others call a "simple heap".
//
//   heapwright build examples/recipes/simple_heap_pow2.hpp -o libsimple_heap_pow2.so
#include <heapwright/heap/recipe.hpp>

inline constexpr heapwright::recipe simple_heap_pow2{.classes = {.steps_per_doubling = 1}};
