#include "recording.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/posix/errno_keeper.hpp>
#include <heapwright/core/posix/without_cancellation.hpp>
#include <heapwright/core/text.hpp>
#include <heapwright/sync/lock.hpp>

#include "../trace/anonymous_memory.hpp"
#include "clocks.hpp"
#include "large_blocks.hpp"
#include "mapping_table.hpp"
#include "segment_writer.hpp"

namespace heapwright::probe {

using trace::ring_file;
using trace::ring_kind;
using trace::ring_record;

thread_local constinit ring_cursor this_ring{};

namespace {

constexpr std::uint64_t ring_records = 1 << 14;
constexpr std::uint32_t most_rings = 1024;  // one for each of the first thread slots

constinit ring_file* rings = nullptr;
constinit process_lock rings_lock;
constinit large_blocks large;
constinit std::atomic<std::uint32_t> recording_of_large{};  ///< the recording that has noted them

std::size_t file_bytes() noexcept {
  const std::size_t heads = align_up(sizeof(ring_file) + most_rings * sizeof(trace::ring_head), linux_os::page_size());
  return heads + most_rings * ring_records * sizeof(ring_record);
}

/// The recorder holds a lock, which goes with it however it ends: of the folder, if it has started
/// the process; otherwise of the segment. Where there is none errno is ESRCH; it is another one
/// where that cannot be seen.
bool has_recorder() noexcept {
  text<1024> locked;
  const char* const path = rings_path();
  const char* const end = std::strrchr(path, is_recorded_from_start() ? '/' : '.');
  if (end == nullptr) return false;
  locked.add(std::string_view(path, static_cast<std::size_t>(end - path)));
  if (!is_recorded_from_start()) locked.add(".segment");
  const int fd = ::open(locked.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool is_locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  errno = ESRCH;
  return is_locked;
}

void rest() noexcept {
  const timespec shortly{0, 500'000};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &shortly, nullptr);
}

/// Until the recorder has found most of those that have ended: where processes come faster than it
/// reads, their files would fill the memory. Returns for how long, in nanoseconds.
std::uint64_t wait_for_ended_to_be_found() noexcept {
  constexpr unsigned most = 64;
  std::uint64_t begun = 0;
  while (is_recorded_from_start() && count_rings_of_ended() >= most && has_recorder()) {
    if (begun == 0) begun = monotonic_ns();
    rest();
  }
  return begun == 0 ? 0 : monotonic_ns() - begun;
}

/// Null, with errno set as has_recorder sets it, or by what has failed.
ring_file* open_rings() noexcept {
  const std::size_t bytes = file_bytes();
  const std::uint64_t waited_ns = wait_for_ended_to_be_found();
  if (!has_recorder() || !may_be_as_long(bytes)) return nullptr;
  const int fd = ::open(rings_path(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nullptr;
  void* p = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0)
    p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  ::close(fd);
  if (p == MAP_FAILED) {
    const int error = errno;
    ::unlink(rings_path());
    errno = error;
    return nullptr;
  }
  auto* const file = static_cast<ring_file*>(p);
  const std::size_t heads = bytes - most_rings * ring_records * sizeof(ring_record);
  if (!make_present(p, heads) ||
      !make_present(static_cast<std::byte*>(p) + heads, ring_records * sizeof(ring_record))) {
    ::munmap(p, bytes);
    ::unlink(rings_path());
    errno = ENOSPC;
    return nullptr;
  }
  file->version = ring_file::right_version;
  file->rings = most_rings;
  file->records = ring_records;
  file->records_at = heads;
  file->head(0).waited_ns.store(waited_ns, relaxed);
  file->anonymous_before = trace::anonymous_bytes("/proc/self/smaps");
  std::memcpy(&file->magic[1], &ring_file::right_magic[1], file->magic.size() - 1);
  std::atomic_ref(file->magic.front()).store(ring_file::right_magic.front(), std::memory_order_release);
  return file;
}

/// The process's rings; null: there are none to be had, and nothing is recorded.
ring_file* the_rings() noexcept {
  if (rings != nullptr) return rings;
  holding guard(rings_lock);
  if (rings == nullptr) rings = open_rings();
  if (rings == nullptr) {
    if (errno != ESRCH) the_segment->why_not_recorded.store(static_cast<std::uint16_t>(errno), relaxed);
    the_segment->recording.store(0, relaxed);
  }
  return rings;
}

/// What was noted for an earlier recording says nothing: blocks have come and gone in between.
void begin_large_blocks() noexcept {
  const std::uint32_t now = the_segment->recording.load(relaxed);
  if (recording_of_large.load(relaxed) != now && recording_of_large.exchange(now, relaxed) != now) large.clear();
}

void add_large(const void* p, std::size_t size) noexcept {
  begin_large_blocks();
  large.add(p, size);
}

/// A place without locked instructions, and whole for signal handlers of this thread.
std::uint64_t take_place(std::uint64_t& taken) noexcept {
  std::uint64_t place = 1;
#if defined(__x86_64__)
  asm("xaddq %0, %1" : "+r"(place), "+m"(taken) : : "cc");
#else
  place = taken++;
#endif
  return place;
}

/// Until this place may be written. False: nobody reads any more.
bool wait_for_room(trace::ring_head& head, std::uint64_t place) noexcept {
  constexpr std::int64_t enough = ring_records / 2;  // to wake up for a few places costs more than they do
  constexpr unsigned looks_per_question = 256;       // some 130 ms
  const detail::errno_keeper keep;
  const detail::without_cancellation goes_on;
  const std::uint64_t begun = monotonic_ns();
  const auto room = [&] { return static_cast<std::int64_t>(head.limit(ring_records) - place); };
  std::uint64_t reads = rings->looks.load(relaxed);
  for (unsigned looks = 1; room() < enough && is_recording(); ++looks) {
    rest();
    if (looks % looks_per_question != 0) continue;
    // A process that may not see the lock any more sees that the recorder still reads.
    const std::uint64_t reads_before = std::exchange(reads, rings->looks.load(relaxed));
    if (reads == reads_before && !has_recorder()) the_segment->recording.store(0, relaxed);
  }
  head.waited_ns.fetch_add(monotonic_ns() - begun, relaxed);
  return room() > 0;
}

/// The calling thread gets its ring.
[[gnu::noinline]] bool begin_ring() noexcept {
  const detail::errno_keeper keep;
  const detail::without_cancellation goes_on;
  // First the slot: with it the child of a fork gets its segment, beside which its rings are.
  const std::uint32_t ring = number_of_own_slot();
  ring_file* const file = has_segment() ? the_rings() : nullptr;
  const bool is_there = file != nullptr && ring != 0 && ring < most_rings &&
                        make_present(file->begin_of(ring), ring_records * sizeof(ring_record));
  if (is_there) {
    const trace::ring_head& head = file->head(ring);
    this_ring = {file->begin_of(ring), head.taken.load(relaxed), head.limit(ring_records), 0, 0};
  }
  return is_there;
}

void write(ring_record* ring, std::uint64_t place, std::uint64_t what, std::uint64_t size, std::uint64_t stack,
           std::uint64_t ticks) noexcept {
  ring_record& r = ring[place % ring_records];
  r.what = what;
  r.size = size;
  r.stack = stack;
  r.set_stamp(ticks, ring_record::lap_mark(place, ring_records));
}

[[gnu::noinline]] void put_in_shared_ring(std::uint64_t what, std::uint64_t size, std::uint64_t stack) noexcept {
  const int kept = errno;
  ring_file* const file = has_segment() ? the_rings() : nullptr;
  errno = kept;
  if (file == nullptr) return;
  trace::ring_head& head = file->head(0);
  const std::uint64_t place = head.taken.fetch_add(1, relaxed);
  if (place >= head.limit(ring_records) && !wait_for_room(head, place)) return;
  write(file->begin_of(0), place, what, size, stack, ticks_now());
}

trace::ring_head& own_head() noexcept {
  const auto ring = (this_ring.begin - rings->begin_of(0)) / static_cast<std::ptrdiff_t>(ring_records);
  return rings->head(static_cast<std::uint32_t>(ring));
}

/// For this place of the thread's ring. False: nobody reads any more, and the place is not taken.
[[gnu::noinline]] bool find_room(std::uint64_t place) noexcept {
  trace::ring_head& head = own_head();
  const bool has_room = place < head.limit(ring_records) || wait_for_room(head, place);
  if (has_room) {
    this_ring.limit = head.limit(ring_records);
  } else {
    this_ring.taken = place;
  }
  return has_room;
}

/// `ticks`: the stamp, or 0 for one of now. Returns the stamp, or 0 where the thread has no ring,
/// or nobody reads it any more.
inline std::uint64_t put(std::uint64_t what, std::uint64_t size, std::uint64_t stack,
                         std::uint64_t ticks = 0) noexcept {
  look_for_fork();
  ring_cursor& c = this_ring;
  if (c.begin == nullptr && !begin_ring()) [[unlikely]] {
    put_in_shared_ring(what, size, stack);
    return 0;
  }
  const std::uint64_t place = take_place(c.taken);
  if (place >= c.limit && !find_room(place)) [[unlikely]]
    return 0;
  if (ticks == 0) ticks = ticks_now();
  write(c.begin, place, what, size, stack, ticks);
  return ticks;
}

[[gnu::noinline]] void put_touched(const void* p) noexcept {
  begin_large_blocks();
  const std::uint64_t bytes = large.take(p);
  if (bytes == 0) return;
  const detail::errno_keeper keep;
  const detail::without_cancellation goes_on;
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  put(ring_record::pack(ring_kind::touched, address), resident_bytes(address, bytes), 0);
}

}  // namespace

void* record_allocation(void* p, std::size_t size, std::size_t alignment, bool zeroed) noexcept {
  if (p == nullptr) return p;
  const std::uint64_t stack =
      stack_for_recording({current_state(), reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))});
  std::uint64_t early = std::exchange(this_ring.freed_at, 0);
  if (early != 0 && rings->looks.load(relaxed) != this_ring.looks) [[unlikely]]
    early = 0;
  if (size >= trace::large_block) [[unlikely]] {
    early = 0;
    add_large(p, size);
  }
  put(ring_record::pack(ring_kind::allocate, reinterpret_cast<std::uintptr_t>(p), alignment, zeroed, early != 0), size,
      stack, early);
  return p;
}

void record_free(void* p) noexcept {
  if (large.may_have(p)) [[unlikely]]
    put_touched(p);
  const std::uint64_t ticks = put(ring_record::pack(ring_kind::deallocate, reinterpret_cast<std::uintptr_t>(p)), 0, 0);
  this_ring.freed_at = ticks;
  if (ticks != 0) this_ring.looks = rings->looks.load(relaxed);
}

void* record_reallocation(void* p, std::size_t size) noexcept {
  if (large.may_have(p)) [[unlikely]]
    put_touched(p);
  this_ring.freed_at = 0;
  put(ring_record::pack(ring_kind::reallocating, reinterpret_cast<std::uintptr_t>(p)), 0, 0);
  void* const moved = next.reallocate(p, size);
  if (moved == nullptr) {
    put(ring_record::pack(size == 0 ? ring_kind::freed_by_realloc : ring_kind::reallocated, 0), 0, 0);
    return nullptr;
  }
  const std::uint64_t stack =
      stack_for_recording({current_state(), reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))});
  put(ring_record::pack(ring_kind::reallocated, reinterpret_cast<std::uintptr_t>(moved)), size, stack);
  if (size >= trace::large_block) add_large(moved, size);
  return moved;
}

void record_thread_end() noexcept {
  ring_cursor& c = this_ring;
  if (c.begin == nullptr) return;
  if (is_recording()) put(ring_record::pack(ring_kind::end_thread, 0), 0, 0);
  own_head().taken.store(c.taken, relaxed);
  c = {};
}

std::uint64_t record_fork() noexcept {
  if (!is_recorded_from_start() || rings == nullptr) return 0;
  const std::uint64_t number = rings->forks.fetch_add(1, relaxed) + 1;
  put(ring_record::pack(ring_kind::fork, 0), number, 0);
  return number;
}

void record_mapping(const void* p, std::size_t bytes, bool is_anonymous) noexcept {
  ring_file* const file = rings;
  if (file == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  // A fixed mapping replaces what was there. A range without a place counts as the malloc's.
  (void)remove_range(file->own_mappings, begin, bytes);
  if (is_anonymous) (void)add_range(file->own_mappings, begin, bytes);
}

void move_recorded_mapping(const void* from, std::size_t bytes, const void* to, std::size_t wanted) noexcept {
  ring_file* const file = rings;
  if (file == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  const bool is_noted = std::ranges::any_of(file->own_mappings, [&](const trace::own_mapping& m) {
    const std::uint64_t first = m.begin.load(relaxed);
    return first != 0 && first <= begin && begin - first < m.bytes.load(relaxed);
  });
  record_mapping(from, bytes, false);
  record_mapping(to, wanted, is_noted);
}

void record_exit() noexcept {
  if (rings == nullptr) return;
  // A recorder that is there removes the file itself, when it has read it.
  if (!is_recording()) {
    ::unlink(rings_path());
    return;
  }
  begin_large_blocks();
  large.for_each([](std::uintptr_t address, std::uint64_t bytes) {
    put(ring_record::pack(ring_kind::touched, address), resident_bytes(address, bytes), 0);
  });
}

void close_rings_in_child() noexcept {
  if (rings != nullptr) large.clear();
  rings_lock.reset_after_fork();
  if (rings != nullptr) ::munmap(rings, file_bytes());
  rings = nullptr;
  this_ring = {};
}

}  // namespace heapwright::probe
