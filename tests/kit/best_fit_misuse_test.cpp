// The best-fit heap names the caller's mistake and dies, in checked builds.
#include <heapwright/allocator/best_fit.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

// The program, whose functions the messages have to name.
template <class Heap>
[[gnu::noinline]] void the_first_to_free(Heap& h, void* p) {
  h.deallocate(p);
  __asm__("");  // not a tail call
}

template <class Heap>
[[gnu::noinline]] void the_second_to_free(Heap& h, void* p) {
  h.deallocate(p);
  __asm__("");
}

namespace heapwright {
namespace {

template <class Heap>
class BestFitMisuseDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if constexpr (!checks_callers && !poisons) GTEST_SKIP() << "not a checked build";
  }

  // Behind the compiler's back, which otherwise warns of the very mistakes that are made here.
  static std::byte* opaque(void* p) {
    __asm__("" : "+r"(p));
    return static_cast<std::byte*>(p);
  }

  std::byte* allocate(std::size_t size) { return opaque(tested.allocate({size, 8})); }

  /// Writes as a program without a sanitizer would, which nobody notices.
  static void overwrite(std::byte* p) {
    unpoison(p, 1);
    *p = ~*p;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(64 * KiB);
  Heap tested{memory};
};

using policies = ::testing::Types<best_fit<>, best_fit<best_fit_plan{.merging = merge::deferred}>>;
TYPED_TEST_SUITE(BestFitMisuseDeathTest, policies);

TYPED_TEST(BestFitMisuseDeathTest, DoubleFree) {
  for (std::size_t size : {24, 1000, 20'000}) {
    auto* const p = this->allocate(size);
    this->allocate(24);
    this->tested.deallocate(p, {size, 8});
    EXPECT_DEATH(this->tested.deallocate(p, {size, 8}), "heapwright: double free: 0x");
    EXPECT_DEATH(this->tested.deallocate(p), "heapwright: double free: 0x");
    EXPECT_DEATH(static_cast<void>(this->tested.reallocate(p, 50)), "heapwright: double free: 0x");
  }
}

TYPED_TEST(BestFitMisuseDeathTest, DoubleFreeOfABlockThatWasMerged) {
  auto* const a = this->allocate(100);
  auto* const b = this->allocate(100);
  auto* const c = this->allocate(100);
  this->allocate(24);
  for (auto* p : {a, c, b}) this->tested.deallocate(p);
  this->tested.defragment();
  for (auto* p : {a, b, c}) EXPECT_DEATH(this->tested.deallocate(p), "heapwright: double free: 0x");
}

TYPED_TEST(BestFitMisuseDeathTest, DoubleFreeOfABlockThatBecameUntouched) {
  auto* const p = this->allocate(100);
  this->tested.deallocate(p);
  this->tested.defragment();
  EXPECT_DEATH(this->tested.deallocate(p), "heapwright: double free: 0x");
}

TYPED_TEST(BestFitMisuseDeathTest, DoubleFreeOfATinyBlock) {
  auto* const p = this->allocate(8);
  this->allocate(8);
  this->tested.deallocate(p, {8, 8});
  EXPECT_DEATH(this->tested.deallocate(p, {8, 8}), "heapwright: double free: 0x");
  EXPECT_DEATH(this->tested.deallocate(p), "heapwright: double free: 0x");
}

TYPED_TEST(BestFitMisuseDeathTest, ADoubleFreeTellsWhoFreedFirstAndWhoFreedAgain) {
  for (const std::size_t size : {8, 100}) {
    auto* const p = this->allocate(size);
    this->allocate(size);
    the_first_to_free(this->tested, p);
    EXPECT_DEATH(
        the_second_to_free(this->tested, p),
        "double free: 0x.*\n  it was freed by\n    #1 .*the_first_to_free.*best_fit_misuse_test.cpp:[0-9]+\n(.*\n)*"
        "  and is freed again by\n    #1 .*the_second_to_free.*best_fit_misuse_test.cpp:[0-9]+\n");
  }
}

TYPED_TEST(BestFitMisuseDeathTest, ForeignPointers) {
  constexpr const char* message = "heapwright: free of a foreign pointer: 0x";
  auto* const p = this->allocate(200);
  auto* const tiny = this->allocate(8);
  std::memset(p, 0, 200);
  alignas(16) std::byte local[32];
  EXPECT_DEATH(this->tested.deallocate(this->opaque(local)), message);
  EXPECT_DEATH(this->tested.deallocate(p + 8), message) << "not aligned";
  EXPECT_DEATH(this->tested.deallocate(p + 32, {200, 8}), message) << "within a block";
  EXPECT_DEATH(this->tested.deallocate(p + 4096), message) << "untouched";
  EXPECT_DEATH(this->tested.deallocate(tiny + 8), message) << "within a tiny block";
  EXPECT_DEATH(static_cast<void>(this->tested.reallocate(this->opaque(local), 100)), message);
}

TYPED_TEST(BestFitMisuseDeathTest, WrongLayouts) {
  constexpr const char* message = "heapwright: free with a wrong layout: 0x";
  auto* const p = this->allocate(100);
  auto* const tiny = this->allocate(4);
  EXPECT_DEATH(this->tested.deallocate(p, {1000, 8}), message);
  EXPECT_DEATH(this->tested.deallocate(p, {99, 8}), message);
  EXPECT_DEATH(this->tested.deallocate(p, {100, 32 * KiB}), message);
  EXPECT_DEATH(this->tested.deallocate(tiny, {5, 1}), message);
  EXPECT_DEATH(static_cast<void>(this->tested.try_resize(p, {200, 8}, {100, 8})), message);
  EXPECT_TRUE(this->tested.try_resize(p, {100, 8}, {90, 8}));
  EXPECT_DEATH(this->tested.deallocate(p, {100, 8}), message) << "what it was before";
  this->tested.deallocate(p, {90, 8});
}

TYPED_TEST(BestFitMisuseDeathTest, WritesPastTheEnd) {
  constexpr const char* message = "heapwright: write past the end of a block: 0x";
  for (std::size_t size : {0, 1, 7, 8, 23, 24, 100, 5000}) {
    auto* const p = this->allocate(size);
    EXPECT_DEATH(
        {
          this->overwrite(p + size);
          this->tested.deallocate(p, {size, 8});
        },
        message)
        << size;
    EXPECT_DEATH(
        {
          this->overwrite(p + size + 7);
          this->tested.deallocate(p);
        },
        message)
        << size;
    EXPECT_DEATH(
        {
          this->overwrite(p + size);
          static_cast<void>(this->tested.reallocate(p, 2 * size + 1));
        },
        message);
    this->tested.deallocate(p, {size, 8});
  }
  auto* const p = this->allocate(100);
  EXPECT_TRUE(this->tested.try_resize(p, {100, 8}, {60, 8}));
  EXPECT_DEATH(
      {
        this->overwrite(p + 60);
        this->tested.deallocate(p, {60, 8});
      },
      message);
}

}  // namespace
}  // namespace heapwright
