// says: recipe.spans.mixed_up_to: where all sizes of classes.exact are multiples of 16$
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.classes = {.exact = {24, 64}}, .spans = {.mixed_up_to = 2048}};
heapwright::heap<app> wrong;
