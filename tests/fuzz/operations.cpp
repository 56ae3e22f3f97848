// libFuzzer: the input is a program for the heap; a model knows every block's place and contents.
#include <heapwright/heap/heap_core.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

#include "support.hpp"

namespace {

using namespace heapwright;
using namespace heapwright::fuzzing;

constinit heap_core<default_recipe, linux_os> tested;

class program {
  static constexpr std::size_t usual_alignment = 16;

 public:
  void run(input operations) {
    for_each_operation(operations, [this](const operation& o) { step(o); });
    while (!known_.empty()) release(known_.latest());
    tested.trim(*cache_);
    tested.close_cache(cache_);
    const heap_figures& f = tested.figures();
    require(f.spans == 0 && f.large == 0 && f.free_resident == 0 && f.mapped == f.free_decommitted);
  }

 private:
  void step(const operation& o) {
    const std::size_t size = o.size(22);
    switch (o.code % 8) {
      case 0:
      case 1: {
        void* const p = cache_->pop(size);
        add(p != nullptr ? p : tested.allocate_slow(*cache_, size), {size, usual_alignment}, o.pattern);
        break;
      }
      case 2: {
        const std::size_t alignment = std::size_t{1} << (o.b % 21);
        add(tested.allocate_aligned(*cache_, size, alignment), {size, alignment}, o.pattern);
        break;
      }
      case 3: {
        void* const p = tested.allocate_zeroed_slow(*cache_, size);
        require(p == nullptr || filled_with(p, size, 0));
        add(p, {size, usual_alignment}, o.pattern);
        break;
      }
      case 4:
      case 5:
        if (!known_.empty()) release(pick(o));
        break;
      case 6:
        if (known_.empty()) break;
        if (void* const moved = tested.reallocate(*cache_, pick(o).at, size)) {
          known_.remove(pick(o), moved, size);
          add(moved, {size, usual_alignment}, o.pattern);
        }
        break;
      default:
        if (o.a % 4 == 0) {
          tested.trim(*cache_);
        } else if (o.a % 4 == 1) {
          tested.close_cache(cache_);
          cache_ = tested.open_cache();
        } else {
          void* const p = tested.with_borrowed([&](auto& borrowed) { return tested.allocate_slow(borrowed, size); });
          add(p, {size, usual_alignment}, o.pattern);
        }
    }
  }

  [[nodiscard]] const model::block& pick(const operation& o) const { return known_[o.choice(known_.size())]; }

  void add(void* p, layout l, unsigned char pattern) {
    if (p == nullptr) return;
    require(tested.usable_size(p) >= l.size);
    known_.add(p, l, pattern);
  }

  void release(const model::block& chosen) {
    void* const p = known_.remove(chosen).at;
    if (!cache_->push(p)) tested.deallocate_slow(*cache_, p);
  }

  decltype(tested)::cache* cache_ = tested.open_cache();
  model known_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  program().run({data, length});
  return 0;
}
