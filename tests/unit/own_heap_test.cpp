// Heaps of one's own: any thread allocates and frees, each heap counts and limits for itself, can
// be looked through, and gives everything back at its end. own_heap_ends_test.cpp has the ends of
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <heapwright/core/concepts.hpp>
#include <heapwright/heap.hpp>
#include <heapwright/heap/malloc_heap.hpp>

#include "addresses.hpp"

namespace heapwright {
namespace {

constexpr recipe one_at_a_time{.concurrency = concurrency_mode::central};
constexpr recipe with_mixed_spans{.spans = {.mixed_up_to = 2 * KiB}};

using own_heap = heap<default_recipe>;
static_assert(allocator<own_heap> && can_own<own_heap> && can_deallocate_unsized<own_heap> && can_trim<own_heap> &&
              has_usable_size<own_heap>);

// A char array is the heap's memory or its name: neither by chance.
static_assert(!std::is_constructible_v<own_heap, char*, std::size_t>);
static_assert(!std::is_constructible_v<malloc_heap<own_heap>, char*, int>);
static_assert(std::is_constructible_v<own_heap, std::byte*, std::size_t>);
static_assert(std::is_constructible_v<own_heap, const char*, std::uint64_t>);

void expect_sums(const heap_statistics& s) {
  EXPECT_EQ(s.mapped, s.in_use + s.in_caches + s.free_in_spans + s.free_resident + s.free_decommitted);
  for (const std::uint64_t part : {s.in_use, s.in_caches, s.free_in_spans, s.free_resident, s.free_decommitted})
    EXPECT_LE(part, s.mapped);
  EXPECT_LE(s.metadata_resident, s.metadata);
}

template <class Heap>
std::map<const void*, std::size_t> blocks_of(Heap& h) {
  std::map<const void*, std::size_t> found;
  EXPECT_TRUE(
      h.for_each_block([&](const void* p, std::size_t bytes) { EXPECT_TRUE(found.emplace(p, bytes).second) << p; }));
  return found;
}

/// Random operations on one heap by one thread, against a model; blocks left over go to others.
template <class Heap>
class user {
 public:
  user(Heap& h, unsigned seed) : heap_(h), random_(seed) {}

  struct block {
    unsigned char* p;
    std::size_t size;
    unsigned char pattern;
  };

  void work(int operations, std::vector<block>& held) {
    for (int i = 0; i < operations; ++i) {
      if (held.empty() || random_() % 2 == 0) {
        held.push_back(make());
      } else {
        std::swap(held[random_() % held.size()], held.back());
        block b = held.back();
        held.pop_back();
        if (random_() % 8 == 0) {
          const std::size_t size = 1 + random_() % (2 * b.size);
          auto* const moved = static_cast<unsigned char*>(heap_.reallocate(b.p, size));
          if (moved == nullptr) {
            ADD_FAILURE() << "no memory";
            return;
          }
          b.p = moved;
          check({moved, std::min(size, b.size), b.pattern});
          std::memset(moved, b.pattern, size);
          b.size = size;
        }
        check(b);
        heap_.deallocate(b.p);
      }
    }
  }

 private:
  block make() {
    const std::size_t size = 1 + (random_() % 200 == 0  ? random_() % 600'000
                                  : random_() % 10 == 0 ? random_() % 9000
                                                        : random_() % 300);
    const std::size_t alignment = random_() % 16 == 0 ? std::size_t{16} << random_() % 9 : 16;
    auto* const p = static_cast<unsigned char*>(heap_.allocate({size, alignment}));
    EXPECT_TRUE(p != nullptr && is_aligned(p, alignment)) << size << " aligned to " << alignment;
    EXPECT_GE(heap_.usable_size(p), size);
    const auto pattern = static_cast<unsigned char>(random_());
    std::memset(p, pattern, size);
    return {p, size, pattern};
  }

  static void check(const block& b) {
    const bool same = std::all_of(b.p, b.p + b.size, [&](unsigned char c) { return c == b.pattern; });
    EXPECT_TRUE(same) << "a block was written to by somebody else";
  }

  Heap& heap_;
  std::minstd_rand random_;
};

template <class Heap>
class OwnHeap : public ::testing::Test {
 protected:
  static void use_on_threads(Heap& h, unsigned threads, int operations) {
    using block = typename user<Heap>::block;
    std::mutex lock;
    std::vector<block> passed_on;
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        user<Heap> me(h, t + 1);
        std::vector<block> held;
        for (int round = 0; round < 4; ++round) {
          me.work(operations / 4, held);
          const std::scoped_lock exchange(lock);
          held.swap(passed_on);
        }
        const std::scoped_lock leave(lock);
        passed_on.insert(passed_on.end(), held.begin(), held.end());
      });
    }
    for (auto& t : running) t.join();
    for (const block& b : passed_on) h.deallocate(b.p);
  }
};

using Modes =
    ::testing::Types<own_heap, heap<one_at_a_time>, local_heap<>, heap<with_mixed_spans>, local_heap<with_mixed_spans>>;
TYPED_TEST_SUITE(OwnHeap, Modes);

TYPED_TEST(OwnHeap, ServesARandomProgram) {
  TypeParam h("one");
  user<TypeParam> me(h, 7);
  std::vector<typename user<TypeParam>::block> held;
  me.work(40'000, held);
  std::map<const void*, std::size_t> expected;
  for (const auto& b : held) expected.emplace(b.p, h.usable_size(b.p));
  EXPECT_EQ(blocks_of(h), expected);
  expect_sums(h.statistics());
  for (const auto& b : held) h.deallocate(b.p);
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_TRUE(blocks_of(h).empty());
  h.trim();
  const heap_statistics after = h.statistics();
  EXPECT_EQ(after.in_caches + after.free_in_spans + after.free_resident, 0u);
}

/// The platform, which keeps the account of what is mapped.
class counting_os : public native_os {
 public:
  static void* map(std::size_t bytes) noexcept {
    mapped += bytes;
    return native_os::map(bytes);
  }
  static bool unmap(void* p, std::size_t bytes) noexcept {
    mapped -= bytes;
    return native_os::unmap(p, bytes);
  }
  static void* remap(void* p, std::size_t from, std::size_t to) noexcept {
    void* const moved = native_os::remap(p, from, to);
    if (moved != nullptr) mapped += to - from;
    return moved;
  }

  static inline std::atomic<std::size_t> mapped{0};
};

template <const recipe& R>
void live_and_die(std::size_t step) {
  basic_heap<R, counting_os> h;
  for (std::size_t i = 0; i < 300; ++i) ASSERT_NE(h.allocate(i * step + 1), nullptr);
  ASSERT_NE(h.allocate({3 * MiB, 2 * MiB}), nullptr);
  void* p = h.allocate(1 * MiB);
  for (std::size_t size = 2 * MiB; size < 40 * MiB; size *= 2) p = h.reallocate(p, size);
  std::thread([&] { ASSERT_NE(h.allocate(100), nullptr); }).join();
}

/// The platform, where huge pages keep all in memory that was ever touched near by.
class generous_os : public native_os {
 public:
  static std::size_t resident(void*, std::size_t bytes) noexcept { return bytes; }
};

TEST(OwnHeaps, TellWhatHugePagesKeepInMemory) {
  basic_heap<default_recipe, generous_os> generous;
  ASSERT_NE(generous.allocate(100), nullptr);
  const heap_statistics s = generous.statistics();
  EXPECT_GT(s.huge_excess, 0u);
  EXPECT_EQ(s.huge_excess, s.free_decommitted);
  text<2000> json;
  s.write_json(json);
  EXPECT_NE(std::string(json.c_str()).find("\"huge_excess\": "), std::string::npos);
}

TEST(OwnHeaps, TellWhatEachThreadKeeps) {
  heap<default_recipe> h;
  const auto keep = [&h](int n) {
    std::vector<void*> blocks;
    for (int i = 0; i < n; ++i) blocks.push_back(h.allocate(64));
    for (void* p : blocks) h.deallocate(p);
  };
  keep(1000);
  std::map<std::uint32_t, std::uint64_t> caches;
  std::uint64_t sum = 0;
  std::thread([&] {
    keep(10);
    h.for_each_cache([&](std::uint32_t cache, std::uint64_t bytes) {
      caches[cache] = bytes;
      sum += bytes;
    });
  }).join();
  ASSERT_EQ(caches.size(), 2u);
  EXPECT_GT(caches.begin()->second, caches.rbegin()->second) << "the first thread has freed more";
  EXPECT_GE(caches.rbegin()->second, 10u * 64);
  EXPECT_EQ(h.statistics().in_caches, sum);
}

#ifndef _WIN32  // it moves no pages: a text that grows is copied
TEST(OwnHeaps, KeepWhatATextGrewToForTheNextThatGrows) {
  heap<default_recipe> h;
  const auto grow = [&h] {
    void* text = h.allocate(100);
    for (std::size_t size = 100; size < 8 * MiB; size += size / 16 + 24) {
      text = h.reallocate(text, size);
      ASSERT_NE(text, nullptr);
    }
    h.deallocate(text);
  };
  for (int i = 0; i < 20; ++i) grow();
  EXPECT_EQ(h.statistics().decommitted_total, 0u);
}
#endif

#if defined(__x86_64__)  // an emulator's kernel says something else
/// The platform, which remembers its first mapping.
class remembering_os : public native_os {
 public:
  static void* map(std::size_t bytes) noexcept {
    void* const p = native_os::map(bytes);
    if (first == nullptr) first = p, first_bytes = bytes;
    return p;
  }

  static inline void* first = nullptr;
  static inline std::size_t first_bytes = 0;
};

TEST(OwnHeaps, AreSmallAsLongAsTheyAreEmpty) {
  const basic_heap<default_recipe, remembering_os> h;
  EXPECT_LE(native_os::resident(remembering_os::first, remembering_os::first_bytes), 8 * 4 * KiB);
}
#endif

TEST(OwnHeaps, GiveEverythingBackAtTheirEnd) {
  for (std::size_t step = 1; step < 3000; step = step * 2 + 1) {
    live_and_die<default_recipe>(step);
    ASSERT_EQ(counting_os::mapped, 0u) << step;
    live_and_die<one_at_a_time>(step);
    ASSERT_EQ(counting_os::mapped, 0u) << step;
    live_and_die<for_one_thread<default_recipe>>(step);
    ASSERT_EQ(counting_os::mapped, 0u) << step;
  }
}

TYPED_TEST(OwnHeap, HasALimit) {
  TypeParam small("small", 4 * MiB);
  TypeParam other("other");
  std::vector<void*> blocks;
  for (void* p = small.allocate(1000); p != nullptr; p = small.allocate(1000)) blocks.push_back(p);
  EXPECT_GT(blocks.size() * 1000, 3 * MiB);
  EXPECT_LE(blocks.size() * 1000, 4 * MiB);
  EXPECT_EQ(small.allocate(1 * MiB), nullptr);
  EXPECT_EQ(small.reallocate(blocks.back(), 1 * MiB), nullptr);
  EXPECT_NE(other.allocate(5 * MiB), nullptr) << "a limit is one heap's";
  for (void* p : blocks) small.deallocate(p);
  void* const p = small.allocate(3 * MiB);
  EXPECT_NE(p, nullptr) << "what is free in small blocks makes room for large ones";
  const heap_statistics s = small.statistics();
  EXPECT_LE(s.in_use + s.in_caches + s.free_in_spans + s.free_resident, 4 * MiB);
  EXPECT_EQ(small.allocate(2 * MiB), nullptr);
  small.set_limit(8 * MiB);
  EXPECT_NE(small.allocate(2 * MiB), nullptr);
}

TYPED_TEST(OwnHeap, LivesInMemoryOfTheCaller) {
  constexpr std::size_t bytes = 8 * MiB;
  const auto memory = std::make_unique<unsigned char[]>(bytes + 100);
  unsigned char* const begin = memory.get() + 50;
  {
    TypeParam h(begin, bytes, "in an array");
    std::vector<unsigned char*> blocks;
    for (std::size_t size = 1;; size = size * 3 % 50'021) {
      auto* const p = static_cast<unsigned char*>(h.allocate(size));
      if (p == nullptr) break;
      ASSERT_TRUE(p >= begin && p + size <= begin + bytes);
      std::memset(p, 0x3C, size);
      blocks.push_back(p);
    }
    const heap_statistics full = h.statistics();
    expect_sums(full);
    EXPECT_GT(full.in_use, bytes / 5 * 4);
    EXPECT_GT(full.mapped, bytes - 8 * KiB);
    for (unsigned char* p : blocks) h.deallocate(p);
    EXPECT_EQ(h.trim(), 0u) << "it is not the system's";
    EXPECT_EQ(h.statistics().free_resident, full.mapped);
    auto* const whole = static_cast<unsigned char*>(h.allocate_zeroed(bytes - 16 * KiB));
    ASSERT_NE(whole, nullptr) << "what was free in many parts is one again";
    EXPECT_TRUE(std::all_of(whole, whole + bytes - 16 * KiB, [](unsigned char c) { return c == 0; }));
    EXPECT_EQ(h.reallocate(whole, bytes * 2), nullptr);
    std::memset(whole, 0x77, bytes - 16 * KiB);
  }
  EXPECT_EQ(begin[bytes / 2], 0x77) << "it is as it was left";
  for (const std::size_t small : {0, 1, 100, 4096, 8192}) {
    TypeParam h(begin, small);
    EXPECT_EQ(h.attached(), h.allocate(1) != nullptr) << small;
  }
  EXPECT_FALSE(TypeParam(begin, 100).attached());
  EXPECT_TRUE(TypeParam().attached());
}

TYPED_TEST(OwnHeap, KnowsItsBlocksFromOthers) {
  TypeParam a("a"), b("b");
  void* const p = a.allocate(100);
  void* const q = b.allocate(100'000);
  EXPECT_TRUE(a.owns(p) && b.owns(q));
  EXPECT_FALSE(a.owns(q) || b.owns(p) || a.owns(nullptr) || a.owns(&a) ||
               a.owns(reinterpret_cast<void*>(~std::uintptr_t{0})));
  EXPECT_STREQ(a.name(), "a");
  EXPECT_EQ(blocks_of(a).size(), 1u);
  EXPECT_EQ(blocks_of(b).begin()->first, q);
}

TYPED_TEST(OwnHeap, TellsItsFiguresAsJson) {
  TypeParam h("with \"quotes\"");
  ASSERT_NE(h.allocate(1000), nullptr);
  text<2000> out;
  h.statistics().write_json(out);
  const std::string json = out.c_str();
  EXPECT_EQ(json.rfind("{\"name\": \"with \\\"quotes\\\"\", \"mapped\": 1048576, \"in_use\": 1024, ", 0), 0u) << json;
  EXPECT_EQ(json.back(), '}');
}

TYPED_TEST(OwnHeap, TellsWhatIsInUse) {
  TypeParam h("forgetful");
  for (const std::size_t size : {100, 100, 3000, 40'000, 5'000'000}) ASSERT_NE(h.allocate(size), nullptr);
  h.deallocate(h.allocate(200));
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("heapwright: forgetful: 2 blocks of 112 bytes, 224 B in use\n"
                       "heapwright: forgetful: 1 block of 3072 bytes, 3.0 KiB in use\n"
                       "heapwright: forgetful: 2 blocks of more, 4.8 MiB in use\n",
                       0),
            0u)
      << text;
}

TYPED_TEST(OwnHeap, TellsWhatIsInUseWithoutAName) {
  TypeParam h;
  ASSERT_NE(h.allocate(100), nullptr);
  ::testing::internal::CaptureStderr();
  h.write_blocks(2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "heapwright: (no name): 1 block of 112 bytes, 112 B in use\n");
}

TYPED_TEST(OwnHeap, ZeroedBlocksAreZero) {
  TypeParam h;
  for (const std::size_t size : {1, 1000, 40'000, 3'000'000}) {
    for (int i = 0; i < 3; ++i) {
      auto* const p = static_cast<unsigned char*>(h.allocate_zeroed(size));
      ASSERT_TRUE(std::all_of(p, p + size, [](unsigned char c) { return c == 0; })) << size;
      std::memset(p, 0xEE, size);
      h.deallocate(p);
    }
  }
  h.deallocate(nullptr);
}

template <class Heap>
class SharedHeap : public OwnHeap<Heap> {};
using SharedModes = ::testing::Types<own_heap, heap<one_at_a_time>, heap<with_mixed_spans>>;
TYPED_TEST_SUITE(SharedHeap, SharedModes);

TYPED_TEST(SharedHeap, ServesManyThreads) {
  TypeParam h;
  this->use_on_threads(h, 8, 8000);
  EXPECT_EQ(h.statistics().in_use, 0u);
  EXPECT_TRUE(blocks_of(h).empty());
}

TYPED_TEST(SharedHeap, FiguresAddUpUnderLoad) {
  TypeParam h;
  std::atomic<bool> done{false};
  std::thread looking([&] {
    while (!done) {
      expect_sums(h.statistics());
      std::size_t seen = 0;
      EXPECT_TRUE(h.for_each_block([&](const void*, std::size_t bytes) { seen += bytes; }));
      EXPECT_LE(seen, h.statistics().mapped_peak);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // locks are not fair
    }
  });
  this->use_on_threads(h, 3, 12'000);
  done = true;
  looking.join();
  EXPECT_EQ(h.statistics().in_use, 0u);
}

#ifndef _WIN32  // it has no fork
TYPED_TEST(SharedHeap, ChildOfAForkGoesOn) {
  TypeParam h;
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (unsigned t = 0; t < 2; ++t) {
    busy.emplace_back([&, t] {
      user<TypeParam> me(h, t);
      std::vector<typename user<TypeParam>::block> held;
      while (!done) me.work(100, held);
      for (const auto& b : held) h.deallocate(b.p);
    });
  }
  void* const mine = h.allocate(64);
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      h.deallocate(mine);
      for (std::size_t size = 1; size < 500'000; size += size / 3 + 1) {
        void* const p = h.allocate(size);
        if (p == nullptr) ::_exit(1);
        std::memset(p, 1, size);
        h.deallocate(p);
      }
      (void)h.statistics();
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  for (auto& t : busy) t.join();
}
#endif

TEST(OwnHeaps, AreLockedAndUnlockedWhileThreadsAreInThem) {
  own_heap h;
  std::atomic<bool> done = false;
  std::vector<std::thread> busy;
  for (unsigned t = 0; t < 2; ++t) {
    busy.emplace_back([&, t] {
      user<own_heap> me(h, t);
      std::vector<user<own_heap>::block> held;
      while (!done) me.work(100, held);
      for (const auto& b : held) h.deallocate(b.p);
    });
  }
  for (int i = 0; i < 10; ++i) {
    (void)h.lock_pages();  // the quota of this machine decides
    std::this_thread::yield();
    EXPECT_TRUE(h.unlock_pages());
    expect_sums(h.statistics());
  }
  done = true;
  for (auto& t : busy) t.join();
  EXPECT_EQ(h.statistics().in_use, 0u);
}

#ifndef _WIN32  // it has no fork
/// A heap's blocks in memory that is at the same place in another process: what one builds the
/// other reads.
TEST(OwnHeaps, InMemoryThatOtherProcessesSee) {
  constexpr std::size_t first_page = 64 * KiB, bytes = 4 * MiB;
  void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  struct link {
    link* next;
    int value;
  };
  auto** const list = static_cast<link**>(shared);
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    char c = 0;
    (void)!::read(go[0], &c, 1);
    int sum = 0;
    for (const link* l = *list; l != nullptr; l = l->next) sum += l->value;
    std::_Exit(sum == 5050 ? 0 : 1);
  }
  own_heap h(static_cast<std::byte*>(shared) + first_page, bytes - first_page);
  for (int i = 1; i <= 100; ++i) {
    void* const p = h.allocate(sizeof(link));
    ASSERT_NE(p, nullptr);
    *list = new (p) link{*list, i};
  }
  EXPECT_EQ(::write(go[1], "g", 1), 1);
  int status = 0;
  EXPECT_EQ(::waitpid(reader, &status, 0), reader);
  EXPECT_EQ(status, 0);
  for (int fd : go) ::close(fd);
}
#endif

TEST(OwnHeaps, MoreThanThereArePlaces) {
  std::vector<std::unique_ptr<own_heap>> many;
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<own_heap>());
    blocks.push_back(many.back()->allocate(100));
    ASSERT_NE(blocks.back(), nullptr);
    ASSERT_NE(many.back()->allocate_zeroed(100'000), nullptr);
  }
  for (std::size_t i = 0; i < many.size(); ++i) {
    void* const moved = many[i]->reallocate(blocks[i], 5000);
    ASSERT_NE(moved, nullptr);
    many[i]->deallocate(moved);
    EXPECT_EQ(blocks_of(*many[i]).size(), 1u);
    many[i]->trim();
  }
}

struct with_a_recipe {
  static constexpr recipe member{.pages = {.limit = 2 * MiB}};
};

TEST(OwnHeaps, ARecipeMayBeAMemberOrALocalObject) {
  static constexpr recipe local{.pages = {.limit = 3 * MiB}};
  heap<with_a_recipe::member> first;
  heap<local> second;
  local_heap<local> third;
  EXPECT_EQ(first.statistics().limit, 2 * MiB);
  EXPECT_EQ(second.statistics().limit, 3 * MiB);
  EXPECT_EQ(third.statistics().limit, 3 * MiB);
}

template <class Heap>
void expect_foreign(Heap& h, void* p) {
  EXPECT_EQ(h.usable_size(p), 0U) << p;
  EXPECT_FALSE(h.owns(p)) << p;
  if constexpr (checks_callers) {
    EXPECT_DEATH(h.deallocate(p), "heapwright: free of a foreign pointer: 0x");
    EXPECT_DEATH((void)h.reallocate(p, 100), "heapwright: realloc of a foreign pointer: 0x");
  } else {
    h.deallocate(p);
    EXPECT_EQ(h.reallocate(p, 100), nullptr) << p;
    EXPECT_EQ(h.reallocate(p, 1 * MiB), nullptr) << p;
  }
}

template <const recipe& R>
void expect_addresses_beyond_48_bits_to_be_foreign() {
  heap<R> h;
  for (const std::size_t size : {std::size_t{40}, 1 * MiB}) {
    void* const p = h.allocate(size);
    for (void* const beyond : testing::addresses_beyond_48_bits(p)) expect_foreign(h, beyond);
    const heap_statistics s = h.statistics();
    EXPECT_GE(s.in_use, size) << "the block is still in use";
    h.deallocate(p);
  }
}

TEST(OwnHeapsDeathTest, AddressesBeyond48BitsAreForeign) {
  expect_addresses_beyond_48_bits_to_be_foreign<default_recipe>();
  expect_addresses_beyond_48_bits_to_be_foreign<one_at_a_time>();
}

TEST(OwnHeapsDeathTest, APointerOfAnotherHeapIsForeign) {
  own_heap one;
  own_heap other;
  void* const p = other.allocate(40);
  expect_foreign(one, p);
  other.deallocate(p);
}

}  // namespace
}  // namespace heapwright
