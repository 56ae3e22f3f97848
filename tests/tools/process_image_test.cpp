// A live process seen from outside, tried on this one.
#include "process_image.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "loader.hpp"
#include "this_process.hpp"

namespace heapwright::tool {
namespace {

TEST(process_image, finds_the_malloc_in_use) {
  const auto malloc = malloc_of(getpid());
  ASSERT_TRUE(malloc);
  EXPECT_TRUE(std::filesystem::equivalent(*malloc, file_of_malloc())) << *malloc;
}

TEST(process_image, reads_memory_or_says_that_it_cannot) {
  const int there = 4711;
  int read = 0;
  EXPECT_TRUE(read_memory(getpid(), reinterpret_cast<std::uint64_t>(&there), &read, sizeof read));
  EXPECT_EQ(read, there);
  EXPECT_FALSE(read_memory(getpid(), 16, &read, sizeof read));
}

TEST(process_image, lists_the_files_that_are_mapped) {
  const auto files = mapped_files(getpid());
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](const mapping& m) { return is_libc(m.path); }));
  for (const mapping& m : files) EXPECT_LT(m.start, m.end);
}

TEST(process_image, knows_that_nobody_is_nobody) {
  EXPECT_FALSE(malloc_of(0x7fffffff));
  EXPECT_TRUE(mapped_files(0x7fffffff).empty());
  EXPECT_EQ(proc_bytes(0x7fffffff, "status", "VmHWM"), 0u);
  EXPECT_GT(proc_bytes(getpid(), "status", "VmHWM"), 0u);
}

}  // namespace
}  // namespace heapwright::tool
