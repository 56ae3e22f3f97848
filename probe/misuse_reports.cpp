// What libheapwright tells the probe of a program's mistakes, so that viewers see it.
//
// A report is written in pieces by the thread that made the mistake, perhaps in the handler of a
// signal: no lock, and nothing is allocated.
#include <algorithm>
#include <cstring>

#include "../abi/export.hpp"
#include "../abi/misuse_reports.hpp"
#include "../abi/own_object.hpp"
#include "clocks.hpp"
#include "observer.hpp"

using namespace heapwright;
using namespace heapwright::probe;

namespace {

segment::misuse_report& report_at(std::uint64_t number) noexcept {
  return at_offset<segment::misuse_report>(the_segment, the_segment->misuse_reports_at)[number];
}

}  // namespace

extern "C" {

HEAPWRIGHT_EXPORT int heapwright_probe_begin_report() noexcept {
  begin_thread();
  if (!has_segment()) return -1;
  const std::uint64_t number = the_segment->misuse_reports_used.fetch_add(1, relaxed);
  if (number >= segment::max_misuse_reports) return -1;
  segment::misuse_report& report = report_at(number);
  if (!make_present(&report, sizeof report)) return -1;
  report.thread_id = static_cast<std::uint32_t>(::gettid());
  report.at_ns.store(monotonic_ns(), std::memory_order_release);
  return static_cast<int>(number);
}

HEAPWRIGHT_EXPORT void heapwright_probe_add_to_report(int number, const char* text, std::size_t bytes) noexcept {
  if (number < 0 || !has_segment()) return;
  segment::misuse_report& report = report_at(static_cast<std::uint64_t>(number));
  const std::uint32_t length = report.length.load(relaxed);
  const std::size_t n = std::min(bytes, report.text.size() - length);
  std::memcpy(report.text.data() + length, text, n);
  report.length.store(static_cast<std::uint32_t>(length + n), std::memory_order_release);
}

HEAPWRIGHT_EXPORT void heapwright_probe_count_mistake(int number) noexcept {
  begin_thread();
  if (!has_segment()) return;
  the_segment->mistakes.fetch_add(1, relaxed);
  const auto of = static_cast<std::uint64_t>(number);
  // In the child of a fork a number may be of the parent's report.
  if (number >= 0 && of < the_segment->misuse_reports_used.load(relaxed)) report_at(of).mistakes.fetch_add(1, relaxed);
}

HEAPWRIGHT_EXPORT bool heapwright_probe_has_code_at(std::uintptr_t address) noexcept {
  return process::is_in_own_object(address);
}
}
