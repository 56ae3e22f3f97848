// says: sharded: the part must have attach\(span\), deallocate\(void\*\) and usable_size\(const
// void\*\)
#include <heapwright/kit.hpp>

heapwright::sharded<heapwright::pool<>, heapwright::system_lock> a;
