// Sources: a caller's buffer, pages between guards, huge pages. upstream is tested with what draws
// from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <heapwright/allocator/slab.hpp>
#include <heapwright/platform/native.hpp>
#include <heapwright/source/buffer.hpp>
#include <heapwright/source/guard_pages.hpp>
#include <heapwright/source/huge_pages.hpp>

#include "support/aligned_range.hpp"
#include "support/model.hpp"

namespace heapwright {
namespace {

using testing::model;

static_assert(allocator<guard_pages<native_os>>);
static_assert(allocator<huge_pages<native_os>> && has_stats<huge_pages<native_os>>);

TEST(BufferSource, HandsOutAlignedRangesUntilItIsUsedUp) {
  alignas(64) static std::array<std::byte, 4096> memory;
  for (const std::size_t shift : {0U, 1U, 7U}) {
    buffer_source source{std::span(memory).subspan(shift)};
    model m(source);
    std::byte* last = nullptr;
    for (int i = 0; std::byte* const p = m.allocate({100, std::size_t{1} << i % 7}); ++i) {
      EXPECT_GE(p, memory.data() + shift);
      EXPECT_LE(p + 100, memory.data() + memory.size());
      last = p;
    }
    EXPECT_GT(last + 100 + 2 * 100, memory.data() + memory.size()) << "little is left over";
    EXPECT_GT(m.blocks(), 20U);
    m.forget_all();
  }
}

TEST(BufferSource, UsesItsLastByte) {
  alignas(16) static std::array<std::byte, 256> memory;
  buffer_source source{memory};
  EXPECT_EQ(source.allocate({257, 1}), nullptr);
  void* const all = source.allocate({256, 16});
  EXPECT_EQ(all, memory.data());
  EXPECT_EQ(source.allocate({1, 1}), nullptr);
  source.deallocate(all, {256, 16});
  EXPECT_EQ(source.allocate({256, 1}), memory.data());
}

TEST(BufferSource, TakesBackTheLatestRangeAlone) {
  static std::array<std::byte, 1024> memory;
  buffer_source source{memory};
  void* const a = source.allocate({100, 8});
  void* const b = source.allocate({100, 8});
  source.deallocate(a, {100, 8});
  EXPECT_FALSE(source.allocate({100, 8}) == a) << "not the latest";
  source.reset();
  EXPECT_EQ(source.allocate({100, 8}), a);
  EXPECT_EQ(source.allocate({100, 8}), b);
  source.deallocate(b, {100, 8});
  EXPECT_EQ(source.allocate({200, 8}), b);
}

TEST(BufferSource, RefusesWhatOverflows) {
  static std::array<std::byte, 1024> memory;
  buffer_source source{memory}, nothing{{}};
  for (const layout l :
       {layout{SIZE_MAX, 1}, layout{SIZE_MAX - 15, 16}, layout{8, std::size_t{1} << 63}, layout{1025, 1}}) {
    EXPECT_EQ(source.allocate(l), nullptr);
  }
  EXPECT_NE(source.allocate({0, 1}), nullptr);
  EXPECT_EQ(nothing.allocate({1, 1}), nullptr);
  EXPECT_EQ(nothing.allocate({0, 1}), nullptr);
}

TEST(BufferSource, KnowsItsOwn) {
  static std::array<std::byte, 1024> memory;
  buffer_source source{memory};
  EXPECT_FALSE(source.owns(memory.data()));
  auto* const p = static_cast<std::byte*>(source.allocate({100, 1}));
  EXPECT_TRUE(source.owns(p));
  EXPECT_TRUE(source.owns(p + 99));
  EXPECT_FALSE(source.owns(p + 100));
  EXPECT_FALSE(source.owns(p - 1));
  EXPECT_FALSE(source.owns(nullptr));
}

TEST(BufferSource, FeedsAnAllocator) {
  const testing::aligned_range<48 * KiB, 16 * KiB> memory;
  buffer_source source{memory.bytes()};
  slab<upstream<buffer_source>> s{{64, 8}, {}, source};
  std::size_t blocks = 0;
  while (s.allocate() != nullptr) ++blocks;
  EXPECT_EQ(s.stats().slabs, 3U);
  EXPECT_EQ(s.stats().in_use, blocks * 64);
}

#ifdef HEAPWRIGHT_HAS_ASAN
TEST(BufferSource, PoisonsWhatIsNotHandedOut) {
  alignas(64) static std::array<std::byte, 1024> memory;
  {
    buffer_source source{memory};
    EXPECT_TRUE(__asan_address_is_poisoned(memory.data()));
    void* const p = source.allocate({128, 8});
    EXPECT_EQ(__asan_region_is_poisoned(p, 128), nullptr);
    EXPECT_TRUE(__asan_address_is_poisoned(memory.data() + 128));
    source.deallocate(p, {128, 8});
    EXPECT_TRUE(__asan_address_is_poisoned(p));
  }
  EXPECT_EQ(__asan_region_is_poisoned(memory.data(), memory.size()), nullptr);
}
#endif

TEST(BufferSourceDeathTest, ForeignPointer) {
  if constexpr (!checks_callers) GTEST_SKIP() << "not seen in this build";
  static std::array<std::byte, 1024> memory;
  buffer_source source{memory};
  EXPECT_DEATH(source.deallocate(memory.data() + 10, {1, 1}), "free of a foreign pointer");
}

constexpr layout guarded[] = {{0, 1},    {1, 1},     {7, 1},      {16, 16},     {100, 4},     {4095, 1},      {4096, 8},
                              {4097, 8}, {24, 4096}, {100, 8192}, {5000, 8192}, {70'000, 64}, {4096, 1 * MiB}};

/// The platform, whose calls are counted, and may fail.
class watched_os : public native_os {
 public:
  static void* map(std::size_t bytes) noexcept {
    if (fails()) return nullptr;
    mapped += bytes;
    return native_os::map(bytes);
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    mapped -= bytes;
    return native_os::unmap(p, bytes);
  }

  static bool protect(void* p, std::size_t bytes) noexcept { return !fails() && native_os::protect(p, bytes); }

  static void* map_huge(std::size_t bytes) noexcept {
    if (!has_reserved) return nullptr;
    mapped += bytes;
    return os_pages<native_os>{}.allocate({bytes, 2 * MiB});
  }

  static bool advise_huge(void* p, std::size_t bytes) noexcept {
    EXPECT_TRUE(is_aligned(p, 2 * MiB));
    EXPECT_EQ(bytes % (2 * MiB), 0U);
    return has_transparent;
  }

  static void begin() noexcept {
    mapped = 0;
    allowed = SIZE_MAX;
    has_reserved = has_transparent = false;
  }

  static inline std::size_t mapped = 0;  ///< bytes
  static inline std::size_t allowed = SIZE_MAX;
  static inline bool has_reserved = false;
  static inline bool has_transparent = false;

 private:
  static bool fails() noexcept { return allowed-- == 0; }
};

bool is_mapped(void* page) {
#ifdef _WIN32
  detail::memory_region region;
  return detail::find_region(page, region) && region.state == detail::memory_state::committed;
#else
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) == 0;
#endif
}

/// The pages of a freed block and the two guards around them.
bool is_unmapped(const std::byte* p, layout l) {
  const std::size_t page = native_os::page_size();
  const std::uintptr_t first = align_down(address_of(p), page);
  for (std::uintptr_t at = first - page; at <= align_up(first + std::max<std::size_t>(l.size, 1), page); at += page) {
    if (is_mapped(reinterpret_cast<void*>(at))) return false;
  }
  return true;
}

TEST(GuardPages, BlocksAreUsableZeroedAndEndAtTheGuard) {
  watched_os::begin();
  guard_pages<watched_os> source;
  model m(source);
  const std::size_t page = native_os::page_size();
  for (const layout l : guarded) {
    auto* const p = static_cast<std::byte*>(source.allocate(l));
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(std::all_of(p, p + l.size, [](std::byte b) { return b == std::byte{0}; }));
    if (l.size > 0) {
      EXPECT_LT(align_up(address_of(p) + l.size, page) - (address_of(p) + l.size), std::min(l.alignment, page));
    }
    source.deallocate(p, l);
    EXPECT_EQ(watched_os::mapped, 0U) << "all of it is unmapped: " << l.size << ", " << l.alignment;
    EXPECT_TRUE(is_unmapped(p, l));
  }
  for (int i = 0; i < 300; ++i) m.allocate(guarded[m.random(std::size(guarded) - 1) + 1]);
  for (int i = 0; i < 600; ++i) {
    m.deallocate_any();
    m.allocate(guarded[m.random(std::size(guarded) - 1) + 1]);
  }
  m.deallocate_all();
  EXPECT_EQ(watched_os::mapped, 0U);
}

TEST(GuardPages, NullAndNothingLostWhenTheSystemRefuses) {
  guard_pages<watched_os> source;
  for (const layout l : guarded) {
    for (std::size_t allowed = 0; allowed < 3; ++allowed) {
      watched_os::begin();
      watched_os::allowed = allowed;
      EXPECT_EQ(source.allocate(l), nullptr);
      EXPECT_EQ(watched_os::mapped, 0U);
    }
  }
  watched_os::begin();
  EXPECT_EQ(source.allocate({SIZE_MAX, 1}), nullptr);
  EXPECT_EQ(source.allocate({SIZE_MAX - 2 * native_os::page_size(), 1}), nullptr);
  EXPECT_EQ(source.allocate({SIZE_MAX / 2, std::size_t{1} << 63}), nullptr);
}

TEST(GuardPagesDeathTest, TouchingAGuardFaults) {
  guard_pages<native_os> source;
  const std::size_t page = native_os::page_size();
  for (const layout l : {layout{100, 1}, layout{4096, 1}, layout{100, 16}, layout{64, 8192}}) {
    auto* const p = static_cast<volatile unsigned char*>(source.allocate(l));
    ASSERT_NE(p, nullptr);
    p[0] = 1;
    p[l.size - 1] = 1;
    const std::size_t end = align_up(address_of(const_cast<unsigned char*>(p)) + l.size, page);
    if (l.alignment == 1) {
      EXPECT_DEATH(p[l.size] = 1, "") << "one byte behind it";
    }
    EXPECT_DEATH(*reinterpret_cast<volatile unsigned char*>(end) = 1, "");
    EXPECT_DEATH(*(p - page) = 1, "");
    source.deallocate(const_cast<unsigned char*>(p), l);
  }
}

TEST(GuardPagesDeathTest, UseAfterFreeFaults) {
  const auto use_after_free = [] {
    guard_pages<native_os> source;
    auto* const p = static_cast<volatile unsigned char*>(source.allocate({100, 1}));
    source.deallocate(const_cast<unsigned char*>(p), {100, 1});
    p[0] = 1;
  };
  EXPECT_DEATH(use_after_free(), "");
}

template <class Source>
void expect_usable(Source& source, layout l) {
  auto* const p = static_cast<std::byte*>(source.allocate(l));
  ASSERT_NE(p, nullptr);
  EXPECT_TRUE(is_aligned(p, std::max(l.alignment, 2 * MiB)));
  for (std::size_t i = 0; i < l.size; i += 4096) EXPECT_EQ(p[i], std::byte{0});
  std::memset(p, 0x5A, l.size);
  source.deallocate(p, l);
}

constexpr layout huge[] = {{1, 1}, {2 * MiB, 2 * MiB}, {2 * MiB + 1, 64}, {5 * MiB, 4096}, {2 * MiB, 8 * MiB}};

TEST(HugePages, WhateverThisMachineHasTheMemoryIsUsableAndTheCountersAddUp) {
  huge_pages<native_os> source;
  std::size_t handed_out = 0;
  for (const layout l : huge) {
    expect_usable(source, l);
    handed_out += align_up(l.size, 2 * MiB);
    const huge_page_stats s = source.stats();
    EXPECT_EQ(s.reserved + s.transparent + s.normal, handed_out);
    EXPECT_EQ(s.held, 0U);
  }
}

TEST(HugePages, TakesTheFirstKindThatThereIs) {
  for (const bool reserved : {true, false}) {
    for (const bool transparent : {true, false}) {
      watched_os::begin();
      watched_os::has_reserved = reserved;
      watched_os::has_transparent = transparent;
      huge_pages<watched_os> source;
      void* const p = source.allocate({3 * MiB, 8});
      const huge_page_stats s = source.stats();
      EXPECT_EQ(s.reserved, reserved ? 4 * MiB : 0U);
      EXPECT_EQ(s.transparent, !reserved && transparent ? 4 * MiB : 0U);
      EXPECT_EQ(s.normal, !reserved && !transparent ? 4 * MiB : 0U);
      EXPECT_EQ(s.held, 4 * MiB);
      EXPECT_EQ(s.in_use, 4 * MiB);
      EXPECT_EQ(watched_os::mapped, 4 * MiB) << "what was mapped for its alignment is unmapped";
      source.deallocate(p, {3 * MiB, 8});
      EXPECT_EQ(source.stats().held, 0U);
      EXPECT_EQ(watched_os::mapped, 0U);
      for (const layout l : huge) expect_usable(source, l);
    }
  }
}

TEST(HugePages, NullWhenTheSystemHasNoMemory) {
  watched_os::begin();
  watched_os::allowed = 0;
  huge_pages<watched_os> source;
  EXPECT_EQ(source.allocate({1 * MiB, 8}), nullptr);
  watched_os::begin();
  EXPECT_EQ(source.allocate({SIZE_MAX, 1}), nullptr);
  EXPECT_EQ(source.allocate({0, 1}), nullptr);
  const huge_page_stats s = source.stats();
  EXPECT_EQ(s.held + s.reserved + s.transparent + s.normal, 0U);
}

#ifndef _WIN32  // they have a last error of their own
TEST(LinuxOs, ProtectAndHugeCallsKeepErrno) {
  errno = 42;
  EXPECT_EQ(linux_os::map_huge(std::size_t{1} << 46), nullptr) << "more than any machine sets aside";
  EXPECT_FALSE(linux_os::protect(reinterpret_cast<void*>(1), 4096));
  EXPECT_FALSE(linux_os::advise_huge(reinterpret_cast<void*>(1), 2 * MiB));
  linux_os::advise_sparse(reinterpret_cast<void*>(1), 4096);
  EXPECT_EQ(errno, 42);
}
#endif

}  // namespace
}  // namespace heapwright
