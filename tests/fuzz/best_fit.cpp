// libFuzzer: the input is a program for two best-fit heaps, one per way of merging. A model knows
// every block's place and contents, and an audit walks the heap from the inside.
#include <heapwright/allocator/best_fit.hpp>

#include "../kit/support/best_fit_audit.hpp"
#include "support.hpp"

namespace {

using namespace heapwright;
using namespace heapwright::fuzzing;

alignas(4096) std::byte memory[256 * KiB];

template <class Heap>
class program {
 public:
  explicit program(std::size_t offset) : tested_(std::span(memory).subspan(offset)) {}

  void run(input operations) {
    std::size_t steps = 0;
    for_each_operation(operations, [&](const operation& o) {
      step(o);
      if (steps++ % 16 == 0) audit();
    });
    while (!known_.empty()) release(known_.latest());
    tested_.defragment();
    audit();
    const best_fit_stats s = tested_.stats();
    require(s.largest_free == s.held);
  }

 private:
  void step(const operation& o) {
    const std::size_t size = o.size(17) - (o.a >= 128 ? 1 : 0);
    switch (o.code % 8) {
      case 0:
      case 1: allocate({size, 8}, o.pattern); break;
      case 2: allocate({size, std::size_t{1} << (o.b % 14)}, o.pattern); break;
      case 3:
      case 4:
        if (!known_.empty()) release(pick(o));
        break;
      case 5:
        if (known_.empty()) break;
        if (const model::block& b = pick(o); tested_.try_resize(b.at, b.of, {size, b.of.alignment}))
          replace(b, b.at, {size, b.of.alignment}, o.pattern);
        break;
      case 6:
        if (known_.empty()) break;
        if (void* const moved = tested_.reallocate(pick(o).at, size + 1))
          replace(pick(o), moved, {size + 1, 16}, o.pattern);
        break;
      default: tested_.defragment();
    }
  }

  [[nodiscard]] const model::block& pick(const operation& o) const { return known_[o.choice(known_.size())]; }

  void allocate(layout l, unsigned char pattern) {
    if (void* const p = tested_.allocate(l)) add(p, l, pattern);
  }

  void add(void* p, layout l, unsigned char pattern) {
    require(tested_.usable_size(p) >= l.size && tested_.owns(p));
    known_.add(p, l, pattern);
  }

  void replace(const model::block& chosen, void* now, layout l, unsigned char pattern) {
    known_.remove(chosen, now, l.size);
    add(now, l, pattern);
  }

  void release(const model::block& chosen) {
    const model::block b = known_.remove(chosen);
    if (b.of.size % 2 == 0) {
      tested_.deallocate(b.at, b.of);
    } else {
      tested_.deallocate(b.at);
    }
  }

  void audit() { require(fault_in(tested_) == nullptr); }

  Heap tested_;
  model known_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  const input operations(data, length);
  program<best_fit<>>(length % 64).run(operations);
  program<best_fit<best_fit_plan{.merging = merge::deferred}>>(length % 64).run(operations);
  return 0;
}
