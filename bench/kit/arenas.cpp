// S1: a vector of 100 objects of S bytes, emplaced without a reserve, in an arena on the stack that
// is large enough for every array it grows through: 255 x S bytes and rounding. The objects' copies
// do nothing, so that only memory is measured.
#include <array>
#include <cstddef>
#include <memory_resource>
#include <type_traits>
#include <utility>
#include <vector>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

template <std::size_t S>
struct object {
  std::byte bytes[S];
  object() noexcept {}
  object(const object&) noexcept {}
};

constexpr int batch = 100;  ///< vectors per iteration: one takes too little time to be measured

/// What an allocator costs at the least.
struct unchecked_buffer {
  std::byte* next;
  void* allocate(heapwright::layout l) noexcept { return std::exchange(next, next + l.size); }
  void deallocate(void*, heapwright::layout) noexcept {}
};

template <class V>
[[gnu::noinline]] void grow(V v) {
  for (int i = 0; i < 100; ++i) v.emplace_back();
  benchmark::DoNotOptimize(v.data());
}

template <std::size_t S, class F>
void row(const char* memory, F one) {
  add(
      "S1", "vector of 100", memory, S, 101,
      [one] {
        return [one](std::int64_t) {
          return seconds([&] {
            for (int i = 0; i < batch; ++i) one();
          });
        };
      },
      batch);
}

template <std::size_t S>
void rows() {
  constexpr std::size_t enough = 255 * S + 8 * 16;
  using type = object<S>;
  row<S>("malloc", [] { grow(std::vector<type>()); });
  const auto in_arena = []<class A>(std::type_identity<A>) {
    return [] {
      A memory;
      grow(std::vector<type, heapwright::std_allocator<type, A>>(memory));
    };
  };
  using heapwright::stack_arena, heapwright::take_back, heapwright::upstream_malloc;
  row<S>("arena", in_arena(std::type_identity<stack_arena<enough>>()));
  row<S>("arena, nothing back",
         in_arena(std::type_identity<stack_arena<enough, upstream_malloc, take_back::nothing>>()));
  row<S>("floor", [] {
    std::byte buffer[enough];
    unchecked_buffer memory{buffer};
    grow(std::vector<type, heapwright::std_allocator<type, unchecked_buffer>>(memory));
  });
  row<S>("pmr monotonic", [] {
    std::byte buffer[enough];
    std::pmr::monotonic_buffer_resource memory(buffer, sizeof buffer);
    grow(std::pmr::vector<type>(&memory));
  });
}

}  // namespace

void add_arenas() {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (rows<std::size_t{8} << I>(), ...);
  }(std::make_index_sequence<11>{});
}

}  // namespace bench
