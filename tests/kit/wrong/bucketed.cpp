// says: bucketed: the part must be made for one layout
#include <heapwright/kit.hpp>
heapwright::bucketed<heapwright::upstream_malloc> wrong;
