#include "leak_scan.hpp"

#include <algorithm>
#include <csignal>
#include <unordered_map>

#include <fmt/format.h>
#include <sys/wait.h>

#include "loader.hpp"
#include "process_image.hpp"
#include "process_memory.hpp"
#include "reachability.hpp"
#include "root_ranges.hpp"
#include "stack_measure.hpp"

namespace heapwright::tool {
namespace {

bool is_of_probe(const memory_mapping& m) { return m.path.ends_with("/libheapwright-probe.so"); }

/// The segment that the process writes, by what it has mapped. The child of a fork has its parent's
/// mapped until it calls malloc.
std::string segment_in(const std::vector<memory_mapping>& mappings, pid_t process) {
  for (const memory_mapping& m : mappings) {
    if (!m.is_shared || !m.path.ends_with(".segment")) continue;
    try {
      if (segment::segment_reader(m.path).process().process_id == static_cast<std::uint32_t>(process)) return m.path;
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  return {};
}

bool is_inherited(const segment::sample_figures& sample, const segment::process_figures& process) {
  return process.forked_from != 0 && sample.at_ns < process.started_ns;
}

/// A program may have overwritten the segment.
bool is_damaged(const segment::sample_figures& sample) {
  constexpr std::uint64_t end_of_addresses = std::uint64_t{1} << segment::sample::address_bits;
  return sample.bytes > end_of_addresses - sample.address;
}

std::vector<heap_block> blocks_of(const std::vector<segment::sample_figures>& samples) {
  std::vector<heap_block> blocks;
  blocks.reserve(samples.size());
  for (const segment::sample_figures& s : samples) blocks.push_back({s.address, s.bytes, 0, s.at_ns});
  return blocks;
}

const memory_mapping* mapping_of(std::uint64_t address, const std::vector<memory_mapping>& mappings) {
  const auto after = std::ranges::upper_bound(mappings, address, {}, [](const auto& m) { return m.at.begin; });
  return after == mappings.begin() || !(after - 1)->at.contains(address) ? nullptr : &*(after - 1);
}

/// Asks glibc's headers where blocks lie. The last word of one that shares its memory with others
/// is the header of the next, to which glibc's own lists point when the next is free.
void ask_glibc(const process_memory& memory, std::vector<heap_block>& blocks, scanned_process& process) {
  const heap_block* last_apart = nullptr;
  for (heap_block& b : blocks) {
    glibc_header header;
    if (!memory.read(b.address - sizeof header, &header, sizeof header)) continue;
    const glibc_place place = place_of(b, header);
    if (!place.is_glibcs) continue;
    if (!place.has_own_mapping) b.unreferenced_tail = sizeof(std::uint64_t);
    if (place.at.begin < place.at.end) {
      if (process.heap.empty() || !(process.heap.back() == place.at)) process.heap.push_back(place.at);
      continue;
    }
    // Where the program break cannot grow, glibc maps memory and goes on in it.
    const memory_mapping* const m = mapping_of(b.address, process.mappings);
    if (m == nullptr || m->path == "[heap]") continue;
    const bool continues =
        last_apart != nullptr && last_apart->address >= m->at.begin && b.address - last_apart->end() <= longest_gap;
    process.heap.push_back({continues ? last_apart->address : b.address, b.end()});
    last_apart = &b;
  }
}

std::string why_not_judged(const ending_process& process, const segment::process_figures& figures) {
  if ((process.status & 0x7f) == SIGKILL) return "the process was killed by SIGKILL";
  if (process.threads.empty()) return "the process could not be held at its end";
  if (!figures.samples_all) return "not every block was sampled";
  if (!figures.counts_from_start()) return "the probe did not count from the start of the process";
  return {};
}

class site_table {
 public:
  explicit site_table(std::vector<segment::stack_figures> stacks) {
    for (segment::stack_figures& s : stacks) {
      numbers_.emplace(s.id, sites_.size());
      sites_.push_back({std::move(s.addresses), s.is_cut, {}, {}, {}, {}, {.unseen = s.unseen()}});
    }
  }

  leak_site& of(segment::reference stack) {
    const auto [entry, is_new] = numbers_.emplace(stack, sites_.size());
    if (is_new) sites_.push_back({});
    return sites_[entry->second];
  }

  std::vector<leak_site> not_empty() && {
    std::erase_if(sites_, [](const leak_site& s) {
      return s.lost.blocks + s.indirectly_lost.blocks + s.reachable.blocks + s.not_judged.blocks <= 0;
    });
    return std::move(sites_);
  }

 private:
  std::unordered_map<segment::reference, std::size_t> numbers_;
  std::vector<leak_site> sites_;
};

judgement judge_memory(const ending_process& process, const std::vector<segment::sample_figures>& samples,
                       const std::string& segment, std::vector<memory_mapping> mappings,
                       const segment::snapshot& figures) {
  process_memory memory(process.id, process.reader);
  std::vector<heap_block> blocks = blocks_of(samples);
  scanned_process scanned;
  scanned.mappings = std::move(mappings);
  scanned.segment = segment;
  scanned.threads = process.threads;
  scanned.is_heap_root = figures.process.forked_from != 0 || figures.process.lost_samples > 0;
  const std::string& allocator = figures.process.allocator;
  scanned.is_glibc = is_libc(allocator);
  scanned.knows_heap = scanned.is_glibc || figures.process.knows_malloc_mappings;
  for (const segment::mapping_figures& m : figures.process.malloc_mappings)
    scanned.heap.push_back({m.begin, m.begin + m.bytes});
  if (scanned.is_glibc)
    ask_glibc(memory, blocks, scanned);
  else if (allocator != figures.process.program)
    scanned.observers.push_back(allocator);
  for (const memory_mapping& m : scanned.mappings)
    if (is_of_probe(m)) scanned.observers.push_back(m.path);
  scanned.blocks = blocks;
  scanned.loader = loaded_object_records(process.reader);
  for (const segment::thread_figures& t : figures.threads)
    if (t.state == segment::slot_state::gone) scanned.old_stacks.push_back(t.stack_at);
  return judge(blocks, roots_of(scanned), memory);
}

void add_judged(const std::vector<segment::sample_figures>& samples, const judgement& judged, site_table& sites) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const leak_figures block{samples[i].bytes, 1};
    leak_site& site = sites.of(samples[i].at_stack);
    switch (judged.of[i]) {
      case verdict::reachable: site.reachable += block; break;
      case verdict::lost: site.lost += block; break;
      case verdict::indirectly_lost:
        site.indirectly_lost += block;
        sites.of(samples[judged.leader[i]].at_stack).lost_with_these += block;
        break;
    }
  }
}

void add_not_judged(const std::vector<segment::sample_figures>& samples, const segment::segment_reader& reader,
                    process_leaks& result, site_table& sites) {
  const segment::process_figures& process = result.figures.process;
  result.is_estimate = !process.samples_all;
  result.unseen = unseen_of_all(process, reader.own_stacks());
  for (const segment::sample_figures& s : samples)
    sites.of(s.at_stack).not_judged += {s.bytes_for, s.stands_for, s.variance(), 0};
}

}  // namespace

bool has_probe(const ending_process& process) {
  return std::ranges::any_of(process_memory(process.id, process.reader).mappings(), is_of_probe);
}

std::optional<process_leaks> scan(const ending_process& process) {
  std::vector<memory_mapping> mappings = process_memory(process.id, process.reader).mappings();
  const std::string segment = segment_in(mappings, process.id);
  if (segment.empty()) return std::nullopt;
  const segment::segment_reader reader(segment);
  process_leaks result;
  result.figures = reader.read();
  result.status = process.status;
  const segment::process_figures& figures = result.figures.process;
  result.not_judged = why_not_judged(process, figures);
  result.unknown_blocks = figures.lost_samples;
  std::vector<segment::sample_figures> samples = reader.live_samples();
  std::erase_if(samples, [&](const segment::sample_figures& s) { return is_inherited(s, figures) || is_damaged(s); });
  std::ranges::sort(samples, {}, &segment::sample_figures::address);
  site_table sites(reader.stacks());
  if (result.not_judged.empty()) {
    const judgement judged = judge_memory(process, samples, segment, std::move(mappings), result.figures);
    add_judged(samples, judged, sites);
  } else {
    add_not_judged(samples, reader, result, sites);
  }
  result.sites = std::move(sites).not_empty();
  return result;
}

process_leaks unfreed_in(const std::filesystem::path& segment) {
  const segment::segment_reader reader(segment);
  process_leaks result;
  result.figures = reader.read();
  result.not_judged = "what is saved does not hold the memory of the process";
  result.unknown_blocks = result.figures.process.lost_samples;
  std::vector<segment::sample_figures> samples = reader.live_samples();
  std::erase_if(samples, [&](const segment::sample_figures& s) { return is_inherited(s, result.figures.process); });
  site_table sites(reader.stacks());
  add_not_judged(samples, reader, result, sites);
  result.sites = std::move(sites).not_empty();
  return result;
}

}  // namespace heapwright::tool
