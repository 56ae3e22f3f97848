#include "process_life.hpp"

#include <cstring>
#include <utility>

#include <heapwright/core/text.hpp>
#include <heapwright/malloc/process_record.hpp>
#include <heapwright/malloc/process_report.hpp>

#include "../heap_record_of.hpp"
#include "../options.hpp"
#include "child_processes.hpp"
#include "process_heap.hpp"
#include "redirection.hpp"
#include "utf8.hpp"

extern "C" {
/// `heapwright top` reads it from outside, by its name. It has no figures where this malloc does
/// nothing.
__declspec(dllexport) constinit heapwright::process_record heapwright_record =
    heapwright::process::initial_record<heapwright::process::heap_type>();
}

namespace heapwright::process {
namespace {

constinit bool reports_at_end = false;

/// Another malloc of ours was here before, as of a program that is linked with one: all is left to
/// that.
constinit bool is_second = false;

/// A variable of the environment; valid until the next call.
const char* environment_variable(const char* name) noexcept {
  static constinit char value[300];
  const DWORD length = ::GetEnvironmentVariableA(name, value, sizeof value);
  return length > 0 && length < sizeof value ? value : nullptr;
}

void write_modules() noexcept {
  text<200> line;
  line.add("heapwright " HEAPWRIGHT_VERSION " (" HEAPWRIGHT_BUILD "): loaded into process ");
  line.add(std::uint64_t{::GetCurrentProcessId()}).add("\n").write_to(2);
  const module_list& modules = seen_modules();
  for (std::uint32_t i = 0; i < modules.count; ++i) {
    text<300> about;
    modules.modules[i].write(about.add("  "));
    about.write_to(2);
  }
}

void write_report() noexcept {
  process_report r{};
  std::memcpy(r.magic, process_report::expected_magic, sizeof r.magic);
  r.bytes = sizeof r;
  r.process_id = ::GetCurrentProcessId();
  std::strncpy(r.version, HEAPWRIGHT_VERSION, sizeof r.version - 1);
  std::strncpy(r.build, HEAPWRIGHT_BUILD, sizeof r.build - 1);
  copy_as_utf8(::GetCommandLineW(), r.command, sizeof r.command);
  PROCESS_MEMORY_COUNTERS used{};
  if (::K32GetProcessMemoryInfo(::GetCurrentProcess(), &used, sizeof used) != 0) r.peak_rss = used.PeakWorkingSetSize;
  r.heap = collect_statistics();
  text<1600> page;
  r.write_page(page);
  page.write_to(2);
}

}  // namespace

bool begin_process(HMODULE module) noexcept {
  is_second = is_redirected_already();
  if (is_second) return true;
  if (!begin()) {
    text<100>().add("heapwright: the process has no room for a thread's word; not redirected\n").write_to(2);
    return false;
  }
  // Blocks outlive any FreeLibrary; so must the code that frees them.
  HMODULE pinned;
  ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       reinterpret_cast<const wchar_t*>(module), &pinned);
  record_figures(heapwright_record, the_heap);
  options settings;
  settings.read(environment_variable);
  the_heap.pages().set_window(settings[option_id::purge_delay_ms]);
  reports_at_end = settings[option_id::stats] == 1;
  // `run --stats` asks it of the program alone, not of the processes that the program starts.
  if (environment_variable(stats_once_variable) != nullptr) {
    ::SetEnvironmentVariableA(stats_once_variable, nullptr);
    ::SetEnvironmentVariableA("HEAPWRIGHT_STATS", nullptr);
  }
  const char* const follows = environment_variable(children_variable);
  const bool is_in_program = module == ::GetModuleHandleW(nullptr);
  if (follows != nullptr && std::strcmp(follows, "1") == 0 && !is_in_program) follow_children(module);
  redirect_modules();
  if (settings[option_id::verbose] == 1) write_modules();
  return true;
}

void end_thread() noexcept {
  if (!is_second) end_this_thread();
}

void end_process() noexcept {
  if (std::exchange(reports_at_end, false)) write_report();
}

}  // namespace heapwright::process

extern "C" {

/// "0.1.0". To refer to it is to link heapwright.dll, which is all that is needed to be redirected.
__declspec(dllexport) const char* heapwright_version() { return HEAPWRIGHT_VERSION; }

/// Gives back to the system what is free, and not in another thread's cache. Bytes.
__declspec(dllexport) size_t heapwright_trim() { return heapwright::process::trim(); }

/// Bytes in live blocks of the process's malloc, and bytes that it has mapped for blocks.
__declspec(dllexport) void heapwright_in_use(unsigned long long* in_use, unsigned long long* mapped) {
  const heapwright::malloc_statistics s = heapwright::process::collect_statistics();
  *in_use = s.in_use();
  *mapped = s.mapped;
}
}
