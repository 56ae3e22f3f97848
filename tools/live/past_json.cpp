#include "past_json.hpp"

#include <array>

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

struct named_life {
  const char* name;
  life state;
};
constexpr std::array lives{named_life{"running", life::running},   named_life{"exited", life::exited},
                           named_life{"replaced", life::replaced}, named_life{"killed", life::killed},
                           named_life{"lost", life::lost},         named_life{"gone", life::gone},
                           named_life{"left", life::left}};

struct named_kind {
  const char* name;
  mapping_kind kind;
};
constexpr std::array kinds{named_kind{"program_break", mapping_kind::program_break},
                           named_kind{"anonymous", mapping_kind::anonymous},
                           named_kind{"stack", mapping_kind::stack},
                           named_kind{"file", mapping_kind::file},
                           named_kind{"shared", mapping_kind::shared},
                           named_kind{"kernel", mapping_kind::kernel}};

/// A figure of the memory's parts, under a name.
struct named_part {
  const char* name;
  std::optional<std::uint64_t> memory_parts::*bytes;
};
constexpr std::array known_parts{named_part{"requested", &memory_parts::requested},
                                 named_part{"rounding", &memory_parts::rounding},
                                 named_part{"thread_caches", &memory_parts::thread_caches},
                                 named_part{"outside", &memory_parts::outside},
                                 named_part{"free_in_spans", &memory_parts::free_in_spans},
                                 named_part{"free_kept", &memory_parts::free_kept},
                                 named_part{"records", &memory_parts::records}};
struct certain_part {
  const char* name;
  std::uint64_t memory_parts::*bytes;
};
constexpr std::array certain_parts{certain_part{"rss", &memory_parts::rss},
                                   certain_part{"lazily_freed", &memory_parts::lazily_freed},
                                   certain_part{"other_anonymous", &memory_parts::other_anonymous},
                                   certain_part{"not_resident", &memory_parts::not_resident},
                                   certain_part{"stacks", &memory_parts::stacks},
                                   certain_part{"files", &memory_parts::files},
                                   certain_part{"shared", &memory_parts::shared},
                                   certain_part{"swap", &memory_parts::swap},
                                   certain_part{"huge", &memory_parts::huge}};
struct heap_figure {
  const char* name;
  std::uint64_t heap_reading::*bytes;
};
constexpr std::array heap_figures_of_file{heap_figure{"mapped", &heap_reading::mapped},
                                          heap_figure{"spans", &heap_reading::spans},
                                          heap_figure{"large", &heap_reading::large},
                                          heap_figure{"free_resident", &heap_reading::free_resident},
                                          heap_figure{"free_decommitted", &heap_reading::free_decommitted},
                                          heap_figure{"metadata", &heap_reading::metadata},
                                          heap_figure{"page_map", &heap_reading::page_map},
                                          heap_figure{"page_map_of_spans", &heap_reading::page_map_of_spans},
                                          heap_figure{"decommitted_total", &heap_reading::decommitted_total},
                                          heap_figure{"huge_asked", &heap_reading::huge_asked},
                                          heap_figure{"threads", &heap_reading::threads}};

json json_of(const heap_reading& heap) {
  json result;
  for (const auto& [name, bytes] : heap_figures_of_file) result[name] = heap.*bytes;
  json& classes = result["classes"] = json::array();
  for (const class_reading& c : heap.classes) classes.push_back({c.block_bytes, c.outside, c.span_bytes});
  return result;
}

heap_reading heap_of(const json& from) {
  heap_reading heap;
  for (const auto& [name, bytes] : heap_figures_of_file) heap.*bytes = from.value(name, std::uint64_t{0});
  for (const json& c : from.at("classes")) heap.classes.push_back({c.at(0), c.at(1), c.at(2)});
  return heap;
}

json json_of(const mapping_group& m) {
  const char* kind = "";
  for (const named_kind& k : kinds)
    if (k.kind == m.kind) kind = k.name;
  return {kind, m.name, m.count, m.size, m.rss, m.pss, m.private_dirty, m.swap, m.lazily_freed, m.huge};
}

mapping_group mapping_of(const json& from) {
  mapping_group m{mapping_kind::anonymous, from.at(1)};
  for (const named_kind& k : kinds)
    if (from.at(0) == k.name) m.kind = k.kind;
  std::size_t i = 2;
  for (const auto bytes :
       {&mapping_group::count, &mapping_group::size, &mapping_group::rss, &mapping_group::pss,
        &mapping_group::private_dirty, &mapping_group::swap, &mapping_group::lazily_freed, &mapping_group::huge})
    m.*bytes = from.at(i++);
  return m;
}

json json_of(const memory_picture& picture) {
  json result{{"at_ns", picture.at_ns}};
  json& parts = result["parts"];
  for (const auto& [name, bytes] : certain_parts) parts[name] = picture.parts.*bytes;
  for (const auto& [name, bytes] : known_parts)
    if (picture.parts.*bytes) parts[name] = *(picture.parts.*bytes);
  if (picture.heap) result["heap"] = json_of(*picture.heap);
  json& mappings = result["mappings"] = json::array();
  for (const mapping_group& m : picture.mappings) mappings.push_back(json_of(m));
  if (picture.jvm) {
    json& parts_of_jvm = result["jvm"] = json::array();
    for (const jvm_part& part : *picture.jvm)
      parts_of_jvm.push_back({part.name, part.reserved, part.committed, part.by_malloc});
  }
  return result;
}

memory_picture picture_of(const json& from) {
  memory_picture picture;
  picture.at_ns = from.at("at_ns");
  const json& parts = from.at("parts");
  for (const auto& [name, bytes] : certain_parts) picture.parts.*bytes = parts.at(name);
  for (const auto& [name, bytes] : known_parts)
    if (parts.contains(name)) picture.parts.*bytes = parts.at(name).get<std::uint64_t>();
  if (from.contains("heap")) picture.heap = heap_of(from.at("heap"));
  for (const json& m : from.at("mappings")) picture.mappings.push_back(mapping_of(m));
  if (from.contains("jvm")) {
    picture.jvm.emplace();
    for (const json& part : from.at("jvm")) picture.jvm->push_back({part.at(0), part.at(1), part.at(2), part.at(3)});
  }
  return picture;
}

json json_of(const baseline& moment) {
  json rows = json::array();
  for (const auto& [id, c] : moment.stacks)
    rows.push_back({id, c.live, c.at_peak, c.allocated_bytes, c.short_lived_bytes, c.allocations, c.allocated_variance,
                    c.freed_variance, c.thinned_variance});
  return {{"at_ns", moment.at_ns}, {"rows", rows}};
}

baseline stacks_of(const json& from) {
  baseline moment;
  moment.at_ns = from.at("at_ns");
  for (const json& row : from.at("rows"))
    moment.stacks.emplace_back(row.at(0), stack_counts{row.at(1), row.at(2), row.at(3), row.at(4), row.at(5), row.at(6),
                                                       row.at(7), row.at(8)});
  std::ranges::sort(moment.stacks, {}, [](const auto& stack) { return stack.first; });
  return moment;
}

}  // namespace

json json_of(const process_past& past) {
  json result{{"state", ""}, {"at_ns", past.at_ns}, {"arguments", past.arguments}};
  for (const named_life& l : lives)
    if (l.state == past.state) result["state"] = l.name;
  json& points = result["points"] = json::array();
  for (const history_point& p : past.points)
    points.push_back({p.at_ns, p.live, p.rss, p.allocated_bytes, p.allocations});
  json& stacks = result["stacks"] = json::array();
  for (const auto& moment : past.stacks) stacks.push_back(json_of(*moment));
  if (past.memory) {
    result["memory"] = {past.memory->rss, past.memory->pss, past.memory->anonymous, past.memory->swap};
    if (past.memory->python_arenas) result["python_arenas"] = *past.memory->python_arenas;
  }
  if (past.picture) result["picture"] = json_of(*past.picture);
  return result;
}

process_past past_of(const json& from) {
  process_past past;
  for (const named_life& l : lives)
    if (from.at("state") == l.name) past.state = l.state;
  past.at_ns = from.at("at_ns");
  past.arguments = from.at("arguments").get<std::vector<std::string>>();
  for (const json& p : from.at("points")) past.points.push_back({p.at(0), p.at(1), p.at(2), p.at(3), p.at(4)});
  if (from.contains("stacks"))
    for (const json& m : from.at("stacks")) past.stacks.push_back(std::make_shared<const baseline>(stacks_of(m)));
  if (from.contains("memory")) {
    const json& m = from.at("memory");
    past.memory = resident_memory{m.at(0), m.at(1), m.at(2), m.at(3)};
    if (from.contains("python_arenas")) past.memory->python_arenas = from.at("python_arenas").get<std::uint64_t>();
  }
  if (from.contains("picture")) past.picture = std::make_shared<memory_picture>(picture_of(from.at("picture")));
  return past;
}

}  // namespace heapwright::tool
