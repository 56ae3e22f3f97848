#include "perf_map.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heapwright::tool {
namespace {

class perf_map_of_file : public testing::Test {
 protected:
  ~perf_map_of_file() override { std::filesystem::remove(path_); }

  void write(const std::string& text) { std::ofstream(path_) << text; }
  [[nodiscard]] std::string at(std::uint64_t pc) const {
    const std::string* const name = map_.find(pc);
    return name == nullptr ? "" : *name;
  }

  const std::string path_ = testing::TempDir() + "perf-" + std::to_string(getpid()) + ".map";
  perf_map map_{path_};
};

TEST_F(perf_map_of_file, what_is_added_is_read_once_its_line_is_whole) {
  write("1000 10 first\n2000 10 sec");
  EXPECT_TRUE(map_.refresh());
  EXPECT_EQ(at(0x100f), "first");
  EXPECT_EQ(at(0x2000), "");
  write("1000 10 first\n2000 10 second\n");
  EXPECT_TRUE(map_.refresh());
  EXPECT_FALSE(map_.refresh());
  EXPECT_EQ(at(0x1000), "first");
  EXPECT_EQ(at(0x2000), "second");
}

/// As a JVM does each time it is asked for its map.
TEST_F(perf_map_of_file, a_file_that_is_written_anew_and_longer_is_read_from_its_beginning) {
  write("1000 10 first\n2000 10 second\n");
  EXPECT_TRUE(map_.refresh());
  write("500 10 zeroth\n1000 10 first, compiled again\n3000 10 third\n4000 10 fourth\n");
  EXPECT_TRUE(map_.refresh());
  EXPECT_EQ(at(0x500), "zeroth");
  EXPECT_EQ(at(0x1000), "first, compiled again");
  EXPECT_EQ(at(0x2000), "");
  EXPECT_EQ(at(0x4000), "fourth");
}

TEST_F(perf_map_of_file, a_file_that_is_written_anew_as_long_as_it_was_is_read_again) {
  write("1000 10 first\n");
  EXPECT_TRUE(map_.refresh());
  write("1000 10 other\n");
  std::filesystem::last_write_time(path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_TRUE(map_.refresh());
  EXPECT_EQ(at(0x1000), "other");
}

}  // namespace
}  // namespace heapwright::tool
