// Sites get names, are merged and suppressed by them, and are summed up.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "leak_report.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

/// From the program's own frame outwards; what libc does before main says nothing.
std::vector<place> own_frames(const leak_site& site, const segment::snapshot& figures, places_book& book) {
  std::vector<std::uint32_t> numbers;
  for (const std::uint64_t address : site.addresses) {
    const auto here = book.at(address, figures);
    numbers.insert(numbers.end(), here.begin(), here.end());
  }
  auto first = std::ranges::find_if(numbers, [&](std::uint32_t n) { return !book.is_wrapper(n); });
  if (first == numbers.end()) first = numbers.begin();
  std::vector<place> stack;
  for (; first != numbers.end(); ++first) {
    stack.push_back(book[*first]);
    if (stack.back().function == "main") break;
  }
  return stack;
}

std::string key_of(const std::vector<place>& stack, bool is_cut) {
  std::string key = is_cut ? "cut" : "";
  for (const place& p : stack) key += fmt::format("\n{}\n{}\n{}\n{}", p.function, p.file, p.line, p.module);
  return key;
}

void add(leak_site& sum, const leak_site& s) {
  for (const auto part : {&leak_site::lost, &leak_site::lost_with_these, &leak_site::indirectly_lost,
                          &leak_site::reachable, &leak_site::not_judged})
    sum.*part += s.*part;
}

std::string suppression_of(const std::vector<place>& stack, const function_patterns& suppressed) {
  for (const place& p : stack)
    if (const std::string* const pattern = suppressed.find(p.function)) return *pattern;
  return {};
}

void sum_up(named_leaks& all) {
  for (const named_site& s : all.sites) {
    const leak_site& f = s.figures;
    if (!s.suppressed_by.empty()) {
      ++all.suppressed_sites;
      for (const leak_figures& part : {f.lost, f.lost_with_these, f.not_judged}) all.suppressed += part;
      continue;
    }
    all.lost += f.lost;
    all.indirectly_lost += f.lost_with_these;
    all.not_judged += f.not_judged;
  }
  all.not_judged.unseen = all.leaks.unseen;
  // Where not every block was sampled, or samples were lost, the sum of the sites is not that of
  // all blocks. That was counted, unless samples alone were.
  const segment::process_figures& process = all.leaks.figures.process;
  const bool is_sum_of_sites = all.leaks.not_judged.empty() || process.knows_all_stacks() || all.suppressed_sites > 0;
  if (is_sum_of_sites || !process.counts_from_start() || process.is_of_samples) return;
  const segment::class_figures counted = all.leaks.figures.own_total();
  all.not_judged = {counted.allocated_bytes - counted.freed_bytes,
                    static_cast<double>(counted.allocations - counted.frees)};
}

}  // namespace

double error_of(const leak_figures& f) {
  return error_of(f.variance, std::max(f.unseen, f.bytes > 0 ? f.variance / static_cast<double>(f.bytes) : 0));
}

named_leaks named(process_leaks leaks, const function_patterns& suppressed, bool all_sites) {
  named_leaks result;
  for (const leak_site& site : leaks.sites) result.reachable += site.reachable;
  if (!all_sites)
    std::erase_if(leaks.sites, [](const leak_site& s) { return s.lost.blocks + s.not_judged.blocks <= 0; });
  places_book book;
  std::map<std::string, std::size_t> known;
  for (leak_site& site : leaks.sites) {
    std::vector<place> stack = own_frames(site, leaks.figures, book);
    const auto [entry, is_new] = known.emplace(key_of(stack, site.is_cut), result.sites.size());
    if (!is_new) {
      add(result.sites[entry->second].figures, site);
      continue;
    }
    std::string by = suppression_of(stack, suppressed);
    const bool is_cut = site.is_cut;
    result.sites.push_back({std::move(stack), is_cut, std::move(site), std::move(by)});
  }
  leaks.sites.clear();
  result.leaks = std::move(leaks);
  sum_up(result);
  return result;
}

}  // namespace heapwright::tool
