// What happens once per process: options are read, fork is hooked, the record for outside readers is completed. malloc works
// before this has run, with the defaults; it runs with the library's constructors.
#include <pthread.h>
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
};
}

namespace heapwright::process {
namespace {

constinit options settings;

void record_options() noexcept {
  text<sizeof(process_record::options) - 1> listed;
  for (std::size_t i = 0; i < option_table.size(); ++i) {
    if (i > 0) listed.add(" ");
    listed.add(option_table[i].name).add("=").add(settings[static_cast<option_id>(i)]);
  }
  std::memcpy(heapwright_process_record.options, listed.c_str(), listed.size() + 1);
}

cache_type* cache_of_forking_thread() noexcept {
  cache_type* const mine = this_cache;
  return mine->id() == 0 ? nullptr : mine;
}

[[gnu::constructor]] void start() noexcept {
  settings.read_environment();
  the_heap.set_purge_window(settings[option_id::purge_delay_ms]);
  heapwright_process_record.figures = &the_heap.figures();
  record_options();
  // Registered before everyone else's, so that it locks after their handlers have run and unlocks before they run again:
  // they may allocate.
  ::pthread_atfork([] { the_heap.before_fork(); }, [] { the_heap.after_fork_in_parent(); },
                   [] { the_heap.after_fork_in_child(cache_of_forking_thread()); });
  if (settings[option_id::verbose] == 1) {
    text<200> line;
    line.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "): loaded into process ");
    line.add(static_cast<std::uint64_t>(::getpid())).add("\n").write_to(2);
  }
}

[[gnu::destructor]] void finish() noexcept {
  if (settings[option_id::stats] == 1) write_statistics(2);
}

}  // namespace
}  // namespace heapwright::process
