#include "heap_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "failure.hpp"

namespace heapwright::tool {
namespace {

template <class T>
std::uint64_t address_of(const T* there) noexcept {
  return reinterpret_cast<std::uint64_t>(there);
}

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t to) noexcept { return (n + to - 1) / to * to; }

/// The beginning of a file, as it is on disk or as a process has it mapped. False: it cannot be
/// read.
using image_reader = std::function<bool(std::uint64_t offset, void* into, std::size_t size)>;

/// Where in an image a record_note leads to, as an offset from its beginning.
std::optional<std::uint64_t> record_offset(const image_reader& read) {
  constexpr std::uint64_t most_headers = 64, most_notes = 64;
  ElfW(Ehdr) header;
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return std::nullopt;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.e_phnum, most_headers); ++i) {
    ElfW(Phdr) part;
    if (!read(header.e_phoff + i * sizeof part, &part, sizeof part)) return std::nullopt;
    if (part.p_type != PT_NOTE) continue;
    const std::uint64_t align = std::max<std::uint64_t>(part.p_align, 4), end = part.p_offset + part.p_filesz;
    std::uint64_t at = part.p_offset;
    for (std::uint64_t n = 0; n < most_notes && at + sizeof(ElfW(Nhdr)) <= end; ++n) {
      ElfW(Nhdr) note;
      if (!read(at, &note, sizeof note)) break;
      const std::uint64_t name = at + sizeof note;
      const std::uint64_t content = rounded_up(name + note.n_namesz, align);
      char owner[record_note::owner_bytes];
      record_note found;
      if (note.n_type == record_note::type && note.n_namesz == sizeof owner && note.n_descsz == sizeof found &&
          read(name, owner, sizeof owner) && std::memcmp(owner, record_note::owner, sizeof owner) == 0 &&
          read(content, &found, sizeof found))
        return content + static_cast<std::uint64_t>(std::int64_t{found.record_from_here});
      at = rounded_up(content + note.n_descsz, align);
    }
  }
  return std::nullopt;
}

image_reader reader_of(const descriptor& file) {
  return [&file](std::uint64_t offset, void* into, std::size_t size) {
    return pread(file.get(), into, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  };
}

descriptor open_regular(const std::string& path) {
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  return file && fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode) ? std::move(file) : descriptor(-1);
}

/// The file behind a mapping, even when its path has been replaced by another since.
descriptor open_mapped(pid_t pid, const mapping& m) {
  struct stat about {};
  const std::string path = path_inside(pid, m.path);
  if (stat(path.c_str(), &about) == 0 && about.st_ino == m.inode) return open_regular(path);
  return open_regular(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, m.start, m.end));
}

/// From the memory of the process; from the file where the memory may not be read.
std::optional<std::uint64_t> record_offset(pid_t pid, const mapping& m) {
  char byte = 0;
  if (read_memory(pid, m.start, &byte, 1))
    return record_offset([&](std::uint64_t offset, void* into, std::size_t size) {
      return offset < m.end - m.start && read_memory(pid, m.start + offset, into, size);
    });
  const descriptor file = open_mapped(pid, m);
  return file ? record_offset(reader_of(file)) : std::nullopt;
}

}  // namespace

bool heap_record::is_kept_by(const std::string& library) {
  const descriptor file = open_regular(library);
  return file && record_offset(reader_of(file));
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
    const auto offset = record_offset(pid, m);
    if (!offset) {
      without.insert({m.path, m.inode});
      continue;
    }
    std::unique_ptr<heap_record> found(new heap_record(pid, m));
    process_record& record = found->record_;
    if (!read_memory(pid, m.start + *offset, &record, sizeof record))
      throw unreadable(
          fmt::format("the memory of process {} cannot be read: {}; {}", pid, std::strerror(errno), who_may_read()));
    if (std::memcmp(record.magic, process_record::expected_magic, sizeof record.magic) != 0)
      throw unreadable(fmt::format("{} in process {} holds no valid record", m.path, pid));
    if (record.layout != process_record::current_layout || record.bytes != sizeof(process_record))
      throw unreadable(fmt::format("{} in process {} writes record layout {}; this heapwright {} reads layout {}",
                                   m.path, pid, record.layout, HEAPWRIGHT_VERSION, process_record::current_layout));
    return found;
  }
  return nullptr;
}

bool heap_record::read_figures(heap_figures& into) const {
  return record_.figures != nullptr && read_memory(pid_, address_of(record_.figures), &into, sizeof into);
}

std::optional<heap_reading> heap_record::read() const {
  return read_heap(record_, [this](const void* there, void* into, std::size_t bytes) {
    return read_memory(pid_, address_of(there), into, bytes);
  });
}

}  // namespace heapwright::tool
