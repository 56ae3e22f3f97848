// What the fuzz targets share. An input is a program, four bytes an operation; a model knows the
// place and the contents of every block that the program has; a source counts what it gave, sees
// that it comes back as it went, and refuses when told to. Build and run: script/fuzz [SECONDS]
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <source_location>
#include <span>
#include <vector>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/concepts.hpp>
#include <heapwright/source/upstream.hpp>

namespace heapwright::fuzzing {

/// Ends the run, whose input libFuzzer keeps.
inline void require(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "%s:%u: this does not hold\n", at.file_name(), static_cast<unsigned>(at.line()));
  std::abort();
}

using input = std::span<const std::uint8_t>;

struct operation {
  static constexpr std::size_t bytes = 4;

  explicit operation(input from)
      : code(from[0]), a(from[1]), b(from[2]), pattern(static_cast<unsigned char>(from[3] | 1)) {}

  /// One of n.
  [[nodiscard]] std::size_t choice(std::size_t n) const { return (a * 256 + b) % n; }

  /// At least 1, less than 2^bits; small as often as large.
  [[nodiscard]] std::size_t size(unsigned bits) const {
    const std::size_t base = std::size_t{1} << (a % bits);
    return base + base * b / 256;
  }

  unsigned code;
  unsigned a;
  unsigned b;
  unsigned char pattern;  ///< never 0, which fresh memory may hold anyway
};

template <class Step>
void for_each_operation(input program, Step step) {
  for (; program.size() >= operation::bytes; program = program.subspan(operation::bytes)) step(operation(program));
}

[[nodiscard]] inline bool filled_with(const void* raw, std::size_t size, unsigned char value) {
  const auto* const p = static_cast<const unsigned char*>(raw);
  // Each byte against the next: a loop over instrumented loads would take most of the time of a
  // run.
  return size == 0 || (*p == value && std::memcmp(p, p + 1, size - 1) == 0);
}

/// The blocks that are live, by age. Their contents are looked at when they are removed, at the
/// latest with the model.
class model {
 public:
  struct block {
    std::byte* at;
    layout of;
    unsigned char pattern;
    std::size_t number;  ///< blocks that were added before it
  };

  model() = default;
  model(const model&) = delete;
  model& operator=(const model&) = delete;
  ~model() { remove_since(0); }

  void add(void* raw, layout of, unsigned char pattern) {
    auto* const p = static_cast<std::byte*>(raw);
    require(p != nullptr && is_aligned(p, of.alignment));
    const auto after = ends_.lower_bound(p);
    require(after == ends_.end() || p + of.size <= after->first);
    require(after == ends_.begin() || std::prev(after)->second <= p);
    require(ends_.emplace(p, p + of.size).second);
    std::memset(p, pattern, of.size);
    blocks_.push_back({p, of, pattern, added_++});
  }

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  [[nodiscard]] std::size_t added() const { return added_; }

  /// Chosen by the order in which they were added, not by address, so that an input does the same
  /// in every process.
  [[nodiscard]] const block& operator[](std::size_t i) const { return blocks_[i]; }
  [[nodiscard]] const block& latest() const { return blocks_.back(); }

  block remove(const block& chosen) { return remove(chosen, chosen.at, chosen.of.size); }

  /// Of a block that was resized: `kept` bytes of it, if it had as many, lie at `now`.
  block remove(const block& chosen, const void* now, std::size_t kept) {
    const block known = chosen;
    require(filled_with(now, std::min(kept, known.of.size), known.pattern));
    ends_.erase(known.at);
    blocks_.erase(blocks_.begin() + (&chosen - blocks_.data()));
    return known;
  }

  /// All blocks but the first `number` that were ever added.
  void remove_since(std::size_t number) {
    while (!empty() && latest().number >= number) remove(latest());
  }

 private:
  std::vector<block> blocks_;
  std::map<const std::byte*, const std::byte*> ends_;
  std::size_t added_ = 0;
};

/// Ranges from `Memory`, `limit` bytes of them. All must have come back when it is destroyed.
template <allocator Memory = upstream_new>
class source {
 public:
  explicit source(std::size_t limit, Memory memory = {}) : memory_(memory), limit_(limit) {}
  ~source() { require(ranges_.empty() && held_ == 0); }

  source(const source&) = delete;
  source& operator=(const source&) = delete;

  [[nodiscard]] void* allocate(layout l) noexcept {
    ++requests_;
    void* const p = allowed_ > 0 && l.size <= limit_ - held_ ? memory_.allocate(l) : nullptr;
    if (p == nullptr) {
      ++refusals_;
      return nullptr;
    }
    --allowed_;
    held_ += l.size;
    ranges_.emplace(static_cast<std::byte*>(p), l);
    return p;
  }

  void deallocate(void* p, layout l) noexcept {
    const auto found = ranges_.find(static_cast<std::byte*>(p));
    require(found != ranges_.end() && found->second == l);
    held_ -= l.size;
    ranges_.erase(found);
    memory_.deallocate(p, l);
  }

  /// After n more ranges it refuses every request.
  void allow(std::size_t n) { allowed_ = n; }

  /// Whether all of it lies in one range. AddressSanitizer may not tell: an allocator unpoisons
  /// what it takes for its own.
  [[nodiscard]] bool contains(const void* block, std::size_t bytes) const {
    const auto* const p = static_cast<const std::byte*>(block);
    const auto after = ranges_.upper_bound(p);
    if (after == ranges_.begin()) return false;
    const auto& [begin, l] = *std::prev(after);
    return p + bytes <= begin + l.size;
  }

  [[nodiscard]] std::size_t held() const { return held_; }  ///< bytes
  [[nodiscard]] std::size_t ranges() const { return ranges_.size(); }
  [[nodiscard]] std::size_t requests() const { return requests_; }
  [[nodiscard]] std::size_t refusals() const { return refusals_; }

 private:
  [[no_unique_address]] Memory memory_;
  std::map<const std::byte*, layout> ranges_;
  std::size_t limit_;
  std::size_t held_ = 0;
  std::size_t requests_ = 0;
  std::size_t refusals_ = 0;
  std::size_t allowed_ = SIZE_MAX;
};

}  // namespace heapwright::fuzzing
