// From the kernel's auxiliary vector to the program headers, to the dynamic section, to the
// loader's list: all read from outside, with every address taken for what it is, a number from a
// stranger.
#include "process_image.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "elf_file.hpp"
#include "loader.hpp"

namespace heapwright::tool {
namespace {

template <typename Record>
bool read_record(pid_t pid, std::uint64_t address, Record& into) {
  return read_memory(pid, address, &into, sizeof into);
}

std::string read_text(pid_t pid, std::uint64_t address) {
  std::string text;
  for (char c = 0; text.size() < 4096 && read_record(pid, address + text.size(), c) && c != '\0';) text += c;
  return text;
}

/// The address of the loader's list, from the program headers that the kernel tells every process
/// about.
std::uint64_t loader_list(pid_t pid) {
  const auto vector = read_file(fmt::format("/proc/{}/auxv", pid));
  std::uint64_t headers = 0;
  std::uint64_t count = 0;
  for (std::size_t at = 0; vector && at + sizeof(ElfW(auxv_t)) <= vector->size(); at += sizeof(ElfW(auxv_t))) {
    ElfW(auxv_t) entry;
    std::memcpy(&entry, vector->data() + at, sizeof entry);
    if (entry.a_type == AT_PHDR) headers = entry.a_un.a_val;
    if (entry.a_type == AT_PHNUM) count = entry.a_un.a_val;
  }
  std::uint64_t bias = 0;
  std::uint64_t dynamic = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 64); ++i) {
    ElfW(Phdr) header;
    if (!read_record(pid, headers + i * sizeof header, header)) return 0;
    if (header.p_type == PT_PHDR) bias = headers - header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = header.p_vaddr;
  }
  if (dynamic == 0) return 0;
  for (std::uint64_t at = dynamic + bias;; at += sizeof(ElfW(Dyn))) {
    ElfW(Dyn) entry;
    if (!read_record(pid, at, entry) || entry.d_tag == DT_NULL) return 0;
    if (entry.d_tag == DT_DEBUG) return entry.d_un.d_ptr;
  }
}

/// Calls `each` with the address and a copy of each of the loader's records, in lookup order.
template <typename Each>
void for_each_object(pid_t pid, const Each& each) {
  const std::uint64_t list = loader_list(pid);
  r_debug head;
  if (list == 0 || !read_record(pid, list, head)) return;
  auto next = reinterpret_cast<std::uint64_t>(head.r_map);
  // A process that scribbled over its own list must not hold us in a circle.
  for (unsigned hops = 0; next != 0 && hops < 10000; ++hops) {
    link_map object;
    if (!read_record(pid, next, object)) break;
    each(next, object);
    next = reinterpret_cast<std::uint64_t>(object.l_next);
  }
}

/// The file that is mapped at an address; empty for none. Of a relative path (LD_PRELOAD=./lib.so)
/// the process may have left the folder.
std::string file_at(pid_t pid, std::uint64_t address) {
  for (const mapping& file : mapped_files(pid))
    if (file.start <= address && address < file.end) return file.path;
  return {};
}

/// Paths in lookup order; empty if the process has no such list (yet) or its memory is not ours to
/// read.
std::vector<std::string> listed_objects(pid_t pid) {
  std::vector<std::string> objects;
  for_each_object(pid, [&](std::uint64_t, const link_map& object) {
    const std::string name = read_text(pid, reinterpret_cast<std::uint64_t>(object.l_name));
    if (name.empty() && objects.empty())
      objects.push_back(executable_of(pid));
    else if (name.starts_with('/'))
      objects.push_back(name);
    else if (name.find('/') != std::string::npos)
      objects.push_back(file_at(pid, reinterpret_cast<std::uint64_t>(object.l_ld)));
  });
  return objects;
}

/// Asked for the same few files in run after run, so the answer is kept.
bool defines_malloc(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return false;
  static std::map<std::pair<dev_t, ino_t>, bool> known;
  const auto [entry, fresh] = known.try_emplace({about.st_dev, about.st_ino}, false);
  if (fresh) {
    const auto elf = elf_file::open(path);
    entry->second = elf && elf->exports("malloc");
  }
  return entry->second;
}

bool is_static(const std::string& path) {
  const auto elf = elf_file::open(path);
  return elf && elf->loader().empty();
}

}  // namespace

std::vector<pid_t> processes() {
  std::vector<pid_t> result;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const char* const name_end = name.data() + name.size();
    pid_t pid = 0;
    if (const auto read = std::from_chars(name.data(), name_end, pid); read.ec == std::errc{} && read.ptr == name_end)
      result.push_back(pid);
  }
  return result;
}

std::vector<mapping> mapped_files(pid_t pid) {
  std::vector<mapping> result;
  std::istringstream lines(read_file(fmt::format("/proc/{}/maps", pid)).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    mapping m{};
    unsigned long long start = 0, end = 0, offset = 0, inode = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %llx %*s %llu %n", &start, &end, &offset, &inode, &path_at) < 4)
      continue;
    m = {start, end, offset, inode, line.substr(static_cast<std::size_t>(path_at)), false};
    constexpr std::string_view mark = " (deleted)";
    m.is_deleted = m.path.ends_with(mark);
    if (m.is_deleted) m.path.resize(m.path.size() - mark.size());
    if (m.path.starts_with('/')) result.push_back(m);
  }
  return result;
}

bool read_memory(pid_t pid, std::uint64_t address, void* into, std::size_t size) {
  const iovec local{into, size};
  const iovec remote{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::string who_may_read() {
  return geteuid() != 0 ? "try as the same user or as root (sudo)"
                        : "root needs CAP_SYS_PTRACE, which is missing here or does not reach this process, as in a "
                          "container";
}

std::string path_inside(pid_t pid, const std::string& path) { return fmt::format("/proc/{}/root{}", pid, path); }

std::string name_of_process(pid_t pid) {
  std::string name = read_file(fmt::format("/proc/{}/comm", pid)).value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::string executable_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
}

std::optional<std::string> malloc_of(pid_t pid) {
  for (const std::string& path : listed_objects(pid))
    if (!is_probe(path) && defines_malloc(path_inside(pid, path))) return path;

  std::optional<std::string> found;
  const bool readable = loader_list(pid) != 0;
  for (const mapping& file : mapped_files(pid)) {
    if (readable) break;  // The list is there but not complete: too early to tell.
    if (is_probe(file.path) || !defines_malloc(path_inside(pid, file.path))) continue;
    if (!is_libc(file.path)) return file.path;
    found = file.path;
  }
  const std::string executable = executable_of(pid);
  if (!found && !executable.empty() && is_static(path_inside(pid, executable))) return executable;
  return found;
}

std::vector<std::uint64_t> loaded_object_records(pid_t pid) {
  std::vector<std::uint64_t> addresses;
  for_each_object(pid, [&](std::uint64_t address, const link_map&) { addresses.push_back(address); });
  return addresses;
}

std::optional<std::uint64_t> resident_bytes(pid_t pid) {
  const std::string pages = read_file(fmt::format("/proc/{}/statm", pid)).value_or("");
  unsigned long long mapped = 0, resident = 0;
  if (std::sscanf(pages.c_str(), "%llu %llu", &mapped, &resident) != 2) return std::nullopt;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t proc_bytes(pid_t pid, const char* file, const char* name) {
  const std::string text = read_file(fmt::format("/proc/{}/{}", pid, file)).value_or("");
  const auto at = text.find(fmt::format("{}:", name));
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::strlen(name) + 1, nullptr, 10) * 1024;
}

}  // namespace heapwright::tool
