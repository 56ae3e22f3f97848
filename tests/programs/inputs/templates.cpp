// Heavy on templates, so on the compiler's memory: instantiations of the standard library over many types.
#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

template <int N>
struct tagged {
  int value = N;
  auto operator<=>(const tagged&) const = default;
};

template <int N>
std::size_t use() {
  std::map<std::string, std::vector<tagged<N>>> by_name;
  std::unordered_map<int, std::function<int(tagged<N>)>> functions;
  functions[N] = [](tagged<N> t) { return t.value * N; };
  for (int i = 0; i < N; ++i) by_name[std::to_string(i)].push_back({functions[N](tagged<N>{i})});
  auto even = by_name | std::views::values | std::views::filter([](const auto& v) { return v.size() % 2 == 0; }) |
              std::views::transform([](const auto& v) { return v.size(); });
  std::variant<int, std::string, tagged<N>, std::tuple<tagged<N>, tagged<N + 1>>> any = tagged<N>{};
  std::vector<tagged<N>> sorted(N + 1);
  std::ranges::stable_sort(sorted, std::greater<>{}, &tagged<N>::value);
  return std::visit([](const auto& v) { return sizeof v; }, any) +
         static_cast<std::size_t>(std::ranges::distance(even));
}

template <int... N>
std::size_t use_all(std::integer_sequence<int, N...>) {
  return (use<N>() + ...);
}

bool matches(const std::string& s) {
  static const std::regex pattern("([a-z]+)=([0-9]+|\"[^\"]*\")(,\\1)*");
  return std::regex_match(s, pattern) && use_all(std::make_integer_sequence<int, @WIDTH @>{}) > 0;
}
