// The call tree of a flame graph. A node is a place reached on one way from the root; its total is
// the sum over the stacks that go through it, so a parent's is never less than a child's: leaving
// out the smallest nodes leaves a tree.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "asked_stacks.hpp"
#include "utf8.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

struct node {
  std::uint32_t parent = 0;
  std::uint32_t place = 0;
  double total = 0, own = 0, grown = 0, variance = 0, unseen = 0;
  bool has_lines = false;  ///< calls from several lines are in it
};

class call_tree {
 public:
  call_tree(const places_book& book, frame_detail by) : book_(book), by_line_(by == frame_detail::line), nodes_(1) {}

  /// `places`: from the root on.
  template <class Places>
  void add(const Places& places, const measured& m) {
    std::uint32_t at = 0;
    count(at, m);
    for (const std::uint32_t place : places) {
      at = child(at, place);
      count(at, m);
    }
    nodes_[at].own += m.value;
  }

  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }

 private:
  void count(std::uint32_t at, const measured& m) {
    nodes_[at].total += m.value;
    nodes_[at].grown += m.grown;
    nodes_[at].variance += m.variance;
    nodes_[at].unseen = std::max(nodes_[at].unseen, m.unseen);
  }

  std::uint32_t child(std::uint32_t parent, std::uint32_t place) {
    const std::uint64_t key = std::uint64_t{parent} << 32 | (by_line_ ? place : function_of(place));
    const auto [entry, is_new] = children_.emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.push_back({.parent = parent, .place = place});
    } else if (nodes_[entry->second].place != place) {
      nodes_[entry->second].has_lines = true;
    }
    return entry->second;
  }

  /// The number of a function, one for all places in it.
  std::uint32_t function_of(std::uint32_t place) {
    if (const auto found = functions_.find(place); found != functions_.end()) return found->second;
    const tool::place p = book_[place];
    // Lambdas have one name, and nothing else that tells them apart.
    const std::string line = p.function == "operator()" ? fmt::format("\n{}:{}", p.file, p.line) : "";
    const std::string name = p.function + '\n' + p.module + (p.is_inlined ? "\n1" : "\n0") + line;
    return functions_[place] = names_.emplace(name, static_cast<std::uint32_t>(names_.size())).first->second;
  }

  const places_book& book_;
  bool by_line_;
  std::vector<node> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::unordered_map<std::uint32_t, std::uint32_t> functions_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

/// Numbers of the nodes to keep, parents before children.
std::vector<std::uint32_t> largest(const std::vector<node>& nodes, std::size_t most) {
  std::vector<std::uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  if (nodes.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return nodes[a].total > nodes[b].total; });
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<std::uint32_t> shown_places(std::vector<std::uint32_t> places, const stack_question& question,
                                        places_book& book) {
  if (question.hides_interpreter) places = book.without_interpreter(std::move(places));
  if (question.by == frame_detail::package) return book.by_package(places);
  return question.folds_libraries ? book.with_libraries_folded(places) : places;
}

json thread_rows(const std::map<std::string, double>& values) {
  json rows = json::array();
  for (const auto& [name, value] : values) rows.push_back({name, std::round(value)});
  return rows;
}

}  // namespace

std::string tree_view(watched_process& process, const stack_question& question) {
  call_tree tree(process.places(), question.by);
  std::map<std::string, double> threads;  // the value of each name
  std::uint64_t samples = 0;
  std::size_t cut = 0;
  std::set<segment::reference> calls;
  bool has_scripts = false;
  seen_stacks stacks = process.stacks();
  const auto seen = stacks.seen;
  for (const segment::stack_figures& s : stacks.figures)
    if (const double value = measure(s, question).value; value > 0)
      threads[as_utf8(seen->figures.name_of_threads(s))] += value;
  for (asked_stack& s : asked_stacks(std::move(stacks), process.places(), question)) {
    calls.insert(s.figures.first_with_calls);
    samples += question.value == stack_value::live ? s.figures.live_samples : s.figures.samples;
    cut += s.figures.is_cut ? 1 : 0;
    if (!(s.value.value > 0)) continue;
    has_scripts = has_scripts || process.places().has_script(s.places);
    std::vector<std::uint32_t> places = shown_places(std::move(s.places), question, process.places());
    if (!question.from_site) std::reverse(places.begin(), places.end());
    tree.add(places, s.value);
  }

  const std::vector<node>& nodes = tree.nodes();
  const auto kept = largest(nodes, std::max<std::size_t>(question.most, 1));
  std::vector<std::uint32_t> new_number(nodes.size(), UINT32_MAX);
  place_table places(process.places());
  json parent = json::array(), place = json::array(), total = json::array(), own = json::array(), grown = json::array(),
       error = json::array(), lines = json::array();
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    const node& n = nodes[kept[i]];
    new_number[kept[i]] = i;
    parent.push_back(i == 0 ? json(-1) : json(new_number[n.parent]));
    place.push_back(i == 0 ? json(-1) : json(places.number(n.place)));
    total.push_back(std::round(n.total));
    own.push_back(std::round(n.own));
    grown.push_back(std::round(n.grown));
    error.push_back(std::round(error_of(n.variance, n.unseen)));
    lines.push_back(n.has_lines ? 1 : 0);
  }
  double left_out = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i)
    if (new_number[i] == UINT32_MAX && new_number[nodes[i].parent] != UINT32_MAX) left_out += nodes[i].total;

  const json result = {{"at", seen->unix_seconds(seen->figures.at_ns)},
                       {"is_growth", question.is_of_growth()},
                       {"since", question.since ? json(seen->unix_seconds(question.since->at_ns)) : json(nullptr)},
                       {"stacks", calls.size()},
                       {"samples", samples},
                       {"cut_stacks", cut},
                       {"has_scripts", has_scripts},
                       {"thread_columns", {"name", "value"}},
                       {"threads", thread_rows(threads)},
                       {"left_out", {{"nodes", nodes.size() - kept.size()}, {"value", std::round(left_out)}}},
                       {"place_columns", {"function", "file", "line", "module", "is_inlined"}},
                       {"places", places.rows()},
                       {"parent", parent},
                       {"place", place},
                       {"total", total},
                       {"own", own},
                       {"grown", grown},
                       {"error", error},
                       {"has_lines", lines}};
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
