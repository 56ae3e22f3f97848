#include "program_sites.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "allocation_wrappers.hpp"
#include "call_sites.hpp"
#include "failure.hpp"
#include "trace_names.hpp"
#include "trace_reader.hpp"

namespace heapwright::tool {
namespace {

/// Has an allocator as a parameter of its type: the kit's can take its place.
bool is_of_container(const std::string& function) {
  static constexpr std::array<std::string_view, 4> prefixes{
      "std::", "__gnu_cxx::", "boost::container::", "boost::unordered::"};
  static constexpr std::array<std::string_view, 3> others{"allocator", "std::make_unique", "std::get_temporary_buffer"};
  const std::string name = qualified_name(function);
  return std::ranges::any_of(prefixes, [&](std::string_view p) { return name.starts_with(p); }) &&
         std::ranges::none_of(others, [&](std::string_view o) { return name.find(o) != std::string::npos; });
}

program_site site_at(const std::vector<std::uint32_t>& places, std::size_t index, const places_book& book) {
  const place found = book[places[index]];
  program_site site{found.function, found.file, found.line, found.module, "", false};
  site.is_container = is_of_container(found.function);
  for (std::size_t i = index; i-- > 0;) {
    const place inner = book[places[i]];
    if (site.through.empty()) site.through = inner.function;
    site.is_container = site.is_container || is_of_container(inner.function);
  }
  return site;
}

/// The innermost frames are those of the probe, and then operator new's.
bool is_by_new(const std::vector<std::uint32_t>& places, const places_book& book) {
  const std::size_t site = book.site_in(places);
  return std::any_of(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(site),
                     [&](std::uint32_t number) { return book[number].function.starts_with("operator new"); });
}

}  // namespace

std::string program_site::name() const { return text_of(place{function, file, line, module}); }

program_sites sites_of(const std::string& trace, std::uint32_t process, const function_patterns& wrappers) try {
  trace_names names(trace, wrappers);
  const places_book& book = names.book(process);
  program_sites found;
  std::map<std::tuple<std::string, std::string, unsigned, std::string>, std::uint16_t> known;
  trace::trace_reader reader(trace);
  (void)trace::for_each_part(reader, [&](const trace::part& p) {
    const auto* const s = std::get_if<trace::stack>(&p);
    if (s == nullptr || s->process != process || s->addresses.empty()) return;
    const std::vector<std::uint32_t> places = names.places_of(*s);
    const program_site site = site_at(places, book.site_in(places), book);
    const auto next = static_cast<std::uint16_t>(found.all.size() + 1);
    const auto [entry, is_new] = known.try_emplace({site.function, site.file, site.line, site.module}, next);
    if (is_new && found.all.size() == replay::operation::last_site) entry->second = 0;
    if (is_new && entry->second != 0) found.all.push_back(site);
    constexpr std::size_t most_stacks = std::size_t{1} << 28;  // more have no room in a trace: it is damaged
    if (s->id >= most_stacks) throw trace::bad_trace(trace + " is damaged");
    if (s->id >= found.stacks.size()) found.stacks.resize(s->id + std::size_t{1});
    found.stacks[s->id] = {entry->second, is_by_new(places, book)};
  });
  return found;
} catch (const trace::bad_trace& why) {
  throw failure(exit_code::bad_input, why.what());
}

}  // namespace heapwright::tool
