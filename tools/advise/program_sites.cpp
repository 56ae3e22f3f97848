#include "program_sites.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

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

struct library_class {
  std::string_view name, container;
};

/// Functions of the library's own have other names than those that a program writes, and in
/// libstdc++ the allocating ones belong to classes of their own, with the same arguments.
constexpr library_class library_classes[] = {
    {"basic_string", "std::string"},
    {"std::string", "std::string"},
    {"unordered_", "std::unordered_map or set"},
    {"_Hash", "std::unordered_map or set"},
    {"std::map", "std::map or set"},
    {"std::set", "std::map or set"},
    {"std::multi", "std::map or set"},
    {"_Rb_tree", "std::map or set"},
    {"std::list", "std::list"},
    {"__cxx11::list", "std::list"},
    {"_List_", "std::list"},
    {"deque", "std::deque"},
    {"_Deque", "std::deque"},
    {"vector", "std::vector"},
    {"_Vector", "std::vector"},
};

/// From the bracket behind this place on.
std::string arguments_behind(const std::string& function, std::size_t at) {
  const std::size_t begin = function.find_first_of("<(", at);
  if (begin == std::string::npos || function[begin] == '(') return {};
  int depth = 0;
  for (std::size_t i = begin; i < function.size(); ++i) {
    depth += function[i] == '<' ? 1 : function[i] == '>' ? -1 : 0;
    if (depth == 0) return function.substr(begin, i + 1 - begin);
  }
  return {};
}

/// Of a container that is known here.
void note_container(const std::string& function, program_site& into) {
  if (!is_of_container(function)) return;
  const std::string name = qualified_name(function);
  for (const library_class& known : library_classes) {
    const std::size_t at = name.find(known.name);
    if (at == std::string::npos) continue;
    into.container = known.container;
    // No arguments stand before the class in the function's name, but perhaps what it returns.
    const std::size_t own = function.find(name.substr(0, at + known.name.size()));
    into.types = own == std::string::npos ? "" : arguments_behind(function, own + at + known.name.size());
    return;
  }
}

program_site site_at(const std::vector<std::uint32_t>& places, std::size_t index, const places_book& book) {
  const place found = book[places[index]];
  program_site site{.function = found.function,
                    .file = found.file,
                    .line = found.line,
                    .module = found.module,
                    .through = "",
                    .is_container = is_of_container(found.function),
                    .container = "",
                    .types = ""};
  note_container(found.function, site);
  for (std::size_t i = index; i-- > 0;) {
    const place inner = book[places[i]];
    if (site.through.empty()) site.through = inner.function;
    site.is_container = site.is_container || is_of_container(inner.function);
    note_container(inner.function, site);
  }
  return site;
}

/// The innermost frames are those of the probe, and then operator new's.
bool is_by_new(const std::vector<std::uint32_t>& places, const places_book& book) {
  const std::size_t site = book.site_in(places);
  return std::any_of(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(site),
                     [&](std::uint32_t number) { return book[number].function.starts_with("operator new"); });
}

/// Patterns that have not fitted yet.
class unused_patterns {
 public:
  explicit unused_patterns(const function_patterns& all) : left(all.patterns()) {}

  void look_at(const std::vector<std::uint32_t>& places, const places_book& book) {
    if (left.empty()) return;
    for (const std::uint32_t number : places) {
      if (!known_.insert(number).second) continue;
      const std::string function = book[number].function, name = qualified_name(function);
      std::erase_if(left, [&](const std::string& pattern) {
        function_patterns one;
        one.add(pattern);
        return one.find(function) != nullptr || one.find(name) != nullptr;
      });
    }
  }

  std::vector<std::string> left;

 private:
  std::unordered_set<std::uint32_t> known_;
};

}  // namespace

std::string program_site::name() const { return text_of(place{function, file, line, module}); }

program_sites sites_of(const std::string& trace, std::uint32_t process, const function_patterns& wrappers) try {
  trace_names names(trace, wrappers);
  const places_book& book = names.book(process);
  program_sites found;
  std::map<std::tuple<std::string, std::string, unsigned, std::string, std::string, std::string>, std::uint16_t> known;
  unused_patterns unused(wrappers);
  trace::trace_reader reader(trace);
  (void)trace::for_each_part(reader, [&](const trace::part& p) {
    const auto* const s = std::get_if<trace::stack>(&p);
    if (s == nullptr || s->process != process || s->addresses.empty()) return;
    const std::vector<std::uint32_t> places = names.places_of(*s);
    unused.look_at(places, book);
    const program_site site = site_at(places, book.site_in(places), book);
    const auto next = static_cast<std::uint16_t>(found.all.size() + 1);
    const auto [entry, is_new] =
        known.try_emplace({site.function, site.file, site.line, site.module, site.container, site.types}, next);
    if (is_new && found.all.size() == replay::operation::last_site) entry->second = 0;
    if (is_new && entry->second != 0) found.all.push_back(site);
    constexpr std::size_t most_stacks = std::size_t{1} << 28;  // more have no room in a trace: it is damaged
    if (s->id >= most_stacks) throw trace::bad_trace(trace + " is damaged");
    if (s->id >= found.stacks.size()) found.stacks.resize(s->id + std::size_t{1});
    found.stacks[s->id] = {entry->second, is_by_new(places, book)};
  });
  found.unused_wrappers = std::move(unused.left);
  return found;
} catch (const trace::bad_trace& why) {
  throw failure(exit_code::bad_input, why.what());
}

}  // namespace heapwright::tool
