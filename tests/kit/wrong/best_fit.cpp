// says: best_fit_plan: the alignment of blocks must be a power of two
#include <heapwright/kit.hpp>
heapwright::best_fit<heapwright::best_fit_plan{.alignment = 24}> wrong;
