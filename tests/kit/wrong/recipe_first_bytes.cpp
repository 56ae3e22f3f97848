// says: recipe.thread_cache.first_bytes: shorter than two pages
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.thread_cache = {.first_bytes = 8 * heapwright::KiB}};
heapwright::heap<app> wrong;
