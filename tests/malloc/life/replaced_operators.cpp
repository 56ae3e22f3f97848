// A program that replaces operator new(size_t) and operator delete(void*) alone: by the standard
// the default of each other form calls these, whichever malloc is loaded. Here a block begins
// behind a header of the program's, which no malloc knows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "../support/opaque.h"
#include "../support/require.h"

namespace {

constexpr std::uint64_t marker = 0x6e657720626c6f63;

struct alignas(std::max_align_t) header {
  std::uint64_t mark;
};

int allocations = 0;
int frees = 0;

struct counted {
  int made = allocations;
  int freed = frees;
  [[nodiscard]] bool is_one_pair() const { return allocations == made + 1 && frees == freed + 1; }
};

}  // namespace

void* operator new(std::size_t size) {
  auto* const h = size > PTRDIFF_MAX ? nullptr : static_cast<header*>(std::malloc(sizeof(header) + size));
  if (h == nullptr) throw std::bad_alloc{};
  h->mark = marker;
  ++allocations;
  return h + 1;
}

void operator delete(void* p) noexcept {
  if (p == nullptr) return;
  auto* const h = static_cast<header*>(p) - 1;
  REQUIRE(h->mark == marker);
  h->mark = 0;
  ++frees;
  std::free(h);
}

int main() {
  const std::size_t size = opaque_size(40);
  const std::nothrow_t nothrow;
  {
    const counted before;
    ::operator delete[](::operator new[](size));
    REQUIRE(before.is_one_pair());
  }
  {
    const counted before;
    ::operator delete(::operator new(size, nothrow), nothrow);
    REQUIRE(before.is_one_pair());
  }
  {
    const counted before;
    ::operator delete[](::operator new[](size, nothrow), nothrow);
    REQUIRE(before.is_one_pair());
  }
  {
    const counted before;
    ::operator delete(::operator new(size), size);
    REQUIRE(before.is_one_pair());
  }
  {
    const counted before;
    ::operator delete[](::operator new[](size), size);
    REQUIRE(before.is_one_pair());
  }
  REQUIRE(::operator new(opaque_size(SIZE_MAX), nothrow) == nullptr);
  REQUIRE(::operator new[](opaque_size(SIZE_MAX), nothrow) == nullptr);
  {
    const counted before;
    std::vector<std::string> strings;
    for (std::size_t i = 0; i < 1000; ++i) strings.emplace_back(i % 300, 'x');
    const auto array = std::make_unique<std::string[]>(opaque_size(10));
    REQUIRE(allocations > before.made + 900);
  }
  REQUIRE(allocations == frees);
  // The aligned forms are not replaced, and stay the malloc's.
  const std::align_val_t line{64};
  void* const aligned = ::operator new[](size, line);
  REQUIRE(reinterpret_cast<std::uintptr_t>(aligned) % 64 == 0);
  ::operator delete[](aligned, size, line);
  REQUIRE(allocations == frees);
}
