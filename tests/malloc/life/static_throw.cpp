// A statically linked C++ program whose operator new fails, and that refers to nothing else of the
// C++ runtime.
#include <cstdint>
#include <new>

#include "../support/opaque.h"
#include "../support/require.h"

int main() {
  bool caught = false;
  try {
    ::operator delete(::operator new(opaque_size(PTRDIFF_MAX)));
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  REQUIRE(caught);
}
