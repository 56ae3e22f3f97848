// says: recipe.hardening: check_reuse and quarantine_bytes need sealed
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.hardening = {.quarantine_bytes = 4096}};
heapwright::heap<app> wrong;
