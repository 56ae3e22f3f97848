// The rings of one process (trace/ring.hpp), as its recorder reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "ring.hpp"

namespace heapwright::tool {

class ring_source {
 public:
  /// Null: the file is no file of rings, or not yet.
  [[nodiscard]] static std::unique_ptr<ring_source> open(const std::filesystem::path& file);
  ring_source(const ring_source&) = delete;
  ring_source& operator=(const ring_source&) = delete;
  ~ring_source();

  [[nodiscard]] std::uint32_t rings() const noexcept { return static_cast<std::uint32_t>(taken_.size()); }

  /// Calls f(ticks, record) for each record of this ring that was not read before, and makes room
  /// for others. No more than one ring full: a thread may write as fast as they are read.
  template <class F>
  void read(std::uint32_t ring, F f) {
    trace::ring_record* const begin = file_->begin_of(ring);
    std::uint64_t& taken = taken_[ring];
    for (const std::uint64_t end = taken + file_->records; taken != end; ++taken) {
      trace::ring_record& r = begin[taken & (file_->records - 1)];
      const std::uint64_t ticks = r.ticks.load(std::memory_order_acquire);
      if (ticks == 0) return;
      f(ticks, r);
      // Before there is room: were this tool killed in between, the next one would begin at a place
      // that the thread has passed.
      file_->head(ring).read.store(taken + 1, std::memory_order_relaxed);
      r.ticks.store(0, std::memory_order_release);
    }
  }

  [[nodiscard]] std::uint64_t anonymous_before() const noexcept { return file_->anonymous_before; }
  /// What was mapped while nobody recorded is not known.
  void forget_own_mappings() noexcept {
    for (trace::own_mapping& m : file_->own_mappings) m.begin.store(0, std::memory_order_relaxed);
  }
  /// What the program itself has mapped as anonymous memory, and is no malloc's: f(begin, bytes).
  template <class F>
  void for_each_own_mapping(F f) const {
    for (const trace::own_mapping& m : file_->own_mappings) {
      const std::uint64_t begin = m.begin.load(std::memory_order_relaxed);
      if (begin != 0) f(begin, m.bytes.load(std::memory_order_relaxed));
    }
  }

  [[nodiscard]] std::uint64_t waited_ns(std::uint32_t ring) const noexcept {
    return file_->head(ring).waited_ns.load(std::memory_order_relaxed);
  }

 private:
  ring_source(trace::ring_file* file, std::size_t bytes);

  trace::ring_file* file_;
  std::size_t bytes_;
  std::vector<std::uint64_t> taken_;  ///< places that were read, by ring
};

}  // namespace heapwright::tool
