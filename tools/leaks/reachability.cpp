#include "reachability.hpp"

#include <algorithm>
#include <numeric>

namespace heapwright::tool {
namespace {

using block_number = std::uint32_t;
constexpr block_number no_block = ~block_number{0};

/// Finds the block that an address is in, the innermost one.
class block_index {
 public:
  explicit block_index(std::span<const heap_block> blocks) : blocks_(blocks), around_(blocks.size(), no_block) {
    std::vector<block_number> open;
    for (block_number i = 0; i < blocks.size(); ++i) {
      while (!open.empty() && blocks[open.back()].end() <= blocks[i].address) open.pop_back();
      if (!open.empty()) around_[i] = open.back();
      open.push_back(i);
      end_ = std::max(end_, blocks[i].end());
    }
  }

  [[nodiscard]] block_number find(std::uint64_t word) const {
    constexpr std::uint64_t untagged = (std::uint64_t{1} << 48) - 1;
    const std::uint64_t address = word & untagged;
    if (blocks_.empty() || address < blocks_.front().address || address >= end_) return no_block;
    const auto after = std::ranges::upper_bound(blocks_, address, {}, &heap_block::address);
    auto i = static_cast<block_number>(after - blocks_.begin() - 1);
    while (i != no_block && address >= blocks_[i].end()) i = around_[i];
    if (i == no_block) return no_block;
    return address < blocks_[i].end() - blocks_[i].unreferenced_tail || address == blocks_[i].address ? i : no_block;
  }

 private:
  std::span<const heap_block> blocks_;
  std::vector<block_number> around_;  ///< the block that each lies within
  std::uint64_t end_ = 0;
};

class marking {
 public:
  marking(std::span<const heap_block> blocks, word_source& memory)
      : blocks_(blocks), memory_(memory), index_(blocks), is_reachable_(blocks.size(), false) {}

  void mark_from(const root_set& roots) {
    for (const std::uint64_t word : roots.words) mark(index_.find(word));
    for (const address_range& range : roots.ranges)
      memory_.for_each_words(range, [&](std::span<const std::uint64_t> words) {
        for (const std::uint64_t word : words) mark(index_.find(word));
      });
    while (!marked_.empty()) {
      const block_number from = marked_.back();
      marked_.pop_back();
      for_each_reference(from, [&](block_number to) { mark(to); });
    }
  }

  [[nodiscard]] bool is_reachable(block_number i) const { return is_reachable_[i]; }

  /// Blocks within this one are not looked at: they are reached by themselves.
  template <class Each>
  void for_each_reference(block_number from, const Each& each) {
    std::uint64_t at = blocks_[from].address;
    const auto look_up_to = [&](std::uint64_t end) {
      if (end <= at) return;
      memory_.for_each_words({at, end}, [&](std::span<const std::uint64_t> words) {
        for (const std::uint64_t word : words)
          if (const block_number to = index_.find(word); to != no_block && to != from) each(to);
      });
    };
    for (block_number inner = from + 1; inner < blocks_.size() && blocks_[inner].address < blocks_[from].end();
         ++inner) {
      look_up_to(blocks_[inner].address);
      at = std::max(at, blocks_[inner].end());
    }
    look_up_to(blocks_[from].end());
  }

 private:
  void mark(block_number i) {
    if (i == no_block || is_reachable_[i]) return;
    is_reachable_[i] = true;
    marked_.push_back(i);
  }

  std::span<const heap_block> blocks_;
  word_source& memory_;
  block_index index_;
  std::vector<bool> is_reachable_;
  std::vector<block_number> marked_;
};

/// The lost blocks and which of them refer to which: `to[first[n]]` up to `to[first[n + 1]]` are
/// those that lost block number n refers to.
struct lost_graph {
  std::vector<block_number> blocks;
  std::vector<std::size_t> first{0};
  std::vector<block_number> to;  ///< by number among the lost ones
};

lost_graph graph_of_lost(std::size_t count, marking& marks) {
  lost_graph graph;
  std::vector<block_number> number(count, no_block);
  for (block_number i = 0; i < count; ++i) {
    if (marks.is_reachable(i)) continue;
    number[i] = static_cast<block_number>(graph.blocks.size());
    graph.blocks.push_back(i);
  }
  for (const block_number i : graph.blocks) {
    marks.for_each_reference(i, [&](block_number to) {
      if (number[to] != no_block) graph.to.push_back(number[to]);
    });
    graph.first.push_back(graph.to.size());
  }
  return graph;
}

std::vector<block_number> oldest_first(const lost_graph& graph, std::span<const heap_block> blocks) {
  std::vector<block_number> numbers(graph.blocks.size());
  std::iota(numbers.begin(), numbers.end(), block_number{0});
  std::ranges::stable_sort(numbers, {}, [&](block_number n) { return blocks[graph.blocks[n]].allocated_ns; });
  return numbers;
}

/// Visits all that can be reached from `start` and has not been visited; calls `done` with each
/// when all that it leads to has been visited.
template <class Done>
void visit(const lost_graph& graph, block_number start, std::vector<bool>& is_visited, const Done& done) {
  struct step {
    block_number at;
    std::size_t next;
  };
  std::vector<step> path{{start, graph.first[start]}};
  is_visited[start] = true;
  while (!path.empty()) {
    step& here = path.back();
    if (here.next == graph.first[here.at + 1]) {
      done(here.at);
      path.pop_back();
      continue;
    }
    const block_number to = graph.to[here.next++];
    if (is_visited[to]) continue;
    is_visited[to] = true;
    path.push_back({to, graph.first[to]});
  }
}

}  // namespace

judgement judge(std::span<const heap_block> blocks, const root_set& roots, word_source& memory) {
  marking marks(blocks, memory);
  marks.mark_from(roots);
  judgement result;
  result.of.assign(blocks.size(), verdict::reachable);
  for (block_number i = 0; i < blocks.size(); ++i) result.leader.push_back(i);

  // Depth first: the block that is finished last leads to all that leads to it. So does each that
  // is then left.
  const lost_graph graph = graph_of_lost(blocks.size(), marks);
  std::vector<block_number> finished;
  std::vector<bool> is_visited(graph.blocks.size(), false);
  for (const block_number n : oldest_first(graph, blocks))
    if (!is_visited[n]) visit(graph, n, is_visited, [&](block_number done) { finished.push_back(done); });
  is_visited.assign(graph.blocks.size(), false);
  for (auto last = finished.rbegin(); last != finished.rend(); ++last) {
    if (is_visited[*last]) continue;
    const block_number leader = graph.blocks[*last];
    visit(graph, *last, is_visited, [&](block_number n) {
      result.of[graph.blocks[n]] = verdict::indirectly_lost;
      result.leader[graph.blocks[n]] = leader;
    });
    result.of[leader] = verdict::lost;
  }
  return result;
}

}  // namespace heapwright::tool
