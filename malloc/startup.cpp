// What happens once per process: options are read, fork is hooked, the record for outside readers
// is completed. malloc works before this has run, with the defaults.
#include <cstring>

#include <sys/auxv.h>
#include <unistd.h>

#include <heapwright/core/text.hpp>
#include <heapwright/heap/heap_describer.hpp>
#include <heapwright/malloc/process_record.hpp>

#include "../abi/export.hpp"
#include "chosen_recipe.hpp"
#include "guarded_samples.hpp"
#include "heap_record_of.hpp"
#include "misuse_report.hpp"
#include "options.hpp"
#include "process_heap.hpp"
#include "statistics.hpp"

extern "C" {
HEAPWRIGHT_EXPORT constinit heapwright::process_record heapwright_process_record =
    heapwright::process::initial_record<heapwright::process::heap_type>();
}

// record_note. The linker keeps notes together, in the first pages of what it makes. A program may
// define the exported name itself: the local one stays this record.
asm(R"(
  .set .Lheapwright_own_record, heapwright_process_record
  .pushsection .note.heapwright, "a", %note
  .balign 4
  .long 11, 4, 1
  .asciz "Heapwright"
  .balign 4
  .long .Lheapwright_own_record - .
  .popsection
)");
static_assert(heapwright::record_note::owner_bytes == 11 && sizeof(heapwright::record_note) == 4 &&
              heapwright::record_note::type == 1);

namespace heapwright::process {
namespace {

constexpr auto described = heap_describer::describe(the_heap);
constexpr guarded_sample_places places_of_samples = the_samples.describe();

void record_heap() noexcept {
  process_record& record = heapwright_process_record;
  record.places = &described.places;
  record.places_bytes = sizeof described;
  record.cache_from_thread =
      reinterpret_cast<std::intptr_t>(&this_cache) - reinterpret_cast<std::intptr_t>(__builtin_thread_pointer());
  record.samples = &places_of_samples;
  record_figures(record, the_heap);
}

void record_options(const options& settings) noexcept {
  text<sizeof(process_record::options) - 1> listed;
  for (std::size_t i = 0; i < option_table.size(); ++i) {
    if (i > 0) listed.add(" ");
    const option& o = option_table[i];
    const std::uint64_t value = settings[static_cast<option_id>(i)];
    listed.add(o.name).add("=");
    if (o.words[0] != nullptr)
      listed.add(o.words[value]);
    else
      listed.add(value);
  }
  std::memcpy(heapwright_process_record.options, listed.c_str(), listed.size() + 1);
}

const char* value_of(const char* name, char** environment) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* entry = *environment;
    const char* wanted = name;
    while (*wanted != '\0' && *wanted == *entry) ++wanted, ++entry;
    if (*wanted == '\0' && *entry == '=') return entry + 1;
  }
  return nullptr;
}

/// The shared library is linked with -z initfirst: this runs before all other constructors, so that
/// its fork handlers, registered first, lock last and unlock first; handlers of other libraries may
/// allocate. glibc has not set `environ` by then, but hands the environment to constructors; musl
/// does not, but has.
[[gnu::constructor(101)]] void start(int, char**, char** environment) noexcept {
  if (environ != nullptr) environment = environ;
  options settings;
  // Not for those who start a setuid program, and what else the kernel marks as secure.
  if (::getauxval(AT_SECURE) == 0) settings.read([=](const char* name) { return value_of(name, environment); });
  the_heap.pages().set_window(settings[option_id::purge_delay_ms]);
  record_heap();
  record_options(settings);
  begin_misuse_reports(settings[option_id::on_misuse] == 1, settings[option_id::syslog] == 1);
  the_samples.begin(static_cast<std::uint32_t>(settings[option_id::guard_sample]));
  register_this_thread();  // hooks fork, before other libraries do
  if (settings.stats_file() != nullptr || settings[option_id::stats] == 1) report_at_exit(settings.stats_file());
  if (settings[option_id::verbose] == 1) {
    text<200> line;
    line.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "): loaded into process ");
    line.add(static_cast<std::uint64_t>(::getpid())).add("\n").write_to(2);
  }
}

[[gnu::destructor]] void finish() noexcept {
  report_exit();
  check_before_exit();
}

}  // namespace
}  // namespace heapwright::process
