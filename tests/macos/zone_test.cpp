// The zone of macOS (malloc/macos/zone.hpp), on a heap of this system: what the functions do for
// blocks of ours, and for those that are not.
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <heapwright/heap.hpp>

#include "../../malloc/macos/zone.hpp"

namespace {

using namespace heapwright;

heap<>& blocks() {
  static heap<> h("zone");
  return h;
}

/// Fails on purpose after so many blocks.
unsigned left = UINT_MAX;
std::vector<const char*> asked;

struct tested_malloc {
  static void* allocate(std::size_t size) { return left-- > 0 ? blocks().allocate({size, 16}) : nullptr; }
  static void* allocate_zeroed(std::size_t size) { return blocks().allocate_zeroed(size); }
  static void* allocate_aligned(std::size_t size, std::size_t alignment) {
    return blocks().allocate({size, alignment});
  }
  static void* reallocate(void* p, std::size_t, std::size_t size) { return blocks().reallocate(p, size); }
  static bool deallocate(void* p) {
    if (p == nullptr) return true;
    if (!blocks().owns(p)) return false;
    blocks().deallocate(p);
    return true;
  }
  static std::size_t usable_size(const void* p) { return blocks().owns(p) ? blocks().usable_size(p) : 0; }
  static std::size_t size_of_class(std::size_t size) { return (size + 15) / 16 * 16; }
  static std::size_t trim() { return asked.push_back("trim"), 4096; }
  static std::size_t page_size() { return 16384; }
  static std::size_t held() { return 3; }
  static std::size_t held_peak() { return 2; }
  static std::size_t in_use() { return 1; }
  template <class F>
  static void for_each_block(F f) {
    ASSERT_TRUE(blocks().for_each_block(f));
  }
  static void lock_all() { asked.push_back("lock"); }
  static void unlock_all() { asked.push_back("unlock"); }
  static void after_fork_in_child() { asked.push_back("child"); }
};

/// Stands for the system's other zones.
struct tested_foreign {
  static inline std::vector<void*> freed;
  static void free(void* p) { freed.push_back(p); }
  static void* realloc(void* p, std::size_t) { return p; }
};

class Zone : public testing::Test {
 protected:
  void SetUp() override {
    left = UINT_MAX;
    asked.clear();
    tested_foreign::freed.clear();
  }
  malloc_introspection_t introspection = process::zone<tested_malloc>::make_introspection();
  malloc_zone_t z = process::zone<tested_malloc>::make<tested_foreign>("heapwright", &introspection);
  int not_ours = 0;
};

TEST_F(Zone, GivesBlocksAndTakesThemBack) {
  void* const p = z.malloc(&z, 100);
  ASSERT_NE(p, nullptr);
  EXPECT_GE(z.size(&z, p), 100u);
  std::memset(p, 7, 100);
  void* const longer = z.realloc(&z, p, 5000);
  ASSERT_NE(longer, nullptr);
  EXPECT_EQ(static_cast<char*>(longer)[99], 7);
  EXPECT_TRUE(z.claimed_address(&z, longer));
  z.free(&z, longer);
  EXPECT_TRUE(tested_foreign::freed.empty());
  EXPECT_STREQ(z.zone_name, "heapwright");
}

TEST_F(Zone, ReallocOfNothingAllocates) {
  void* const p = z.realloc(&z, nullptr, 10);
  EXPECT_GE(z.size(&z, p), 10u);
  z.free(&z, p);
}

TEST_F(Zone, CallocIsZeroAndRefusesWhatOverflows) {
  auto* const p = static_cast<unsigned char*>(z.calloc(&z, 30, 10));
  ASSERT_NE(p, nullptr);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(p[i], 0);
  z.free(&z, p);
  EXPECT_EQ(z.calloc(&z, SIZE_MAX / 2, 3), nullptr);
}

TEST_F(Zone, AlignsAndRefusesWhatIsNoPowerOfTwo) {
  for (const std::size_t alignment : {16u, 64u, 4096u, 65536u}) {
    void* const p = z.memalign(&z, alignment, 100);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
    z.free_definite_size(&z, p, 100);
  }
  EXPECT_EQ(z.memalign(&z, 48, 100), nullptr);
  EXPECT_EQ(z.memalign(&z, 0, 100), nullptr);
  void* const page = z.valloc(&z, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(page) % 16384, 0u);
  z.free(&z, page);
}

TEST_F(Zone, WhatIsNotOursGoesToTheOtherZones) {
  EXPECT_EQ(z.size(&z, &not_ours), 0u);
  EXPECT_EQ(z.size(&z, nullptr), 0u);
  EXPECT_FALSE(z.claimed_address(&z, &not_ours));
  z.free(&z, &not_ours);
  z.free_definite_size(&z, &not_ours, 4);
  z.try_free_default(&z, &not_ours);
  EXPECT_EQ(tested_foreign::freed, (std::vector<void*>(3, &not_ours)));
  EXPECT_EQ(z.realloc(&z, &not_ours, 10), &not_ours);
  z.free(&z, nullptr);
  EXPECT_EQ(tested_foreign::freed.size(), 3u);
}

TEST_F(Zone, BatchesEndWhereMemoryDoes) {
  void* got[10]{};
  left = 7;
  EXPECT_EQ(z.batch_malloc(&z, 40, got, 10), 7u);
  left = UINT_MAX;
  got[3] = nullptr;  // left out, as macOS allows
  z.batch_free(&z, got, 7);
  EXPECT_TRUE(tested_foreign::freed.empty());
}

TEST_F(Zone, EnumeratesTheBlocksOfThisProcessAlone) {
  void* const p = z.malloc(&z, 1234);
  std::map<vm_address_t, vm_size_t> found;
  const auto note = [](task_t, void* context, unsigned kind, vm_range_t* range, unsigned n) {
    ASSERT_EQ(kind, 1u);
    for (unsigned i = 0; i < n; ++i)
      (*static_cast<std::map<vm_address_t, vm_size_t>*>(context))[range[i].address] = range[i].size;
  };
  EXPECT_EQ(introspection.enumerator(mach_task_self(), &found, MALLOC_PTR_IN_USE_RANGE_TYPE, 0, nullptr, note),
            KERN_SUCCESS);
  EXPECT_EQ(found[reinterpret_cast<vm_address_t>(p)], z.size(&z, p));
  found.clear();
  EXPECT_EQ(introspection.enumerator(mach_task_self() + 1, &found, MALLOC_PTR_IN_USE_RANGE_TYPE, 0, nullptr, note),
            KERN_NOT_SUPPORTED);
  EXPECT_EQ(introspection.enumerator(mach_task_self(), &found, 0, 0, nullptr, note), KERN_SUCCESS);
  EXPECT_TRUE(found.empty());
  z.free(&z, p);
}

TEST_F(Zone, LocksAroundFork) {
  introspection.force_lock(&z);
  introspection.force_unlock(&z);
  introspection.reinit_lock(&z);
  EXPECT_EQ(z.pressure_relief(&z, 0), 4096u);
  EXPECT_EQ(std::vector<std::string>(asked.begin(), asked.end()),
            (std::vector<std::string>{"lock", "unlock", "child", "trim"}));
  EXPECT_GE(z.version, 9u) << "reinit_lock is called from version 9 on";
}

TEST_F(Zone, SaysWhatItHolds) {
  malloc_statistics_t s{};
  introspection.statistics(&z, &s);
  EXPECT_EQ(s.size_in_use, 1u);
  EXPECT_EQ(s.max_size_in_use, 2u);
  EXPECT_EQ(s.size_allocated, 3u);
  EXPECT_EQ(introspection.good_size(&z, 17), 32u);
}

}  // namespace
