// One heap for each part of a program: each with a limit, figures of its own, and an end at which
// all its memory goes back at once, whatever was forgotten.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <heapwright/adapt/std_allocator.hpp>
#include <heapwright/heap.hpp>

namespace {

using heapwright::KiB;
using heapwright::MiB;

// Answers are written once, read once and thrown away as a whole.
constexpr heapwright::recipe answers{.thread_cache = {.share_bytes = 256 * KiB}};
using answer_heap = heapwright::heap<answers>;
template <class T>
using answer_allocator = heapwright::std_allocator<T, answer_heap>;

void show(answer_heap& of) {
  heapwright::text<2000> json;
  of.statistics().write_json(json);
  std::printf("%s\n", json.c_str());
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  heapwright::heap<heapwright::default_recipe> sessions("sessions", 64 * MiB);
  {
    answer_heap requests("requests", 8 * MiB);
    std::vector<std::thread> workers;
    for (int t = 0; t < 4; ++t) {
      workers.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          std::vector<int, answer_allocator<int>> answer(1000, i, requests);
          must(answer.back() == i, "containers live in a heap of one's own");
        }
        (void)requests.allocate(100);  // forgotten
      });
    }
    for (auto& w : workers) w.join();
    must(requests.allocate(16 * MiB) == nullptr, "8 MiB are all that requests may have");
    must(sessions.allocate(16 * MiB) != nullptr, "sessions do not suffer from that");

    std::size_t forgotten = 0;
    must(requests.for_each_block([&](const void*, std::size_t) { ++forgotten; }) && forgotten == 4,
         "every block can be seen");
    show(requests);
  }
  must(sessions.statistics().in_use >= 16 * MiB, "what belongs to others is still there");
}
