// When memory has run out, operator new calls the new-handler and tries again, as often as there is
// a handler; the handler frees something, throws, or takes itself away. Without one: bad_alloc, or
// null from the nothrow forms.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

volatile std::size_t impossible = static_cast<std::size_t>(PTRDIFF_MAX) - 100'000;
int calls = 0;

class NewHandler : public testing::Test {
 protected:
  void SetUp() override {
    calls = 0;
    std::set_new_handler(nullptr);
  }
  void TearDown() override { std::set_new_handler(nullptr); }
};

constexpr std::align_val_t wide{64};

TEST_F(NewHandler, WithoutOneEveryFormFailsInItsWay) {
  EXPECT_THROW(::operator delete(::operator new(impossible)), std::bad_alloc);
  EXPECT_THROW(::operator delete[](::operator new[](impossible)), std::bad_alloc);
  EXPECT_THROW(::operator delete(::operator new(impossible, wide), wide), std::bad_alloc);
  EXPECT_THROW(::operator delete[](::operator new[](impossible, wide), wide), std::bad_alloc);
  EXPECT_EQ(::operator new(impossible, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](impossible, std::nothrow), nullptr);
  EXPECT_EQ(::operator new(impossible, wide, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](impossible, wide, std::nothrow), nullptr);
  EXPECT_THROW(::operator delete(::operator new(SIZE_MAX)), std::bad_alloc);
}

TEST_F(NewHandler, IsCalledUntilItTakesItselfAway) {
  const auto handler = [] {
    if (++calls == 5) std::set_new_handler(nullptr);
  };
  std::set_new_handler(handler);
  EXPECT_THROW(::operator delete(::operator new(impossible)), std::bad_alloc);
  EXPECT_EQ(calls, 5);
  calls = 0;
  std::set_new_handler(handler);
  EXPECT_EQ(::operator new[](impossible, wide, std::nothrow), nullptr);
  EXPECT_EQ(calls, 5);
}

struct own_error {};

TEST_F(NewHandler, MayThrowWhatItLikes) {
  std::set_new_handler([] {
    ++calls;
    throw own_error{};
  });
  EXPECT_THROW(::operator delete(::operator new(impossible)), own_error);
  EXPECT_THROW(::operator delete[](::operator new[](impossible, wide), wide), own_error);
  EXPECT_EQ(calls, 2);
}

TEST_F(NewHandler, MayThrowInTheNothrowFormsWhichGiveNull) {
  std::set_new_handler([] {
    ++calls;
    throw std::bad_alloc{};
  });
  EXPECT_EQ(::operator new(impossible, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](impossible, std::nothrow), nullptr);
  EXPECT_EQ(::operator new(impossible, wide, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](impossible, wide, std::nothrow), nullptr);
  EXPECT_EQ(calls, 4);
}

TEST_F(NewHandler, IsNotCalledByMalloc) {
  std::set_new_handler([] { ++calls; });
  EXPECT_EQ(std::malloc(impossible), nullptr);
  EXPECT_EQ(std::aligned_alloc(64, impossible), nullptr);
  EXPECT_EQ(calls, 0);
}

#ifndef HEAPWRIGHT_TEST_EMULATED  // qemu-user does not enforce the limit
std::vector<void*> reserve;

std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(NewHandler, FreesMemoryAndTheRetrySucceeds) {
  constexpr std::size_t size = std::size_t{256} << 20;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limited{address_space() + size + size / 2 + size / 4, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  // A malloc may have address space left of what was freed before.
  while (void* const p = std::malloc(size)) reserve.push_back(p);
  ASSERT_FALSE(reserve.empty());
  std::set_new_handler([] {
    ++calls;
    if (reserve.empty()) throw std::bad_alloc{};
    std::free(reserve.back());
    reserve.pop_back();
  });
  void* const p = ::operator new(size);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(calls, 1);
  ::operator delete(p);
  for (void* const q : reserve) std::free(q);
  setrlimit(RLIMIT_AS, &before);
}
#endif

}  // namespace
