// States what the documentation says of counted_new. Written without the code. It replaces operator
// new for the whole program, so this file is a program of its own, and is left out under the
// sanitizers, which bring an operator new.
#include <heapwright/adapt/counted_new.hpp>
#include <heapwright/source/upstream.hpp>

#include <array>
#include <memory>
#include <new>
#include <string>

#include "model.hpp"

namespace {

using heapwright::counted_new;

// "[allocations] calls of operator new that returned memory"; "[deallocations] calls of operator
// delete, without those of null"; "[bytes] asked for by all allocations so far"
TEST(CountedNew, Counts) {
  const auto counts = [] {
    const auto& c = counted_new();
    return std::array<std::uint64_t, 3>{c.allocations, c.deallocations, c.bytes};
  };
  struct alignas(256) wide {
    char c[256];
  };
  const auto before = counts();
  void* const one = ::operator new(100);
  void* const two = ::operator new[](200, std::nothrow);
  auto* const three = new wide;
  void* const four = heapwright::upstream_new{}.allocate({50, 8});
  EXPECT_TRUE(from_docs::lies_at(three, 256));
  const auto between = counts();
  EXPECT_EQ(between[0] - before[0], 4u);
  EXPECT_EQ(between[1] - before[1], 0u);
  EXPECT_EQ(between[2] - before[2], 606u);
  ::operator delete(one);
  ::operator delete[](two);
  delete three;
  heapwright::upstream_new{}.deallocate(four, {50, 8});
  ::operator delete(nullptr);
  const auto after = counts();
  EXPECT_EQ(after[0] - between[0], 0u);
  EXPECT_EQ(after[1] - between[1], 4u);
}

TEST(CountedNew, DoesNotCountWhatFails) {
  const std::uint64_t before = counted_new().allocations;
  volatile std::size_t huge = SIZE_MAX;
  EXPECT_EQ(::operator new(huge, std::nothrow), nullptr);
  EXPECT_EQ(counted_new().allocations, before);
}

TEST(CountedNew, RefusesWhatOverflows) {
  volatile std::size_t huge = SIZE_MAX;
  EXPECT_EQ(::operator new(huge, std::align_val_t{64}, std::nothrow), nullptr);
}

// upstream_new: "its new-handler has been called then".
TEST(CountedNew, CallsTheNewHandler) {
  static int calls = 0;
  std::set_new_handler([] {
    ++calls;
    std::set_new_handler(nullptr);
  });
  volatile std::size_t huge = SIZE_MAX / 2 + 1;
  EXPECT_EQ(::operator new(huge, std::nothrow), nullptr);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(heapwright::upstream_new{}.allocate({huge, 8}), nullptr);
}

// "Set `prints` to see each call on stderr."
TEST(CountedNew, PrintsEachCall) {
  testing::internal::CaptureStderr();
  counted_new().prints = true;
  ::operator delete(::operator new(4321));
  counted_new().prints = false;
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("4321 bytes"), said.npos) << said;
  EXPECT_NE(said.find("delete"), said.npos) << said;
}

}  // namespace
