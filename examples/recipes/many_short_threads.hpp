// For programs with a thread per request: each new thread takes over the cache of one that has
// ended, warm, instead of collecting its own.
//
//   heapwright build examples/recipes/many_short_threads.hpp -o libmany_short_threads.so
#include <heapwright/heap/recipe.hpp>

inline constexpr heapwright::recipe many_short_threads{
    .thread_cache = {.first_bytes = 4 * heapwright::KiB, .max_parked_bytes = 1 * heapwright::MiB, .max_parked = 64},
};
