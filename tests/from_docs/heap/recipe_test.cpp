// States what the documentation says of each field of a recipe: "What can be said" in
// docs/recipes.md, docs/memory-return.md, the docstrings of heap/recipe.hpp. Written without the
// code.
#include "model.hpp"

#include <sys/mman.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace {

using namespace from_docs;
using heapwright::concurrency_mode;
using heapwright::give_back_policy;
using heapwright::heap;
using heapwright::huge_page_use;
using heapwright::recipe;

template <const recipe& R>
void model(const expectations& e = {}) {
  heap<R> h("model");
  behaves_as_documented(h, e, 600, 11);
}

bool is_resident(const void* p, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{4095};
  const auto last = (reinterpret_cast<std::uintptr_t>(p) + bytes - 1) & ~std::uintptr_t{4095};
  std::vector<unsigned char> pages((last - first) / 4096 + 1);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), last - first + 4096, pages.data()), 0);
  for (const auto page : pages)
    if ((page & 1) == 0) return false;
  return true;
}

// "A heap that one thread uses at a time, and the program sees to it"
TEST(LocalHeap, DoesWhatTheModelSaysInOneThreadAfterTheOther) {
  heapwright::local_heap<> h("local");
  EXPECT_STREQ(h.name(), "local");
  void* kept = nullptr;
  std::thread([&] {
    behaves_as_documented(h, {}, 800);
    kept = h.allocate(100);
  }).join();
  h.deallocate(kept);
  behaves_as_documented(h, {}, 800, 2);
  h.trim();
  EXPECT_EQ(h.statistics().free_resident, 0u);
}

// "The recipe R for one thread at a time." Nothing else of it is another.
constexpr recipe limited{.classes = {.steps_per_doubling = 4}, .pages = {.limit = 2 * MiB}};
TEST(ForOneThread, ChangesTheConcurrencyAlone) {
  constexpr const recipe& r = heapwright::for_one_thread<limited>;
  static_assert(r.concurrency == concurrency_mode::single_threaded);
  static_assert(r.classes.steps_per_doubling == 4 && r.pages.limit == 2 * MiB);
  heapwright::local_heap<limited> h;
  EXPECT_EQ(h.statistics().limit, 2 * MiB);  // "instead of recipe.pages.limit", where it is given
  EXPECT_EQ(h.allocate(3 * MiB), nullptr);
  EXPECT_NE(h.allocate(1 * MiB), nullptr);
  heapwright::local_heap<limited> more("", 8 * MiB);
  EXPECT_NE(more.allocate(3 * MiB), nullptr);
}

// "central: one cache for all threads, under a lock"; "nothing is kept for each thread"
constexpr recipe central{.concurrency = concurrency_mode::central};
TEST(Central, DoesWhatTheModelSays) { model<central>(); }

// "the first sizes one by one, multiples of 16, or of 8"
constexpr recipe listed{.classes = {.exact = {48, 112, 256}}};
TEST(Classes, AreThoseOfTheList) {
  heap<listed> h;
  for (const auto& [asked, got] : {std::pair{1u, 48u}, {48u, 48u}, {49u, 112u}, {113u, 256u}, {257u, 288u}}) {
    void* const p = h.allocate(asked);
    EXPECT_EQ(h.usable_size(p), got) << asked;
    h.deallocate(p);
  }
  model<listed>();
}

// "blocks that are aligned to 8 only, for sizes that are no multiple of 16 themselves"
constexpr recipe eights{.classes = {.exact = {16, 24, 40, 56, 64}}};
TEST(Classes, OfEightsAreAlignedTo8WhereTheSizeIsNoMultipleOf16) {
  heap<eights> h;
  void* const p = h.allocate(24);
  EXPECT_EQ(h.usable_size(p), 24u);
  h.deallocate(p);
  behaves_as_documented(h, {.aligns_to_8 = true}, 1200);
}

// "how finely sizes are rounded, and up to where"
constexpr recipe powers_of_two{.classes = {.steps_per_doubling = 1, .largest = 64 * KiB}};
TEST(Classes, OfOneStepPerDoublingArePowersOfTwo) {
  heap<powers_of_two> h;
  for (std::size_t size = 17; size <= 16 * KiB; size = size * 5 / 3) {
    void* const p = h.allocate(size);
    const std::size_t usable = h.usable_size(p);
    const std::size_t least = powers_of_two.classes.size(powers_of_two.classes.index(size));
    EXPECT_EQ(least & (least - 1), 0u) << size;
    EXPECT_LE(usable, least + (size > 4 * KiB ? 64 : 0))
        << size;  // "from 8 KiB on a block may have up to 64 bytes more"
    EXPECT_GE(usable, least) << size;
    h.deallocate(p);
  }
  behaves_as_documented(h, {}, 600);
}

// "spans: how many pages a class takes at once"; all threads' limits at their least
constexpr recipe least{.spans = {.largest_cut = 32 * KiB,
                                 .small = 16,
                                 .first_of_small = {4 * KiB, 1, 2},
                                 .first = {4 * KiB, 1, 2},
                                 .last = {4 * KiB, 1, 2},
                                 .kept_empty = 0},
                       .thread_cache = {.first_bytes = 16,
                                        .share_bytes = 16,
                                        .max_long_bytes = 16,
                                        .max_blocks_per_class = 1,
                                        .max_parked = 0,
                                        .batch_bytes = 1,
                                        .max_batch = 1},
                       .pages = {.growth = 64 * KiB,
                                 .max_growth = 64 * KiB,
                                 .max_free_resident = 0,
                                 .give_back = give_back_policy::at_once,
                                 .coalesce = false}};
TEST(Limits, AtTheirLeastDoWhatTheModelSays) {
  heap<least> h;
  behaves_as_documented(h, {}, 600);
  EXPECT_LE(h.statistics().free_resident, 256 * KiB);  // "at_once: beyond max_free_resident, up to 256 KiB late"
}

// "limits are the greatest from the start": a thread keeps all of a class at once
constexpr recipe fixed{.thread_cache = {.fixed = true, .keep_remote = true}};
TEST(ThreadCache, ThatIsFixedKeepsWhatItMayFromTheStart) {
  heap<fixed> h;
  const auto kept = [](auto& of) {
    std::vector<void*> blocks;
    for (int i = 0; i < 60; ++i) blocks.push_back(of.allocate(1000));
    for (void* const p : blocks) of.deallocate(p);
    std::uint64_t bytes = 0;
    of.for_each_cache([&](std::uint32_t, std::uint64_t b) { bytes += b; });
    return bytes;
  };
  EXPECT_GE(kept(h), 60000u);  // within "64 KiB per class of short blocks"
  behaves_as_documented(h, {}, 600);
}

// "nothing, until somebody calls trim", "pages are touched as they are had from the system,
// `growth` bytes at a time"
constexpr recipe prefaulted{.pages = {.growth = 4 * MiB, .give_back = give_back_policy::when_asked, .prefault = true}};
TEST(Pages, ThatArePrefaultedAreThereBeforehandAndStay) {
  heap<prefaulted> h;
  void* const p = h.allocate(1 * MiB);
  EXPECT_TRUE(is_resident(p, 1 * MiB));
  EXPECT_GE(h.statistics().mapped, 4 * MiB);  // "least address space asked for at once"
  EXPECT_EQ(h.statistics().free_decommitted, 0u);
  void* const q = h.allocate(20 * MiB);
  EXPECT_TRUE(is_resident(q, 20 * MiB));
  h.deallocate(p);
  h.deallocate(q);
  EXPECT_EQ(h.statistics().decommitted_total, 0u);
  EXPECT_EQ(h.statistics().free_decommitted, 0u);
  EXPECT_GE(h.trim(), 20 * MiB);
  EXPECT_EQ(h.statistics().free_resident, 0u);
  behaves_as_documented(h, {}, 600);
}

// "at_once beyond max_free_resident"
constexpr recipe at_once{.pages = {.max_free_resident = 512 * KiB, .give_back = give_back_policy::at_once}};
TEST(Pages, BeyondMaxFreeResidentGoBackAtOnce) {
  heap<at_once> h;
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(h.allocate(300 * KiB));
  for (void* const p : blocks) {
    h.deallocate(p);
    ASSERT_LE(h.statistics().free_resident, 512 * KiB + 256 * KiB);  // "up to 256 KiB late"
  }
  EXPECT_GT(h.statistics().decommitted_total, 10 * MiB);
  behaves_as_documented(h, {}, 600);
}

// "runs this long are unmapped, shorter ones keep their address space"; "pages that stayed free
// this long are given back"
constexpr recipe soon{.pages = {.purge_window_ms = 2}};
constexpr recipe keeps_addresses{.pages = {.unmap_from = SIZE_MAX}};
TEST(Pages, ThatStayedFreeForAWindowAreGivenBack) {
  heap<soon> h;
  h.deallocate(h.allocate(40 * MiB));
  // "the clock is looked at every few hundred calls"
  for (int i = 0; i < 1000 && h.statistics().free_resident > 2 * MiB; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int n = 0; n < 2000; ++n) h.deallocate(h.allocate(3000 + 50 * static_cast<std::size_t>(n % 100)));
  }
  EXPECT_LE(h.statistics().free_resident, 2 * MiB);
  EXPECT_GE(h.statistics().decommitted_total, 38 * MiB);
  EXPECT_LT(h.statistics().mapped, 20 * MiB);  // unmapped: "runs this long"
}
TEST(Pages, KeepTheirAddressSpaceUpToUnmapFrom) {
  heap<keeps_addresses> h;
  h.deallocate(h.allocate(40 * MiB));
  h.trim();
  const auto s = h.statistics();
  EXPECT_GE(s.mapped, 40 * MiB);
  EXPECT_GE(s.free_decommitted, 40 * MiB);
  EXPECT_EQ(s.free_resident, 0u);
}

// "asks for pages of 2 MiB wherever they can be had"; "takes those that the administrator has set
// aside, and then as transparent"; "What is asked of the system and cannot be had (huge pages,
// locking, a node) is not an error"
constexpr recipe transparent{.pages = {.growth = 4 * MiB, .huge = huge_page_use::transparent}};
constexpr recipe reserved{.pages = {.growth = 4 * MiB, .huge = huge_page_use::reserved}};
template <const recipe& R>
void huge() {
  heap<R> h;
  void* const p = h.allocate(16 * MiB);
  ASSERT_NE(p, nullptr);
  std::memset(p, 1, 16 * MiB);
  const auto s = h.statistics();
  if (s.huge_transparent_total + s.huge_reserved_total == 0) std::printf("no huge pages to be had\n");
  EXPECT_LE(s.huge_excess, s.free_decommitted);  // "of free_decommitted"
  h.deallocate(p);
  behaves_as_documented(h, {}, 800);
  h.trim();
  const auto trimmed = h.statistics();
  EXPECT_LE(trimmed.huge_excess, trimmed.free_decommitted);
  EXPECT_EQ(trimmed.mapped, sum_of_parts(trimmed));
}
TEST(Pages, OfTwoMiBAreAskedFor) {
  heap<transparent> h;
  ASSERT_NE(h.allocate(16 * MiB), nullptr);
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string words;
  std::getline(setting, words);
  if (!words.empty() && words.find("[never]") == std::string::npos) {
    EXPECT_GT(h.statistics().huge_transparent_total, 0u);
  }
  EXPECT_EQ(h.statistics().huge_reserved_total, 0u);
  huge<transparent>();
}
TEST(Pages, OfTwoMiBThatWereSetAsideAreTakenFirst) { huge<reserved>(); }

// "pages are locked in memory, as far as the system's quota goes"; "had so far in locked pages"
constexpr recipe locked{.pages = {.growth = 64 * KiB, .give_back = give_back_policy::when_asked, .locked = true}};
TEST(Pages, AreLockedAsFarAsTheQuotaGoes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers make mlock do nothing";
#endif
  const auto in_process = [] {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmLck:") {
        std::uint64_t kib = 0;
        status >> kib;
        return kib * 1024;
      }
    return std::uint64_t{0};
  };
  const auto before = in_process();
  heap<locked> h;
  void* const p = h.allocate(100 * KiB);
  ASSERT_NE(p, nullptr);
  const auto s = h.statistics();
  EXPECT_LE(s.locked_total, s.mapped_peak);
  EXPECT_EQ(in_process() - before, s.locked_total);
  if (s.locked_total != 0) {
    EXPECT_TRUE(is_resident(p, 100 * KiB));
  }
  h.deallocate(p);
  behaves_as_documented(h, {}, 500);
}

// "come from this node"; a node that is not there "is not an error: the figures tell how much was
// had in which way"
constexpr recipe on_node_0{.pages = {.numa_node = 0}};
constexpr recipe on_node_63{.pages = {.numa_node = 63}};
TEST(Pages, ComeFromTheNode) {
  heap<on_node_0> h;
  std::memset(h.allocate(1 * MiB), 1, 1 * MiB);
  EXPECT_LE(h.statistics().bound_total, h.statistics().mapped_peak);
  heap<on_node_63> nowhere;
  void* const p = nowhere.allocate(1 * MiB);
  ASSERT_NE(p, nullptr);
  std::memset(p, 1, 1 * MiB);
  EXPECT_EQ(nowhere.statistics().bound_total, 0u);
}

// "what was in a block is overwritten when it is freed"
constexpr recipe zeroing{.hardening = {.zero_freed = true}};
TEST(Hardening, OverwritesWhatIsFreed) {
  constexpr std::size_t bytes = 2 * MiB;
  auto* const memory =
      static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  {
    heap<zeroing> h(static_cast<void*>(memory), bytes);
    const std::string secret(200000, 'S');
    for (const std::size_t size : {24u, 500u, 5000u, 40000u, 200000u}) {
      auto* const p = static_cast<char*>(h.allocate(size));
      std::memcpy(p, secret.data(), size);
      h.deallocate(p);
      auto* const q = static_cast<char*>(h.allocate(size));
      std::memcpy(q, secret.data(), size);
      void* const grown = h.reallocate(q, size + 3 * size);  // what it leaves behind is freed
      std::memset(grown, 0, size);
      h.deallocate(grown);
    }
    auto* const few = static_cast<char*>(h.allocate(100));
    std::memcpy(few, secret.data(), 100);
    void* const fewer = h.reallocate(few, 20);
    h.deallocate(fewer);
    EXPECT_EQ(h.statistics().in_use, 0u);
    EXPECT_EQ(std::string_view(memory, bytes).find("SSSSSSSS"), std::string_view::npos);
    behaves_as_documented(h, {.may_be_exhausted = true}, 600);
  }
  munmap(memory, bytes);
}

// "each block is 8 bytes longer and notes how much was asked for, so that statistics() tells what
// rounding takes"
constexpr recipe noting{.notes_requests = true};
TEST(NotesRequests, TellsWhatWasAskedFor) {
  heap<noting> h;
  void* const p = h.allocate(100);
  EXPECT_EQ(h.statistics().requested, 100u);
  void* const q = h.reallocate(p, 90);
  EXPECT_EQ(h.statistics().requested, 90u);
  void* const zeroed = h.allocate_zeroed(1000);
  void* const aligned = h.allocate(layout{3000, 4096});
  EXPECT_EQ(h.statistics().requested, 90u + 1000 + 3000);
  EXPECT_GT(h.statistics().in_use, h.statistics().requested);
  for (void* const block : {q, zeroed, aligned}) h.deallocate(block);
  EXPECT_EQ(h.statistics().requested, 0u);
  behaves_as_documented(h, {.notes_requests = true}, 600);
}
constexpr recipe noting_all{.concurrency = concurrency_mode::single_threaded,
                            .classes = {.exact = {16, 48, 64}},
                            .hardening = {.zero_freed = true, .check_callers = true, .guard_large = true},
                            .notes_requests = true};
TEST(NotesRequests, TogetherWithAllHardeningDoesWhatTheModelSays) {
  heap<noting_all> h;
  behaves_as_documented(h, {.notes_requests = true}, 600);
}

// "For a request of so many bytes, with no lock held, so that it may free blocks, also of this
// heap. True: worth another try."
struct reserve {
  void* memory = nullptr;
  void (*give)(void*) = nullptr;
  std::vector<std::size_t> asked;
} hoard;
constexpr heapwright::out_of_memory_handler gives_its_reserve{.ask = [](std::size_t bytes) noexcept {
  hoard.asked.push_back(bytes);
  if (hoard.memory == nullptr) return false;
  hoard.give(std::exchange(hoard.memory, nullptr));
  return true;
}};
constexpr recipe asking{.pages = {.limit = 4 * MiB}, .out_of_memory = &gives_its_reserve};
TEST(OutOfMemory, AsksTheHandlerAndTriesAgain) {
  static heap<asking>* asked_of;
  heap<asking> h;
  asked_of = &h;
  hoard = {h.allocate(3 * MiB), [](void* p) { asked_of->deallocate(p); }, {}};
  ASSERT_TRUE(hoard.asked.empty());
  void* p = h.allocate(2 * MiB);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(hoard.asked, (std::vector<std::size_t>{2 * MiB}));
  EXPECT_EQ(h.allocate(3 * MiB), nullptr);  // it has no more: "null"
  EXPECT_EQ(hoard.asked, (std::vector<std::size_t>{2 * MiB, 3 * MiB}));
  std::memset(p, 9, 2 * MiB);
  EXPECT_EQ(h.reallocate(p, 8 * MiB), nullptr);
  EXPECT_EQ(static_cast<char*>(p)[2 * MiB - 1], 9);  // "p is as it was"
  EXPECT_EQ(h.allocate_zeroed(3 * MiB), nullptr);
  EXPECT_EQ(h.allocate(layout{3 * MiB, 65536}), nullptr);
  EXPECT_EQ(hoard.asked.size(), 5u);
  h.deallocate(p);
  hoard.memory = h.allocate(3 * MiB);
  p = h.allocate_zeroed(2 * MiB);
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
}

// "at most 1/16 of a span may be left over behind its last block"; "Whether the divisor and the
// count of blocks are not zero."
TEST(SpanLength, IsValidUnlessSomethingIsZero) {
  EXPECT_TRUE((heapwright::span_length{4096, 1, 8}.is_valid()));
  EXPECT_FALSE((heapwright::span_length{4096, 0, 8}.is_valid()));
  EXPECT_FALSE((heapwright::span_length{4096, 1, 0}.is_valid()));
}

// The table in docs/recipes.md and the docstrings: defaults.
TEST(Recipe, HasTheDocumentedDefaults) {
  constexpr recipe r;
  static_assert(r.concurrency == concurrency_mode::thread_caching && r.classes.steps_per_doubling == 8 &&
                r.classes.largest == 256 * KiB);
  static_assert(r.thread_cache.share_bytes == 1 * MiB && !r.thread_cache.keep_remote && !r.thread_cache.fixed);
  static_assert(r.pages.give_back == give_back_policy::over_time && r.pages.purge_window_ms == 400 &&
                r.pages.growth == 1 * MiB);
  static_assert(r.pages.huge == huge_page_use::none && !r.pages.prefault && !r.pages.locked &&
                r.pages.numa_node == -1 && r.pages.coalesce);
  static_assert(r.pages.limit == UINT64_MAX && !r.hardening.zero_freed && !r.hardening.check_callers &&
                !r.hardening.guard_large);
  static_assert(!r.notes_requests && r.out_of_memory == nullptr);
}

}  // namespace
