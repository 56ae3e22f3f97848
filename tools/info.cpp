// `heapwright info`: is it loaded, which version, which options, how much memory and where.
//
// A process on libheapwright holds a record of itself at an exported symbol. It is found in the file that is mapped,
// read from the process's memory from outside, and believed only if its magic and layout are known.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <heapwright/malloc/process_record.hpp>

#include "allocators.hpp"
#include "commands.hpp"
#include "comparison.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;
constexpr const char* record_symbol = "heapwright_process_record";

struct found_record {
  process_record record;
  heap_figures figures;
  std::string path;
};

failure unreadable(const std::string& message) { return {exit_code::unreadable, message}; }

/// The file behind a mapping, even when its path has been replaced by another since.
std::optional<elf_file> open_mapped(pid_t pid, const mapping& m) {
  struct stat about {};
  const std::string path = path_inside(pid, m.path);
  if (stat(path.c_str(), &about) == 0 && about.st_ino == m.inode) return elf_file::open(path);
  return elf_file::open(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, m.start, m.end));
}

std::unique_ptr<found_record> find_record(pid_t pid) {
  std::set<std::string> looked_at;
  for (const mapping& m : mapped_files(pid)) {
    if (m.offset != 0 || !looked_at.insert(m.path).second) continue;
    const auto elf = open_mapped(pid, m);
    if (!elf) {
      if (m.path.find("libheapwright") == std::string::npos) continue;
      throw unreadable(
          fmt::format("{} is loaded, but the file was replaced since and the old one cannot be opened; "
                      "restart the process, or ask as root",
                      m.path));
    }
    const auto symbol = elf->find(record_symbol);
    if (!symbol) continue;
    auto result = std::make_unique<found_record>();
    found_record& found = *result;
    found.path = m.path;
    if (!read_memory(pid, symbol->address - elf->lowest_address() + m.start, &found.record, sizeof found.record))
      throw unreadable(fmt::format("the memory of process {} cannot be read: {}; try as the same user or as root", pid,
                                   std::strerror(errno)));
    if (std::memcmp(found.record.magic, process_record::expected_magic, sizeof found.record.magic) != 0)
      throw unreadable(fmt::format("{} in process {} holds no valid record", m.path, pid));
    if (found.record.layout != process_record::current_layout || found.record.bytes != sizeof(process_record))
      throw unreadable(fmt::format("{} in process {} writes record layout {}; this heapwright {} reads layout {}",
                                   m.path, pid, found.record.layout, HEAPWRIGHT_VERSION,
                                   process_record::current_layout));
    if (found.record.figures != nullptr)
      read_memory(pid, reinterpret_cast<std::uint64_t>(found.record.figures), &found.figures, sizeof found.figures);
    return result;
  }
  return nullptr;
}

void check_readable(pid_t pid) {
  const std::string maps = fmt::format("/proc/{}/maps", pid);
  if (kill(pid, 0) != 0 && errno == ESRCH) throw unreadable(fmt::format("no such process: {}", pid));
  const auto text = read_file(maps);
  if (!text)
    throw unreadable(fmt::format("process {} cannot be looked into: {}; try as the same user or as root (sudo)", pid,
                                 std::strerror(errno)));
  if (text->empty())
    throw unreadable(fmt::format("process {} has no memory: a kernel thread, or about to be reaped", pid));
}

struct figure_line {
  const char* key;
  const char* meaning;
  std::uint64_t bytes;
};

std::vector<figure_line> memory_lines(const heap_figures& f) {
  return {{"mapped", "held for blocks", f.mapped},
          {"spans", "  in spans of small blocks", f.spans},
          {"large", "  in large blocks", f.large},
          {"free_resident", "  free, still in memory", f.free_resident},
          {"free_returned", "  free, given back", f.free_returned},
          {"metadata", "the heap's own records", f.metadata}};
}

/// What the recipe asked of the system, as far as it was had.
std::vector<figure_line> obtained_lines(const heap_figures& f) {
  return {{"huge_reserved_total", "in huge pages that were set aside", f.huge_reserved_total},
          {"huge_transparent_total", "advised to be in huge pages", f.huge_transparent_total},
          {"locked_total", "locked in memory", f.locked_total},
          {"bound_total", "bound to a NUMA node", f.bound_total}};
}

void print_loaded(const found_record& found, pid_t pid, std::uint64_t rss) {
  const process_record& r = found.record;
  fmt::print("process {}: loaded\n  library  {}\n  version  {} ({})\n  options  {}\n  threads  {} now, {} ever\n\n",
             pid, found.path, r.version, r.build, *r.options != '\0' ? r.options : "all at their defaults",
             found.figures.threads.get(), found.figures.threads_total.get());
  const auto whole = static_cast<double>(std::max({rss, found.figures.mapped.get(), found.figures.metadata.get()}));
  const auto line = [&](const char* meaning, std::uint64_t bytes) {
    const auto width = whole > 0 ? static_cast<std::size_t>(40 * static_cast<double>(bytes) / whole + 0.5) : 0;
    fmt::print("  {:<28}{:>10}  {}\n", meaning, show_bytes(static_cast<double>(bytes)), std::string(width, '#'));
  };
  line("RSS of the process", rss);
  for (const figure_line& f : memory_lines(found.figures)) line(f.meaning, f.bytes);
  for (const figure_line& f : obtained_lines(found.figures)) {
    if (f.bytes > 0) fmt::print("  had so far {}: {}\n", f.meaning, show_bytes(static_cast<double>(f.bytes)));
  }
  fmt::print(
      "\n  All but RSS is address space, of which untouched parts take no memory.\n  Peak {} held; {} given back to "
      "the system since the start\n",
      show_bytes(static_cast<double>(found.figures.mapped_peak)),
      show_bytes(static_cast<double>(found.figures.returned_total)));
}

/// Where the malloc of a process is that has no record of ours; `file` is empty if that is not known.
std::string about_malloc(pid_t pid, const std::string& file) {
  if (file.empty()) return "its malloc is unknown";
  if (file != executable_of(pid)) return fmt::format("its malloc is {} ({})", malloc_name(file), file);
  return fmt::format("its malloc is within {} (a stripped program does not say if that is libheapwright.a)", file);
}

int about_process(const info_options& options) {
  check_readable(options.pid);
  const auto found = find_record(options.pid);
  const std::uint64_t rss = proc_bytes(options.pid, "smaps_rollup", "Rss");
  const std::string malloc = malloc_of(options.pid).value_or("");
  if (options.json) {
    json result = {{"format", "heapwright info 1"},
                   {"pid", options.pid},
                   {"loaded", found != nullptr},
                   {"malloc", malloc},
                   {"rss_bytes", rss}};
    if (found) {
      result["library"] = found->path;
      result["version"] = found->record.version;
      result["build"] = found->record.build;
      result["options"] = found->record.options;
      for (const figure_line& f : memory_lines(found->figures)) result["bytes"][f.key] = f.bytes;
      for (const figure_line& f : obtained_lines(found->figures)) result["bytes"][f.key] = f.bytes;
      result["threads"] = found->figures.threads.get();
    }
    std::cout << result.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  } else if (found) {
    print_loaded(*found, options.pid, rss);
  } else {
    fmt::print("process {}: not loaded; {}, RSS {}\n", options.pid, about_malloc(options.pid, malloc),
               show_bytes(static_cast<double>(rss)));
  }
  return found ? EXIT_SUCCESS : exit_code::judged_no;
}

/// The library's own table of options: lines of "NAME\tDEFAULT\tMEANING".
std::vector<std::array<std::string, 3>> option_table(const elf_file& library) {
  std::vector<std::array<std::string, 3>> rows;
  std::istringstream lines(library.content("heapwright_option_table"));
  for (std::array<std::string, 3> row;
       std::getline(lines, row[0], '\t') && std::getline(lines, row[1], '\t') && std::getline(lines, row[2]);)
    rows.push_back(row);
  return rows;
}

int about_installation(const info_options& options) {
  const std::string path = own_library();
  const auto library = elf_file::open(path);
  const auto table = option_table(*library);
  if (options.json) {
    json result = {{"format", "heapwright info 1"},
                   {"version", HEAPWRIGHT_VERSION},
                   {"library", path},
                   {"options", json::array()}};
    for (const auto& [name, value, meaning] : table)
      result["options"].push_back({{"name", name}, {"default", value}, {"meaning", meaning}});
    std::cout << result.dump(2) << '\n';
    return EXIT_SUCCESS;
  }
  fmt::print("heapwright {}\nlibrary  {}\n", HEAPWRIGHT_VERSION, path);
  if (!table.empty()) fmt::print("\nOptions, from the environment:\n");
  for (const auto& [name, value, meaning] : table) fmt::print("  {:<28} {:<10} {}\n", name, value, meaning);
  return EXIT_SUCCESS;
}

}  // namespace

int info(const info_options& options) {
  return options.pid != 0 ? about_process(options) : about_installation(options);
}

}  // namespace heapwright::tool
