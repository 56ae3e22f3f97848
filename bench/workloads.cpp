// What allocators meet, each as a workload of its own: `workloads NAME [SCALE]` does one and prints a checksum, which is the same
// under every allocator. `workloads --list` names them. Everything allocated is written to; nothing measures itself.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using random_engine = std::minstd_rand;

/// Sizes as programs ask for them: mostly small, a long tail.
std::size_t typical_size(random_engine& random) {
  const auto r = random();
  if (r % 1000 == 0) return 8192 + random() % 60'000;
  if (r % 50 == 0) return 1024 + random() % 7000;
  if (r % 5 == 0) return 128 + random() % 900;
  return 8 + random() % 120;
}

unsigned char* filled(std::size_t size) {
  auto* p = static_cast<unsigned char*>(std::malloc(size));
  if (p == nullptr) std::abort();
  p[0] = p[size - 1] = static_cast<unsigned char>(size);
  return p;
}

std::uint64_t pair(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 30'000'000; ++i) {
    auto* p = filled(64);
    sum += p[0];
    std::free(p);
  }
  return sum;
}

enum class order { fifo, lifo, random };

template <order Order>
std::uint64_t batch(std::uint64_t scale) {
  random_engine random(1);
  std::vector<unsigned char*> held(1000);
  std::vector<std::size_t> sequence(held.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) sequence[i] = Order == order::lifo ? sequence.size() - 1 - i : i;
  if (Order == order::random) std::shuffle(sequence.begin(), sequence.end(), random);
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 15'000; ++round) {
    for (auto& p : held) p = filled(32 + (round * 16 + static_cast<std::uint64_t>(&p - held.data())) % 15 * 16);
    for (std::size_t i : sequence) {
      sum += held[i][0];
      std::free(held[i]);
    }
  }
  return sum;
}

/// A working set in which a random block is replaced again and again.
std::uint64_t churn(std::uint64_t scale) {
  random_engine random(2);
  std::vector<std::pair<unsigned char*, std::size_t>> held(20'000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 8'000'000; ++i) {
    auto& [p, size] = held[random() % held.size()];
    if (p != nullptr) sum += p[size - 1];
    std::free(p);
    size = typical_size(random);
    p = filled(size);
  }
  for (auto& [p, size] : held) std::free(p);
  return sum;
}

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
  for (std::uint64_t i = 0; i < scale * 60; ++i) sum += count(grow(14).get());
  return sum + count(lasting.get());
}

std::uint64_t vectors(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 40; ++round) {
    std::vector<std::vector<std::uint32_t>> all(50);
    for (std::uint32_t i = 0; i < 600'000; ++i) all[i % all.size()].push_back(i);
    for (auto& v : all) sum += v.back();
  }
  return sum;
}

std::uint64_t reallocs(std::uint64_t scale) {
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 60; ++round) {
    char* text = nullptr;
    std::size_t size = 0;
    while (size < 8'000'000) {
      const std::size_t more = size / 16 + 24;
      text = static_cast<char*>(std::realloc(text, size + more));
      std::memset(text + size, 'x', more);
      size += more;
    }
    sum += static_cast<unsigned char>(text[size / 2]) + size;
    std::free(text);
  }
  return sum;
}

/// Buffers of 64 KiB to 16 MiB, a few alive at a time.
std::uint64_t buffers(std::uint64_t scale) {
  random_engine random(4);
  std::vector<std::pair<unsigned char*, std::size_t>> held(12);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 6000; ++i) {
    auto& [p, size] = held[random() % held.size()];
    std::free(p);
    size = std::size_t{65536} << random() % 8;
    size += random() % size;
    p = filled(size);
    for (std::size_t at = 0; at < size; at += 4096) sum += p[at] = static_cast<unsigned char>(at >> 12);
  }
  for (auto& [p, size] : held) std::free(p);
  return sum;
}

std::uint64_t callocs(std::uint64_t scale) {
  random_engine random(5);
  std::vector<unsigned char*> held(4000);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < scale * 6'000'000; ++i) {
    auto& p = held[random() % held.size()];
    std::free(p);
    const std::size_t size = typical_size(random);
    p = static_cast<unsigned char*>(std::calloc(1, size));
    sum += p[size / 2];
    p[size / 2] = 1;
  }
  for (auto* p : held) std::free(p);
  return sum;
}

void run_threads(unsigned n, auto work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < n; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
}

/// Independent work on as many threads as asked.
template <unsigned Threads>
std::uint64_t threads(std::uint64_t scale) {
  std::atomic<std::uint64_t> sum{0};
  run_threads(Threads, [&](unsigned t) {
    random_engine random(t + 1);
    std::vector<unsigned char*> held(2000);
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; i < scale * 12'000'000 / Threads; ++i) {
      auto& p = held[random() % held.size()];
      if (p != nullptr) mine += p[0];
      std::free(p);
      p = filled(typical_size(random));
    }
    for (auto* p : held) std::free(p);
    sum += mine;
  });
  return sum;
}

/// Servers in the manner of Larson and Krishnan: each thread replaces random blocks for a while, then a new thread takes over
/// its blocks.
std::uint64_t server(std::uint64_t scale) {
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::vector<unsigned char*>> rooms(4, std::vector<unsigned char*>(3000));
  for (std::uint64_t generation = 0; generation < scale * 60; ++generation) {
    run_threads(4, [&](unsigned t) {
      random_engine random(static_cast<unsigned>(generation * 4 + t + 1));
      std::uint64_t mine = 0;
      for (int i = 0; i < 30'000; ++i) {
        auto& p = rooms[t][random() % rooms[t].size()];
        if (p != nullptr) mine += p[0];
        std::free(p);
        p = filled(16 + random() % 500);
      }
      sum += mine;
    });
    std::rotate(rooms.begin(), rooms.begin() + 1, rooms.end());
  }
  for (auto& room : rooms) {
    for (auto* p : room) std::free(p);
  }
  return sum;
}

/// One thread makes messages, `Consumers` free them.
template <unsigned Consumers>
std::uint64_t messages(std::uint64_t scale) {
  std::mutex lock;
  std::condition_variable ready, room;
  std::deque<std::vector<unsigned char*>> queue;
  bool done = false;
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> consumers;
  for (unsigned c = 0; c < Consumers; ++c) {
    consumers.emplace_back([&] {
      for (;;) {
        std::unique_lock hold(lock);
        ready.wait(hold, [&] { return done || !queue.empty(); });
        if (queue.empty()) return;
        auto batch = std::move(queue.front());
        queue.pop_front();
        hold.unlock();
        room.notify_one();
        std::uint64_t mine = 0;
        for (auto* p : batch) {
          mine += p[0];
          std::free(p);
        }
        sum += mine;
      }
    });
  }
  random_engine random(6);
  for (std::uint64_t i = 0; i < scale * 30'000; ++i) {
    std::vector<unsigned char*> batch(200);
    for (auto& p : batch) p = filled(typical_size(random));
    std::unique_lock hold(lock);
    room.wait(hold, [&] { return queue.size() < 100; });
    queue.push_back(std::move(batch));
    hold.unlock();
    ready.notify_one();
  }
  {
    std::lock_guard hold(lock);
    done = true;
  }
  ready.notify_all();
  for (auto& c : consumers) c.join();
  return sum;
}

std::uint64_t short_threads(std::uint64_t scale) {
  std::atomic<std::uint64_t> sum{0};
  for (std::uint64_t i = 0; i < scale * 6000; ++i) {
    run_threads(2, [&](unsigned t) {
      random_engine random(static_cast<unsigned>(i + t + 1));
      std::vector<std::string> words;
      for (int w = 0; w < 100; ++w) words.push_back(std::string(20 + random() % 200, 'w'));
      sum += words.size();
    });
  }
  return sum;
}

/// Two threads write to blocks that were handed out next to each other: an allocator that gives a freed neighbour to another
/// thread makes them share cache lines.
std::uint64_t sharing(std::uint64_t scale) {
  std::vector<unsigned char*> seeds(2);
  for (auto& p : seeds) p = filled(8);
  std::atomic<std::uint64_t> sum{0};
  run_threads(2, [&](unsigned t) {
    std::free(seeds[t]);
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; i < scale * 30'000; ++i) {
      volatile unsigned char* p = filled(8);
      for (int w = 0; w < 1000; ++w) p[w % 8] = static_cast<unsigned char>(p[w % 8] + 1);
      mine += p[3];
      std::free(const_cast<unsigned char*>(p));
    }
    sum += mine > 0;
  });
  return sum;
}

/// A long-lived block among every few short-lived ones.
std::uint64_t longlived(std::uint64_t scale) {
  random_engine random(7);
  std::vector<unsigned char*> lasting, passing;
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < scale * 60; ++round) {
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

struct workload {
  std::string_view name;
  std::uint64_t (*run)(std::uint64_t scale);
  std::string_view what;
};

constexpr workload all[] = {
    {"pair", pair, "one block of 64 bytes at a time"},
    {"fifo", batch<order::fifo>, "1000 blocks, freed in the same order"},
    {"lifo", batch<order::lifo>, "1000 blocks, freed in the opposite order"},
    {"random", batch<order::random>, "1000 blocks, freed in random order"},
    {"churn", churn, "a working set of 20,000 blocks, replaced at random"},
    {"strings", strings, "a hash map of strings, built and dropped"},
    {"trees", trees, "binary trees beside a lasting one"},
    {"vectors", vectors, "50 vectors growing side by side"},
    {"reallocs", reallocs, "one text growing by realloc to 8 MB"},
    {"buffers", buffers, "buffers of 64 KiB to 16 MiB"},
    {"callocs", callocs, "zeroed blocks, replaced at random"},
    {"threads-2", threads<2>, "independent churn on 2 threads"},
    {"threads-16", threads<16>, "independent churn on 16 threads"},
    {"server", server, "threads that hand their blocks on to successors"},
    {"messages-1", messages<1>, "one producer, one consumer"},
    {"messages-4", messages<4>, "one producer, four consumers"},
    {"short-threads", short_threads, "12,000 threads that live for 100 strings"},
    {"sharing", sharing, "two threads writing to blocks of 8 bytes"},
    {"longlived", longlived, "a lasting block among every 40"},
};

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view name = argc > 1 ? arguments[1] : "";
  if (name == "--list") {
    for (const workload& w : all) std::printf("%-14s %s\n", w.name.data(), w.what.data());
    return 0;
  }
  const std::uint64_t scale = argc > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  for (const workload& w : all) {
    if (w.name != name) continue;
    std::printf("%llu\n", static_cast<unsigned long long>(w.run(scale)));
    return 0;
  }
  std::fprintf(stderr, "usage: workloads NAME [SCALE]; workloads --list names them\n");
  return 2;
}
