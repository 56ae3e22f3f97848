// A malloc whose memory is limited. What is beyond the limit is refused as the standards say, and
// what comes back can be had again.
//
//   malloc_limit BYTES      the limit of the recipe
//
// Says what is wrong and ends with 1. Needs no memory of its own: the blocks are their own list.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace {

struct block {
  block* next;
};

int failures = 0;

void expect(bool is_right, const char* what, std::size_t size) {
  if (is_right) return;
  std::fprintf(stderr, "under the limit, %s (%zu bytes)\n", what, size);
  ++failures;
}

void beyond_the_limit_is_refused(std::size_t size) {
  const auto refuses = [&](const char* what, auto request) {
    errno = 0;
    void* const p = request();
    expect(p == nullptr, what, size);
    expect(errno == ENOMEM, "errno is not ENOMEM after a refusal", size);
  };
  refuses("malloc gives more than there may be", [&] { return std::malloc(size); });
  refuses("calloc gives more than there may be", [&] { return std::calloc(2, size / 2 + 1); });
  refuses("aligned_alloc gives more than there may be", [&] { return std::aligned_alloc(64, size / 64 * 64 + 64); });
  void* aligned = nullptr;
  expect(posix_memalign(&aligned, 64, size) == ENOMEM, "posix_memalign does not answer ENOMEM", size);
  expect(::operator new(size, std::nothrow) == nullptr, "new (nothrow) gives more than there may be", size);
  try {
    ::operator delete(::operator new(size));
    expect(false, "new gives more than there may be", size);
  } catch (const std::bad_alloc&) {
    // As it should be.
  }
  char* const kept = static_cast<char*>(std::malloc(100));
  expect(kept != nullptr, "a short block cannot be had after a refusal", 100);
  if (kept == nullptr) return;
  std::memset(kept, 7, 100);
  expect(std::realloc(kept, size) == nullptr, "realloc gives more than there may be", size);
  for (int i = 0; i < 100; ++i) expect(kept[i] == 7, "a refused realloc has changed the block", 100);
  std::free(kept);
}

/// Blocks until there are no more, or `most` bytes; how many bytes that were. All are freed again.
std::uint64_t fill(std::size_t size, std::uint64_t most) {
  block* all = nullptr;
  std::uint64_t sum = 0;
  while (sum < most) {
    errno = 0;
    auto* const b = static_cast<block*>(std::malloc(size));
    if (b == nullptr) break;
    b->next = all;
    all = b;
    sum += size;
  }
  expect(sum >= most || errno == ENOMEM, "errno is not ENOMEM at the limit", size);
  while (all != nullptr) std::free(std::exchange(all, all->next));
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t limit = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (limit == 0) return std::fputs("usage: malloc_limit BYTES\n", stderr), 2;
  beyond_the_limit_is_refused(limit + 1);
  // What is short is touched: no more of it than a small machine has.
  constexpr std::uint64_t touched = std::uint64_t{64} << 20;
  for (const std::size_t size : {std::size_t{100}, std::size_t{5000}, std::size_t{100'000}, std::size_t{1} << 20}) {
    if (size > limit / 8) break;
    const std::uint64_t most = size < 1 << 20 ? std::min(2 * limit, touched) : 2 * limit;
    const std::uint64_t first = fill(size, most), again = fill(size, most);
    expect(first <= limit || most < limit, "blocks take more than the limit", size);
    expect(first >= std::min(limit / 4, most), "not a quarter of the limit can be had", size);
    expect(again >= first / 4 * 3, "what was freed cannot be had again", size);
  }
  return failures == 0 ? 0 : 1;
}
