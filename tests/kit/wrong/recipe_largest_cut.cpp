// says: recipe.spans.largest_cut: a power of two, at most classes.largest, and at least 4096 times
// classes.steps_per_doubling
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.classes = {.steps_per_doubling = 16}};
heapwright::heap<app> wrong;
