// `heapwright info`: is it loaded, which version, which options, how much memory and where.
//
// A process on libheapwright, or on a malloc of `heapwright build`, holds a record of itself
// (heap_record.hpp).
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocators.hpp"
#include "commands.hpp"
#include "descriptor.hpp"
#include "elf_file.hpp"
#include "failure.hpp"
#include "heap_record.hpp"
#include "loader.hpp"
#include "process_image.hpp"
#include "quantities.hpp"
#include "terminal.hpp"
#include "wrapped_text.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

void check_readable(pid_t pid) {
  const std::string maps = fmt::format("/proc/{}/maps", pid);
  if (kill(pid, 0) != 0 && errno == ESRCH) throw unreadable(fmt::format("no such process: {}", pid));
  const auto text = read_file(maps);
  if (!text)
    throw unreadable(
        fmt::format("process {} cannot be looked into: {}; {}", pid, std::strerror(errno), who_may_read()));
  if (text->empty())
    throw unreadable(fmt::format("process {} has no memory: a kernel thread, or about to be reaped", pid));
}

struct figure_line {
  const char* key;
  const char* meaning;
  std::uint64_t bytes;
};

std::vector<figure_line> memory_lines(const heap_figures& f, const process_record& r) {
  const std::uint64_t span_pages = r.page_bytes == 0 ? 0 : f.spans / r.page_bytes;
  return {{"mapped", "held for blocks", f.mapped},
          {"spans", "  in spans of small blocks", f.spans},
          {"large", "  in large blocks", f.large},
          {"free_resident", "  free, not given back", f.free_resident},
          {"free_decommitted", "  free, given back or new", f.free_decommitted},
          {"metadata", "reserved for the heap's records", f.metadata},
          {"metadata_resident", "  of these in memory, about",
           resident_metadata(f.metadata, f.page_map, span_pages * r.page_map_bytes_per_page)}};
}

/// What the recipe asked of the system, as far as it was had.
std::vector<figure_line> obtained_lines(const heap_figures& f) {
  return {{"huge_reserved_total", "in huge pages that were set aside", f.huge_reserved_total},
          {"huge_transparent_total", "advised to be in huge pages", f.huge_transparent_total},
          {"locked_total", "locked in memory", f.locked_total},
          {"bound_total", "bound to a NUMA node", f.bound_total}};
}

/// As a program would write it: without the namespaces that all recipes are seen from.
std::string recipe_name(const process_record& r) {
  const std::string_view name(r.recipe, strnlen(r.recipe, sizeof r.recipe));
  return std::string(name.substr(name.starts_with("::") ? 2 : name.starts_with("heapwright::") ? 12 : 0));
}

/// `first`: the file whose malloc calls reach before they reach this one; empty for none.
void print_loaded(const heap_record& found, const heap_figures& figures, pid_t pid, std::uint64_t rss,
                  const std::string& first) {
  const process_record& r = found.what();
  constexpr std::size_t column = 11;
  answer(
      "process {}: loaded\n  library  {}{}\n{}  version  {} ({})\n  recipe   {}\n  options  {}  threads  {} now, {} "
      "ever\n\n",
      pid, found.path(), found.is_deleted() ? " (deleted)" : "",
      first.empty() ? "" : fmt::format("  malloc   calls reach {} first\n", first), r.version, r.build, recipe_name(r),
      wrapped(*r.options != '\0' ? r.options : "all at their defaults", column, column, columns_of(STDOUT_FILENO)),
      figures.threads.get(), figures.threads_total.get());
  constexpr long before_bars = 46, widest = 40;
  const auto columns = static_cast<long>(columns_of(STDOUT_FILENO));
  const long room = columns == 0 ? widest : std::clamp(columns - before_bars, 0L, widest);
  const auto whole = static_cast<double>(std::max({rss, figures.mapped.get(), figures.metadata.get()}));
  const auto line = [&](const char* meaning, std::uint64_t bytes) {
    const std::string shown = show_bytes(static_cast<double>(bytes));
    if (room == 0) return answer("  {}: {}\n", meaning, shown);
    const auto width = whole > 0 ? std::lround(static_cast<double>(room) * static_cast<double>(bytes) / whole) : 0;
    answer("  {:<32}{:>10}  {}\n", meaning, shown, std::string(static_cast<std::size_t>(width), '#'));
  };
  line("RSS of the process", rss);
  for (const figure_line& f : memory_lines(figures, r)) line(f.meaning, f.bytes);
  for (const figure_line& f : obtained_lines(figures)) {
    if (f.bytes > 0) answer("  had so far {}: {}\n", f.meaning, show_bytes(static_cast<double>(f.bytes)));
  }
  const auto sentence = [&](const std::string& text) {
    answer("  {}", wrapped(text, 2, 2, static_cast<std::size_t>(columns == 0 ? widest + before_bars : columns)));
  };
  answer("\n");
  sentence(
      "All but RSS and what is said to be in memory is address space, of which untouched parts take no memory: what "
      "is free and not given back need not all be in memory.");
  sentence(fmt::format("Peak {} held; {} given back to the system since the start",
                       show_bytes(static_cast<double>(figures.mapped_peak)),
                       show_bytes(static_cast<double>(figures.decommitted_total))));
}

/// [{name, value}], of "name=value name=value".
json options_in_effect(const process_record& r) {
  json all = json::array();
  std::istringstream words(r.options);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    all.push_back({{"name", word.substr(0, equals)}, {"value", word.substr(std::min(equals + 1, word.size()))}});
  }
  return all;
}

/// Where the malloc of a process is that does not run on ours; `file` is empty if that is not
/// known.
std::string about_malloc(pid_t pid, const std::string& file) {
  if (file.empty()) return "its malloc is unknown";
  if (file != executable_of(pid)) return fmt::format("its malloc is {} ({})", malloc_name(file), file);
  if (const auto elf = elf_file::open(path_inside(pid, file)); elf && elf->is_go())
    return fmt::format("{} is a Go program: Go has an allocator of its own and does not call malloc{}", file,
                       elf->is_go_with_c() ? "; that of its C code is linked into it" : "");
  return fmt::format("its malloc is within {}", file);
}

/// `heapwright run --stats`, `live` and others stay beside their command, and shells tell their
/// process id. Empty for another program.
std::string about_this_command(pid_t pid) {
  std::error_code error;
  if (!std::filesystem::equivalent(fmt::format("/proc/{}/exe", pid), "/proc/self/exe", error)) return {};
  const std::string children = read_file(fmt::format("/proc/{0}/task/{0}/children", pid)).value_or("");
  const pid_t child = std::atoi(children.c_str());
  if (child == 0) return fmt::format("process {} is heapwright itself, and has no command at the moment\n", pid);
  return fmt::format("process {} is heapwright itself; its command is process {}: heapwright info {}\n", pid, child,
                     child);
}

/// Whether `file`, whose malloc the process is bound to, is another one than that of the record. A
/// library that is missing from the lookup order (dlopen) is another one, too.
bool is_another(pid_t pid, const std::string& file, const heap_record& found) {
  std::error_code error;
  return !file.empty() && file != found.path() &&
         !std::filesystem::equivalent(path_inside(pid, file), path_inside(pid, found.path()), error);
}

/// The file of the probe, which hands each call on to the malloc behind it; empty: it is not
/// loaded.
std::string probe_in(pid_t pid) {
  const auto files = mapped_files(pid);
  const auto found = std::ranges::find_if(files, [](const mapping& m) { return is_probe(m.path); });
  return found == files.end() ? "" : found->path;
}

int about_process(const info_options& options) {
  check_readable(options.pid);
  const auto found = heap_record::find(options.pid);
  heap_figures figures;
  if (found) (void)found->read_figures(figures);
  const std::uint64_t rss = proc_bytes(options.pid, "smaps_rollup", "Rss");
  std::string malloc = malloc_of(options.pid).value_or("");
  // The file of a library that is gone says nothing of what it defined.
  std::error_code error;
  const bool is_gone = found && !std::filesystem::exists(path_inside(options.pid, found->path()), error);
  // A heap behind a wrapper of malloc has spans. One behind another malloc has at most what comes
  // from functions that the other one does not define (aligned_alloc).
  const bool is_behind = found && !is_gone && is_another(options.pid, malloc, *found);
  if (found && !is_behind) malloc = found->path();
  const bool is_in_effect = found && (!is_behind || figures.spans > 0);
  if (options.json) {
    json result = {{"format", "heapwright info 1"}, {"pid", options.pid}, {"loaded", found != nullptr},
                   {"in_effect", is_in_effect},     {"malloc", malloc},   {"rss_bytes", rss}};
    if (found) {
      result["library"] = found->path();
      result["version"] = found->what().version;
      result["build"] = found->what().build;
      result["recipe"] = recipe_name(found->what());
      result["options"] = options_in_effect(found->what());
      for (const figure_line& f : memory_lines(figures, found->what())) result["bytes"][f.key] = f.bytes;
      for (const figure_line& f : obtained_lines(figures)) result["bytes"][f.key] = f.bytes;
      result["threads"] = figures.threads.get();
    }
    answer_text(result.dump(2, ' ', false, json::error_handler_t::replace) + '\n');
  } else if (is_in_effect) {
    print_loaded(*found, figures, options.pid, rss, is_behind && !is_libc(malloc) ? malloc : probe_in(options.pid));
  } else if (found) {
    answer("process {}: {}{} is loaded, but not in effect; {}, RSS {}\n", options.pid, found->path(),
           found->is_deleted() ? " (deleted)" : "", about_malloc(options.pid, malloc),
           show_bytes(static_cast<double>(rss)));
    if (figures.mapped > 0)
      answer("  It has mapped {} for functions that this malloc does not define (such as aligned_alloc)\n",
             show_bytes(static_cast<double>(figures.mapped)));
  } else if (const std::string itself = about_this_command(options.pid); !itself.empty()) {
    answer("{}", itself);
  } else {
    const std::string probe = probe_in(options.pid);
    answer("process {}: not loaded; {}, RSS {}\n{}", options.pid, about_malloc(options.pid, malloc),
           show_bytes(static_cast<double>(rss)), probe.empty() ? "" : fmt::format("  calls reach {} first\n", probe));
  }
  return is_in_effect ? EXIT_SUCCESS : exit_code::judged_no;
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

/// On a narrow terminal the meaning begins on a line of its own.
std::string option_lines(const std::string& name, const std::string& value, const std::string& meaning,
                         std::size_t width) {
  const std::string start = fmt::format("  {:<28} {:<10} ", name, value);
  constexpr std::size_t least = 40, indent = 6;
  if (width == 0 || width >= start.size() + least) return start + wrapped(meaning, start.size(), start.size(), width);
  return start.substr(0, start.find_last_not_of(' ') + 1) + '\n' + std::string(indent, ' ') +
         wrapped(meaning, indent, indent, width);
}

int about_installation(const info_options& options) {
  const std::string path = own_library();
  const std::size_t width = columns_of(STDOUT_FILENO);
  const auto table = option_table(elf_file::open(path).value());
  if (options.json) {
    json result = {{"format", "heapwright info 1"},
                   {"version", HEAPWRIGHT_VERSION},
                   {"library", path},
                   {"options", json::array()}};
    for (const auto& [name, value, meaning] : table)
      result["options"].push_back({{"name", name}, {"default", value}, {"meaning", meaning}});
    answer_text(result.dump(2) + '\n');
    return EXIT_SUCCESS;
  }
  answer("heapwright {}\nlibrary  {}\n", HEAPWRIGHT_VERSION, path);
  if (!table.empty()) answer("\nOptions, from the environment:\n");
  for (const auto& [name, value, meaning] : table) answer("{}", option_lines(name, value, meaning, width));
  return EXIT_SUCCESS;
}

}  // namespace

int info(const info_options& options) {
  return options.pid != 0 ? about_process(options) : about_installation(options);
}

}  // namespace heapwright::tool
