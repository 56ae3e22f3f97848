// says: recipe.hardening.sealed: not with spans.mixed_up_to or notes_requests
#include <heapwright/heap.hpp>
inline constexpr heapwright::recipe app{.hardening = {.sealed = true}, .notes_requests = true};
heapwright::heap<app> wrong;
