// A server with two leaks: answers requests at a steady rate from a cache that it renews, and keeps
// two kinds of blocks that nothing leads to.
//
//   leaking_server SECONDS REQUESTS_PER_SECOND [MIB]     prints its processor time in seconds at
//                                                        the end
//
// MIB: it also holds so much in blocks of 64 KiB, which it never touches.
//
// A request allocates some 90 blocks, 9 KiB in all, and frees them. `open_session` loses 128 bytes
// for each request, `note_referrer` 48 bytes for each tenth.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

std::uint64_t state = 88172645463325252;

std::uint64_t random_below(std::uint64_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % n;
}

struct session {
  std::array<char, 128> cookie;
};

[[gnu::noinline]] void open_session(std::string& answer) {
  auto* const lost = new session;
  lost->cookie.fill('c');
  answer += lost->cookie[random_below(lost->cookie.size())];
}

[[gnu::noinline]] void note_referrer(std::string& answer) {
  auto* const lost = static_cast<char*>(std::malloc(48));
  if (lost == nullptr) std::abort();
  lost[0] = 'r';
  answer += lost[0];
}

/// Pages of 4 KiB; one of them is made anew for each request.
std::vector<std::unique_ptr<std::string>> cache(5000);

[[gnu::noinline]] const std::string& look_up(std::size_t page) {
  cache[page] = std::make_unique<std::string>(4096, 'p');
  return *cache[page];
}

[[gnu::noinline]] std::map<std::string, std::string> parse() {
  std::map<std::string, std::string> headers;
  for (int i = 0; i < 20; ++i)
    headers["a header with a long name " + std::to_string(i)] = std::string(60 + random_below(60), 'v');
  return headers;
}

[[gnu::noinline]] std::size_t answer(std::uint64_t number) {
  const auto headers = parse();
  std::string text = look_up(random_below(cache.size()));
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  open_session(text);
  if (number % 10 == 0) note_referrer(text);
  return text.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const double seconds = std::atof(argv[1]), rate = std::atof(argv[2]);
  std::vector<std::unique_ptr<char[]>> held(argc == 4 ? std::strtoul(argv[3], nullptr, 10) * 16 : 0);
  for (auto& block : held) block = std::make_unique_for_overwrite<char[]>(65536 - 24);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t bytes = 0;
  const auto requests = static_cast<std::uint64_t>(seconds * rate);
  for (std::uint64_t number = 0; number < requests; ++number) {
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(static_cast<double>(number) / rate));
    bytes += answer(number);
  }
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  std::printf("%zu bytes answered, %.3f s\n", bytes,
              static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9);
}
