#include "process_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "process_image.hpp"

namespace heapwright::tool {
namespace {

constexpr std::size_t words_in_page = page_bytes / sizeof(std::uint64_t);
constexpr std::size_t cached_pages = 8192;
constexpr std::uint64_t no_page = 1;

}  // namespace

std::vector<memory_mapping> mappings_in_text(const std::string& maps) {
  std::vector<memory_mapping> result;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    unsigned long long begin = 0, end = 0;
    char permissions[8] = "";
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %*s %*s %*s %n", &begin, &end, permissions, &path_at) < 3) continue;
    const std::string_view may(permissions);
    result.push_back({{begin, end},
                      may.starts_with('r'),
                      may.size() > 1 && may[1] == 'w',
                      may.ends_with('s'),
                      path_at > 0 ? line.substr(static_cast<std::size_t>(path_at)) : std::string()});
  }
  return result;
}

process_memory::process_memory(pid_t process, pid_t thread)
    : process_(process),
      thread_(thread),
      pages_(open(fmt::format("/proc/{}/task/{}/pagemap", process, thread).c_str(), O_RDONLY | O_CLOEXEC)),
      cached_addresses_(cached_pages, no_page),
      cached_words_(std::make_unique_for_overwrite<std::uint64_t[]>(cached_pages * words_in_page)) {}

std::vector<memory_mapping> process_memory::mappings() const {
  return mappings_in_text(read_file(fmt::format("/proc/{}/task/{}/maps", process_, thread_)).value_or(""));
}

bool process_memory::read(std::uint64_t address, void* into, std::size_t bytes) const {
  return read_memory(thread_, address, into, bytes);
}

const std::uint64_t* process_memory::page(std::uint64_t address) {
  const std::size_t place = address / page_bytes % cached_pages;
  std::uint64_t* const words = cached_words_.get() + place * words_in_page;
  if (cached_addresses_[place] != address) {
    cached_addresses_[place] = no_page;
    if (!read(address, words, page_bytes)) return nullptr;
    cached_addresses_[place] = address;
  }
  return words;
}

/// Where the kernel does not tell, all are.
std::vector<bool> process_memory::touched_pages(std::uint64_t first, std::size_t count) const {
  static const auto kernel_page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t is_in_memory_or_swapped = std::uint64_t{3} << 62;
  std::vector<bool> result(count, true);
  const std::uint64_t first_entry = first / kernel_page;
  const std::uint64_t last_entry = (first + count * page_bytes - 1) / kernel_page;
  std::vector<std::uint64_t> entries(last_entry - first_entry + 1);
  const auto bytes = static_cast<ssize_t>(entries.size() * sizeof entries[0]);
  if (!pages_ || pread(pages_.get(), entries.data(), static_cast<std::size_t>(bytes),
                       static_cast<off_t>(first_entry * sizeof entries[0])) != bytes)
    return result;
  for (std::size_t i = 0; i < count; ++i)
    result[i] = (entries[(first + i * page_bytes) / kernel_page - first_entry] & is_in_memory_or_swapped) != 0;
  return result;
}

void process_memory::for_each_words(address_range range,
                                    const std::function<void(std::span<const std::uint64_t>)>& each) {
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  constexpr std::size_t pages_at_once = 4096;
  const std::uint64_t begin = (range.begin + word - 1) / word * word, end = range.end / word * word;
  for (std::uint64_t part = begin; part < end;) {
    const std::uint64_t first = part / page_bytes * page_bytes;
    const std::uint64_t part_end = std::min(end, first + pages_at_once * page_bytes);
    const std::size_t count = (part_end - first + page_bytes - 1) / page_bytes;
    constexpr std::size_t few = 8;
    const std::vector<bool> touched = count <= few ? std::vector<bool>() : touched_pages(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t at = first + i * page_bytes;
      const std::uint64_t* const words = touched.empty() || touched[i] ? page(at) : nullptr;
      if (words == nullptr) continue;
      const std::uint64_t from = std::max(part, at), to = std::min(part_end, at + page_bytes);
      each({words + (from - at) / word, words + (to - at) / word});
    }
    part = part_end;
  }
}

}  // namespace heapwright::tool
