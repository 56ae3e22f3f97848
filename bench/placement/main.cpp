// What two levers could gain, before anybody builds them: a model of spans, fed with a trace.
//
//   lifetimes   blocks that are to live about as long share spans. By call stack: each stack is
//               taught the lifetimes of its own blocks in this very trace. By the block itself:
//               more than any heap can know, and so the limit.
//   holes       pages of spans in use that no block lies in are given back
//   compaction  that, and of the other pages two that have their blocks at different places become
//               one: both are mapped to it
//
// The model has the size classes and span lengths of the default recipe, puts a block at the first
// free place of the first span that has one, and gives a span back as soon as it is free. It has no
// caches of threads. Lifetimes are counted in bytes that were allocated meanwhile.
//
// Prints one line of JSON; bytes are the most, the mean and the last of some hundred looks.
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <heapwright/heap/class_table.hpp>
#include <heapwright/heap/recipe.hpp>

#include "mapped_plan.hpp"
#include "plan_builder.hpp"
#include "scratch_file.hpp"

namespace {

using heapwright::heap_page;
using heapwright::tool::mapped_plan;
using namespace heapwright::replay;
using classes = heapwright::class_table<heapwright::default_recipe>;

constexpr std::array<std::uint64_t, 4> lifetimes{64 << 10, 1 << 20, 16 << 20, UINT64_MAX};
constexpr unsigned looks = 300;
constexpr std::uint64_t partners = 64;  ///< that a page is compared with, at most

using group = std::uint8_t;

group group_of(std::uint64_t lived) {
  group g = 0;
  while (lived > lifetimes[g]) ++g;
  return g;
}

struct span_model {
  unsigned size_class;
  std::uint64_t bytes;
  std::uint32_t used = 0;
  std::vector<bool> taken;
};

struct figures {
  std::uint64_t most = 0, sum = 0, looks = 0, last = 0;

  void add(std::uint64_t bytes) {
    most = std::max(most, bytes);
    sum += bytes;
    ++looks;
    last = bytes;
  }
  [[nodiscard]] std::uint64_t mean() const { return looks == 0 ? 0 : sum / looks; }
};

class span_heap {
 public:
  struct place {
    std::uint32_t span = UINT32_MAX, index = 0;  ///< span UINT32_MAX: a long block
  };

  place allocate(std::uint64_t size, group g) {
    if (size > classes::largest_cut) {
      bytes_ += long_bytes(size);
      return {};
    }
    const unsigned c = classes::index(size);
    auto& open = open_[{c, g}];
    if (open.empty()) open.insert(new_span(c));
    const std::uint32_t number = *open.begin();
    span_model& s = spans_[number];
    const auto index = static_cast<std::uint32_t>(std::ranges::find(s.taken, false) - s.taken.begin());
    s.taken[index] = true;
    if (++s.used == s.taken.size()) open.erase(open.begin());
    in_use_[c] += classes::of(c).size;
    return {number, index};
  }

  void deallocate(place at, std::uint64_t size, group g) {
    if (at.span == UINT32_MAX) {
      bytes_ -= long_bytes(size);
      return;
    }
    span_model& s = spans_[at.span];
    auto& open = open_[{s.size_class, g}];
    in_use_[s.size_class] -= classes::of(s.size_class).size;
    s.taken[at.index] = false;
    if (--s.used != 0) {
      open.insert(at.span);
      return;
    }
    open.erase(at.span);
    bytes_ -= s.bytes;
    free_.push(at.span);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// What could be given back now.
  struct spare {
    std::uint64_t holes = 0, compacted = 0;
  };
  [[nodiscard]] spare spare_bytes() const {
    std::vector<page> pages;
    for (const auto& [key, open] : open_)
      for (const std::uint32_t number : open) add_pages(spans_[number], pages);
    const std::uint64_t holes = heap_page * static_cast<std::uint64_t>(std::ranges::count(pages, 0U, &page::used));
    std::erase_if(pages, [](const page& p) { return p.used == 0; });
    return {holes, holes + heap_page * pairs_of(pages)};
  }

 private:
  static std::uint64_t long_bytes(std::uint64_t size) { return (size + heap_page - 1) / heap_page * heap_page; }

  /// In units of 16 bytes.
  struct page {
    std::bitset<heap_page / 16> taken;
    unsigned used = 0;
  };

  static void add_pages(const span_model& s, std::vector<page>& into) {
    const std::size_t units = classes::of(s.size_class).size / 16, in_page = heap_page / 16;
    std::vector<page> all(s.bytes / heap_page);
    for (std::size_t i = 0; i < s.taken.size(); ++i)
      for (std::size_t unit = i * units; s.taken[i] && unit < (i + 1) * units; ++unit)
        all[unit / in_page].taken.set(unit % in_page);
    for (page& one : all) {
      one.used = static_cast<unsigned>(one.taken.count());
      into.push_back(one);
    }
  }

  /// The sparsest first: each takes the fullest partner that it finds.
  static std::uint64_t pairs_of(std::vector<page>& all) {
    std::ranges::sort(all, {}, &page::used);
    std::uint64_t pairs = 0;
    std::vector<bool> gone(all.size());
    std::size_t fullest = all.size();
    for (std::size_t i = 0; i < fullest; ++i) {
      if (gone[i]) continue;
      while (fullest > i + 1 && all[fullest - 1].used + all[i].used > heap_page / 16) --fullest;
      std::uint64_t tried = 0;
      for (std::size_t j = fullest; --j > i && tried < partners;) {
        if (gone[j]) continue;
        ++tried;
        if ((all[i].taken & all[j].taken).any()) continue;
        gone[i] = gone[j] = true;
        ++pairs;
        break;
      }
    }
    return pairs;
  }

  std::uint32_t new_span(unsigned c) {
    const std::uint64_t bytes = classes::span_pages(c, in_use_[c]) * heap_page;
    span_model made{c, bytes, 0, std::vector<bool>(bytes / classes::of(c).size)};
    bytes_ += bytes;
    if (free_.empty()) {
      spans_.push_back(std::move(made));
      return static_cast<std::uint32_t>(spans_.size() - 1);
    }
    const std::uint32_t number = free_.top();
    free_.pop();
    spans_[number] = std::move(made);
    return number;
  }

  std::vector<span_model> spans_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::map<std::pair<unsigned, group>, std::set<std::uint32_t>> open_;  ///< with a free place
  std::map<unsigned, std::uint64_t> in_use_;
  std::uint64_t bytes_ = 0;
};

/// What each allocation of the trace is, in the order of the plan.
struct known_block {
  std::uint16_t site;
  group lives;
};

template <class Begin, class End>
void walk(const mapped_plan& plan, Begin begin, End end) {
  for (const turn& t : plan.turns()) {
    for (const operation& o : plan.operations_of(t)) {
      if (o.kind == operation_kind::allocate || o.kind == operation_kind::reallocate) begin(o);
      if (o.kind == operation_kind::deallocate || o.kind == operation_kind::take) end(o);
    }
  }
}

std::vector<known_block> blocks_of(const mapped_plan& plan) {
  std::vector<known_block> all;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> begun(plan.footer().slots);  // clock, number
  std::uint64_t clock = 0;
  walk(
      plan,
      [&](const operation& o) {
        begun[o.slot] = {clock, all.size()};
        all.push_back({static_cast<std::uint16_t>(o.site), static_cast<group>(lifetimes.size() - 1)});
        clock += o.size;
      },
      [&](const operation& o) { all[begun[o.slot].second].lives = group_of(clock - begun[o.slot].first); });
  return all;
}

/// Nine of ten blocks of the site live no longer.
std::map<std::uint16_t, group> taught(const std::vector<known_block>& all) {
  std::map<std::uint16_t, std::array<std::uint64_t, lifetimes.size()>> counts;
  for (const known_block& b : all) ++counts[b.site][b.lives];
  std::map<std::uint16_t, group> result;
  for (const auto& [site, lived] : counts) {
    std::uint64_t sum = 0, so_far = 0;
    for (const std::uint64_t n : lived) sum += n;
    group g = 0;
    for (; g + 1U < lived.size(); ++g)
      if (10 * (so_far += lived[g]) >= 9 * sum) break;
    result[site] = g;
  }
  return result;
}

enum class knowledge { none, of_stack, of_block };

struct placed {
  figures live, spans, holes, compacted;
};

placed place_all(const mapped_plan& plan, const std::vector<known_block>& all, knowledge known) {
  const auto by_site = known == knowledge::of_stack ? taught(all) : std::map<std::uint16_t, group>{};
  struct live_block {
    std::uint64_t size;
    group g;
    span_heap::place at;
  };
  std::vector<live_block> blocks(plan.footer().slots);
  span_heap heap;
  placed result;
  std::uint64_t live = 0, number = 0;
  const std::uint64_t every = std::max<std::uint64_t>(plan.footer().operations / looks, 1);
  std::uint64_t operations = 0;
  const auto look = [&] {
    if (++operations % every != 0) return;
    result.live.add(live);
    result.spans.add(heap.bytes());
    if (known != knowledge::none) return;
    const auto spare = heap.spare_bytes();
    result.holes.add(heap.bytes() - spare.holes);
    result.compacted.add(heap.bytes() - spare.compacted);
  };
  walk(
      plan,
      [&](const operation& o) {
        const known_block& b = all[number];
        const group g = known == knowledge::none       ? group{0}
                        : known == knowledge::of_block ? b.lives
                                                       : by_site.at(b.site);
        blocks[o.slot] = {o.size, g, heap.allocate(std::max<std::uint64_t>(o.size, 1), g)};
        live += o.size;
        ++number;
        look();
      },
      [&](const operation& o) {
        const live_block& b = blocks[o.slot];
        heap.deallocate(b.at, std::max<std::uint64_t>(b.size, 1), b.g);
        live -= b.size;
        look();
      });
  return result;
}

std::string of(const char* name, const figures& f) {
  return fmt::format(R"("{}": {{"most": {}, "mean": {}, "last": {}}})", name, f.most, f.mean(), f.last);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: placement_bench TRACE\n", stderr);
    return 2;
  }
  try {
    const auto quiet = [](double) {};
    heapwright::tool::plan_builder builder(argv[1], std::nullopt, quiet);
    // Each call stack is a site of its own, as far as the numbers of sites go.
    std::vector<heapwright::tool::stack_site> stacks(1 << 20);
    for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i].site = static_cast<std::uint16_t>(1 + i % 0xFFFF);
    const heapwright::tool::scratch_file file;
    builder.build(file.fd(), quiet, false, stacks);
    const mapped_plan plan(file.fd());
    const auto all = blocks_of(plan);
    const placed as_is = place_all(plan, all, knowledge::none);
    const placed by_stack = place_all(plan, all, knowledge::of_stack);
    const placed by_block = place_all(plan, all, knowledge::of_block);
    fmt::print("{{{}, {}, {}, {}, {}, {}}}\n", of("live", as_is.live), of("spans", as_is.spans),
               of("lifetimes_of_stacks", by_stack.spans), of("lifetimes_of_blocks", by_block.spans),
               of("holes", as_is.holes), of("compacted", as_is.compacted));
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "placement_bench: %s\n", trouble.what());
    return 1;
  }
  return 0;
}
