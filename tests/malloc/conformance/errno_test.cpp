// errno exactly as POSIX, C and the manual say: ENOMEM where memory or the address space is too
// small, EINVAL for what is no alignment, and otherwise left alone; above all by free.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "../support/opaque.h"

namespace {

constexpr std::size_t too_large[] = {static_cast<std::size_t>(PTRDIFF_MAX) + 1, SIZE_MAX - 4096, SIZE_MAX - 15,
                                     SIZE_MAX, static_cast<std::size_t>(PTRDIFF_MAX) - 4096};

template <class F>
void expect_no_memory(const char* what, F allocate) {
  errno = 0;
  EXPECT_EQ(allocate(), nullptr) << what;
  EXPECT_EQ(errno, ENOMEM) << what;
}

TEST(Errno, TooLarge) {
  for (const std::size_t size : too_large) {
    SCOPED_TRACE(size);
    expect_no_memory("malloc", [=] { return std::malloc(size); });
    expect_no_memory("calloc", [=] { return std::calloc(1, size); });
    expect_no_memory("calloc", [=] { return std::calloc(size, 1); });
    expect_no_memory("realloc", [=] { return std::realloc(nullptr, size); });
    expect_no_memory("reallocarray", [=] { return ::reallocarray(nullptr, size, 1); });
    expect_no_memory("aligned_alloc", [=] { return std::aligned_alloc(16, size); });
    expect_no_memory("aligned_alloc", [=] { return std::aligned_alloc(1 << 21, size); });
    expect_no_memory("memalign", [=] { return ::memalign(4096, size); });
    expect_no_memory("valloc", [=] { return ::valloc(size); });
    expect_no_memory("pvalloc", [=] { return ::pvalloc(size); });
    void* p = &p;
    EXPECT_EQ(::posix_memalign(&p, 64, size), ENOMEM);
    EXPECT_EQ(p, &p) << "posix_memalign wrote a result though it failed";
  }
}

TEST(Errno, ProductsThatOverflow) {
  const std::size_t half = SIZE_MAX / 2 + 1;
  for (const auto& [count, size] : {std::pair{half, std::size_t{2}},
                                    {std::size_t{2}, half},
                                    {SIZE_MAX, SIZE_MAX},
                                    {std::size_t{1} << 32, std::size_t{1} << 32},
                                    {half + 1, std::size_t{2}}}) {
    expect_no_memory("calloc", [&] { return std::calloc(count, size); });
    expect_no_memory("reallocarray", [&] { return ::reallocarray(nullptr, count, size); });
  }
}

TEST(Errno, FailedReallocKeepsTheBlock) {
  for (const std::size_t size : {std::size_t{40}, std::size_t{40'000}, std::size_t{4'000'000}}) {
    auto* const p = static_cast<char*>(std::malloc(size));
    p[0] = 'a';
    p[size - 1] = 'z';
    for (const std::size_t wanted : too_large)
      expect_no_memory("realloc", [=] { return std::realloc(opaque(p), wanted); });
    expect_no_memory("reallocarray", [=] { return ::reallocarray(opaque(p), opaque_size(SIZE_MAX / 2), 3); });
    EXPECT_EQ(p[0], 'a');
    EXPECT_EQ(p[size - 1], 'z');
    std::free(p);
  }
}

TEST(Errno, WhatIsNoAlignment) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{4097}, SIZE_MAX}) {
    SCOPED_TRACE(alignment);
    errno = 0;
    EXPECT_EQ(std::aligned_alloc(alignment, 64), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(::memalign(alignment, 64), nullptr);
    EXPECT_EQ(errno, EINVAL);
    void* p = &p;
    EXPECT_EQ(::posix_memalign(&p, alignment, 64), EINVAL);
    EXPECT_EQ(p, &p);
  }
  // POSIX wants a multiple of sizeof(void*) besides.
  for (const std::size_t alignment : {1U, 2U, 4U}) {
    void* p = nullptr;
    EXPECT_EQ(::posix_memalign(&p, alignment, 64), EINVAL);
    void* const q = std::aligned_alloc(alignment, 64);
    EXPECT_NE(q, nullptr);
    std::free(q);
  }
}

TEST(Errno, AlignmentsThatNoAddressSpaceHolds) {
  const std::size_t half = opaque_size(SIZE_MAX / 2 + 1);
  expect_no_memory("aligned_alloc", [=] { return std::aligned_alloc(half, 64); });
  expect_no_memory("aligned_alloc", [=] { return std::aligned_alloc(half / 2, half / 2); });
}

TEST(Errno, KeptBySuccessAndByFree) {
  const auto expect_kept = [](auto act) {
    errno = 4242;
    act();
    EXPECT_EQ(errno, 4242);
  };
  for (const std::size_t size : {0U, 1U, 1000U, 30'000U, 100'000U, 5'000'000U, 300'000'000U}) {
    SCOPED_TRACE(size);
    void* p = nullptr;
    expect_kept([&] { p = std::malloc(size); });
    expect_kept([&] { p = std::realloc(p, size + 100); });
    expect_kept([&] { std::free(p); });  // the large ones are given back to the system at once
    expect_kept([&] { std::free(std::calloc(1, size)); });
    expect_kept([&] { ::malloc_trim(0); });
  }
  std::vector<void*> many(200'000);
  expect_kept([&] {
    for (void*& p : many) p = std::malloc(500);
  });
  expect_kept([&] {
    for (void* p : many) std::free(p);
  });
}

}  // namespace
