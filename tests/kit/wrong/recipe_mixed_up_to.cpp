// says: recipe.spans.mixed_up_to: at most 4096$
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.spans = {.mixed_up_to = 8192}};
heapwright::heap<app> wrong;
