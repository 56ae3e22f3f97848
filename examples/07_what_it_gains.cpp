// What a list gains: ten thousand numbers in and out again, from malloc, from a pool of nodes, and
// in an arena that is emptied at once. A round of each in turn, and the medians of all rounds.
#include <heapwright/kit.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <list>

namespace {

constexpr int elements = 10'000;

double nanoseconds_per_element(auto work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / elements;
}

template <class List>
void fill_and_drain(List numbers) {
  for (int i = 0; i < elements; ++i) numbers.push_back(i);
  while (!numbers.empty()) numbers.pop_front();
}

template <class A>
using list_in = std::list<int, heapwright::std_allocator<int, A>>;

}  // namespace

int main() {
  using namespace heapwright;
  pool<> nodes(layout{24, 8});
  arena<> all;
  std::array<std::array<double, 51>, 3> times;
  for (std::size_t round = 0; round < times[0].size(); ++round) {
    times[0][round] = nanoseconds_per_element([] { fill_and_drain(std::list<int>()); });
    times[1][round] = nanoseconds_per_element([&] { fill_and_drain(list_in<pool<>>(nodes)); });
    times[2][round] = nanoseconds_per_element([&] {
      fill_and_drain(list_in<arena<>>(all));
      all.reset();
    });
  }
  for (auto& of_one : times) std::nth_element(of_one.begin(), of_one.begin() + of_one.size() / 2, of_one.end());
  const auto median = [&](int which) { return times[which][times[which].size() / 2]; };
  std::printf("malloc %5.1f ns an element\n", median(0));
  std::printf("pool   %5.1f ns, %.1f times as fast\n", median(1), median(0) / median(1));
  std::printf("arena  %5.1f ns, %.1f times as fast\n", median(2), median(0) / median(2));
}
