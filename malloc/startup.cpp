// What happens once per process: options are read, fork is hooked, the record for outside readers is completed. malloc works
// before this has run, with the defaults.
#include <array>

#include <unistd.h>

#include <heapwright/core/text.hpp>
#include <heapwright/malloc/process_record.hpp>

#include "options.hpp"
#include "override/export.hpp"
#include "process_heap.hpp"
#include "statistics.hpp"

extern "C" {
HEAPWRIGHT_EXPORT constinit heapwright::process_record heapwright_process_record{
    .magic = "heapwright 0001",
    .layout = heapwright::process_record::current_layout,
    .bytes = sizeof(heapwright::process_record),
    .version = HEAPWRIGHT_VERSION,
    .build = HEAPWRIGHT_BUILD,
    .figures = nullptr,
    .options = "",
    .class_count = 0,
    .class_stride = 0,
    .class_bytes = nullptr,
    .first_of_class = nullptr,
    .page_bytes = heapwright::heap_page,
    .page_map_bytes_per_page = heapwright::page_map_bytes_per_page,
};
}

namespace heapwright::process {
namespace {

constinit options settings;

using classes = class_table<chosen_recipe>;
constexpr auto class_bytes = [] {
  std::array<std::uint32_t, classes::cut_end - 1> all{};
  for (unsigned c = 1; c < classes::cut_end; ++c) all[c - 1] = classes::of(c).size;
  return all;
}();

void record_heap() noexcept {
  process_record& record = heapwright_process_record;
  record.class_count = class_bytes.size();
  record.class_stride = heap_type::class_figures_stride;
  record.class_bytes = class_bytes.data();
  record.first_of_class = &the_heap.figures_of(1);
  record.figures = &the_heap.figures();
}

void record_options() noexcept {
  text<sizeof(process_record::options) - 1> listed;
  for (std::size_t i = 0; i < option_table.size(); ++i) {
    if (i > 0) listed.add(" ");
    listed.add(option_table[i].name).add("=").add(settings[static_cast<option_id>(i)]);
  }
  std::memcpy(heapwright_process_record.options, listed.c_str(), listed.size() + 1);
}

/// The shared library is linked with -z initfirst: this runs before all other constructors, so that its fork handlers, registered
/// first, lock last and unlock first; handlers of other libraries may allocate. glibc has not set `environ` by then, but hands
/// the environment to constructors; musl does not, but has.
[[gnu::constructor(101)]] void start(int, char**, char** environment) noexcept {
  if (environ != nullptr) environment = environ;
  settings.read_environment(environment);
  the_heap.set_purge_window(settings[option_id::purge_delay_ms]);
  record_heap();
  record_options();
  (void)cache_of_this_thread();  // hooks fork, before other libraries do
  if (settings.stats_file() != nullptr || settings[option_id::stats] == 1) report_at_exit(settings.stats_file());
  if (settings[option_id::verbose] == 1) {
    text<200> line;
    line.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "): loaded into process ");
    line.add(static_cast<std::uint64_t>(::getpid())).add("\n").write_to(2);
  }
}

[[gnu::destructor]] void finish() noexcept { report_exit(); }

}  // namespace
}  // namespace heapwright::process
