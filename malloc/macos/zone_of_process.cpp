// libheapwright.dylib: what happens when it is loaded. Calls of malloc and the like are interposed
// (interposing.cpp), and the zone of ours is made the default one, for what asks the system for
// that: malloc_default_zone and malloc_zone_malloc. Blocks from before, and those that the system
// makes in zones of its own, go back to their zone.
#include <cstdlib>
#include <cstring>

#include <mach/mach.h>
#include <malloc/malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <heapwright/core/text.hpp>
#include <heapwright/heap/census.hpp>
#include <heapwright/malloc/process_report.hpp>

#include "../options.hpp"
#include "process_heap.hpp"
#include "zone.hpp"

namespace heapwright::process {
namespace {

/// As zone.hpp asks for it.
struct process_malloc {
  static void* allocate(std::size_t size) noexcept { return process::allocate(size); }
  static void* allocate_zeroed(std::size_t size) noexcept { return process::allocate_zeroed(size); }
  static void* allocate_aligned(std::size_t size, std::size_t alignment) noexcept {
    return process::allocate_aligned(size, alignment);
  }
  static void* reallocate(void* p, std::size_t usable, std::size_t size) noexcept {
    return process::reallocate(p, usable, size);
  }
  static bool deallocate(void* p) noexcept { return process::deallocate(p); }
  static std::size_t usable_size(const void* p) noexcept { return process::usable_size(p); }
  static std::size_t size_of_class(std::size_t size) noexcept { return rounded_up(size); }
  static std::size_t trim() noexcept { return process::trim(); }
  static std::size_t page_size() noexcept { return macos_os::page_size(); }
  static std::size_t held() noexcept { return the_heap.figures().mapped.get(); }
  static std::size_t held_peak() noexcept { return the_heap.figures().mapped_peak.get(); }
  static std::size_t in_use() noexcept {
    const malloc_statistics s = collect_statistics();
    return s.small_in_use + s.large_in_use;
  }
  template <class F>
  static void for_each_block(F f) noexcept {
    static_cast<void>(census<chosen_recipe, macos_os>(the_heap).for_each_block(f));
  }
  static void lock_all() noexcept { the_heap.lock_all(); }
  static void unlock_all() noexcept { the_heap.unlock_all(); }
  static void after_fork_in_child() noexcept { process::after_fork_in_child(); }
};

/// The system's own functions: in here, they are not interposed.
struct other_zones {
  static void free(void* p) noexcept { ::free(p); }
  static void* realloc(void* p, std::size_t size) noexcept { return ::realloc(p, size); }
};

constinit malloc_introspection_t introspection = zone<process_malloc>::make_introspection();
constinit malloc_zone_t the_zone = zone<process_malloc>::make<other_zones>("heapwright", &introspection);

[[nodiscard]] malloc_zone_t* first_zone() noexcept {
  vm_address_t* zones = nullptr;
  unsigned count = 0;
  if (::malloc_get_all_zones(mach_task_self(), nullptr, &zones, &count) != KERN_SUCCESS || count == 0) return nullptr;
  return reinterpret_cast<malloc_zone_t*>(zones[0]);
}

/// The first zone of the list is the default one. A zone that is taken out leaves its place to the
/// last, and goes to the end when it is put in again: so ours comes first after a round.
void make_default() noexcept {
  ::malloc_zone_register(&the_zone);
  constexpr int most_zones = 64;
  for (int i = 0; i < most_zones; ++i) {
    malloc_zone_t* const first = first_zone();
    if (first == nullptr || first == &the_zone) return;
    ::malloc_zone_unregister(first);
    ::malloc_zone_register(first);
  }
}

void write_report() noexcept {
  process_report r{};
  std::memcpy(r.magic, process_report::expected_magic, sizeof r.magic);
  r.bytes = sizeof r;
  r.process_id = static_cast<std::uint32_t>(::getpid());
  std::strncpy(r.version, HEAPWRIGHT_VERSION, sizeof r.version - 1);
  std::strncpy(r.build, HEAPWRIGHT_BUILD, sizeof r.build - 1);
  std::strncpy(r.command, ::getprogname(), sizeof r.command - 1);
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) r.peak_rss = static_cast<std::uint64_t>(used.ru_maxrss);
  r.heap = collect_statistics();
  text<1600> page;
  r.write_page(page);
  page.write_to(2);
}

[[gnu::constructor]] void begin_process() noexcept {
  options settings;
  settings.read([](const char* name) { return ::issetugid() == 0 ? std::getenv(name) : nullptr; });
  the_heap.pages().set_window(settings[option_id::purge_delay_ms]);
  make_default();
  if (settings[option_id::stats] == 1) std::atexit([] { write_report(); });
  if (settings[option_id::verbose] == 1) {
    text<200> line;
    line.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "): loaded into process ");
    line.add(static_cast<std::uint64_t>(::getpid())).add("\n").write_to(2);
  }
}

}  // namespace

malloc_zone_t* zone_of_process() noexcept { return &the_zone; }

}  // namespace heapwright::process
