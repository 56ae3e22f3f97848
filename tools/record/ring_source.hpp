// The rings of one process (trace/ring.hpp), as its recorder reads them.
#pragma once

#include <algorithm>
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

  [[nodiscard]] std::uint32_t rings() const noexcept { return static_cast<std::uint32_t>(positions_.size()); }

  /// Before rings are read, each time.
  void begin_look() noexcept {
    const std::uint64_t before = file_->looks.load(std::memory_order_relaxed);
    file_->looks.store(before + 1, std::memory_order_relaxed);
  }

  /// Calls f(ticks, record) for each record of this ring that was not read before, and makes room
  /// for others. No more than one ring full: a thread may write as fast as they are read.
  /// `is_over`: nothing more will be written.
  template <class F>
  void read(std::uint32_t ring, bool is_over, F f) {
    const trace::ring_record* const begin = file_->begin_of(ring);
    position& at = positions_[ring];
    for (const std::uint64_t end = at.read + file_->records; at.read != end;) {
      const trace::ring_record& r = begin[at.read & (file_->records - 1)];
      const std::uint64_t stamp = r.stamp.load(std::memory_order_acquire);
      if (is_written(stamp, at.read)) {
        f(stamp & ~std::uint64_t{1}, r);
        at.empty_for = 0;
      } else if (!is_left_empty(begin, at, is_over)) {
        return;
      }
      file_->head(ring).read.store(++at.read, std::memory_order_release);
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
  struct position {
    std::uint64_t read = 0;       ///< places
    std::uint64_t seen = 0;       ///< a place that is written, where it is not below `read`
    std::uint32_t empty_for = 0;  ///< looks, in which the next place was empty, and one behind it was not
  };

  ring_source(trace::ring_file* file, std::size_t bytes);

  [[nodiscard]] bool is_written(std::uint64_t stamp, std::uint64_t place) const noexcept {
    return (stamp & 1) == trace::ring_record::lap_mark(place, file_->records);
  }
  /// The next place was taken, and will not be written: one behind it is. That is the one that
  /// comes next, or the last one of the lap, behind which the thread waits for room.
  [[nodiscard]] bool is_left_empty(const trace::ring_record* begin, position& at, bool is_over) const noexcept {
    constexpr std::uint32_t patience = 200;  // some tenths of a second
    const auto see = [&](std::uint64_t place) {
      const trace::ring_record& r = begin[place & (file_->records - 1)];
      if (is_written(r.stamp.load(std::memory_order_acquire), place)) at.seen = std::max(at.seen, place);
    };
    see(at.read + 1);
    // The end of a ring that nobody uses is not to be brought into memory.
    if (at.read != 0) see(at.read + file_->records - 1);
    return at.read < at.seen && (is_over || ++at.empty_for > patience);
  }

  trace::ring_file* file_;
  std::size_t bytes_;
  std::vector<position> positions_;  ///< by ring
};

}  // namespace heapwright::tool
