// says: bucketed: the step must be a power of two
#include <heapwright/kit.hpp>
heapwright::bucketed<heapwright::pool<>, 96, 24> wrong;
