// `lookup_bench WORK MAP SPANS ACCESS PASSES`: how free finds the span of a block. Prints the
// median of the passes as one line of JSON, in nanoseconds. script/bench lookup runs it side by
// side and under cachegrind.
//
//   WORK     lookup     size class and owner of 2^18 blocks, one after the other
//            free       the same, and each block is put into the free list of its class
//            register   a span is made known and forgotten again, among SPANS others
//   MAP      page-map   the heap's own (heap/page_map.hpp): two levels of tables, a tag for each
//                       page
//            mask       spans are aligned to their size; a header in front of their blocks, found
//                       by masking the address
//            coloured   the same; the header's place depends on the span's address, or all would
//                       share a set of the cache
//            search     binary search in a sorted array of where spans begin
//   ACCESS   random, or local: blocks in the order of their addresses
//
// All have spans of 16 KiB with blocks of 64 bytes at the same places. No block lies where another
// map has a header.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <heapwright/core/hash.hpp>
#include <heapwright/heap/page_map.hpp>
#include <heapwright/platform/linux/linux_os.hpp>
#include <heapwright/source/os_pages.hpp>

namespace {

using namespace heapwright;
using pages = os_pages<linux_os>;

constexpr std::size_t span_bytes = 16 * KiB;
constexpr std::size_t block_bytes = 64;
constexpr std::size_t header_lines = 16;  ///< headers lie in one of the first lines of a span
constexpr std::size_t lookups = std::size_t{1} << 18;
constexpr std::size_t registrations = 1000;
constexpr unsigned classes = 64;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "lookup_bench: %s\n", what);
  std::exit(1);
}

class by_page_map {
 public:
  by_page_map(std::byte* memory, std::size_t spans) : records_(spans) {
    must(leaves_.reserve(map_.leaves_for(memory, spans * span_bytes), figures_), "no memory for the map");
    map_.cover(memory, spans * span_bytes, leaves_);
  }

  void add(std::byte* at, std::size_t index, page_tag tag) {
    records_[index].start = at;
    records_[index].pages = span_bytes / heap_page;
    map_.set_all(&records_[index], tag);
  }
  void remove(std::byte*, std::size_t index) { map_.set_all_tags(&records_[index], 0); }
  page_tag tag(const void* p) const { return map_.tag(p); }

 private:
  static inline constinit page_map<linux_os> map_;
  page_map<linux_os>::leaf_stock leaves_;
  heap_figures figures_;
  std::vector<span> records_;
};

template <bool Coloured>
class by_mask {
 public:
  by_mask(std::byte*, std::size_t) {}

  void add(std::byte* at, std::size_t, page_tag tag) { *header(at) = tag; }
  void remove(std::byte* at, std::size_t) { *header(at) = 0; }
  page_tag tag(const void* p) const { return *header(p); }

 private:
  static page_tag* header(const void* p) {
    std::uintptr_t at = align_down(address_of(p), span_bytes);
    if constexpr (Coloured) at += fibonacci_hash(at) >> 60 << 6;
    return reinterpret_cast<page_tag*>(at);
  }
};
static_assert(header_lines == 1 << 4 && cache_line == 1 << 6);

class by_search {
 public:
  by_search(std::byte*, std::size_t) {}

  void add(std::byte* at, std::size_t, page_tag tag) {
    const auto i = std::lower_bound(begins_.begin(), begins_.end(), address_of(at)) - begins_.begin();
    begins_.insert(begins_.begin() + i, address_of(at));
    spans_.insert(spans_.begin() + i, {span_bytes / heap_page, tag});
  }

  void remove(std::byte* at, std::size_t) {
    const auto i = std::lower_bound(begins_.begin(), begins_.end(), address_of(at)) - begins_.begin();
    begins_.erase(begins_.begin() + i);
    spans_.erase(spans_.begin() + i);
  }

  /// Without branches that depend on the address: each step is a load and a conditional move.
  page_tag tag(const void* p) const {
    const std::uintptr_t* base = begins_.data();
    for (std::size_t n = begins_.size(); n > 1;) {
      const std::size_t half = n / 2;
      base = base[half] <= address_of(p) ? base + half : base;
      n -= half;
    }
    const extent& s = spans_[static_cast<std::size_t>(base - begins_.data())];
    return address_of(p) - *base < s.pages * heap_page ? s.tag : 0;
  }

 private:
  struct extent {
    std::uint32_t pages;
    page_tag tag;
  };
  std::vector<std::uintptr_t> begins_;
  std::vector<extent> spans_;
};

page_tag tag_of_span(std::size_t index) {
  return tag_of(page_tag{1} << owner_shift, static_cast<unsigned>(1 + index % (classes - 1)));
}

// Two functions that are not inlined: cachegrind tells what each of them costs.

template <class Map>
[[gnu::noinline]] std::uint64_t look_up_all(const Map& map, const std::vector<std::byte*>& blocks) {
  std::uint64_t sum = 0;
  for (const std::byte* p : blocks) sum += map.tag(p);
  return sum;
}

template <class Map>
[[gnu::noinline]] std::uint64_t free_all(const Map& map, const std::vector<std::byte*>& blocks) {
  static block* lists[classes];
  for (std::byte* p : blocks) {
    block*& list = lists[class_of(map.tag(p))];
    list = new (p) block{list};
  }
  return static_cast<std::uint64_t>(std::count_if(lists, lists + classes, [](const block* b) { return b != nullptr; }));
}

template <class Map>
[[gnu::noinline]] void register_some(Map& map, std::byte* memory, const std::vector<std::size_t>& which) {
  for (const std::size_t i : which) {
    map.remove(memory + i * span_bytes, i);
    map.add(memory + i * span_bytes, i, tag_of_span(i));
  }
}

std::vector<std::byte*> chosen_blocks(std::byte* memory, std::size_t spans, bool is_random) {
  constexpr std::size_t first = header_lines * cache_line / block_bytes;
  constexpr std::size_t per_span = span_bytes / block_bytes - first;
  std::mt19937_64 random(1);
  std::vector<std::byte*> blocks(lookups);
  for (std::size_t i = 0; i < lookups; ++i) {
    const std::size_t n = is_random ? random() % (spans * per_span) : i % (spans * per_span);
    blocks[i] = memory + n / per_span * span_bytes + (first + n % per_span) * block_bytes;
  }
  return blocks;
}

template <class F>
double median_ns(unsigned passes, std::size_t each, F pass) {
  std::vector<double> times;
  for (unsigned i = 0; i < passes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / static_cast<double>(each));
  }
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

template <class Map>
double run(std::string_view work, std::size_t spans, bool is_random, unsigned passes) {
  auto* const memory = static_cast<std::byte*>(pages{}.allocate({spans * span_bytes, span_bytes}));
  must(memory != nullptr, "no memory");
  linux_os::advise_sparse(memory, spans * span_bytes);
  Map map(memory, spans);
  for (std::size_t i = 0; i < spans; ++i) map.add(memory + i * span_bytes, i, tag_of_span(i));

  if (work == "register") {
    std::mt19937_64 random(1);
    std::vector<std::size_t> which(registrations);
    for (auto& i : which) i = random() % spans;
    register_some(map, memory, which);
    return median_ns(passes, registrations, [&] { register_some(map, memory, which); });
  }

  const std::vector<std::byte*> blocks = chosen_blocks(memory, spans, is_random);
  std::uint64_t expected = 0;
  for (const std::byte* p : blocks) expected += tag_of_span(static_cast<std::size_t>(p - memory) / span_bytes);
  must(look_up_all(map, blocks) == expected, "a block is in another span than the map says");
  if (work == "lookup")
    return median_ns(passes, lookups, [&] { must(look_up_all(map, blocks) == expected, "changed"); });
  (void)free_all(map, blocks);  // touches the pages
  return median_ns(passes, lookups, [&] { must(free_all(map, blocks) > 0, "nothing was freed"); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto is_one_of = [](std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const std::size_t spans = argc == 6 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const auto passes = static_cast<unsigned>(argc == 6 ? std::strtoul(argv[5], nullptr, 10) : 0);
  if (spans == 0 || passes == 0 || !is_one_of(arguments[0], {"lookup", "free", "register"}) ||
      !is_one_of(arguments[1], {"page-map", "mask", "coloured", "search"}) ||
      !is_one_of(arguments[3], {"random", "local"})) {
    std::fprintf(stderr,
                 "usage: lookup_bench lookup|free|register page-map|mask|coloured|search SPANS random|local PASSES\n");
    return 2;
  }
  const std::string_view work = arguments[0], map = arguments[1];
  const bool is_random = arguments[3] == "random";
  const double ns = map == "page-map"   ? run<by_page_map>(work, spans, is_random, passes)
                    : map == "mask"     ? run<by_mask<false>>(work, spans, is_random, passes)
                    : map == "coloured" ? run<by_mask<true>>(work, spans, is_random, passes)
                                        : run<by_search>(work, spans, is_random, passes);
  std::printf("{\"ns\": %.3f}\n", ns);
}
