// Programs whose memory could be done better, as they are and as they are advised:
//   planted tree | pool | text | nested | growing | handing | names | rows   [advised]   [TIMES]
//
//   tree      trees that are built node by node and dropped as a whole: an arena
//   pool      orders of one size, each of which goes when 4,000 others have come: a pool
//   text      words that are put together in a short buffer each: a small buffer
//   nested    a recursion, each step of which has a buffer of its own: a stack arena
//   growing   rows that grow by realloc, one step after the other: reserve
//   handing   blocks of many sizes that another thread frees: a hand-over
//   names     maps of strings that are dropped as a whole: two containers at one line, two arenas
//   rows      vectors of two types at one line, which are dropped as a whole: two arenas
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <heapwright/kit.hpp>

namespace {

/// The same numbers in each run.
class numbers {
 public:
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::uint32_t>((state_ >> 33) % limit);
  }

 private:
  std::uint64_t state_ = 42;
};

// --- tree

struct tree_node {
  tree_node* left = nullptr;
  tree_node* right = nullptr;
  std::uint64_t key = 0;
};

using tree_memory = heapwright::arena<heapwright::upstream_malloc, heapwright::take_back::nothing>;

template <bool is_advised>
tree_node* plant(tree_memory& memory, std::uint64_t key) {
  if constexpr (is_advised) return new (memory.allocate(heapwright::layout::of<tree_node>())) tree_node{.key = key};
  return new tree_node{.key = key};  // the site
}

/// Each node is looked at once more, also where none is freed.
template <bool is_advised>
std::uint64_t fell(tree_node* top) {
  std::uint64_t sum = 0;
  while (top != nullptr) {
    tree_node* const next = top->right;
    sum += fell<is_advised>(top->left) + top->key;
    if constexpr (!is_advised) delete top;
    top = next;
  }
  return sum;
}

template <bool is_advised>
tree_node* grow_tree(tree_memory& memory, std::uint64_t first, unsigned depth) {
  if (depth == 0) return nullptr;
  tree_node* const top = plant<is_advised>(memory, first);
  top->left = grow_tree<is_advised>(memory, 2 * first, depth - 1);
  top->right = grow_tree<is_advised>(memory, 2 * first + 1, depth - 1);
  return top;
}

template <bool is_advised>
std::uint64_t tree() {
  tree_memory memory;
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    tree_node* const top = grow_tree<is_advised>(memory, round + 1, 16);
    sum += fell<is_advised>(top);
    if constexpr (is_advised) memory.reset();
  }
  return sum;
}

// --- pool

struct order {
  std::uint64_t number, amount, customer, state;
};

heapwright::pool<> orders(heapwright::layout::of<order>());

template <bool is_advised>
std::uint64_t pool() {
  std::vector<order*> live(4'000);
  numbers random;
  std::uint64_t sum = 0;
  for (std::uint64_t number = 0; number < 3'000'000; ++number) {
    order*& place = live[number % live.size()];
    // What is done for an order that has come: others are looked at.
    for (int i = 0; i < 3; ++i) {
      const order* const seen = live[random.below(4'000)];
      if (seen != nullptr && seen->amount > 3) sum += seen->customer;
    }
    if (place != nullptr) {
      sum += place->amount;
      if constexpr (is_advised)
        orders.deallocate(place);
      else
        delete place;
    }
    if constexpr (is_advised)
      place = new (orders.allocate()) order{number, number % 7, 1, 2};
    else
      place = new order{number, number % 7, 1, 2};  // the site
  }
  for (order* const left : live) {
    if constexpr (is_advised)
      orders.deallocate(left);
    else
      delete left;
  }
  return sum;
}

// --- text

template <bool is_advised>
[[gnu::noinline]] std::uint64_t word(std::uint64_t number, std::uint32_t length) {
  char own[104];
  char* const text = is_advised ? own : static_cast<char*>(std::malloc(length));  // the site
  std::memset(text, static_cast<int>('a' + number % 26), length);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < length; i += 8) sum += static_cast<unsigned char>(text[i]);
  if (!is_advised) std::free(text);
  return sum;
}

template <bool is_advised>
std::uint64_t text() {
  numbers random;
  std::uint64_t sum = 0;
  for (std::uint64_t number = 0; number < 4'000'000; ++number) sum += word<is_advised>(number, 16 + random.below(88));
  return sum;
}

// --- nested

heapwright::stack_arena<16384> buffers;

template <bool is_advised>
std::uint64_t step_into(numbers& random, unsigned depth) {
  const std::uint32_t length = 150 + 8 * random.below(60);
  auto* const buffer =
      static_cast<std::uint64_t*>(is_advised ? buffers.allocate({length, 8}) : std::malloc(length));  // the site
  buffer[0] = depth + length;
  std::uint64_t sum = 0;
  if (depth > 0) sum = step_into<is_advised>(random, depth - 1) + step_into<is_advised>(random, depth - 1);
  sum += buffer[0];
  if (is_advised)
    buffers.deallocate(buffer, {length, 8});
  else
    std::free(buffer);
  return sum;
}

template <bool is_advised>
std::uint64_t nested() {
  numbers random;
  return step_into<is_advised>(random, 19);
}

// --- growing

template <bool is_advised>
std::uint64_t growing() {
  std::uint64_t sum = 0;
  for (std::uint64_t row = 0; row < 60'000; ++row) {
    std::uint64_t* values = nullptr;
    std::uint64_t* others = nullptr;
    for (std::size_t i = 0; i < 48; ++i) {
      if (!is_advised || i == 0) {
        const std::size_t room = is_advised ? 48 : i + 1;
        values = static_cast<std::uint64_t*>(std::realloc(values, room * sizeof *values));  // the site
        others = static_cast<std::uint64_t*>(std::realloc(others, room * sizeof *others));
      }
      values[i] = row + i;
      others[i] = i;
    }
    sum += values[row % 48] + others[row % 48];
    std::free(values);
    std::free(others);
  }
  return sum;
}

// --- handing

std::uint64_t handing() {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<char*> queue;
  std::uint64_t sum = 0;
  constexpr unsigned blocks = 200'000;
  std::thread consumer([&] {
    for (unsigned i = 0; i < blocks; ++i) {
      std::unique_lock held(lock);
      changed.wait(held, [&] { return !queue.empty(); });
      char* const block = queue.front();
      queue.pop_front();
      held.unlock();
      changed.notify_all();
      sum += static_cast<unsigned char>(block[0]);
      std::free(block);
    }
  });
  numbers random;
  for (unsigned i = 0; i < blocks; ++i) {
    auto* const block = static_cast<char*>(std::malloc(200 + random.below(1000)));  // the site
    block[0] = static_cast<char>(i);
    std::unique_lock held(lock);
    changed.wait(held, [&] { return queue.size() < 64; });
    queue.push_back(block);
    held.unlock();
    changed.notify_all();
  }
  consumer.join();
  return sum;
}

// --- names

std::uint64_t names() {
  numbers random;
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::map<std::uint32_t, std::string> all;
    for (std::uint32_t i = 0; i < 5'000; ++i) all.emplace(i, std::string(40 + random.below(100), 'n'));  // the site
    for (const auto& [number, name] : all) sum += number + name.size();
  }
  return sum;
}

// --- rows

struct row_of_both {
  std::vector<int> counts;
  std::vector<double> values;
};

std::uint64_t rows() {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::vector<row_of_both> all(5'000);
    for (auto& [counts, values] : all) counts.resize(40), values.resize(60);  // the site
    for (const auto& [counts, values] : all) sum += counts.size() + values.size();
  }
  return sum;
}

template <bool is_advised>
std::uint64_t run(std::string_view what) {
  if (what == "tree") return tree<is_advised>();
  if (what == "pool") return pool<is_advised>();
  if (what == "text") return text<is_advised>();
  if (what == "nested") return nested<is_advised>();
  if (what == "growing") return growing<is_advised>();
  if (what == "handing") return handing();
  if (what == "names") return names();
  if (what == "rows") return rows();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  const bool is_advised = count > 2 && std::string_view(words[2]) == "advised";
  const int times = count > 2 ? std::max(std::atoi(words[count - 1]), 1) : 1;
  std::uint64_t sum = 0;
  for (int i = 0; i < times; ++i) sum += is_advised ? run<true>(what) : run<false>(what);
  std::printf("%lu\n", sum);
  return 0;
}
