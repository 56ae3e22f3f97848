// says: metered: the part must be an allocator: allocate.layout. and deallocate
#include <heapwright/kit.hpp>
struct no_allocator {};
heapwright::metered<no_allocator> wrong;
