// One mistake of a program with its memory at a time, for any malloc: whether it is found.
//
//   corruptions --list     the names, a line each: KIND/CASE/SIZE
//   corruptions NAME       makes this mistake
//
// How it ends:  by a signal    found: the malloc has ended the program, or a page stopped it
//               exit code 0    made harmless: there is nothing to be seen of it
//               exit code 3    not found
//               exit code 2    there is no mistake of this name
//
// After the mistake the program goes on as programs do: it allocates blocks of the size and of
// others, and frees all of them, its own and their neighbours. What is found then is found.
#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

#include "../support/opaque.h"

extern "C" [[gnu::weak]] void free_sized(void*, std::size_t);
extern "C" [[gnu::weak]] void free_aligned_sized(void*, std::size_t, std::size_t);

namespace {

enum outcome { harmless = 0, no_such_mistake = 2, not_found = 3 };

using size = std::size_t;

char* block_of(size n) { return static_cast<char*>(opaque(std::malloc(opaque_size(n)))); }
void release(void* p) { std::free(opaque(p)); }

/// What programs do after a mistake, with blocks of this size and of others.
void go_on(size n) {
  const size count = n <= 10'000 ? 5'000 : n <= 200'000 ? 500 : 20;
  for (int round = 0; round < 2; ++round) {
    std::vector<char*> blocks;
    for (size i = 0; i < count; ++i) {
      blocks.push_back(block_of(i % 4 == 3 ? n / 2 + 1 : n));
      if (blocks.back() != nullptr) std::memset(blocks.back(), 1, i % 4 == 3 ? n / 2 + 1 : n);
    }
    for (size i = 0; i < count; i += 2) release(blocks[i]);
    for (size i = 1; i < count; i += 2) release(blocks[i]);
  }
  malloc_trim(0);
}

/// A block with neighbours before and after it.
struct neighbourhood {
  std::array<char*, 65> all{};

  explicit neighbourhood(size n) {
    for (char*& p : all) {
      p = block_of(n);
      std::memset(p, 7, n);
    }
  }
  [[nodiscard]] char* middle() const { return all[32]; }
  void release_others() const {
    for (char* p : all)
      if (p != middle()) release(p);
  }
};

outcome after(size n) {
  go_on(n);
  return not_found;
}

// --- double free

outcome free_at_once(size n) {
  char* const p = block_of(n);
  release(p);
  release(p);
  return after(n);
}

outcome free_with_another_between(size n) {
  char *const p = block_of(n), *const q = block_of(n);
  release(p);
  release(q);
  release(p);
  return after(n);
}

outcome free_later(size n) {
  char* const p = block_of(n);
  release(p);
  std::vector<char*> others;
  for (int i = 0; i < 50; ++i) others.push_back(block_of(n * 2 + 64));
  for (char* o : others) release(o);
  release(p);
  return after(n);
}

outcome free_by_another_thread(size n) {
  char* const p = block_of(n);
  std::thread([p] { release(p); }).join();
  release(p);
  return after(n);
}

outcome free_twice_in_another_thread(size n) {
  char* const p = block_of(n);
  std::thread([p] {
    release(p);
    release(p);
  }).join();
  return after(n);
}

/// The block has gone to another owner, who frees it as well.
outcome free_after_reuse(size n) {
  char* const p = block_of(n);
  release(p);
  std::vector<char*> held;
  char* reused = nullptr;
  for (int i = 0; i < 100 && reused == nullptr; ++i) {
    held.push_back(block_of(n));
    if (held.back() == p) reused = p;
  }
  release(p);
  for (char* h : held) release(h);
  return after(n);
}

outcome realloc_of_freed(size n) {
  char* const p = block_of(n);
  release(p);
  release(std::realloc(opaque(p), opaque_size(n * 3)));
  return after(n);
}

outcome free_after_realloc(size n) {
  char* const p = block_of(n);
  char* const stopper = block_of(n);
  auto* const q = static_cast<char*>(opaque(std::realloc(opaque(p), opaque_size(n * 20))));
  if (q == p) return harmless;
  release(p);
  release(q);
  release(stopper);
  return after(n);
}

outcome usable_size_of_freed(size n) {
  char* const p = block_of(n);
  release(p);
  return opaque_size(malloc_usable_size(opaque(p))) == 0 ? harmless : not_found;
}

// --- pointers that are no blocks. `offset` from a block's beginning.

outcome free_within(size n, std::ptrdiff_t offset) {
  char* const p = block_of(n);
  std::memset(p, 0, n);
  release(p + offset);
  return after(n);
}

outcome realloc_within(size n, std::ptrdiff_t offset) {
  char* const p = block_of(n);
  std::memset(p, 0, n);
  release(std::realloc(opaque(p + offset), opaque_size(n * 2)));
  return after(n);
}

outcome usable_size_within(size n, std::ptrdiff_t offset) {
  char* const p = block_of(n);
  std::memset(p, 0, n);
  return opaque_size(malloc_usable_size(opaque(p + offset))) == 0 ? harmless : not_found;
}

char of_the_program[4096];

/// By its number: see foreign_names. `of_the_stack`: an address in the caller's frame.
void* foreign(size which, char* of_the_stack) {
  static thread_local char of_the_thread[256];
  switch (which) {
    case 0: return opaque(of_the_stack);
    case 1: return opaque(of_the_program + 64);
    case 2: return opaque(of_the_thread + 64);
    case 3: {
      void* const mapped = ::mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return static_cast<char*>(mapped) + 4096;
    }
    case 4: return opaque(reinterpret_cast<void*>(0x1230U));
    case 5: return opaque(reinterpret_cast<void*>(0x123456789ab0U));
    case 6: return opaque(reinterpret_cast<void*>(0x6b6b6b6b6b6b6b60U));
    default: return opaque(reinterpret_cast<void*>(&block_of));
  }
}

outcome free_of_foreign(size which) {
  alignas(16) char local[512]{};
  release(block_of(100));
  release(foreign(which, local + 256));
  return after(100);
}

outcome realloc_of_foreign(size which) {
  alignas(16) char local[512]{};
  release(block_of(100));
  void* const p = std::realloc(foreign(which, local + 256), opaque_size(200));
  if (p == nullptr) return harmless;
  release(p);
  return after(100);
}

// --- what the caller says of a block

outcome delete_with_size(size n, std::ptrdiff_t more) {
  ::operator delete(opaque(::operator new(opaque_size(n))), opaque_size(n + static_cast<size>(more)));
  return after(n);
}

outcome delete_array_with_size(size n, std::ptrdiff_t more) {
  ::operator delete[](opaque(::operator new[](opaque_size(n))), opaque_size(n + static_cast<size>(more)));
  return after(n);
}

outcome free_with_size(size n, std::ptrdiff_t more) {
  if (free_sized == nullptr) {
    std::puts("this malloc has no free_sized");
    return not_found;
  }
  free_sized(block_of(n), opaque_size(n + static_cast<size>(more)));
  return after(n);
}

outcome delete_with_alignment(size n, size allocated_with, size freed_with) {
  void* const p = allocated_with == 0 ? ::operator new(opaque_size(n))
                                      : ::operator new(opaque_size(n), std::align_val_t{allocated_with});
  if (freed_with == 0)
    ::operator delete(opaque(p), opaque_size(n));
  else
    ::operator delete(opaque(p), opaque_size(n), std::align_val_t{freed_with});
  return after(n);
}

outcome mismatched(size n, int allocate_by, int free_by) {
  void* const p = allocate_by == 0   ? std::malloc(opaque_size(n))
                  : allocate_by == 1 ? ::operator new(opaque_size(n))
                                     : ::operator new[](opaque_size(n));
  if (free_by == 0) std::free(opaque(p));
  if (free_by == 1) ::operator delete(opaque(p));
  if (free_by == 2) ::operator delete[](opaque(p));
  return after(n);
}

// --- writes beyond

/// So many bytes from `from`, counted from the block's beginning; then all are freed.
outcome write_beyond(size n, std::ptrdiff_t from, size bytes) {
  const neighbourhood around(n);
  std::memset(opaque(around.middle() + from), 0x41, opaque_size(bytes));
  release(around.middle());
  around.release_others();
  return after(n);
}

outcome overflow(size n, size bytes) { return write_beyond(n, static_cast<std::ptrdiff_t>(n), bytes); }
outcome underflow(size n, size bytes) { return write_beyond(n, -static_cast<std::ptrdiff_t>(bytes), bytes); }

/// Of blocks that other entries gave out.
outcome overflow_of(size n, char* p) {
  p[n] = 0x41;
  (void)opaque(p);
  release(p);
  return after(n);
}

outcome overflow_in_another_thread(size n) {
  const neighbourhood around(n);
  char* const p = around.middle();
  std::thread([p, n] { std::memset(opaque(p + n), 0x41, opaque_size(8)); }).join();
  release(p);
  around.release_others();
  return after(n);
}

/// Of blocks that stay, into the first bytes of free ones. Of three, as the block behind one may be
/// live: the program has others.
outcome overflow_into_free(size n, size bytes) {
  const neighbourhood around(n);
  for (size i = 0; i < around.all.size(); ++i)
    if (i % 16 != 8) release(around.all[i]);
  for (size i = 8; i < 56; i += 16) std::memset(opaque(around.all[i] + n), 0x41, opaque_size(bytes));
  return after(n);
}

// --- writes and reads after free

outcome write_after_free(size n, size at) {
  const neighbourhood around(n);
  char* const p = around.middle();
  release(p);
  p[at] = 0x41;
  (void)opaque(p);
  around.release_others();
  return after(n);
}

/// To one of many blocks that are free. Nothing is allocated or freed after it: only the end of the
/// process is left.
outcome write_to_one_of_many(size n, size at) {
  const neighbourhood around(n);
  char* const p = around.middle();
  around.release_others();
  release(p);
  neighbourhood(n).release_others();
  p[at] ^= 0x41;
  return opaque(p) == nullptr ? harmless : not_found;
}

/// The same, and blocks of this size come and go; the process does not look at its end.
outcome write_before_reuse(size n, size at) {
  const neighbourhood around(n);
  around.release_others();
  release(around.middle());
  around.all[20][at] ^= 0x41;
  for (int round = 0; round < 5; ++round) {
    std::vector<char*> blocks;
    for (int i = 0; i < 400; ++i) blocks.push_back(block_of(n));
    for (char* b : blocks) release(b);
  }
  std::_Exit(not_found);
}

/// Of a block that a thread has allocated which has ended.
outcome write_after_free_of_another(size n) {
  char* p = nullptr;
  std::thread([&p, n] { p = block_of(n); }).join();
  std::vector<char*> own;
  for (int i = 0; i < 20; ++i) own.push_back(block_of(n));
  release(p);
  for (char* o : own) release(o);
  p[n / 2] = 0x41;
  return opaque(p) == nullptr ? harmless : not_found;
}

/// Nothing is allocated or freed after it: only the end of the process is left.
outcome write_after_last_free(size n) {
  char* const p = block_of(n);
  release(p);
  p[n / 2] = 0x41;
  return opaque(p) == nullptr ? harmless : not_found;
}

outcome write_after_free_in_another_thread(size n) {
  const neighbourhood around(n);
  char* const p = around.middle();
  release(p);
  std::thread([p, n] { std::memset(opaque(p + n / 2), 0x41, opaque_size(8)); }).join();
  around.release_others();
  return after(n);
}

/// What an attacker does: the link of a freed block points to memory of the program, which malloc
/// hands out then.
outcome link_corrupted(size n) {
  alignas(64) static char target[8192];
  std::vector<char*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(block_of(n));
  for (char* p : blocks) release(p);
  for (char* p : blocks) {
    char* const link = target + 64;
    std::memcpy(opaque(p), static_cast<const void*>(&link), sizeof link);
  }
  for (int i = 0; i < 20; ++i) {
    char* const p = block_of(n);
    if (p >= target && p < target + sizeof target) {
      std::puts("malloc has handed out memory of the program");
      return not_found;
    }
  }
  return after(n);
}

bool has(const char* p, size n, char value) {
  for (size i = 0; i < n; ++i)
    if (p[i] == value) return true;
  return false;
}

/// The content of a freed block is not there to be read.
outcome read_after_free(size n) {
  char* const p = block_of(n);
  std::memset(p, 0x5a, n);
  release(p);
  return has(static_cast<char*>(opaque(p)), n, 0x5a) ? not_found : harmless;
}

/// A new block does not show what an earlier one had.
outcome old_content(size n) {
  std::vector<char*> blocks;
  for (int i = 0; i < 50; ++i) {
    blocks.push_back(block_of(n));
    std::memset(blocks.back(), 0x5a, n);
  }
  for (char* p : blocks) release(p);
  for (int i = 0; i < 200; ++i) {
    const char* const p = block_of(n);
    if (has(p, n, 0x5a)) return not_found;
  }
  return harmless;
}

/// What a block had before it was made shorter is not there when it is made longer.
outcome content_after_resize(size n) {
  auto* p = static_cast<char*>(std::memset(block_of(n), 0x5a, n));
  for (const size now : {n - n / 8, n}) p = static_cast<char*>(opaque(std::realloc(opaque(p), opaque_size(now))));
  return has(p + n - n / 8, n / 8, 0x5a) ? not_found : harmless;
}

// --- sizes

char* no_bytes(size by) {
  return by == 0   ? block_of(0)
         : by == 1 ? static_cast<char*>(opaque(::operator new(opaque_size(0))))
                   : static_cast<char*>(opaque(std::calloc(opaque_size(0), 8)));
}

outcome write_to_no_bytes(size by) {
  char* const p = no_bytes(by);
  if (p == nullptr) return harmless;
  const neighbourhood around(8);
  p[0] = 0x41;
  (void)opaque(p);
  release(p);
  around.release_others();
  return after(8);
}

/// The block is never freed: only what happens at once can tell.
outcome write_to_kept_no_bytes(size by) {
  char* const p = no_bytes(by);
  if (p == nullptr) return harmless;
  p[0] = 0x41;
  return static_cast<char*>(opaque(p))[0] == 0x41 ? not_found : harmless;
}

outcome read_no_bytes(size by) {
  const char* const p = no_bytes(by);
  if (p == nullptr) return harmless;
  const volatile char read = *p;
  (void)read;
  return not_found;
}

outcome too_large(size which) {
  constexpr size most = SIZE_MAX;
  void* p = nullptr;
  switch (which) {
    case 0: p = std::malloc(opaque_size(most)); break;
    case 1: p = std::malloc(opaque_size(most - 15)); break;
    case 2: p = std::malloc(opaque_size(static_cast<size>(PTRDIFF_MAX) + 1)); break;
    case 3: p = std::calloc(opaque_size(most / 2), opaque_size(3)); break;
    case 4: p = ::reallocarray(block_of(8), opaque_size(most / 2), opaque_size(3)); break;
    case 5: p = std::aligned_alloc(4096, opaque_size(most - 4095)); break;
    case 6: p = ::memalign(opaque_size(size{1} << 62), opaque_size(8)); break;
    default: p = std::realloc(block_of(8), opaque_size(most - 4096)); break;
  }
  return opaque(p) == nullptr ? harmless : not_found;
}

// --- the table

struct mistake {
  std::string name;
  outcome (*make)(const mistake&);
  size n = 0;
  std::ptrdiff_t by = 0;
  size bytes = 0;
};

constexpr const char* foreign_names[] = {"stack", "static",  "thread-local",  "mapped",
                                         "low",   "garbage", "not-canonical", "code"};

std::vector<mistake> all_mistakes() {
  std::vector<mistake> all;
  const auto add = [&](const std::string& name, outcome (*make)(const mistake&), std::initializer_list<size> sizes,
                       std::ptrdiff_t by = 0, size bytes = 0) {
    for (const size n : sizes) all.push_back({name + "/" + std::to_string(n), make, n, by, bytes});
  };
  using m = const mistake&;
  add("double-free/at-once", [](m x) { return free_at_once(x.n); },
      {16, 24, 100, 1000, 8000, 100'000, 400'000, 5'000'000});
  add("double-free/another-between", [](m x) { return free_with_another_between(x.n); },
      {16, 100, 1000, 100'000, 400'000});
  add("double-free/later", [](m x) { return free_later(x.n); }, {16, 100, 1000, 5000, 40'000, 100'000, 400'000});
  add("double-free/another-thread", [](m x) { return free_by_another_thread(x.n); }, {16, 1000, 100'000, 5'000'000});
  add("double-free/twice-in-a-thread", [](m x) { return free_twice_in_another_thread(x.n); }, {16, 1000, 400'000});
  add("double-free/after-reuse", [](m x) { return free_after_reuse(x.n); }, {16, 1000, 100'000, 400'000});
  add("double-free/realloc-of-freed", [](m x) { return realloc_of_freed(x.n); }, {16, 100, 1000, 400'000});
  add("double-free/after-realloc", [](m x) { return free_after_realloc(x.n); }, {16, 1000, 100'000});
  add("double-free/usable-size", [](m x) { return usable_size_of_freed(x.n); }, {100, 1000, 400'000});

  for (const std::ptrdiff_t by : {1, 8, 16})
    add(
        "invalid/free-within+" + std::to_string(by), [](m x) { return free_within(x.n, x.by); },
        {100, 1000, 400'000, 1 << 20}, by);
  add(
      "invalid/free-within+4096", [](m x) { return free_within(x.n, x.by); }, {100'000, 400'000, 5'000'000}, 4096);
  add(
      "invalid/free-before", [](m x) { return free_within(x.n, x.by); }, {100, 400'000}, -16);
  add(
      "invalid/realloc-within", [](m x) { return realloc_within(x.n, x.by); }, {100, 1000, 400'000}, 16);
  add(
      "invalid/usable-size-within", [](m x) { return usable_size_within(x.n, x.by); }, {100, 1000, 400'000}, 16);
  for (size which = 0; which < std::size(foreign_names); ++which) {
    all.push_back(
        {std::string("foreign/free/") + foreign_names[which], [](m x) { return free_of_foreign(x.n); }, which});
    if (which % 2 == 1)
      all.push_back(
          {std::string("foreign/realloc/") + foreign_names[which], [](m x) { return realloc_of_foreign(x.n); }, which});
  }

  for (const std::ptrdiff_t by : {-1, 1, -50, 100}) {
    const std::string more = (by > 0 ? "+" : "") + std::to_string(by);
    add(
        "wrong-size/delete" + more, [](m x) { return delete_with_size(x.n, x.by); }, {100, 10'000, 400'000}, by);
  }
  add(
      "wrong-size/delete-array-1", [](m x) { return delete_array_with_size(x.n, x.by); }, {100}, -1);
  add(
      "wrong-size/delete-array+100", [](m x) { return delete_array_with_size(x.n, x.by); }, {100}, 100);
  add(
      "wrong-size/free-sized-1", [](m x) { return free_with_size(x.n, x.by); }, {100}, -1);
  add(
      "wrong-size/free-sized+100", [](m x) { return free_with_size(x.n, x.by); }, {100, 400'000}, 100);
  add("wrong-alignment/64-for-none", [](m x) { return delete_with_alignment(x.n, 0, 64); }, {100, 400'000});
  add("wrong-alignment/none-for-64", [](m x) { return delete_with_alignment(x.n, 64, 0); }, {100, 400'000});
  add("wrong-alignment/128-for-64", [](m x) { return delete_with_alignment(x.n, 64, 128); }, {100});
  add("wrong-alignment/32-for-64", [](m x) { return delete_with_alignment(x.n, 64, 32); }, {100});
  add("mismatch/malloc-delete", [](m x) { return mismatched(x.n, 0, 1); }, {100});
  add("mismatch/malloc-delete-array", [](m x) { return mismatched(x.n, 0, 2); }, {100});
  add("mismatch/new-free", [](m x) { return mismatched(x.n, 1, 0); }, {100});
  add("mismatch/new-delete-array", [](m x) { return mismatched(x.n, 1, 2); }, {100});
  add("mismatch/new-array-free", [](m x) { return mismatched(x.n, 2, 0); }, {100});
  add("mismatch/new-array-delete", [](m x) { return mismatched(x.n, 2, 1); }, {100});

  for (const size bytes : {size{1}, size{8}, size{64}}) {
    const std::string name = std::to_string(bytes);
    add(
        "overflow/by-" + name, [](m x) { return overflow(x.n, x.bytes); },
        {16, 24, 100, 1000, 8000, 100'000, 400'000, 5'000'000}, 0, bytes);
  }
  for (const size bytes : {size{1}, size{16}})
    add(
        "underflow/by-" + std::to_string(bytes), [](m x) { return underflow(x.n, x.bytes); },
        {16, 100, 1000, 100'000, 400'000}, 0, bytes);
  add("overflow/behind-by-20", [](m x) { return write_beyond(x.n, static_cast<std::ptrdiff_t>(x.n) + 20, 1); },
      {2000, 5000, 20'000});
  for (const std::ptrdiff_t by : {9, 64})
    add(
        "underflow/before-by-" + std::to_string(by), [](m x) { return write_beyond(x.n, -x.by, 1); },
        {40'000, 400'000, 1 << 20}, by);
  add("overflow/calloc",
      [](m x) { return overflow_of(x.n, static_cast<char*>(opaque(std::calloc(1, opaque_size(x.n))))); },
      {100, 400'000});
  add("overflow/aligned",
      [](m x) { return overflow_of(x.n, static_cast<char*>(opaque(::memalign(64, opaque_size(x.n))))); },
      {100, 400'000});
  add("overflow/realloc",
      [](m x) { return overflow_of(x.n, static_cast<char*>(opaque(std::realloc(block_of(10), opaque_size(x.n))))); },
      {100, 400'000});
  add("overflow/new",
      [](m x) {
        char* const p = static_cast<char*>(opaque(::operator new(opaque_size(x.n))));
        p[x.n] = 0x41;
        ::operator delete(opaque(p));
        return after(x.n);
      },
      {100});
  for (const size bytes : {size{12}, size{16}})
    add(
        "overflow/into-free-by-" + std::to_string(bytes), [](m x) { return overflow_into_free(x.n, x.bytes); },
        {24, 56, 104, 1016}, 0, bytes);
  add("overflow/another-thread", [](m x) { return overflow_in_another_thread(x.n); }, {100, 100'000});

  add("write-after-free/begin", [](m x) { return write_after_free(x.n, 0); }, {16, 100, 1000, 100'000, 400'000});
  add("write-after-free/second-word", [](m x) { return write_after_free(x.n, 8); }, {16, 100, 1000, 100'000});
  add("write-after-free/middle", [](m x) { return write_after_free(x.n, x.n / 2); }, {100, 1000, 100'000, 400'000});
  add("write-after-free/end", [](m x) { return write_after_free(x.n, x.n - 1); }, {16, 100, 1000, 100'000, 5'000'000});
  add("write-after-free/many-begin", [](m x) { return write_to_one_of_many(x.n, 0); }, {24, 100, 2000, 5000, 40'000});
  add("write-after-free/many-middle", [](m x) { return write_to_one_of_many(x.n, x.n / 2); },
      {24, 100, 2000, 5000, 40'000});
  add("write-after-free/reused-begin", [](m x) { return write_before_reuse(x.n, 0); }, {100, 2000, 5000, 40'000});
  add("write-after-free/reused-middle", [](m x) { return write_before_reuse(x.n, x.n / 2); },
      {100, 2000, 5000, 40'000});
  add("write-after-free/of-another", [](m x) { return write_after_free_of_another(x.n); }, {24, 100, 5000});
  add("write-after-free/last", [](m x) { return write_after_last_free(x.n); }, {100, 1000, 100'000});
  add("write-after-free/another-thread", [](m x) { return write_after_free_in_another_thread(x.n); }, {100, 1000});
  add("write-after-free/link", [](m x) { return link_corrupted(x.n); }, {16, 100, 1000});
  add("read-after-free/content", [](m x) { return read_after_free(x.n); }, {16, 100, 1000, 100'000, 400'000});
  add("read-after-free/new-block", [](m x) { return old_content(x.n); }, {16, 100, 1000, 100'000});

  add("read-after-free/resized", [](m x) { return content_after_resize(x.n); }, {100, 5000, 400'000});

  const char* const of_no_bytes[] = {"malloc", "new", "calloc"};
  for (size by = 0; by < 3; ++by) {
    const std::string entry = of_no_bytes[by];
    all.push_back({"size/write-to-no-bytes/" + entry, [](m x) { return write_to_no_bytes(x.n); }, by});
    all.push_back({"size/write-to-kept-no-bytes/" + entry, [](m x) { return write_to_kept_no_bytes(x.n); }, by});
    all.push_back({"size/read-no-bytes/" + entry, [](m x) { return read_no_bytes(x.n); }, by});
  }
  const char* const large[] = {"malloc-max",   "malloc-near-max", "malloc-ptrdiff", "calloc",
                               "reallocarray", "aligned_alloc",   "memalign",       "realloc"};
  for (size which = 0; which < std::size(large); ++which)
    all.push_back({std::string("size/too-large/") + large[which], [](m x) { return too_large(x.n); }, which});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<mistake> all = all_mistakes();
  const std::string_view wanted = argc == 2 ? argv[1] : "";
  if (wanted == "--list") {
    for (const mistake& one : all) std::puts(one.name.c_str());
    return 0;
  }
  const auto found = std::ranges::find(all, wanted, &mistake::name);
  if (found == all.end()) {
    std::fprintf(stderr, "corruptions: no mistake is called %s; --list has them\n", argc == 2 ? argv[1] : "(nothing)");
    return no_such_mistake;
  }
  const mistake one = *found;
  release(block_of(1));
  return one.make(one);
}
