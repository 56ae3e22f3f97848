#include "python_arenas.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

constexpr std::uint64_t arena_step = 16 << 10;
constexpr std::uint64_t most_samples = 4096;

struct memory_range {
  std::uint64_t begin = 0, end = 0;
};

/// What CPython calls pool_header, in a process with 64-bit pointers.
struct pool_header {
  std::uint32_t blocks_in_use;
  std::uint32_t padding;
  std::uint64_t free_block, next, previous;
  std::uint32_t arena, size_class, next_offset, last_offset;
};
static_assert(sizeof(pool_header) == pool_header_bytes);

bool can_be(const pool_header& h, std::uint64_t address, std::uint32_t pool_bytes) {
  constexpr std::uint32_t classes = 32, alignment = 16;
  if (address % pool_bytes != 0 || h.size_class >= classes) return false;
  const std::uint32_t block_bytes = (h.size_class + 1) * alignment;
  return h.last_offset == pool_bytes - block_bytes && h.next_offset >= pool_header_bytes &&
         h.next_offset <= pool_bytes && h.blocks_in_use <= pool_bytes / block_bytes &&
         (h.free_block == 0 || (h.free_block > address && h.free_block < address + pool_bytes));
}

bool names_python(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libpython") || file.starts_with("python");
}

/// The anonymous memory that can be written; empty if no file of a Python is mapped.
std::vector<memory_range> anonymous_memory_of_python(pid_t process) {
  std::vector<memory_range> found;
  bool is_python = false;
  std::istringstream lines(read_file(fmt::format("/proc/{}/maps", process)).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    unsigned long long begin = 0, end = 0, inode = 0;
    char permissions[8] = "";
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %*s %*s %llu %n", &begin, &end, permissions, &inode, &path_at) < 4)
      continue;
    const std::string_view path = std::string_view(line).substr(static_cast<std::size_t>(path_at));
    is_python = is_python || names_python(path);
    const bool is_private = std::strncmp(permissions, "rw-p", 4) == 0;
    if (is_private && (path.empty() || path.starts_with("[anon")))
      found.push_back({(begin + arena_step - 1) / arena_step * arena_step, end / arena_step * arena_step});
  }
  if (!is_python) found.clear();
  std::erase_if(found, [](const memory_range& r) { return r.begin >= r.end; });
  return found;
}

bool is_in_memory(const descriptor& pagemap, std::uint64_t address) {
  static const auto page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t present = std::uint64_t{1} << 63;
  std::uint64_t entry = 0;
  const auto at = static_cast<off_t>(address / page_size * sizeof entry);
  return pread(pagemap.get(), &entry, sizeof entry, at) == sizeof entry && (entry & present) != 0;
}

}  // namespace

bool is_python_pool(std::span<const std::byte, pool_header_bytes> header, std::uint64_t address) {
  pool_header h;
  std::memcpy(&h, header.data(), sizeof h);
  return can_be(h, address, 16 << 10) || can_be(h, address, 4 << 10);
}

std::optional<std::uint64_t> python_arena_bytes(pid_t process) {
  const std::vector<memory_range> ranges = anonymous_memory_of_python(process);
  const descriptor pagemap(open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC));
  if (ranges.empty() || !pagemap) return std::nullopt;
  std::uint64_t places = 0;
  for (const memory_range& r : ranges) places += (r.end - r.begin) / arena_step;
  const std::uint64_t stride = places / most_samples + 1;
  std::uint64_t pools = 0, skipped = 0;
  for (const memory_range& r : ranges) {
    std::uint64_t at = r.begin + skipped * arena_step;
    for (; at < r.end; at += stride * arena_step) {
      if (!is_in_memory(pagemap, at)) continue;
      std::array<std::byte, pool_header_bytes> header{};
      if (!read_memory(process, at, header.data(), header.size())) return std::nullopt;
      pools += is_python_pool(header, at) ? 1 : 0;
    }
    skipped = (at - r.end) / arena_step;
  }
  return pools * stride * arena_step;
}

}  // namespace heapwright::tool
