// says: cached: the part must be made for one layout
#include <heapwright/kit.hpp>
heapwright::cached<heapwright::arena<>, heapwright::system_lock> wrong(heapwright::layout{64, 8});
