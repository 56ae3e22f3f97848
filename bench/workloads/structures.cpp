// Data structures: strings, trees, graphs, documents, vectors; and long lives among short ones.
#include "workload.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace workloads {
namespace {

std::uint64_t strings(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 12; ++round) {
    std::unordered_map<std::string, std::vector<std::string>> index;
    random_engine random(3);
    for (int i = 0; i < 60'000; ++i) {
      const std::string word = "key-" + std::to_string(random() % 9000) + std::string(random() % 20, 'x');
      index[word].push_back("a value that does not fit into the object itself " + std::to_string(i));
    }
    for (auto& [key, values] : index) sum += key.size() * values.size();
  }
  return sum;
}

struct tree {
  std::unique_ptr<tree> left, right;
  std::uint64_t value = 1;
};

std::unique_ptr<tree> grow(int depth) {
  auto t = std::make_unique<tree>();
  if (depth > 0) t->left = grow(depth - 1), t->right = grow(depth - 1);
  return t;
}

std::uint64_t count(const tree* t) {
  return t == nullptr ? 0 : t->value + count(t->left.get()) + count(t->right.get());
}

std::uint64_t trees(std::uint64_t scale) {
  std::uint64_t sum = 0;
  const auto lasting = grow(18);
  for (std::uint64_t i = 0; i < scale * 300; ++i) sum += count(grow(14).get());
  return sum + count(lasting.get());
}

std::uint64_t vectors(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 120; ++round) {
    std::vector<std::vector<std::uint32_t>> all(50);
    for (std::uint32_t i = 0; i < 600'000; ++i) all[i % all.size()].push_back(i);
    for (auto& v : all) sum += v.back();
  }
  return sum;
}

/// A long-lived block among every few short-lived ones.
std::uint64_t longlived(std::uint64_t scale) {
  random_engine random(7);
  std::vector<unsigned char*> lasting, passing;
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 150; ++round) {
    for (int i = 0; i < 40'000; ++i) {
      (i % 40 == 0 ? lasting : passing).push_back(filled(16 + random() % 400));
    }
    for (auto* p : passing) {
      sum += p[0];
      std::free(p);
    }
    passing.clear();
  }
  for (auto* p : lasting) std::free(p);
  return sum;
}

/// Objects that refer to each other, in the manner of a garbage-collected heap: edges come and go,
/// then all nodes do, in random order.
std::uint64_t graph(std::uint64_t scale) {
  struct node {
    std::uint64_t value;
    std::vector<node*> edges;
    std::string name;
  };
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 5; ++round) {
    random_engine random(static_cast<unsigned>(round + 10));
    std::vector<std::unique_ptr<node>> nodes;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      nodes.push_back(std::make_unique<node>(node{i, {}, std::string(random() % 40, 'n')}));
      for (int e = 0; e < 3; ++e) nodes[random() % nodes.size()]->edges.push_back(nodes.back().get());
    }
    for (const auto& n : nodes) {
      for (const node* to : n->edges) sum += to->value & 1;
      if (random() % 4 == 0) n->edges = {};
    }
    std::shuffle(nodes.begin(), nodes.end(), random);
  }
  return sum;
}

/// Documents as a server handles them: parsed, changed, printed.
std::uint64_t json(std::uint64_t scale) {
  std::uint64_t sum = 0;
  random_engine random(11);
  auto orders = nlohmann::json::array();
  for (int i = 0; i < 3000; ++i) {
    auto lines = nlohmann::json::array();
    for (unsigned l = 0; l < 1 + random() % 5; ++l)
      lines.push_back({{"article", "article number " + std::to_string(random() % 500)}, {"count", random() % 9}});
    orders.push_back({{"id", i}, {"customer", std::string(8 + random() % 30, 'c')}, {"lines", std::move(lines)}});
  }
  std::string text = orders.dump();
  for (std::uint64_t round = 0; round < scale * 25; ++round) {
    auto document = nlohmann::json::parse(text);
    for (auto& order : document) order["total"] = order["lines"].size() * round;
    text = document.dump(static_cast<int>(round % 2) * 2);
    sum += text.size();
  }
  return sum;
}

/// Waves of requests whose sizes drift, each leaving a few blocks behind: what fragments a heap.
std::uint64_t bursts(std::uint64_t scale) {
  random_engine random(12);
  std::vector<unsigned char*> passing;
  std::deque<unsigned char*> lasting;
  std::uint64_t sum = 0;
  for (std::uint64_t wave = 0; wave < scale * 120; ++wave) {
    const std::size_t typical = 16 + wave % 12 * 90;
    for (int i = 0; i < 25'000; ++i) passing.push_back(filled(typical / 2 + random() % typical));
    std::shuffle(passing.begin(), passing.end(), random);
    for (std::size_t i = 0; i < passing.size(); ++i) {
      sum += passing[i][0];
      if (i % 25 == 0) {
        lasting.push_back(passing[i]);
      } else {
        std::free(passing[i]);
      }
    }
    passing.clear();
    for (; lasting.size() > 40'000; lasting.pop_front()) std::free(lasting.front());
  }
  for (auto* p : lasting) std::free(p);
  return sum;
}

/// A peak of 200 MB, then two seconds in which little happens. What is in use then stays in use, so
/// the resident set at the end of the process is the settled one: did the memory come back?
std::uint64_t idle(std::uint64_t scale) {
  random_engine random(13);
  std::uint64_t sum = 0;
  std::vector<unsigned char*> held;
  for (std::uint64_t bytes = 0; bytes < scale * 200'000'000;) {
    const std::size_t size = typical_size(random);
    held.push_back(filled(size));
    bytes += size;
  }
  std::shuffle(held.begin(), held.end(), random);
  for (; held.size() > 1000; held.pop_back()) {
    sum += held.back()[0];
    std::free(held.back());
  }
  held.shrink_to_fit();
  for (int tick = 0; tick < 200; ++tick) {
    for (int i = 0; i < 100; ++i) {
      auto& p = held[random() % held.size()];
      std::free(p);
      p = filled(typical_size(random));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return sum;
}

constexpr workload all[] = {
    {"strings", strings, "a hash map of strings, built and dropped"},
    {"trees", trees, "binary trees beside a lasting one"},
    {"graph", graph, "100,000 nodes and their edges, dropped in random order"},
    {"json", json, "a document of 500 KB parsed, changed and printed"},
    {"vectors", vectors, "50 vectors growing side by side"},
    {"longlived", longlived, "a lasting block among every 40"},
    {"bursts", bursts, "waves of changing sizes that leave blocks behind"},
    {"idle", idle, "a peak of 200 MB, then two quiet seconds"},
};

}  // namespace

std::span<const workload> of_structures() { return all; }

}  // namespace workloads
