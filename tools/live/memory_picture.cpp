#include "memory_picture.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "descriptor.hpp"

namespace heapwright::tool {
namespace {

/// Stacks are mappings like others; a longer one has grown together with something else.
constexpr std::uint64_t longest_stack = 64 << 20;

struct smaps_mapping {
  std::uint64_t begin = 0, end = 0;
  bool is_shared = false;
  std::string path;
};

std::optional<smaps_mapping> begins_mapping(const std::string& line) {
  unsigned long long begin = 0, end = 0, inode = 0;
  char permissions[8] = "";
  int path_at = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %7s %*s %*s %llu %n", &begin, &end, permissions, &inode, &path_at) < 4)
    return std::nullopt;
  return smaps_mapping{begin, end, std::strchr(permissions, 's') != nullptr,
                       line.substr(static_cast<std::size_t>(path_at))};
}

mapping_kind kind_of(const smaps_mapping& m, const std::vector<std::uint64_t>& stacks) {
  if (m.is_shared) return mapping_kind::shared;
  if (m.path == "[heap]") return mapping_kind::program_break;
  const bool holds_stack =
      std::any_of(stacks.begin(), stacks.end(), [&](std::uint64_t at) { return at >= m.begin && at < m.end; });
  if (m.path == "[stack]" || (m.path.empty() && holds_stack && m.end - m.begin <= longest_stack))
    return mapping_kind::stack;
  if (m.path.empty() || m.path.starts_with("[anon")) return mapping_kind::anonymous;
  return m.path.starts_with('[') ? mapping_kind::kernel : mapping_kind::file;
}

/// The member that a line "Name:  123 kB" tells of; null for what is of no interest here.
std::uint64_t mapping_group::*figure_named(std::string_view name) {
  static const std::map<std::string_view, std::uint64_t mapping_group::*> known{
      {"Size", &mapping_group::size},         {"Rss", &mapping_group::rss},
      {"Pss", &mapping_group::pss},           {"Private_Dirty", &mapping_group::private_dirty},
      {"Swap", &mapping_group::swap},         {"LazyFree", &mapping_group::lazily_freed},
      {"AnonHugePages", &mapping_group::huge}};
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

bool is_anonymous(mapping_kind kind) { return kind == mapping_kind::program_break || kind == mapping_kind::anonymous; }

std::uint64_t without(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

std::vector<mapping_group> mappings_in(const std::string& smaps, const std::vector<std::uint64_t>& stacks) {
  std::map<std::pair<mapping_kind, std::string>, mapping_group> groups;
  mapping_group* group = nullptr;
  std::istringstream lines(smaps);
  for (std::string line; std::getline(lines, line);) {
    if (const auto m = begins_mapping(line)) {
      const mapping_kind kind = kind_of(*m, stacks);
      group = &groups[{kind, m->path}];
      group->kind = kind;
      group->name = m->path;
      ++group->count;
      continue;
    }
    const auto colon = line.find(':');
    if (group == nullptr || colon == std::string::npos) continue;
    if (const auto figure = figure_named(std::string_view(line).substr(0, colon)))
      group->*figure += std::strtoull(line.c_str() + colon + 1, nullptr, 10) * 1024;
  }
  std::vector<mapping_group> result;
  for (auto& [key, g] : groups) result.push_back(std::move(g));
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.rss > b.rss; });
  return result;
}

std::vector<mapping_group> read_mappings(pid_t pid, const std::vector<std::uint64_t>& stacks) {
  return mappings_in(read_file(fmt::format("/proc/{}/smaps", pid)).value_or(""), stacks);
}

recipe_evidence evidence_of(const memory_picture& picture) {
  const memory_parts& p = picture.parts;
  recipe_evidence e;
  e.rss = p.rss;
  if (picture.heap) {
    e.take(*picture.heap);
    // Only pages that are no part of the heap's own account can be there for the sake of huge ones.
    if (picture.heap->huge_asked > 0) e.huge_excess = std::min(p.huge, p.other_anonymous);
  }
  e.thread_caches = p.thread_caches.value_or(0);
  e.rounding = p.rounding.value_or(0);
  e.not_resident = p.not_resident;
  return e;
}

memory_parts parts_of(const std::vector<mapping_group>& mappings, const heap_reading* heap, const live_blocks* live) {
  memory_parts p;
  std::uint64_t anonymous = 0;
  for (const mapping_group& m : mappings) {
    p.rss += m.rss;
    p.swap += m.swap;
    p.huge += m.huge;
    if (m.kind == mapping_kind::stack) p.stacks += m.rss;
    if (m.kind == mapping_kind::file || m.kind == mapping_kind::kernel) p.files += m.rss;
    if (m.kind == mapping_kind::shared) p.shared += m.rss;
    if (!is_anonymous(m.kind)) continue;
    anonymous += m.rss;
    p.lazily_freed += m.lazily_freed;
  }
  std::uint64_t known = p.lazily_freed;
  if (live != nullptr) {
    p.requested = without(live->bytes, live->rounding);
    p.rounding = live->bytes - *p.requested;
    known += live->bytes;
  }
  if (heap != nullptr) {
    const std::uint64_t outside = heap->outside();
    if (live != nullptr) {
      // Read one after the other while the program goes on: the program's blocks may have become
      // more.
      p.thread_caches = without(outside, live->bytes);
      known += *p.thread_caches;
    } else {
      p.outside = outside;
      known += outside;
    }
    p.free_in_spans = heap->free_in_spans();
    p.free_kept = heap->free_resident;
    p.records = heap->records();
    known += *p.free_in_spans + *p.free_kept + *p.records;
  }
  p.not_resident = without(known, anonymous);
  p.other_anonymous = without(anonymous, known);
  return p;
}

}  // namespace heapwright::tool
