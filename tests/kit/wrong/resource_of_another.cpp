// says: resource: it owns its allocator, and an A cannot be made of these arguments. To share an
// allocator that is there: resource<upstream<A>>
#include <heapwright/kit.hpp>

int main() {
  heapwright::arena<> shared;
  heapwright::resource<heapwright::arena<>> with(shared);
}
