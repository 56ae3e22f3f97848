// States what the documentation says of the sources: buffer_source, os_pages, guard_pages,
// huge_pages, slab_memory, upstream and its kin. Written without the code.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include <heapwright/kit.hpp>

#include "model.hpp"

namespace {

using namespace heapwright;
using namespace from_docs;

bool is_zero(const void* p, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(p);
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// buffer_source: "ranges of it by a pointer that moves up"; "may have any size and alignment";
// "Null when the rest of the buffer is too small"; "Takes the range back if it is the latest one";
// "A range of no bytes takes one".
TEST(BufferSource, IsAPointerThatMovesUp) {
  for (std::size_t size = 0; size <= 150; ++size) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      odd_buffer buffer(size, offset);
      buffer_source source(buffer.span());
      random_bits random(static_cast<unsigned>(size * 16 + offset));
      live_blocks live;
      auto next = reinterpret_cast<std::uintptr_t>(buffer.span().data());
      const auto end = next + size;
      for (int i = 0; i < 40; ++i) {
        if (!live.empty() && random() % 4 == 0) {
          const auto b = live.remove(live.size() - 1);
          source.deallocate(b.at, b.asked);
          next = reinterpret_cast<std::uintptr_t>(b.at);
          // What alignment skipped stays lost, and the range before is no longer the latest one.
          while (!live.empty() &&
                 live[live.size() - 1].at + std::max<std::size_t>(live[live.size() - 1].asked.size, 1) != b.at) {
            (void)live.remove(live.size() - 1);
          }
          continue;
        }
        const layout l = any_layout(40)(random);
        const auto at = round_up(next, l.alignment);
        void* const p = source.allocate(l);
        const std::size_t taken = std::max<std::size_t>(l.size, 1);
        ASSERT_EQ(p != nullptr, at <= end && taken <= end - at) << l.size << " at " << l.alignment;
        if (p == nullptr) continue;
        EXPECT_EQ(p, reinterpret_cast<void*>(at));
        ASSERT_TRUE(buffer.contains(p, l.size));
        live.add(p, l);
        next = at + taken;
      }
    }
  }
}

// "otherwise it stays lost until the reset"; owns: "Whether p points into what is handed out."
TEST(BufferSource, OtherRangesStayLostUntilTheReset) {
  std::array<std::byte, 100> memory;
  buffer_source source{std::span<std::byte>(memory)};
  void* const first = source.allocate({40, 1});
  void* const second = source.allocate({40, 1});
  EXPECT_TRUE(source.owns(first) && source.owns(second) && source.owns(memory.data() + 79));
  EXPECT_FALSE(source.owns(memory.data() + 80) || source.owns(nullptr) || source.owns(&source));
  source.deallocate(first, {40, 1});
  EXPECT_EQ(source.allocate({40, 1}), nullptr);
  source.deallocate(nullptr, {40, 1});
  source.reset();
  EXPECT_FALSE(source.owns(first));
  EXPECT_EQ(source.allocate({100, 1}), first);
}

// "owns(p): true for the address of each live block"; "A size of zero is a size like any other".
// what is handed out is not owned, so that fallback frees it in its second part.
TEST(BufferSource, OwnsABlockOfNoBytes) {
  std::array<std::byte, 64> memory;
  buffer_source source{std::span<std::byte>(memory)};
  EXPECT_TRUE(source.owns(source.allocate({0, 1})));
  (void)source.allocate({10, 1});
  EXPECT_TRUE(source.owns(source.allocate({0, 1})));
}

TEST(BufferSource, RefusesWhatOverflows) {
  std::array<std::byte, 64> memory;
  buffer_source source{std::span<std::byte>(memory)};
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{16}, 64 * KiB, std::size_t{1} << 63}) {
      EXPECT_EQ(source.allocate({huge, alignment}), nullptr);
    }
  }
  EXPECT_NE(source.allocate({48, 1}), nullptr);
  static_assert(!std::is_copy_constructible_v<buffer_source> && !std::is_move_constructible_v<buffer_source>);
}

// os_pages: "Memory of the operating system, zeroed, in whole pages." "Null when the system has no
// memory or the request overflows. A size of zero is refused too."
TEST(OsPages, AreZeroedWholePages) {
  system_pages source;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(system_pages::rounded(1), page);
  EXPECT_EQ(system_pages::rounded(page), page);
  EXPECT_EQ(system_pages::rounded(page + 1), 2 * page);
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - page + 2})
    EXPECT_EQ(system_pages::rounded(huge), 0u);
  for (std::size_t alignment = 1; alignment <= 4 * MiB; alignment *= 4) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, std::size_t{4097}, std::size_t{100'001}}) {
      void* const p = source.allocate({size, alignment});
      ASSERT_NE(p, nullptr);
      EXPECT_TRUE(lies_at(p, alignment) && lies_at(p, page));
      EXPECT_TRUE(is_zero(p, system_pages::rounded(size)));
      std::memset(p, 1, system_pages::rounded(size));
      source.deallocate(p, {size, alignment});
    }
    EXPECT_EQ(source.allocate({0, alignment}), nullptr);
    for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - page, SIZE_MAX / 2 + 1, std::size_t{1} << 60}) {
      EXPECT_EQ(source.allocate({huge, alignment}), nullptr);
    }
  }
  EXPECT_EQ(source.allocate({1, std::size_t{1} << 63}), nullptr);
  source.deallocate(nullptr, {1, 1});
  walk_all(refer_to(source), any_layout(50'000, 64 * KiB));
}

// guard_pages: "Blocks of any layout, zeroed."
TEST(GuardPages, AreZeroedBlocksOfAnyLayout) {
  system_guard_pages source;
  for (const std::size_t size : {0u, 1u, 7u, 4095u, 4096u, 4097u, 70'000u}) {
    for (std::size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
      void* const p = source.allocate({size, alignment});
      ASSERT_NE(p, nullptr) << size << " at " << alignment;
      EXPECT_TRUE(lies_at(p, alignment));
      EXPECT_TRUE(is_zero(p, size));
      std::memset(p, 1, size);
      source.deallocate(p, {size, alignment});
    }
  }
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX - 8192, SIZE_MAX / 2 + 1}) {
    EXPECT_EQ(source.allocate({huge, 8}), nullptr);
    EXPECT_EQ(source.allocate({huge, 64 * KiB}), nullptr);
  }
  source.deallocate(nullptr, {1, 1});
  walk_all(refer_to(source), any_layout(20'000, 64 * KiB), 150);
}

// "What is touched behind a block faults, from less than `alignment` bytes (and less than a page)
// behind its end on; so does what lies a page in front of it, and a freed block". write(2) reads
// the byte, and returns EFAULT where the program would be stopped.
bool can_be_touched(const void* p) {
  unsigned char present;
  const auto page = reinterpret_cast<std::uintptr_t>(p) / 4096 * 4096;
  if (mincore(reinterpret_cast<void*>(page), 4096, &present) != 0) return false;
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool readable = write(ends[1], p, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

TEST(GuardPages, WhatLiesAroundABlockFaults) {
  system_guard_pages source;
  for (const std::size_t size : {0u, 1u, 15u, 16u, 100u, 4096u, 5000u, 65'536u}) {
    for (std::size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
      auto* const p = static_cast<std::byte*>(source.allocate({size, alignment}));
      ASSERT_NE(p, nullptr);
      const std::size_t slack = std::min<std::size_t>(alignment, 4096) - 1;
      // A block of no bytes counts as one of one byte.
      EXPECT_FALSE(can_be_touched(p + std::max<std::size_t>(size, 1) + slack)) << size << " at " << alignment;
      EXPECT_FALSE(can_be_touched(p - 4096)) << size << " at " << alignment;
      if (size > 0) {
        EXPECT_TRUE(can_be_touched(p) && can_be_touched(p + size - 1));
      }
      source.deallocate(p, {size, alignment});
      EXPECT_FALSE(can_be_touched(p));
    }
  }
}

// huge_pages: "Ranges of whole pages of 2 MiB, aligned to that at least, zeroed. Null when the
// system has no memory of any kind or the request overflows; a size of zero is refused too."
TEST(HugePages, AreWholePagesAndAreAccountedFor) {
  system_huge_pages source;
  constexpr std::size_t page = system_huge_pages::page_size;
  EXPECT_EQ(page, 2 * MiB);
  EXPECT_EQ(source.allocate({0, 8}), nullptr);
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - page, SIZE_MAX / 2 + 1, std::size_t{1} << 60}) {
    EXPECT_EQ(source.allocate({huge, 8}), nullptr);
  }
  EXPECT_EQ(source.stats().in_use, 0u);
  std::size_t out = 0;
  std::size_t ever = 0;
  std::vector<std::pair<void*, layout>> blocks;
  for (const layout l : {layout{1, 1}, layout{page, page}, layout{page + 1, 64}, layout{100, 8 * MiB}}) {
    void* const p = source.allocate(l);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(lies_at(p, std::max(l.alignment, page)));
    EXPECT_TRUE(is_zero(p, l.size));
    std::memset(p, 1, l.size);
    blocks.emplace_back(p, l);
    out += round_up(l.size, page);
    ever = out;
    const huge_page_stats s = source.stats();
    EXPECT_EQ(s.in_use, out);  // "in_use and held are the same"
    EXPECT_EQ(s.held, out);
    EXPECT_EQ(s.reserved + s.transparent + s.normal, ever);  // "what was handed out since the start by kind"
  }
  for (const auto& [p, l] : blocks) source.deallocate(p, l);
  source.deallocate(nullptr, {1, 1});
  EXPECT_EQ(source.stats().in_use, 0u);
  EXPECT_EQ(source.stats().reserved + source.stats().transparent + source.stats().normal, ever);
  static_assert(!std::is_copy_constructible_v<system_huge_pages> && !std::is_move_constructible_v<system_huge_pages>);
}

// slab_memory: "From the reserve if the layout is that of its ranges, otherwise from malloc."
TEST(SlabMemory, ServesAnyLayout) {
  slab_memory source;
  walk_all(refer_to(source), any_layout(70'000, 64 * KiB));
  const layout range{16 * KiB - slab_memory::header_bytes, 16 * KiB};
  walk_all(refer_to(source), always(range), 100);
  EXPECT_EQ(source.allocate({SIZE_MAX, 8}), nullptr);
  EXPECT_EQ(source.allocate({SIZE_MAX - 100, 16 * KiB}), nullptr);
  source.deallocate(nullptr, range);
}

// slab_memory, upstream_malloc, upstream_new and the pages are each "Thread-safe". Two threads pass
// blocks to each other.
template <class A>
void two_threads(std::size_t largest) {
  constexpr int blocks = 64;
  std::array<std::array<std::pair<void*, layout>, blocks>, 2> made;
  for (int round = 0; round < 4; ++round) {
    const auto work = [&](int self) {
      random_bits random(static_cast<unsigned>(self));
      A source;
      for (auto& [p, l] : made[self]) {
        l = {random() % largest + 1, std::size_t{1} << random() % 13};
        p = source.allocate(l);
        if (p != nullptr) std::memset(p, self, std::min<std::size_t>(l.size, 256));
      }
    };
    const auto free_others = [&](int self) {
      for (const auto& [p, l] : made[1 - self]) A{}.deallocate(p, l);
    };
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
    std::thread c(free_others, 0), d(free_others, 1);
    c.join();
    d.join();
  }
}

TEST(Sources, AreThreadSafeWhereTheySaySo) {
  two_threads<slab_memory>(20'000);
  two_threads<upstream_malloc>(20'000);
  two_threads<upstream_new>(20'000);
  two_threads<system_pages>(20'000);
  two_threads<system_guard_pages>(20'000);
}

// upstream_malloc: "As the concept allocator says. Null when malloc has no memory." "[deallocate]
// Calls free."
TEST(UpstreamMalloc, IsAnAllocator) {
  upstream_malloc source;
  walk_all(refer_to(source), any_layout(100'000, 64 * KiB));
  walk_all(refer_to_unsized(source), any_layout(100'000, 64 * KiB));
  for (const std::size_t huge : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 64 * KiB, SIZE_MAX / 2 + 1}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{16}, std::size_t{64}, 64 * KiB}) {
      EXPECT_EQ(source.allocate({huge, alignment}), nullptr) << huge << " at " << alignment;
    }
  }
  for (std::size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
    void* const p = source.allocate({0, alignment});
    EXPECT_NE(p, nullptr);
    source.deallocate(p, {0, alignment});
  }
  source.deallocate(nullptr);
}

int handler_calls = 0;

void refuses(std::initializer_list<std::size_t> sizes, std::initializer_list<std::size_t> alignments) {
  if (FROM_DOCS_ASAN || FROM_DOCS_TSAN) GTEST_SKIP() << "the sanitizers' operator new ends the process";
  for (const std::size_t huge : sizes) {
    for (const std::size_t alignment : alignments) {
      handler_calls = 0;
      const auto before = std::set_new_handler([] {
        ++handler_calls;
        std::set_new_handler(nullptr);
      });
      EXPECT_EQ(upstream_new{}.allocate({huge, alignment}), nullptr) << huge << " at " << alignment;
      EXPECT_EQ(handler_calls, 1) << huge << " at " << alignment;
      std::set_new_handler(before);
    }
  }
}

// upstream_new: "The program's operator new, which may be replaced. Null when it has no memory: its
// new-handler has been called then."
TEST(UpstreamNew, IsAnAllocator) {
  upstream_new source;
  walk_all(refer_to(source), any_layout(100'000, 64 * KiB));
  refuses({SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 64 * KiB}, {1, 16, 64, 64 * KiB});
  refuses({SIZE_MAX, SIZE_MAX - 15}, {1, 16});
}

TEST(UpstreamNew, RefusesWhatOverflows) { refuses({SIZE_MAX, SIZE_MAX - 15}, {64, 64 * KiB}); }

// upstream: "Refers to an allocator that others use too, and has its capabilities. Copies refer to
// the same one".
TEST(Upstream, RefersToAnAllocator) {
  pool<> shared_pool(layout{64, 8});
  upstream<pool<>> one = shared_pool;
  upstream<pool<>> two = one;
  EXPECT_EQ(&one.get(), &shared_pool);
  EXPECT_EQ(&two.get(), &shared_pool);
  void* const p = one.allocate();
  void* const q = two.allocate({64, 8});
  EXPECT_TRUE(one.owns(q) && two.owns(p));
  EXPECT_EQ(one.usable_size(p), 64u);
  EXPECT_EQ(two.stats().in_use, 128u);
  two.deallocate(p);
  one.deallocate(q, {64, 8});
  EXPECT_EQ(one.stats().in_use, 0u);
  const auto held = two.stats().held;
  EXPECT_EQ(one.trim(), held);
  one.reset();
  static_assert(can_resize<upstream<arena<>>> && can_reset<upstream<arena<>>> &&
                !can_deallocate_unsized<upstream<arena<>>>);
  static_assert(can_reallocate<upstream<best_fit<>>> && can_resize<upstream<best_fit<>>>);
}

// no_source: "Has nothing".
TEST(NoSource, HasNothing) {
  no_source source;
  EXPECT_EQ(source.allocate({0, 1}), nullptr);
  EXPECT_EQ(source.allocate({1, 1}), nullptr);
  source.deallocate(nullptr, {1, 1});
}

// layout: "No bytes, aligned as malloc does." "Not explicit"; array: "empty when n * sizeof(T)
// overflows std::size_t"
TEST(Layout, IsASizeAndAnAlignment) {
  static_assert(layout{}.size == 0 && layout{}.alignment == default_alignment);
  constexpr layout alone = 100;
  static_assert(alone.size == 100 && alone.alignment == alignof(std::max_align_t));
  struct alignas(64) wide {
    char c[65];
  };
  static_assert(layout::of<wide>().size == 128 && layout::of<wide>().alignment == 64);
  static_assert(layout::array<int>(0)->size == 0 && layout::array<int>(7)->size == 28);
  static_assert(layout::array<char>(SIZE_MAX).has_value() && !layout::array<short>(SIZE_MAX / 2 + 1).has_value());
  static_assert(layout::array<short>(SIZE_MAX / 2).has_value() && !layout::array<wide>(SIZE_MAX / 64).has_value());
}

// text: "A message of at most `Capacity` bytes." "What does not fit is cut off, never overrun."
// "812 B", "64.5 KiB", "1.2 GiB"
TEST(Text, IsCutOffAndNeverOverrun) {
  const auto try_one = []<std::size_t Capacity>() {
    struct {
      text<Capacity> message;
      std::array<char, 64> behind{};
    } here;
    std::string model;
    random_bits random(Capacity);
    for (int i = 0; i < 20; ++i) {
      const std::string piece(random() % 9, static_cast<char>('a' + i));
      here.message.add(i % 2 == 0 ? here.message.add("").add(std::string_view(piece)).size() : random() % 1000);
      model = here.message.c_str();
      EXPECT_LE(here.message.size(), Capacity);
      EXPECT_EQ(model.size(), here.message.size());
    }
    EXPECT_TRUE(is_zero(here.behind.data(), here.behind.size()));
  };
  try_one.operator()<1>();
  try_one.operator()<2>();
  try_one.operator()<15>();
  try_one.operator()<64>();
  EXPECT_STREQ(text<100>().add_bytes(812).add(" ").add_bytes(66'048).add(" ").add_bytes(1'288'490'189).c_str(),
               "812 B 64.5 KiB 1.2 GiB");
  EXPECT_STREQ(text<100>().add(std::uint64_t{18'446'744'073'709'551'615u}).add(" ").add_hex(255).c_str(),
               "18446744073709551615 0xff");
}

}  // namespace
