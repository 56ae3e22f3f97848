// No call waits for the system once the program is warm: memory is had 64 MiB at a time, touched
// when it is had, in huge pages where there are any, and never goes back. For programs with a
// machine to themselves; it costs 64 MiB at least.
//
//   heapwright build examples/recipes/low_latency.hpp -o liblow_latency.so
#include <heapwright/heap/recipe.hpp>

inline constexpr heapwright::recipe low_latency{
    .thread_cache = {.share_bytes = 8 * heapwright::MiB, .max_bytes_per_class = 1 * heapwright::MiB},
    .pages = {.growth = 64 * heapwright::MiB,
              .give_back = heapwright::give_back_policy::when_asked,
              .huge = heapwright::huge_page_use::transparent,
              .prefault = true},
};
