// A trace that a test writes, in a file that lasts as long as this object.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "trace_writer.hpp"

namespace heapwright::tool {

class stored_trace {
 public:
  stored_trace()
      : path_(testing::TempDir() + "heapwright-plan-" + std::to_string(getpid())),
        file_(path_, std::ios::binary),
        writer([this](std::span<const std::byte> bytes) {
          file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
          return true;
        }) {
    writer.add(trace::process{.number = 0, .program = "/bin/some", .allocator = "libc.so.6", .arguments = {"some"}});
  }
  ~stored_trace() { std::filesystem::remove(path_); }

  const std::string& end() {
    writer.end({.reason = "it is over"});
    file_.close();
    return path_;
  }

 private:
  std::string path_;
  std::ofstream file_;

 public:
  trace::trace_writer writer;
};

}  // namespace heapwright::tool
