// In the program itself; after the constructors of the libraries it uses. `environ` is set by then, with every libc.
#include <unistd.h>

#include "../startup.hpp"

namespace heapwright::process {
namespace {

[[gnu::constructor(101)]] void construct() noexcept { start(environ); }

}  // namespace
}  // namespace heapwright::process
