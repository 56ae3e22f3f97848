// Why RSS is what it is, for the page.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "views.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

const char* name_of(mapping_kind kind) {
  switch (kind) {
    case mapping_kind::program_break: return "program break";
    case mapping_kind::anonymous: return "anonymous";
    case mapping_kind::stack: return "stacks";
    case mapping_kind::file: return "file";
    case mapping_kind::kernel: return "kernel";
    case mapping_kind::shared: break;
  }
  return "shared";
}

json parts_part(const memory_parts& p) {
  json parts = json::array();
  const auto add = [&](const char* key, const std::optional<std::uint64_t>& bytes) {
    if (bytes) parts.push_back({key, *bytes});
  };
  add("requested", p.requested);
  add("rounding", p.rounding);
  add("outside", p.outside);
  add("thread_caches", p.thread_caches);
  add("free_in_spans", p.free_in_spans);
  add("free_kept", p.free_kept);
  add("lazily_freed", p.lazily_freed);
  add("records", p.records);
  add("other_anonymous", p.other_anonymous);
  add("stacks", p.stacks);
  add("files", p.files);
  add("shared", p.shared);
  return parts;
}

json heap_part(const heap_reading& h) {
  return {{"mapped", h.mapped},     {"outside", h.outside()},           {"spans", h.spans},
          {"large", h.large},       {"free_resident", h.free_resident}, {"free_decommitted", h.free_decommitted},
          {"metadata", h.metadata}, {"metadata_resident", h.records()}, {"decommitted_total", h.decommitted_total}};
}

/// Nothing of a process that does not run on libheapwright.
json findings_part(const memory_picture& picture) {
  json findings = json::array();
  if (!picture.heap) return findings;
  for (const recipe_finding& f : find_in(evidence_of(picture)))
    findings.push_back({{"rule", f.rule},
                        {"bytes", f.bytes},
                        {"text", f.text},
                        {"fields", f.fields},
                        {"advice", f.advice},
                        {"page", rules_page}});
  return findings;
}

/// Of the processes that run, each block once: a child of fork has those of its parent too.
std::int64_t live_of_all(const std::vector<family_member>& members) {
  const auto runs = [&](std::uint64_t id) {
    return std::ranges::any_of(members,
                               [&](const family_member& m) { return m.is_running && m.process.process_id == id; });
  };
  std::int64_t live = 0;
  for (const family_member& m : members) {
    if (!m.is_running) continue;
    const auto inherited = static_cast<std::int64_t>(m.process.inherited_bytes);
    live += runs(m.process.forked_from) ? std::max<std::int64_t>(m.live - inherited, 0) : m.live;
  }
  return live;
}

}  // namespace

std::string memory_view(watched_process& process) {
  const auto seen = process.now();
  const auto picture = process.memory();
  if (!picture || picture->mappings.empty())
    return json{{"at", nullptr}, {"running", seen->state == life::running}}.dump();
  const memory_parts& p = picture->parts;
  json result = {{"at", seen->unix_seconds(picture->at_ns)},
                 {"running", seen->state == life::running},
                 {"allocator", seen->figures.process.allocator},
                 {"rss", p.rss},
                 {"parts", parts_part(p)},
                 {"not_resident", p.not_resident},
                 {"swap", p.swap},
                 {"huge", p.huge},
                 {"heap", nullptr},
                 {"findings", findings_part(*picture)},
                 {"python_arenas", nullptr},
                 {"jvm", nullptr}};
  if (seen->memory && seen->memory->python_arenas) result["python_arenas"] = *seen->memory->python_arenas;
  if (picture->heap) {
    result["heap"] = heap_part(*picture->heap);
    result["class_columns"] = {"block_bytes", "outside", "span_bytes"};
    json& classes = result["classes"] = json::array();
    for (const class_reading& c : picture->heap->classes)
      if (c.span_bytes > 0) classes.push_back({c.block_bytes, c.outside, c.span_bytes});
  }
  if (picture->jvm) {
    result["jvm_columns"] = {"name", "reserved", "committed", "by_malloc"};
    json& parts_of_jvm = result["jvm"] = json::array();
    for (const jvm_part& part : *picture->jvm)
      parts_of_jvm.push_back({part.name, part.reserved, part.committed, part.by_malloc});
  }
  result["mapping_columns"] = {"kind", "name", "count", "size", "rss", "pss", "private_dirty", "swap"};
  json& mappings = result["mappings"] = json::array();
  for (const mapping_group& m : picture->mappings)
    mappings.push_back({name_of(m.kind), m.name, m.count, m.size, m.rss, m.pss, m.private_dirty, m.swap});
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string processes_view(watched_family& family, bool with_ended_before) {
  constexpr std::size_t most = 200;
  json result = {{"columns", {"name", "id", "forked_from", "running", "live", "program", "arguments", "how_it_ended"}}};
  json& rows = result["rows"] = json::array();
  const std::vector<family_member> members = family.members(most, with_ended_before);
  for (const family_member& m : members)
    rows.push_back({m.name, m.process.process_id, m.process.forked_from, m.is_running, m.live, m.process.program,
                    m.process.arguments, m.how_it_ended.empty() ? json(nullptr) : json(m.how_it_ended)});
  const std::string file = family.file().filename().string();
  result["file"] = file.empty() ? json(nullptr) : json(file);
  result["is_asked_for"] = family.is_asked_for();
  result["ended_before"] = family.ended_before();
  result["running"] = std::ranges::count_if(members, &family_member::is_running);
  result["live"] = live_of_all(members);
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace heapwright::tool
