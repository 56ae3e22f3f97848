// libFuzzer: the input is a program for two best-fit heaps, one per way of merging, four bytes an operation. A model
// knows every block's place and contents, and an audit walks the heap from the inside.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include <heapwright/allocator/best_fit.hpp>

#include "../kit/support/best_fit_audit.hpp"

namespace {

using namespace heapwright;

void require(bool holds) {
  if (!holds) std::abort();
}

alignas(4096) std::byte memory[256 * KiB];

template <class Heap>
class program {
  struct block {
    layout of;
    unsigned char pattern;
  };

 public:
  explicit program(std::size_t offset) : tested_(std::span(memory).subspan(offset)) {}

  void run(const std::uint8_t* data, std::size_t length) {
    for (std::size_t i = 0; i + 4 <= length; i += 4) {
      step(data[i], data[i + 1], data[i + 2], static_cast<unsigned char>(data[i + 3] | 1));
      if (i % 64 == 0) audit();
    }
    while (!blocks_.empty()) release(blocks_.begin());
    tested_.defragment();
    audit();
    const best_fit_stats s = tested_.stats();
    require(s.largest_free == s.held);
  }

 private:
  using blocks_type = std::map<unsigned char*, block>;

  void step(unsigned operation, unsigned a, unsigned b, unsigned char pattern) {
    const std::size_t base = std::size_t{1} << (a % 17);
    const std::size_t size = base + base * b / 256 - (a >= 128 ? 1 : 0);
    const auto chosen = pick(a * 256 + b);
    switch (operation % 8) {
      case 0:
      case 1: add(tested_.allocate({size, 8}), {size, 8}, pattern); break;
      case 2: {
        const layout l{size, std::size_t{1} << (b % 14)};
        add(tested_.allocate(l), l, pattern);
        break;
      }
      case 3:
      case 4:
        if (chosen != blocks_.end()) release(chosen);
        break;
      case 5:
        if (chosen == blocks_.end()) break;
        if (const layout to{size, chosen->second.of.alignment};
            tested_.try_resize(chosen->first, chosen->second.of, to)) {
          auto* const p = chosen->first;
          forget(chosen, p, size);
          add(p, to, pattern);
        }
        break;
      case 6:
        if (chosen == blocks_.end()) break;
        if (auto* const moved = tested_.reallocate(chosen->first, size + 1)) {
          forget(chosen, moved, size + 1);
          add(moved, {size + 1, 16}, pattern);
        }
        break;
      default: tested_.defragment();
    }
  }

  auto pick(unsigned n) {
    return blocks_.empty() ? blocks_.end() : std::next(blocks_.begin(), static_cast<long>(n % blocks_.size()));
  }

  void add(void* raw, layout l, unsigned char pattern) {
    auto* const p = static_cast<unsigned char*>(raw);
    if (p == nullptr) return;
    require(is_aligned(p, l.alignment) && tested_.usable_size(p) >= l.size && tested_.owns(p));
    const auto after = blocks_.lower_bound(p);
    require(after == blocks_.end() || p + l.size <= after->first);
    require(after == blocks_.begin() || std::prev(after)->first + std::prev(after)->second.of.size <= p);
    std::memset(p, pattern, l.size);
    require(blocks_.emplace(p, block{l, pattern}).second);
  }

  /// The first `kept` bytes, which lie at `now`, must be as they were.
  void forget(typename blocks_type::iterator chosen, const void* now, std::size_t kept) {
    const auto* const p = static_cast<const unsigned char*>(now);
    const block b = chosen->second;
    blocks_.erase(chosen);
    for (std::size_t i = 0; i < b.of.size && i < kept; ++i) require(p[i] == b.pattern);
  }

  void release(typename blocks_type::iterator chosen) {
    auto* const p = chosen->first;
    const layout l = chosen->second.of;
    forget(chosen, p, l.size);
    if (l.size % 2 == 0) {
      tested_.deallocate(p, l);
    } else {
      tested_.deallocate(p);
    }
  }

  void audit() { require(fault_in(tested_) == nullptr); }

  Heap tested_;
  blocks_type blocks_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  const std::size_t offset = length % 64;
  program<best_fit<>>(offset).run(data, length);
  program<best_fit<best_fit_plan{.merging = merge::deferred}>>(offset).run(data, length);
  return 0;
}
