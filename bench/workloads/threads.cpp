// Threads: independent, handing blocks on, coming and going, more of them than cores.
#include "workload.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace workloads {
namespace {

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
    std::vector<unsigned char*> held(16'000 / Threads);
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

/// Servers in the manner of Larson and Krishnan: each thread replaces random blocks for a while,
/// then a new thread takes over its blocks.
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

/// Two threads write to blocks that were handed out next to each other: an allocator that gives a
/// freed neighbour to another thread makes them share cache lines.
std::uint64_t sharing(std::uint64_t scale) {
  std::vector<unsigned char*> seeds(2);
  for (auto& p : seeds) p = filled(8);
  std::atomic<std::uint64_t> sum{0};
  run_threads(2, [&](unsigned t) {
    std::free(seeds[t]);
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; i < scale * 300'000; ++i) {
      volatile unsigned char* p = filled(8);
      for (int w = 0; w < 1000; ++w) p[w % 8] = static_cast<unsigned char>(p[w % 8] + 1);
      mine += p[3];
      std::free(const_cast<unsigned char*>(p));
    }
    sum += mine > 0;
  });
  return sum;
}

/// Eight stations in a ring: each replaces half of every parcel that comes by, and sends it on.
std::uint64_t ring(std::uint64_t scale) {
  using parcel = std::vector<unsigned char*>;
  struct station {
    std::mutex lock;
    std::condition_variable arrived;
    std::deque<parcel> queue;
  };
  constexpr unsigned stations = 8;
  std::vector<station> all(stations);
  for (unsigned i = 0; i < 2 * stations; ++i) all[i % stations].queue.emplace_back(100);
  std::atomic<std::uint64_t> sum{0};
  run_threads(stations, [&](unsigned t) {
    random_engine random(t + 20);
    station& here = all[t];
    station& next = all[(t + 1) % stations];
    std::uint64_t mine = 0;
    for (std::uint64_t r = 0; r < scale * 10'000; ++r) {
      std::unique_lock hold(here.lock);
      here.arrived.wait(hold, [&] { return !here.queue.empty(); });
      parcel p = std::move(here.queue.front());
      here.queue.pop_front();
      hold.unlock();
      for (std::size_t i = r % 2; i < p.size(); i += 2) {
        mine += p[i] != nullptr;
        std::free(p[i]);
        p[i] = filled(typical_size(random));
      }
      hold = std::unique_lock(next.lock);
      next.queue.push_back(std::move(p));
      hold.unlock();
      next.arrived.notify_one();
    }
    sum += mine > 0;
  });
  for (station& s : all) {
    for (parcel& p : s.queue) {
      for (auto* b : p) std::free(b);
    }
  }
  return sum;
}

/// Four workers with a queue of tasks each, who steal when they have none: a task is freed by
/// the thread that did it.
std::uint64_t stealing(std::uint64_t scale) {
  struct task {
    int depth;
    std::string work;
  };
  struct worker {
    std::mutex lock;
    std::deque<std::unique_ptr<task>> tasks;
  };
  constexpr unsigned workers = 4;
  std::vector<worker> all(workers);
  std::atomic<std::int64_t> unfinished{0};
  std::atomic<std::uint64_t> sum{0};
  const auto add = [&](worker& to, int depth, std::string work) {
    ++unfinished;
    auto t = std::make_unique<task>(task{depth, std::move(work)});
    const std::lock_guard hold(to.lock);
    to.tasks.push_back(std::move(t));
  };
  enum class end { newest, oldest };
  const auto take = [&](worker& from, end which) -> std::unique_ptr<task> {
    const std::lock_guard hold(from.lock);
    if (from.tasks.empty()) return nullptr;
    std::unique_ptr<task> t;
    if (which == end::newest) {
      t = std::move(from.tasks.back());
      from.tasks.pop_back();
    } else {
      t = std::move(from.tasks.front());
      from.tasks.pop_front();
    }
    return t;
  };
  for (std::uint64_t i = 0; i < scale * 60; ++i) add(all[0], 15, "the root of a tree of tasks");
  run_threads(workers, [&](unsigned me) {
    std::uint64_t mine = 0;
    while (unfinished > 0) {
      auto t = take(all[me], end::newest);
      for (unsigned other = 1; t == nullptr && other < workers; ++other)
        t = take(all[(me + other) % workers], end::oldest);
      if (t == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (int child = 0; t->depth > 0 && child < 2; ++child)
        add(all[me], t->depth - 1, t->work + std::to_string(child));
      mine += t->work.size();
      --unfinished;
    }
    sum += mine;
  });
  return sum;
}

constexpr workload all[] = {
    {"threads-1", threads<1>, "churn on one thread"},
    {"threads-2", threads<2>, "as much on 2 threads, each on its own"},
    {"threads-8", threads<8>, "on 8 threads"},
    {"threads-64", threads<64>, "on 64 threads"},
    {"server", server, "threads that hand their blocks on to successors"},
    {"messages-1", messages<1>, "one producer, one consumer"},
    {"messages-4", messages<4>, "one producer, four consumers"},
    {"ring", ring, "eight threads that pass parcels around"},
    {"stealing", stealing, "four workers that steal each other's tasks"},
    {"short-threads", short_threads, "12,000 threads that live for 100 strings"},
    {"sharing", sharing, "two threads writing to blocks of 8 bytes"},
};

}  // namespace

std::span<const workload> of_threads() { return all; }

}  // namespace workloads
