// S0: standard containers. Rows of pop, erase and find are timed alone; those of push and insert
// with the container's construction and destruction. "both" is push or insert i, then pop or erase
// on odd i.
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "memories.hpp"
#include "rows.hpp"
#include "timing.hpp"

namespace bench {
namespace {

using std::int64_t;

const std::string large_text(16385, 'x');

template <class M, class T>
using text_of = std::basic_string<char, std::char_traits<char>, typename M::template of<char>>;

template <class C>
struct sequence {
  static void fill(C& c, int64_t n, auto element) {
    for (int64_t i = 0; i < n; ++i) c.push_back(element(i));
  }
  static double push(auto make, int64_t n, auto element) {
    return seconds([&] {
      C c(make());
      fill(c, n, element);
      benchmark::DoNotOptimize(c);
    });
  }
  static double pop(auto make, int64_t n, auto element) {
    C c(make());
    fill(c, n, element);
    return seconds([&] {
      while (!c.empty()) c.pop_front();
      benchmark::ClobberMemory();
    });
  }
  static double both(auto make, int64_t n, auto element) {
    return seconds([&] {
      C c(make());
      for (int64_t i = 0; i < n; ++i) {
        c.push_back(element(i));
        if (i % 2 == 1) c.pop_front();
      }
      benchmark::DoNotOptimize(c);
    });
  }
};

template <class C>
struct table {
  static void fill(C& c, int64_t n) {
    for (int64_t i = 0; i < n; ++i) c.insert({i, i});
  }
  static double insert(auto make, int64_t n) {
    return seconds([&] {
      C c(make());
      fill(c, n);
      benchmark::DoNotOptimize(c);
    });
  }
  static double erase(auto make, int64_t n) {
    C c(make());
    fill(c, n);
    return seconds([&] {
      for (int64_t i = 0; i < n; ++i) c.erase(i);
      benchmark::ClobberMemory();
    });
  }
  static double both(auto make, int64_t n) {
    return seconds([&] {
      C c(make());
      for (int64_t i = 0; i < n; ++i) {
        c.insert({i, i});
        if (i % 2 == 1) c.erase(i);
      }
      benchmark::DoNotOptimize(c);
    });
  }
  static double find(auto make, int64_t n) {
    C c(make());
    fill(c, n);
    return seconds([&] {
      for (int64_t i = 0; i < n; ++i) benchmark::DoNotOptimize(c.find(i));
    });
  }
};

/// Adds a row: `body(memory, n)` is one iteration. `elements` are made in all.
template <class M>
void row(const char* name, const char* memory, auto body, int64_t elements = 1 << 17) {
  for (int64_t n = 1024; n <= 32768; n *= 2) {
    add("S0", name, memory, n, elements / n, [body] {
      return [body, m = std::make_shared<M>()](int64_t size) {
        if constexpr (requires { m->restart(); }) m->restart();
        return body(*m, size);
      };
    });
  }
}

template <class M>
void rows_of_nodes(const char* memory) {
  constexpr auto number = [](int64_t i) { return i; };
  using list = std::list<int64_t, typename M::template of<int64_t>>;
  using pair = std::pair<const int64_t, int64_t>;
  using map = std::map<int64_t, int64_t, std::less<>, typename M::template of<pair>>;
  using hash = std::unordered_map<int64_t, int64_t, std::hash<int64_t>, std::equal_to<>, typename M::template of<pair>>;
  constexpr auto of_numbers = [](M& m) { return [&m] { return m.template get<int64_t>(); }; };
  constexpr auto of_pairs = [](M& m) { return [&m] { return m.template get<pair>(); }; };
  row<M>("list push_back", memory, [=](M& m, int64_t n) { return sequence<list>::push(of_numbers(m), n, number); });
  row<M>("list pop_front", memory, [=](M& m, int64_t n) { return sequence<list>::pop(of_numbers(m), n, number); });
  row<M>("list both", memory, [=](M& m, int64_t n) { return sequence<list>::both(of_numbers(m), n, number); });
  row<M>("map insert", memory, [=](M& m, int64_t n) { return table<map>::insert(of_pairs(m), n); });
  row<M>("map erase", memory, [=](M& m, int64_t n) { return table<map>::erase(of_pairs(m), n); });
  row<M>("map both", memory, [=](M& m, int64_t n) { return table<map>::both(of_pairs(m), n); });
  row<M>("map find", memory, [=](M& m, int64_t n) { return table<map>::find(of_pairs(m), n); });
  row<M>("unordered_map insert", memory, [=](M& m, int64_t n) { return table<hash>::insert(of_pairs(m), n); });
  row<M>("unordered_map erase", memory, [=](M& m, int64_t n) { return table<hash>::erase(of_pairs(m), n); });
  row<M>("unordered_map both", memory, [=](M& m, int64_t n) { return table<hash>::both(of_pairs(m), n); });
  row<M>("unordered_map find", memory, [=](M& m, int64_t n) { return table<hash>::find(of_pairs(m), n); });
}

template <class M>
void all_rows(const char* memory) {
  constexpr auto number = [](int64_t i) { return i; };
  using vector = std::vector<int64_t, typename M::template of<int64_t>>;
  using deque = std::deque<int64_t, typename M::template of<int64_t>>;
  using text = text_of<M, char>;
  using texts = std::list<text, typename M::template of<text>>;
  constexpr auto of_numbers = [](M& m) { return [&m] { return m.template get<int64_t>(); }; };
  constexpr auto of_texts = [](M& m) { return [&m] { return m.template get<text>(); }; };
  constexpr int64_t few = 1 << 13;
  constexpr auto large = [](M& m) {
    return [&m](int64_t) { return text(large_text.data(), large_text.size(), m.template get<char>()); };
  };
  row<M>("vector push_back", memory, [=](M& m, int64_t n) { return sequence<vector>::push(of_numbers(m), n, number); });
  row<M>("deque push_back", memory, [=](M& m, int64_t n) { return sequence<deque>::push(of_numbers(m), n, number); });
  row<M>("deque pop_front", memory, [=](M& m, int64_t n) { return sequence<deque>::pop(of_numbers(m), n, number); });
  row<M>("deque both", memory, [=](M& m, int64_t n) { return sequence<deque>::both(of_numbers(m), n, number); });
  row<M>(
      "list of strings push_back", memory,
      [=](M& m, int64_t n) { return sequence<texts>::push(of_texts(m), n, large(m)); }, few);
  row<M>(
      "list of strings pop_front", memory,
      [=](M& m, int64_t n) { return sequence<texts>::pop(of_texts(m), n, large(m)); }, few);
  row<M>(
      "list of strings both", memory, [=](M& m, int64_t n) { return sequence<texts>::both(of_texts(m), n, large(m)); },
      few);
  rows_of_nodes<M>(memory);
}

}  // namespace

void add_containers() {
  all_rows<by_malloc>("malloc");
  all_rows<best_fit_deferred>("best_fit");
  all_rows<best_fit_merging>("best_fit merging");
  all_rows<kit_pools>("pools");
  all_rows<kit_arena<heapwright::take_back::latest>>("arena");
  all_rows<kit_arena<heapwright::take_back::nothing>>("arena, nothing back");
  all_rows<by_floor<bare_bump>>("floor, bump");
  all_rows<by_floor<bare_lists>>("floor, lists");
  all_rows<by_pmr<std::pmr::unsynchronized_pool_resource>>("pmr unsynchronized_pool");
  rows_of_nodes<by_pmr<std::pmr::synchronized_pool_resource>>("pmr synchronized_pool");
  all_rows<by_pmr_monotonic>("pmr monotonic");
  rows_of_nodes<by_boost_pmr>("boost pmr pool");
  rows_of_nodes<by_boost_pool>("boost pool");
}

}  // namespace bench
