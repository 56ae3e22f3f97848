// A program that tells the live view about itself: phases by name, memory that it maps by itself,
// and an allocator with a meter. Under `heapwright live -- ./program` the page shows them; without,
// nothing is told and nothing is different.
#include <cstdio>

#include <heapwright/kit.hpp>
#include <heapwright/live.hpp>

namespace live = heapwright::live;

/// Frames of a film, in memory from the system: no malloc knows of them.
class frame_store {
 public:
  [[nodiscard]] void* add() {
    const heapwright::layout frame{bytes, 4096};
    void* const p = pages_.allocate(frame);
    if (p != nullptr) live::record_allocation(p, bytes);
    return p;
  }
  void remove(void* p) {
    live::record_free(p, bytes);  // before it can be another's
    pages_.deallocate(p, {bytes, 4096});
  }

 private:
  static constexpr std::size_t bytes = 2 << 20;
  heapwright::os_pages<heapwright::native_os> pages_;
};

int main() {
  heapwright::metered<heapwright::upstream_malloc, live::meter_report> textures;
  const bool is_watched = textures.report().open("textures");

  live::mark("loading");
  void* const texture = textures.allocate({100'000, 16});
  frame_store frames;
  void* const frame = frames.add();
  live::mark("playing");
  frames.remove(frame);
  textures.deallocate(texture, {100'000, 16});

  std::printf("%s; the textures' peak was %zu bytes\n", is_watched ? "watched" : "not watched",
              textures.reading().peak);
}
