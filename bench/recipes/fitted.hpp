// A recipe for each row of `script/bench recipes`, as one would write it who knows what the row
// does.
#include <heapwright/heap/recipe.hpp>

// Much is allocated at once, and used densely: large pieces, there before they are asked for, and
// kept.
inline constexpr heapwright::recipe dense{
    .pages = {.growth = 64 * heapwright::MiB, .give_back = heapwright::give_back_policy::when_asked, .prefault = true},
};

inline constexpr heapwright::recipe dense_in_huge_pages{
    .pages = {.growth = 64 * heapwright::MiB,
              .give_back = heapwright::give_back_policy::when_asked,
              .huge = heapwright::huge_page_use::transparent,
              .prefault = true},
};

// Everything is freed by another thread than its own, and asked for again at once.
inline constexpr heapwright::recipe passed_on{
    .thread_cache = {.share_bytes = 64 * heapwright::MiB,
                     .max_blocks_per_class = 32'767,
                     .max_bytes_per_class = 4 * heapwright::MiB,
                     .keep_remote = true,
                     .batch_bytes = 64 * heapwright::KiB,
                     .max_batch = 256},
    .pages = {.max_growth = 4 * heapwright::MiB},
};

// What is free goes back at once.
inline constexpr heapwright::recipe lean{
    .thread_cache = {.share_bytes = 64 * heapwright::KiB, .max_bytes_per_class = 8 * heapwright::KiB, .max_parked = 0},
    .pages = {.max_free_resident = 256 * heapwright::KiB, .give_back = heapwright::give_back_policy::at_once},
};
