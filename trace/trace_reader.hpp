// Reads a trace, part by part, in the order of the file. Trusts nothing of it: a chunk that is cut
// off or damaged ends the trace, with what was whole before it. Memory is bounded by the longest
// chunk, not by the trace. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>

#include "trace.hpp"

namespace heapwright::trace {

class trace_reader {
 public:
  /// Throws `bad_trace`: it cannot be read, is no trace, or one of another version.
  explicit trace_reader(const std::filesystem::path& file);
  trace_reader(const trace_reader&) = delete;
  trace_reader& operator=(const trace_reader&) = delete;
  ~trace_reader();

  /// The next part. The last is an `ending`, which is repeated after that.
  [[nodiscard]] part next();

  /// Bytes of the file that have been read, and that it has.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  [[nodiscard]] bool read(void* into, std::size_t bytes);
  void read_chunk();
  void torn(const char* how);

  struct closes {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, closes> file_;
  std::uint64_t position_ = 0, size_ = 0;
  std::deque<part> read_ahead_;  ///< of one chunk
  bool has_ended_ = false;
  ending end_;
};

/// Calls f(part) for each part before the ending, which it returns.
template <class F>
ending for_each_part(trace_reader& reader, F f) {
  for (;;) {
    const part p = reader.next();
    if (const auto* const last = std::get_if<ending>(&p)) return *last;
    f(p);
  }
}

}  // namespace heapwright::trace
