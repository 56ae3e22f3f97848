#include "heap_record.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.hpp"
#include "failure.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

constexpr const char* record_symbol = "heapwright_process_record";

template <class T>
std::uint64_t address_of(const T* there) noexcept {
  return reinterpret_cast<std::uint64_t>(there);
}

/// The file behind a mapping, even when its path has been replaced by another since.
std::optional<elf_file> open_mapped(pid_t pid, const mapping& m) {
  struct stat about {};
  const std::string path = path_inside(pid, m.path);
  if (stat(path.c_str(), &about) == 0 && about.st_ino == m.inode) return elf_file::open(path);
  return elf_file::open(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, m.start, m.end));
}

}  // namespace

bool heap_record::is_kept_by(const std::string& library) {
  const auto elf = elf_file::open(library);
  return elf && elf->find(record_symbol);
}

std::unique_ptr<heap_record> heap_record::find(pid_t pid) {
  known_files without;
  return find(pid, without);
}

std::vector<std::unique_ptr<heap_record>> heap_record::find_all() {
  std::vector<std::unique_ptr<heap_record>> found;
  known_files without;
  for (const pid_t pid : processes()) {
    if (pid == getpid()) continue;
    try {
      if (auto record = find(pid, without)) found.push_back(std::move(record));
    } catch (const std::exception&) {
      continue;  // not ours to read, of another version, or a file that asks for more memory than there is
    }
  }
  return found;
}

std::unique_ptr<heap_record> heap_record::find(pid_t pid, known_files& without) {
  for (const mapping& m : mapped_files(pid)) {
    if (m.offset != 0 || without.contains({m.path, m.inode})) continue;
    const auto elf = open_mapped(pid, m);
    if (!elf) {
      without.insert({m.path, m.inode});
      if (m.path.find("libheapwright.") == std::string::npos) continue;
      throw unreadable(
          fmt::format("{} is loaded, but the file was replaced since and the old one cannot be opened; "
                      "restart the process, or ask as root",
                      m.path));
    }
    const auto symbol = elf->find(record_symbol);
    if (!symbol) {
      without.insert({m.path, m.inode});
      continue;
    }
    std::unique_ptr<heap_record> found(new heap_record(pid, m.path));
    process_record& record = found->record_;
    if (!read_memory(pid, symbol->address - elf->lowest_address() + m.start, &record, sizeof record))
      throw unreadable(fmt::format("the memory of process {} cannot be read: {}; try as the same user or as root", pid,
                                   std::strerror(errno)));
    if (std::memcmp(record.magic, process_record::expected_magic, sizeof record.magic) != 0)
      throw unreadable(fmt::format("{} in process {} holds no valid record", m.path, pid));
    if (record.layout != process_record::current_layout || record.bytes != sizeof(process_record))
      throw unreadable(fmt::format("{} in process {} writes record layout {}; this heapwright {} reads layout {}",
                                   m.path, pid, record.layout, HEAPWRIGHT_VERSION, process_record::current_layout));
    return found;
  }
  return nullptr;
}

bool heap_record::read(heap_figures& into) const {
  return record_.figures != nullptr && read_memory(pid_, address_of(record_.figures), &into, sizeof into);
}

std::vector<class_reading> heap_record::read_classes() const {
  constexpr std::size_t most = 255, longest_stride = 4096;
  const std::size_t count = record_.class_count, stride = record_.class_stride;
  if (count > most || stride < sizeof(class_figures) || stride > longest_stride) return {};
  std::vector<std::uint32_t> block_bytes(count);
  std::vector<std::byte> figures(count * stride);
  // The last one's stride may reach beyond the heap.
  const std::size_t whole = figures.size() - stride + sizeof(class_figures);
  if (count == 0 ||
      !read_memory(pid_, address_of(record_.class_bytes), block_bytes.data(), count * sizeof(std::uint32_t)) ||
      !read_memory(pid_, address_of(record_.first_of_class), figures.data(), whole))
    return {};
  std::vector<class_reading> classes;
  for (std::size_t c = 0; c < count; ++c) {
    class_figures one;
    std::memcpy(&one, figures.data() + c * stride, sizeof one);
    classes.push_back({block_bytes[c], one.outside, one.span_bytes});
  }
  return classes;
}

}  // namespace heapwright::tool
