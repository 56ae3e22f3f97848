// What is taken for a pool of Python's and what is not. That real ones are found, programs_test.py
// sees.
#include "python_arenas.hpp"

#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heapwright::tool {
namespace {

constexpr std::uint64_t KiB = 1024;

struct header {
  std::uint32_t blocks_in_use = 3, padding = 0;
  std::uint64_t free_block = 0, next = 0, previous = 0;
  std::uint32_t arena = 0, size_class = 0, next_offset = 48, last_offset = 0;
};

bool is_pool(const header& h, std::uint64_t address) {
  std::array<std::byte, pool_header_bytes> bytes;
  static_assert(sizeof h == sizeof bytes);
  std::memcpy(bytes.data(), &h, sizeof h);
  return is_python_pool(bytes, address);
}

/// Of blocks of 64 bytes.
header pool_of(std::uint32_t bytes) {
  header h;
  h.size_class = 3;
  h.last_offset = bytes - 64;
  return h;
}

TEST(python_arenas, pools_have_16_kib_or_4) {
  EXPECT_TRUE(is_pool(pool_of(16 * KiB), 16 * KiB * 100));
  EXPECT_FALSE(is_pool(pool_of(16 * KiB), 16 * KiB * 100 + 4 * KiB)) << "not aligned";
  EXPECT_TRUE(is_pool(pool_of(4 * KiB), 16 * KiB * 100 + 4 * KiB));
  EXPECT_FALSE(is_pool(pool_of(8 * KiB), 16 * KiB * 100));
}

TEST(python_arenas, the_fields_depend_on_each_other) {
  const std::uint64_t at = 16 * KiB * 100;
  const auto changed = [&](auto change) {
    header h = pool_of(16 * KiB);
    change(h);
    return is_pool(h, at);
  };
  EXPECT_FALSE(changed([](header& h) { h.size_class = 4; })) << "another size of blocks";
  EXPECT_FALSE(changed([](header& h) { h.size_class = 32; }));
  EXPECT_FALSE(changed([](header& h) { h.next_offset = 47; })) << "within the header";
  EXPECT_FALSE(changed([](header& h) { h.next_offset = 16 * KiB + 1; }));
  EXPECT_FALSE(changed([](header& h) { h.blocks_in_use = 257; })) << "more blocks than fit";
  EXPECT_FALSE(changed([&](header& h) { h.free_block = at + 16 * KiB; })) << "a block of another pool";
  EXPECT_TRUE(changed([&](header& h) { h.free_block = at + 48; }));
  EXPECT_FALSE(is_pool(header{}, at)) << "zeros";
}

TEST(python_arenas, this_process_is_no_python) {
  EXPECT_FALSE(python_arena_bytes(getpid()));
  EXPECT_FALSE(python_arena_bytes(0x7fffffff));
}

}  // namespace
}  // namespace heapwright::tool
