#include "call_sites.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "printable.hpp"
#include "utf8.hpp"

namespace heapwright::tool {
namespace {

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

call_site empty_site(const asked_stack& largest, const places_book& book) {
  call_site s;
  s.places = largest.places;
  s.site = book.site_in(s.places);
  s.caller = s.places.empty() ? 0 : book.caller_of(s.site, s.places);
  if (s.places.empty()) return s;
  s.sum.id = largest.figures.id;
  s.sum.addresses = largest.figures.addresses;
  s.sum.is_cut = largest.figures.is_cut;
  return s;
}

/// Equal for stacks that a person cannot tell apart in a table.
std::pair<std::uint32_t, std::string> key_of(const call_site& s, const places_book& book) {
  if (s.places.empty()) return {UINT32_MAX, ""};
  return {s.places[s.site], s.caller < s.places.size() ? book[s.places[s.caller]].function : ""};
}

}  // namespace

std::vector<call_site> call_sites(std::vector<asked_stack> stacks, const places_book& book) {
  std::ranges::stable_sort(stacks, std::ranges::greater{}, [](const asked_stack& s) { return s.value.value; });
  std::vector<call_site> sites;
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> known;
  for (const asked_stack& p : stacks) {
    call_site found = empty_site(p, book);
    const auto [entry, is_new] = known.emplace(key_of(found, book), sites.size());
    if (is_new) sites.push_back(std::move(found));
    call_site& site = sites[entry->second];
    site.sum += p.figures;
    site.value += p.value;
    site.stacks.push_back(p.figures.id);
    site.calls.insert(p.figures.first_with_calls);
  }
  return sites;
}

std::vector<call_site> call_sites(watched_process& process) {
  return call_sites(asked_stacks(process.stacks(), process.places(), {}), process.places());
}

std::string hint_at_symbols(const std::vector<call_site>& sites, const places_book& book) {
  std::map<std::string, double> nameless;  // the value, by file
  double all = 0;
  for (const call_site& s : sites) {
    all += s.value.value;
    if (s.places.empty()) continue;
    const place p = book[s.places[s.site]];
    if (!p.module.empty() && !has_name(p)) nameless[printable(file_of(p.module))] += s.value.value;
  }
  std::vector<std::string> modules;
  for (const auto& [file, value] : nameless)
    if (value > 0 && value >= all / 10) modules.push_back(file);
  if (modules.empty()) return "";
  return fmt::format(
      "function names are missing in {}: install its debugging symbols, or debuginfod and set DEBUGINFOD_URLS",
      fmt::join(modules, ", "));
}

std::string short_name(std::string function) {
  static constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at; (at = function.find(unnamed)) != std::string::npos;) function.erase(at, unnamed.size());
  return function;
}

std::string text_of(const place& p) {
  if (!has_name(p)) return printable(p.function);
  if (is_made_at_run_time(p.module)) return printable(short_name(p.function));
  if (p.file.empty()) return printable(fmt::format("{}  [{}]", short_name(p.function), file_of(p.module)));
  return printable(fmt::format("{}  {}:{}", short_name(p.function), file_of(p.file), p.line));
}

std::string text_of(const call_site& s, const places_book& book) {
  if (s.places.empty()) return "(no stack)";
  std::string text = text_of(book[s.places[s.site]]);
  if (s.caller < s.places.size()) text += "  <  " + printable(short_name(book[s.places[s.caller]].function));
  return text;
}

std::string text_of(const call_site& s, const places_book& book, std::size_t most) {
  const std::string whole = text_of(s, book);
  if (characters_in(whole) <= most || s.places.empty()) return clipped(whole, most);
  const place site = book[s.places[s.site]];
  const std::size_t of_site = characters_in(text_of(site));
  // With a letter of the caller, so that the number of the line does not look as if it were cut.
  constexpr std::size_t least_of_caller = characters_in("  <  f…");
  if (of_site + least_of_caller <= most) return clipped(whole, most);
  if (site.file.empty() || of_site <= most) return clipped(text_of(site), most);
  const auto beside = [&](std::size_t taken) { return most - std::min(most, taken); };
  const std::string line = fmt::format(":{}", site.line);
  const std::string where = clipped(printable(file_of(site.file)), beside(line.size())) + line;
  const std::size_t of_function = beside(characters_in(where) + 2);
  return of_function == 0 ? where
                          : fmt::format("{}  {}", shortened(printable(short_name(site.function)), of_function), where);
}

}  // namespace heapwright::tool
