// says: recipe.thread_cache.max_batch: from 1 to 256 blocks move at a time
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.thread_cache = {.max_batch = 1000}};
heapwright::heap<app> wrong;
