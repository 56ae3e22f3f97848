// As little memory as possible, for containers with a tight limit: threads keep next to nothing,
// pages go back as soon as there are some to spare, and a program that wants more than 512 MiB gets
// null (in C++ std::bad_alloc) instead of being killed by the system.
//
//   heapwright build examples/recipes/small_container.hpp -o libsmall_container.so
#include <heapwright/heap/recipe.hpp>

inline constexpr heapwright::recipe small_container{
    .thread_cache = {.share_bytes = 64 * heapwright::KiB,
                     .max_long_bytes = 256 * heapwright::KiB,
                     .max_bytes_per_class = 8 * heapwright::KiB,
                     .max_bytes_per_long = 64 * heapwright::KiB,
                     .max_parked = 0},
    .pages = {.max_free_resident = 512 * heapwright::KiB,
              .give_back = heapwright::give_back_policy::at_once,
              .limit = 512 * heapwright::MiB},
};
