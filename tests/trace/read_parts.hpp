// A trace in memory, read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "trace_reader.hpp"

namespace heapwright::trace {

/// A file of its own for each test process.
inline std::filesystem::path trace_path() {
  return std::filesystem::path(testing::TempDir()) / ("heapwright-trace-" + std::to_string(getpid()));
}

inline void store(std::span<const std::byte> bytes) {
  std::ofstream(trace_path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// All parts, the ending last.
inline std::vector<part> read_parts(std::span<const std::byte> bytes) {
  store(bytes);
  trace_reader reader(trace_path());
  std::vector<part> parts;
  do parts.push_back(reader.next());
  while (!std::holds_alternative<ending>(parts.back()));
  EXPECT_EQ(std::get<ending>(reader.next()), std::get<ending>(parts.back())) << "it is repeated";
  std::filesystem::remove(trace_path());
  return parts;
}

}  // namespace heapwright::trace
