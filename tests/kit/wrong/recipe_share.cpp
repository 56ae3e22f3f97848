// says: recipe.thread_cache.share_bytes: not below first_bytes
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.thread_cache = {.share_bytes = 0}};
heapwright::heap<app> wrong;
