// says: fallback: the first part must tell which blocks are its own
#include <heapwright/kit.hpp>
heapwright::fallback<heapwright::upstream_malloc, heapwright::pool<>> wrong;
