// Programs whose memory is known.
//   replayed growing | reserving | buffers | pausing | threads | odd | nothing
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

void* filled(std::size_t size) {
  void* const p = std::malloc(size);
  std::memset(p, 1, size);
  return p;
}

/// The recorder looks at memory every 10 ms.
void be_seen() { std::this_thread::sleep_for(std::chrono::milliseconds(900)); }

/// 40,000 blocks of 1000 bytes live at most; then every second one.
void growing() {
  std::vector<void*> all;
  for (int i = 0; i < 40'000; ++i) all.push_back(filled(1000));
  be_seen();
  for (std::size_t i = 0; i < all.size(); i += 2) std::free(all[i]);
}

/// 64 MiB, of which 8 MiB are touched; freed, and once more, and kept.
void reserving() {
  for (int i = 0; i < 2; ++i) {
    auto* const p = static_cast<char*>(std::malloc(64 << 20));
    std::memset(p, 1, 8 << 20);
    be_seen();
    if (i == 0) std::free(p);
  }
}

/// As a server with 500 connections has them: each of 32 KiB, of which one page is touched.
void buffers() {
  std::vector<void*> all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(std::malloc(32 << 10));
    std::memset(all.back(), 1, 1000);
  }
  be_seen();
  for (void* const p : all) std::free(p);
}

void pausing() {
  std::free(filled(100));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::free(filled(100));
}

/// Each of 3 threads has 4 MiB, one after the other.
void threads() {
  for (int t = 0; t < 3; ++t) {
    std::thread([] {
      std::vector<void*> all;
      for (int i = 0; i < 4096; ++i) all.push_back(filled(1024));
      be_seen();
      for (void* const p : all) std::free(p);
    }).join();
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "growing") growing();
  if (what == "reserving") reserving();
  if (what == "buffers") buffers();
  if (what == "pausing") pausing();
  if (what == "threads") threads();
  if (what == "odd") std::free(filled(12345));
  return 0;
}
