// Every form of operator new and delete that the standard lets a program replace [new.delete], each
// new with each delete that may free it, and what the library's own allocations come to.
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "../support/ordinary_alignment.hpp"
#include "../support/pattern.h"

namespace {

constexpr std::size_t sizes[] = {0, 1, 16, 100, 1000, 5000, 40'000, 2'000'000};
constexpr std::align_val_t alignments[] = {std::align_val_t{1},  std::align_val_t{16},   std::align_val_t{32},
                                           std::align_val_t{64}, std::align_val_t{4096}, std::align_val_t{1 << 20}};

void expect_good(void* p, std::size_t size, std::align_val_t a) {
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % static_cast<std::size_t>(a), 0U);
  ASSERT_GE(::malloc_usable_size(p), size);
  pattern_fill(p, size, size, 0);
  EXPECT_TRUE(pattern_holds(p, size, size));
}

/// new, checked, then given to each delete that fits.
template <class New, class... Deletes>
void try_each(std::size_t size, std::align_val_t a, New allocate, Deletes... deletes) {
  const auto once = [&](auto release) {
    void* const p = allocate();
    expect_good(p, size, a);
    release(p);
  };
  (once(deletes), ...);
}

TEST(OperatorNew, OrdinaryForms) {
  for (const std::size_t size : sizes) {
    const std::align_val_t least{ordinary_alignment(size)};
    const auto plain = [](void* p) { ::operator delete(p); };
    const auto sized = [=](void* p) { ::operator delete(p, size); };
    const auto nothrow = [](void* p) { ::operator delete(p, std::nothrow); };
    try_each(
        size, least, [=] { return ::operator new(size); }, plain, sized, nothrow);
    try_each(
        size, least, [=] { return ::operator new(size, std::nothrow); }, plain, sized, nothrow);
    const auto array = [](void* p) { ::operator delete[](p); };
    const auto array_sized = [=](void* p) { ::operator delete[](p, size); };
    const auto array_nothrow = [](void* p) { ::operator delete[](p, std::nothrow); };
    try_each(
        size, least, [=] { return ::operator new[](size); }, array, array_sized, array_nothrow);
    try_each(
        size, least, [=] { return ::operator new[](size, std::nothrow); }, array, array_sized, array_nothrow);
  }
}

TEST(OperatorNew, AlignedForms) {
  for (const std::size_t size : sizes) {
    for (const std::align_val_t a : alignments) {
      const auto plain = [=](void* p) { ::operator delete(p, a); };
      const auto sized = [=](void* p) { ::operator delete(p, size, a); };
      const auto nothrow = [=](void* p) { ::operator delete(p, a, std::nothrow); };
      try_each(
          size, a, [=] { return ::operator new(size, a); }, plain, sized, nothrow);
      try_each(
          size, a, [=] { return ::operator new(size, a, std::nothrow); }, plain, sized, nothrow);
      const auto array = [=](void* p) { ::operator delete[](p, a); };
      const auto array_sized = [=](void* p) { ::operator delete[](p, size, a); };
      const auto array_nothrow = [=](void* p) { ::operator delete[](p, a, std::nothrow); };
      try_each(
          size, a, [=] { return ::operator new[](size, a); }, array, array_sized, array_nothrow);
      try_each(
          size, a, [=] { return ::operator new[](size, a, std::nothrow); }, array, array_sized, array_nothrow);
    }
  }
}

TEST(OperatorDelete, OfNullDoesNothing) {
  constexpr std::align_val_t a{64};
  ::operator delete(nullptr);
  ::operator delete[](nullptr);
  ::operator delete(nullptr, std::size_t{100});
  ::operator delete[](nullptr, std::size_t{100});
  ::operator delete(nullptr, a);
  ::operator delete[](nullptr, a);
  ::operator delete(nullptr, std::size_t{100}, a);
  ::operator delete[](nullptr, std::size_t{100}, a);
  ::operator delete(nullptr, std::nothrow);
  ::operator delete[](nullptr, std::nothrow);
  ::operator delete(nullptr, a, std::nothrow);
  ::operator delete[](nullptr, a, std::nothrow);
}

TEST(OperatorNew, ZeroSizesAreUnique) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(::operator new(0));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(blocks[i], blocks[k]);
  }
  for (void* p : blocks) ::operator delete(p);
}

struct alignas(256) overaligned {
  char bytes[300];
};

TEST(OperatorNew, ThroughTheLanguage) {
  const auto one = std::make_unique<overaligned>();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.get()) % 256, 0U);
  const auto many = std::make_unique<overaligned[]>(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&many[99]) % 256, 0U);
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < 1000; ++i) strings.emplace_back(i, 'x');
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(strings[i].size(), i);
}

}  // namespace
