// A thread with a heap of its own for all that it allocates with new; any thread may delete it:
// prefaulted, never shrinking, undisturbed by the rest of the program. Its operators new and delete
// do it, and no library knows.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include <heapwright/heap.hpp>

namespace {

using heapwright::KiB;
using heapwright::MiB;

constexpr heapwright::recipe for_sound{
    .pages = {.growth = 4 * MiB, .give_back = heapwright::give_back_policy::when_asked, .prefault = true}};
using sound_heap = heapwright::heap<for_sound>;

// Never destroyed: what is deleted last may be its.
sound_heap& sound() {
  alignas(sound_heap) static std::byte storage[sizeof(sound_heap)];
  static sound_heap& heap = *new (storage) sound_heap("sound");
  return heap;
}

// Volatile, as Clang takes it that operator new looks at nothing of the program's.
thread_local volatile bool makes_sound = false;

void must(bool holds, const char* what) {
  std::printf("%s %s\n", holds ? "yes:" : "NO: ", what);
  if (!holds) std::exit(1);
}

}  // namespace

// The standard library's other forms of new and delete come here.
void* operator new(std::size_t size) {
  if (void* const p = makes_sound ? sound().allocate(size) : std::malloc(size)) return p;
  throw std::bad_alloc();
}

void operator delete(void* p) noexcept {
  if (sound().owns(p)) {
    sound().deallocate(p);
  } else {
    std::free(p);
  }
}

void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

int main() {
  auto score = std::make_unique<std::map<int, std::string>>();
  std::unique_ptr<std::map<int, std::string>> played;
  std::thread([&] {
    makes_sound = true;
    played = std::make_unique<std::map<int, std::string>>();
    for (int i = 0; i < 10'000; ++i)
      (*played)[i] = "a note that is too long for the string itself, number " + std::to_string(i);
    (*score)[1] = std::string(1000, 'x');  // a block of the thread's heap within another's map
  }).join();

  must(sound().owns(played.get()), "what the thread has made is in its heap");
  must(!sound().owns(score.get()), "what others have made is not");
  must(sound().statistics().in_use > 1 * MiB, "all its nodes and strings are there too: more than 1 MiB");
  must(sound().statistics().free_decommitted == 0, "none of the heap's memory has gone back to the system");
  played.reset();
  score.reset();
  must(sound().statistics().in_use == 0, "another thread has deleted all of it, and the heap is empty");
}
