// says: recipe.spans.mixed_from: without mixed_up_to nothing is mixed
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.spans = {.mixed_from = 512}};
heapwright::heap<app> wrong;
