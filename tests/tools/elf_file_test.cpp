// ELF files as they are found on every Linux: this test itself, the library that its malloc is in,
// and what is none.
#include "elf_file.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <heapwright/core/poison.hpp>

#include "loader.hpp"
#include "program.hpp"
#include "this_process.hpp"

extern "C" {
extern const char content_to_be_found[];
const char content_to_be_found[] = "found";
}

namespace heapwright::tool {
namespace {

#if defined(HEAPWRIGHT_HAS_ASAN) && defined(__clang__)
constexpr bool has_asan_linked_in = true;
#else
constexpr bool has_asan_linked_in = false;
#endif

TEST(elf_file, knows_a_program_from_a_library) {
  const auto self = elf_file::open("/proc/self/exe");
  ASSERT_TRUE(self);
  EXPECT_TRUE(self->is_native());
  EXPECT_FALSE(self->loader().empty());
  EXPECT_EQ(self->exports("malloc"), has_asan_linked_in);
}

TEST(elf_file, finds_what_a_library_exports) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const listing objects = ask_loader(program{self, elf_file::open(self)->loader()}, "");
  ASSERT_TRUE(std::filesystem::equivalent(objects.malloc(), file_of_malloc())) << objects.malloc();
  const auto found = elf_file::open(objects.malloc());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_shared_object());
  EXPECT_TRUE(found->exports("malloc"));
  EXPECT_FALSE(found->exports("no_such_function_anywhere"));
}

TEST(elf_file, reads_the_content_of_a_symbol) {
  const auto self = elf_file::open("/proc/self/exe");
  ASSERT_TRUE(self);
  const std::string content = self->content("content_to_be_found");
  EXPECT_EQ(content.substr(0, 6), std::string("found", 6));
  if (!has_asan_linked_in) {  // it puts bytes of its own behind them
    EXPECT_EQ(content.size(), 6U);
  }
  EXPECT_EQ(self->content("no_such_symbol"), "");
}

TEST(elf_file, is_not_fooled_by_other_files) {
  EXPECT_FALSE(elf_file::open("/etc/passwd"));
  EXPECT_FALSE(elf_file::open("/dev/null"));
  EXPECT_FALSE(elf_file::open("/"));
  EXPECT_FALSE(elf_file::open("/no/such/file"));
}

}  // namespace
}  // namespace heapwright::tool
