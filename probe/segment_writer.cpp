#include "segment_writer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/posix/without_cancellation.hpp>
#include <heapwright/core/text.hpp>

#include "clocks.hpp"
#include "next_malloc.hpp"

namespace heapwright::probe {
namespace {

using namespace segment;

constexpr std::size_t least_slots = 1024;
constexpr std::uint64_t longest_interval = std::uint64_t{1} << 40;  // one that adapts has the highest bit
constexpr std::size_t stack_bytes_for_few = 64 * 1024 * 1024, stack_bytes_for_all = 256 * 1024 * 1024;  // g++ has 124
constexpr std::size_t code_record_bytes = 32 * 1024 * 1024;  // some hundred thousand functions
constexpr std::size_t sample_bytes = 192 * 1024 * 1024;      // six million live samples
constexpr std::uint32_t stack_buckets_for_few = 1 << 13, stack_buckets_for_all = 1 << 18;
constexpr std::uint32_t sample_buckets_for_few = 1 << 14, sample_buckets_for_all = 1 << 20;

/// What is in one file of /proc, cut off where the buffer ends.
template <std::size_t Size>
std::size_t read_file(const char* path, char (&buffer)[Size]) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, buffer, Size);
  ::close(fd);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

/// Field 22 of /proc/self/stat. The name of the program, which may have spaces and parentheses,
/// ends with the last one.
std::uint64_t ticks_at_process_start() noexcept {
  char stat[1024];
  const std::size_t n = read_file("/proc/self/stat", stat);
  if (n == 0) return 0;
  const char* const end = stat + n;
  const char* p = end - 1;
  while (p > stat && *p != ')') --p;
  for (int field = 2; field < 22 && p < end; ++p) field += *p == ' ';
  std::uint64_t ticks = 0;
  for (; p < end && *p >= '0' && *p <= '9'; ++p) ticks = ticks * 10 + static_cast<std::uint64_t>(*p - '0');
  return ticks;
}

/// Of the user alone, also where others may write to the folder that it is in.
bool make_directory(const char* path) noexcept {
  ::mkdir(path, 0700);
  struct statx is {};  // has had one version since glibc 2.28; lstat is newer in 2.33
  if (::statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_UID, &is) != 0) return false;
  errno = EACCES;
  return S_ISDIR(is.stx_mode) && is.stx_uid == ::geteuid();
}

/// The folder of segments.
text<512> directory_of(const settings& s) noexcept {
  text<512> path;
  if (s.directory != nullptr) return path.add(s.directory);
  return path.add("/dev/shm/heapwright-").add(static_cast<std::uint64_t>(::geteuid()));
}

using path_text = text<1000>;

void name_file(path_text& path, const char* directory, std::uint64_t start, unsigned number) noexcept {
  path.add(directory).add("/").add(static_cast<std::uint64_t>(::getpid())).add("-").add(start).add("-").add(number);
  path.add(".segment");
}

/// exec has put another program in the place of the one that made this segment.
void note_replaced(const char* path) noexcept {
  const int fd = ::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  const auto state = static_cast<std::uint32_t>(process_state::replaced);
  (void)!::pwrite(fd, &state, sizeof state, offsetof(segment_header, state));
  const std::uint64_t now = monotonic_ns();
  (void)!::pwrite(fd, &now, sizeof now, offsetof(segment_header, ended_ns));
  ::close(fd);
}

constinit char path_of_rings[1024]{};  // longer than a path_text

/// The name of a segment, with another ending.
void name_rings(path_text& segment) noexcept {
  constexpr std::size_t ending = sizeof(".segment") - 1;
  path_text path;
  path.add(std::string_view(segment.c_str(), segment.size() - ending)).add(".rings");
  std::memcpy(path_of_rings, path.c_str(), path.size() + 1);
}

/// A file that has not been there. A process has one segment for each program that it executes.
int create_file(path_text& path, const char* directory, std::uint64_t start) noexcept {
  constexpr unsigned most = 1000;
  for (unsigned number = 0; number < most; ++number) {
    path = {};
    name_file(path, directory, start, number);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd >= 0) name_rings(path);
    if (fd >= 0 && number > 0) {
      path_text before;
      name_file(before, directory, start, number - 1);
      note_replaced(before.c_str());
    }
    return fd;
  }
  return -1;
}

/// The process id in the name of a segment, PID-START-N.segment, or of rings; 0: the file is
/// something else.
pid_t process_of(const char* name) noexcept {
  const auto skip_digits = [&name] {
    const char* const begin = name;
    while (*name >= '0' && *name <= '9') ++name;
    return name != begin;
  };
  const auto process = static_cast<pid_t>(std::strtol(name, nullptr, 10));
  for (int part = 0; part < 3; ++part) {
    if (part > 0 && *name++ != '-') return 0;
    if (!skip_digits()) return 0;
  }
  return std::strcmp(name, ".segment") == 0 || std::strcmp(name, ".rings") == 0 ? process : 0;
}

/// Whether a process has the file mapped, or opened, for writing: it need not be one that has an id
/// here. The kernel then refuses a lease on the file: fcntl(2), F_SETLEASE.
bool is_in_use(int directory, const char* name) noexcept {
  const int fd = ::openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  // Who opens the file while the lease is held sends a signal: one that is ignored by default.
  const bool is = ::fcntl(fd, F_SETSIG, SIGURG) == 0 && ::fcntl(fd, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
  ::close(fd);
  return is;
}

/// Also where it is a process of another PID namespace.
bool is_gone(pid_t process) noexcept { return ::kill(process, 0) != 0 && errno == ESRCH; }

bool is_of_rings(const char* name) noexcept { return std::strstr(name, ".rings") != nullptr; }

/// Calls f(folder, name, process) for each segment and each file of rings there.
template <class F>
void for_each_file(const char* directory, F f) noexcept {
  const int fd = ::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) char entries[4096];
  for (ssize_t n = 0; (n = ::getdents64(fd, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* const e = reinterpret_cast<const dirent64*>(entries + at);
      at += e->d_reclen;
      if (const pid_t process = process_of(e->d_name); process != 0) f(fd, e->d_name, process);
    }
  }
  ::close(fd);
}

/// Whether the rings of the process that made this segment are still in the folder.
bool has_rings(int directory, const char* segment) noexcept {
  text<256> rings;
  rings.add(std::string_view(segment, std::strlen(segment) - (sizeof(".segment") - 1))).add(".rings");
  return ::faccessat(directory, rings.c_str(), F_OK, 0) == 0;
}

/// What processes have left that are gone stays to be read, but not without end: a server that
/// forks for each request would fill the memory. A file system in memory lists its newest files
/// first. `is_recorded`: the recorder takes the rings away, and segments are of use until it has.
void remove_old_segments(const char* directory, bool is_recorded) noexcept {
  constexpr unsigned kept = 64;
  unsigned segments = 0, rings = 0;
  for_each_file(directory, [&](int folder, const char* name, pid_t process) {
    unsigned& seen = is_of_rings(name) ? rings : segments;
    if (++seen <= kept || !is_gone(process)) return;
    if (is_recorded && (is_of_rings(name) || has_rings(folder, name))) return;
    if (is_in_use(folder, name)) return;  // by its recorder, or a process of another PID namespace
    ::unlinkat(folder, name, 0);
  });
}

/// The most that stacks, samples and interpreted code may take each: a small part of the address
/// space where that is limited (ulimit -v), and of what is free where the segment is to be, so that
/// the program and others have the rest.
std::size_t most_room(const char* directory) noexcept {
  constexpr std::size_t least = 256 * 1024;
  std::size_t most = SIZE_MAX;
  if (rlimit limit{}; ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = limit.rlim_cur / 64;
  if (struct statfs free{}; ::statfs(directory, &free) == 0)
    most = std::min<std::size_t>(most, free.f_bavail * static_cast<std::size_t>(free.f_bsize) / 16);
  return std::max(most, least);
}

template <std::size_t Size>
void copy_text(std::array<char, Size>& to, const char* from, std::size_t bytes) noexcept {
  std::memcpy(to.data(), from, std::min(bytes, Size - 1));
}

bool are_same_file(const char* a, const char* b) noexcept {
  struct statx is_a {
  }, is_b{};
  return ::statx(AT_FDCWD, a, 0, STATX_INO, &is_a) == 0 && ::statx(AT_FDCWD, b, 0, STATX_INO, &is_b) == 0 &&
         is_a.stx_ino == is_b.stx_ino && is_a.stx_dev_major == is_b.stx_dev_major &&
         is_a.stx_dev_minor == is_b.stx_dev_minor;
}

/// See segment_header::program, which has the path already.
void add_name_of_start(segment_header& h) noexcept {
  const auto* const started_as = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  const char* const path = h.program.data();
  const char* const file = std::strrchr(path, '/');
  if (started_as == nullptr || file == nullptr) return;
  const char* const slash = std::strrchr(started_as, '/');
  const char* const name = slash != nullptr ? slash + 1 : started_as;
  const std::size_t path_length = std::strlen(path), name_length = std::strlen(name);
  if (std::strcmp(name, file + 1) == 0 || path_length + 1 + name_length + 1 > h.program.size()) return;
  path_text beside;
  beside.add(std::string_view(path, static_cast<std::size_t>(file + 1 - path))).add(name);
  if (are_same_file(beside.c_str(), "/proc/self/exe"))
    std::memcpy(h.program.data() + path_length + 1, name, name_length);
}

void describe_process(segment_header& h) noexcept {
  if (Dl_info below{}; ::dladdr(reinterpret_cast<void*>(next.allocate), &below) != 0 && below.dli_fname != nullptr)
    copy_text(h.allocator, below.dli_fname, std::strlen(below.dli_fname));
  char buffer[1024];
  if (const ssize_t n = ::readlink("/proc/self/exe", buffer, sizeof buffer); n > 0)
    copy_text(h.program, buffer, static_cast<std::size_t>(n));
  add_name_of_start(h);
  const std::size_t read = read_file("/proc/self/cmdline", buffer);
  copy_text(h.arguments, buffer, read);
  h.arguments_bytes = static_cast<std::uint32_t>(std::min(read, h.arguments.size()));
}

}  // namespace

namespace {

/// Before Linux 5.14. The kernel adds 0 to a word of each page, by itself and atomically: where
/// there is no memory for the page it says so, and sends no signal.
bool make_each_present(std::byte* first, std::size_t bytes) noexcept {
  std::uint32_t nobody_waits = 0;
  for (std::byte* p = first; p != first + bytes; p += linux_os::page_size()) {
    constexpr long add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    if (::syscall(SYS_futex, &nobody_waits, FUTEX_WAKE_OP_PRIVATE, 0, 0L, p, add_nothing) < 0) return false;
  }
  return true;
}

}  // namespace

bool make_present(void* begin, std::size_t bytes) noexcept {
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  const std::size_t page = linux_os::page_size();
  auto* const first = reinterpret_cast<std::byte*>(align_down(reinterpret_cast<std::uintptr_t>(begin), page));
  const std::size_t length = align_up(static_cast<std::size_t>(static_cast<std::byte*>(begin) + bytes - first), page);
  int result = 0;
  do result = ::madvise(first, length, populate_write);
  while (result != 0 && errno == EINTR);
  return result == 0 || (errno == EINVAL && make_each_present(first, length));
}

namespace {

/// `is`: the variable, and what it should be but is not.
void tell_of_bad_value(const char* is, const char* value) noexcept {
  text<300> line;
  line.add("heapwright: ").add(is).add(", and is passed over: ");
  line.add(std::string_view(value, ::strnlen(value, 100))).add("\n");
  (void)!::write(STDERR_FILENO, line.c_str(), std::strlen(line.c_str()));
}

}  // namespace

bool may_be_as_long(std::uint64_t bytes) noexcept {
  rlimit limit{};
  const bool may = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
  if (!may) errno = EFBIG;
  return may;
}

const char* rings_path() noexcept { return path_of_rings; }

unsigned count_rings_of_ended() noexcept {
  path_text folder;
  folder.add(
      std::string_view(path_of_rings, static_cast<std::size_t>(std::strrchr(path_of_rings, '/') - path_of_rings)));
  unsigned count = 0;
  for_each_file(folder.c_str(),
                [&](int, const char* name, pid_t process) { count += is_of_rings(name) && is_gone(process) ? 1 : 0; });
  return count;
}

settings read_settings(char** environment) noexcept {
  settings s;
  const auto value_of = [](const char* entry, const char* name) noexcept -> const char* {
    const std::size_t n = std::strlen(name);
    return std::strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : nullptr;
  };
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (const char* const v = value_of(*environment, "HEAPWRIGHT_PROBE"); v != nullptr && *v != '\0') {
      s.counting = std::strcmp(v, "off") == 0        ? 0
                   : std::strcmp(v, "estimate") == 0 ? counting_is_on | counting_is_of_samples
                                                     : counting_is_on;
      if (s.counting == counting_is_on && std::strcmp(v, "on") != 0)
        tell_of_bad_value("HEAPWRIGHT_PROBE is none of off, on and estimate", v);
    }
    if (const char* const v = value_of(*environment, "HEAPWRIGHT_RECORD")) s.is_recording = std::strcmp(v, "1") == 0;
    if (const char* const v = value_of(*environment, "HEAPWRIGHT_SEGMENT_DIR"); v != nullptr && *v != '\0')
      s.directory = v;
    if (const char* const v = value_of(*environment, "HEAPWRIGHT_SAMPLE"); v != nullptr && *v != '\0') {
      char* end = nullptr;
      const std::uint64_t bytes = *v >= '0' && *v <= '9' ? std::strtoull(v, &end, 10) : 0;
      const bool is_number = end != nullptr && *end == '\0';
      s.interval = is_number ? std::min(bytes, longest_interval) : settings{}.interval;
      if (!is_number && std::strcmp(v, "auto") != 0)
        tell_of_bad_value("HEAPWRIGHT_SAMPLE is neither a number of bytes nor auto", v);
    }
  }
  if (s.counting == (counting_is_on | counting_is_of_samples) && s.interval == 0) {
    tell_of_bad_value("HEAPWRIGHT_PROBE=estimate needs samples, which HEAPWRIGHT_SAMPLE switches off", "0");
    s.interval = settings{}.interval;
  }
  if (s.is_recording) s.counting = 0;
  return s;
}

segment_header* create_segment(const settings& of) noexcept {
  const detail::without_cancellation goes_on;
  const std::size_t page = linux_os::page_size();
  const bool wants_all = of.interval == 1 || of.is_recording;
  const std::uint32_t stack_buckets = wants_all ? stack_buckets_for_all : stack_buckets_for_few;
  const std::uint32_t sample_buckets = wants_all ? sample_buckets_for_all : sample_buckets_for_few;
  text<512> folder = directory_of(of);
  const char* const directory = folder.c_str();
  if (!make_directory(directory)) return nullptr;
  remove_old_segments(directory, of.is_recording);

  const std::size_t most = most_room(directory);
  const std::size_t stack_bytes = std::min(most, wants_all ? stack_bytes_for_all : stack_bytes_for_few);
  std::uint64_t end = 0;
  const auto place = [&](std::uint64_t bytes) {
    const std::uint64_t begin = end;
    end = align_up(begin + bytes, page);
    return begin;
  };
  place(modules_at + max_modules * sizeof(module));
  const std::uint64_t misuse_reports_at = place(max_misuse_reports * sizeof(misuse_report));
  const std::uint64_t codes_at = place(std::min(most, code_record_bytes));
  const std::size_t slot_count = std::clamp(most / thread_slot_bytes, least_slots, most_thread_slots);
  const std::uint64_t threads_at = place(slot_count * thread_slot_bytes);
  const std::uint64_t stack_index_at = place(stack_buckets * sizeof(reference));
  const std::uint64_t stacks_at = place(stack_bytes);
  const std::uint64_t sample_index_at = place(sample_buckets * sizeof(reference));
  const std::uint64_t samples_at = place(std::min(most, sample_bytes));

  if (!may_be_as_long(end)) return nullptr;
  const std::uint64_t start = ticks_at_process_start();
  path_text path;
  const int fd = create_file(path, directory, start);
  if (fd < 0) return nullptr;
  void* p = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(end)) == 0)
    p = ::mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  ::close(fd);
  if (p == MAP_FAILED) {
    const int error = errno;
    ::unlink(path.c_str());
    errno = error;
    return nullptr;
  }
  auto* const base = static_cast<std::byte*>(p);
  if (!make_present(p, sizeof(segment_header)) || !make_present(base + threads_at, thread_slot_bytes) ||
      !make_present(base + stack_index_at, stack_buckets * sizeof(reference)) ||
      !make_present(base + sample_index_at, sample_buckets * sizeof(reference))) {
    ::munmap(p, end);
    ::unlink(path.c_str());
    errno = ENOSPC;
    return nullptr;
  }
  auto& h = *static_cast<segment_header*>(p);  // the file is all zero, which is what its counters begin with
  h.version = segment_version;
  h.header_bytes = sizeof h;
  h.process_id = static_cast<std::uint32_t>(::getpid());
  h.started_ns = monotonic_ns();
  h.started_unix_ns = unix_ns();
  h.process_start = start;
  h.bytes = end;
  h.misuse_reports_at = misuse_reports_at;
  h.codes_at = codes_at;
  h.threads_at = threads_at;
  h.stack_index_at = stack_index_at;
  h.stacks_at = stacks_at;
  h.sample_index_at = sample_index_at;
  h.samples_at = samples_at;
  h.thread_slots = static_cast<std::uint32_t>(slot_count);
  h.stack_buckets = stack_buckets;
  h.sample_buckets = sample_buckets;
  h.class_count = size_scale::count;
  h.interval = of.interval;
  h.interval_before_all = of.interval_before_all;
  h.counting = of.counting;
  h.recording = of.is_recording ? recorded_from_start : 0;
  h.counting_since_ns = (of.counting & counting_is_on) != 0 ? h.started_ns : 0;
  describe_process(h);
  slot_of(&h, 0).state = static_cast<std::uint32_t>(slot_state::everyone);
  h.state = static_cast<std::uint32_t>(process_state::running);
  // Last: before all of it is there no reader believes anything.
  std::memcpy(&h.magic[1], &segment_magic[1], segment_magic.size() - 1);
  std::atomic_ref(h.magic.front()).store(segment_magic.front(), std::memory_order_release);
  return &h;
}

void leave_refusal(const settings& of, int error) noexcept {
  text<600> name;
  name.add(directory_of(of).c_str()).add("/").add(static_cast<std::uint64_t>(::getpid())).add(".unrecorded");
  text<20> number;
  number.add(static_cast<std::uint64_t>(error));
  (void)!::symlink(number.c_str(), name.c_str());
}

void growing_part::reset(void* begin, std::size_t bytes, counter* used) noexcept {
  begin_ = static_cast<std::byte*>(begin);
  bytes_ = bytes;
  used_ = used;
  present_ = align_up(used->load(std::memory_order_relaxed), linux_os::page_size());
}

void* growing_part::take(std::size_t bytes) noexcept {
  constexpr std::size_t step = 64 * 1024;
  bytes = align_up(bytes, reference_unit);
  holding guard(lock_);
  const std::uint64_t at = used_->load(std::memory_order_relaxed);
  if (bytes > bytes_ - at) return nullptr;
  if (at + bytes > present_) {
    const std::size_t more = std::min(align_up(at + bytes - present_, step), bytes_ - present_);
    if (!make_present(begin_ + present_, more)) return nullptr;
    present_ += more;
  }
  used_->store(at + bytes, std::memory_order_release);
  return begin_ + at;
}

}  // namespace heapwright::probe
