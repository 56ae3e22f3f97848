// Every call to the system fails once, each in its turn, while the heap is in use: an allocation
// may come back null, but no block is damaged, nothing is lost, and afterwards all works again.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include <heapwright/heap/heap_core.hpp>

#include "fake_os.hpp"

namespace heapwright {
namespace {

template <const recipe& R, class Os>
struct on {
  using os = Os;
  using heap_type = heap_core<R, os>;
  static constexpr bool keeps_addresses = R.hardening.separate_classes;
};

template <class T>
class Failure : public ::testing::Test, protected testing::single_threaded<typename T::heap_type> {
 protected:
  struct block {
    unsigned char* p;
    std::size_t size;
    unsigned char pattern;
  };

  /// A fixed sequence of operations that makes the heap map, unmap, discard and move. Returns the
  /// allocations refused.
  int exercise() {
    int refused = 0;
    this->heap().trim(*this->cache);
    std::minstd_rand random(7);
    std::vector<block> held;
    const auto intact = [](const block& b, std::size_t n) {
      for (std::size_t i = 0; i < n; i += 61) {  // a stride that meets every page and, in turn, every byte of a line
        if (b.p[i] != b.pattern) return false;
      }
      return true;
    };
    for (int i = 0; i < 400; ++i) {
      T::os::now += 40;
      const std::size_t size = i % 25 == 0  ? random() % (3 * MiB)
                               : i % 5 == 0 ? random() % (600 * KiB)
                               : i % 3 == 0 ? random() % 100'000
                                            : random() % 2000;
      if (i % 7 == 6 && !held.empty()) {
        block& b = held[random() % held.size()];
        auto* const moved = static_cast<unsigned char*>(this->heap().reallocate(*this->cache, b.p, size));
        if (moved == nullptr) {
          ++refused;
          EXPECT_TRUE(intact(b, b.size));
          continue;
        }
        b.p = moved;
        EXPECT_TRUE(intact(b, std::min(size, b.size)));
        b.size = size;
        std::memset(b.p, b.pattern, b.size);
      } else if (i % 2 == 0 || held.empty()) {
        auto* const p = static_cast<unsigned char*>(i % 4 == 0 ? this->allocate(size)
                                                               : this->allocate_aligned(size, 64u << (i % 9)));
        if (p == nullptr) {
          ++refused;
          continue;
        }
        const auto pattern = static_cast<unsigned char>(i);
        std::memset(p, pattern, size);
        held.push_back({p, size, pattern});
      } else {
        std::swap(held[random() % held.size()], held.back());
        EXPECT_TRUE(intact(held.back(), held.back().size));
        this->free(held.back().p);
        held.pop_back();
      }
    }
    for (const block& b : held) {
      EXPECT_TRUE(intact(b, b.size));
      this->free(b.p);
    }
    return refused;
  }

  void expect_all_free() {
    T::os::fail_from = T::os::never;
    this->heap().trim(*this->cache);
    const heap_figures& f = this->heap().figures();
    EXPECT_EQ(f.spans, 0u);
    EXPECT_EQ(f.large, 0u);
    EXPECT_EQ(f.free_resident, 0u);
    EXPECT_EQ(f.mapped, f.free_decommitted);
  }
};

constexpr recipe separate{.hardening = {.guard_large = true, .separate_classes = true}};

using heaps =
    ::testing::Types<on<default_recipe, testing::fake_os<4 * KiB>>, on<default_recipe, testing::fake_os<16 * KiB>>,
                     on<default_recipe, testing::fake_os<64 * KiB>>, on<separate, testing::fake_os<4 * KiB>>>;
TYPED_TEST_SUITE(Failure, heaps);

TYPED_TEST(Failure, OfOneCallAtATime) {
  using OS = typename TypeParam::os;
  this->exercise();
  const std::uint64_t before = OS::calls;
  this->exercise();
  const std::uint64_t calls = OS::calls - before;
  ASSERT_GT(calls, 20u) << "the sequence must reach the system often, or it tests nothing";
  const std::uint64_t step = calls / 25 + 1;
  for (std::uint64_t n = 0; n < calls; n += step) {
    OS::fail_from = OS::calls + n;
    OS::fail_until = OS::calls + n + 1;
    this->exercise();
    this->expect_all_free();
  }
}

TYPED_TEST(Failure, OfEveryCallFromSomePointOn) {
  using OS = typename TypeParam::os;
  for (std::uint64_t n = 0; n < 40; n += 5) {
    OS::fail_until = OS::never;
    OS::fail_from = OS::calls + n;
    EXPECT_TRUE(this->exercise() > 0 || n > 0 || TypeParam::keeps_addresses)
        << "without any memory something must be refused";
    this->expect_all_free();
    EXPECT_EQ(this->exercise(), 0) << "does not work again";
  }
}

// A heap that no other test has left in pieces: it depends on where the system puts them whether
// they add up to a long block.
constexpr recipe used_here_alone = default_recipe;

TYPED_TEST(Failure, BlocksOfOneClassServeAnotherWhenTheSystemHasNoMore) {
  using OS = typename TypeParam::os;
  testing::single_threaded<heap_core<used_here_alone, OS>> fresh;
  std::vector<void*> small;
  for (int i = 0; i < 20'000; ++i) small.push_back(fresh.allocate(48));
  OS::fail_until = OS::never;
  OS::fail_from = OS::calls.load();
  for (void* p : small) fresh.free(p);
  void* const other = fresh.allocate(500);
  void* const large = fresh.allocate(200'000);
  EXPECT_NE(other, nullptr);
  EXPECT_NE(large, nullptr);
  fresh.free(other);
  fresh.free(large);
  OS::fail_from = OS::never;
}

}  // namespace
}  // namespace heapwright
