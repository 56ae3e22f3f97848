// libFuzzer: the input is a program for the heap, four bytes an operation; the model knows every block's place and contents.
// Build and run: script/fuzz [SECONDS]
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <heapwright/heap/heap.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

namespace {

using namespace heapwright;

constinit heap<default_recipe, linux_os> tested;

struct model_block {
  std::size_t size;
  unsigned char pattern;
};

class model {
 public:
  void add(void* raw, std::size_t size, std::size_t alignment, unsigned char pattern, bool zeroed = false) {
    auto* const p = static_cast<unsigned char*>(raw);
    if (p == nullptr) return;
    require(is_aligned(p, alignment) && tested.usable_size(p) >= size);
    const auto after = blocks_.lower_bound(p);
    require(after == blocks_.end() || p + size <= after->first);
    require(after == blocks_.begin() || std::prev(after)->first + std::prev(after)->second.size <= p);
    for (std::size_t i = 0; zeroed && i < size; ++i) require(p[i] == 0);
    std::memset(p, pattern, size);
    blocks_[p] = {size, pattern};
  }

  void* pick(unsigned n) {
    if (blocks_.empty()) return nullptr;
    return std::next(blocks_.begin(), n % static_cast<long>(blocks_.size()))->first;
  }

  model_block remove(void* p) {
    const auto node = blocks_.extract(static_cast<unsigned char*>(p));
    for (std::size_t i = 0; i < node.mapped().size; ++i) require(node.key()[i] == node.mapped().pattern);
    return node.mapped();
  }

  static void require(bool holds) {
    if (!holds) std::abort();
  }

  [[nodiscard]] bool empty() const { return blocks_.empty(); }

 private:
  std::map<unsigned char*, model_block> blocks_;
};

std::size_t size_from(unsigned a, unsigned b) {
  const std::size_t base = std::size_t{1} << (a % 22);
  return base + base * b / 256;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  auto* cache = tested.open_cache();
  model known;
  const auto release = [&](void* p) {
    known.remove(p);
    if (!cache->push(p)) tested.deallocate_slow(*cache, p);
  };
  for (std::size_t i = 0; i + 4 <= length; i += 4) {
    const unsigned operation = data[i], a = data[i + 1], b = data[i + 2];
    const unsigned char pattern = data[i + 3] | 1;
    const std::size_t size = size_from(a, b);
    switch (operation % 8) {
      case 0:
      case 1: {
        void* p = cache->pop(size);
        known.add(p != nullptr ? p : tested.allocate_slow(*cache, size), size, 16, pattern);
        break;
      }
      case 2:
        known.add(tested.allocate_aligned(*cache, size, std::size_t{1} << (b % 21)), size, std::size_t{1} << (b % 21),
                  pattern);
        break;
      case 3: known.add(tested.allocate_zeroed(*cache, size), size, 16, pattern, true); break;
      case 4:
      case 5:
        if (void* p = known.pick(a * 256 + b)) release(p);
        break;
      case 6:
        if (void* p = known.pick(b)) {
          const model_block old = known.remove(p);
          auto* const moved = static_cast<unsigned char*>(tested.reallocate(*cache, p, size));
          if (moved == nullptr) break;
          for (std::size_t k = 0; k < old.size && k < size; ++k) model::require(moved[k] == old.pattern);
          known.add(moved, size, 16, pattern);
        }
        break;
      default:
        if (a % 4 == 0) {
          tested.trim(*cache);
        } else if (a % 4 == 1) {
          tested.close_cache(cache);
          cache = tested.open_cache();
        } else {
          known.add(tested.allocate_uncached(size), size, 16, pattern);
        }
    }
  }
  while (!known.empty()) release(known.pick(0));
  tested.trim(*cache);
  tested.close_cache(cache);
  const heap_figures& f = tested.figures();
  model::require(f.spans == 0 && f.large == 0 && f.free_resident == 0 && f.mapped == f.free_returned);
  return 0;
}
