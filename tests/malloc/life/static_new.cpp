// A statically linked C++ program: operator new is ours, and throws libstdc++'s own bad_alloc, also
// through the new-handler.
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "../support/opaque.h"
#include "../support/require.h"

int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      std::vector<std::string> strings;
      for (std::size_t i = 0; i < 20'000; ++i) strings.emplace_back(i % 300, 'x');
      REQUIRE(strings[299].size() == 299);
    });
  }
  for (std::thread& t : threads) t.join();

  int caught = 0;
  try {
    ::operator delete(::operator new(opaque_size(PTRDIFF_MAX)));
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  std::set_new_handler([] { throw std::bad_alloc{}; });
  try {
    ::operator delete(::operator new(opaque_size(PTRDIFF_MAX)));
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  REQUIRE(::operator new(opaque_size(PTRDIFF_MAX), std::nothrow) == nullptr);
  REQUIRE(caught == 2);
}
