// The library is linked with -z initfirst: its constructor runs before all others, so that its fork handlers, registered first,
// lock last and unlock first; handlers of other libraries may allocate. libc has not set `environ` by then, but hands the
// environment to constructors.
#include "../startup.hpp"

namespace heapwright::process {
namespace {

[[gnu::constructor]] void construct(int, char**, char** environment) noexcept { start(environment); }

}  // namespace
}  // namespace heapwright::process
