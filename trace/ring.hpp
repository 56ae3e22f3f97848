// What the threads of a recorded program write, and the recorder reads: a ring of records for each.
//
// A record is there when its stamp has the mark of this lap, which is the other one in the next
// lap. So the reader writes to no record, and the lines of a ring go one way, from the thread's
// cache to the reader's. A thread writes up to where it knows the reader to have read, and asks
// again when it gets there: once in a lap, where the reader keeps up. At the end of a full ring it
// waits: nothing is lost.
//
// A thread takes its place before it writes, so that a signal handler that allocates meanwhile
// writes the next record. A place that was taken can stay empty, where the handler does not return:
// the reader goes past it when the next one has been there for a while.
//
// Records are stamped by the processor's counter of ticks: allocations behind the call of malloc,
// frees before the call of free. So a free has a larger stamp than its allocation, and a smaller
// one than the next allocation at its address, whichever threads they are of: merger.hpp.
//
// To read the counter is a third of what a record costs. So an allocation of a small block right
// behind a free of its thread has the free's stamp, if the reader has not looked in between: its
// stamp is early, by a millisecond or so where the reader keeps up.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heapwright::trace {

enum class ring_kind : std::uint8_t {
  allocate,
  deallocate,
  reallocating,  ///< a realloc begins: the block before
  reallocated,   ///< and ends: the block now, or address 0: it has failed
  freed_by_realloc,
  end_thread,
  fork,     ///< a child begins with all that is live now; `size`: its number
  touched,  ///< `size`: bytes that are resident of a large block, which is about to go
};

/// From so many bytes on a block is large: it can be noted how much of it was touched.
inline constexpr std::uint64_t large_block = 16 << 10;

/// 32 bytes, two on a line of the processor's cache.
struct alignas(32) ring_record {
  std::atomic<std::uint64_t> stamp;  ///< ticks; the lowest bit is the mark of the lap
  std::uint64_t what;  ///< 48 bits of address, 4 of ring_kind, 6 of the logarithm of an alignment, 1: zeroed, 1: early
  std::uint64_t size;  ///< bytes
  std::uint64_t stack;

  static constexpr unsigned address_bits = 48, kind_bits = 4, alignment_bits = 6;
  static constexpr unsigned zeroed_at = address_bits + kind_bits + alignment_bits, early_at = zeroed_at + 1;

  /// At this place of a ring of so many records. What was never written to has that of the odd
  /// laps.
  [[nodiscard]] static constexpr std::uint64_t lap_mark(std::uint64_t place, std::uint64_t records) noexcept {
    return (place & records) == 0 ? 1 : 0;
  }
  void set_stamp(std::uint64_t ticks, std::uint64_t mark) noexcept {
    stamp.store((ticks & ~std::uint64_t{1}) | mark, std::memory_order_release);
  }

  [[nodiscard]] static constexpr std::uint64_t pack(ring_kind kind, std::uint64_t address, std::uint64_t alignment = 0,
                                                    bool zeroed = false, bool early = false) noexcept {
    const auto logarithm = alignment == 0 ? 0U : static_cast<unsigned>(std::countr_zero(alignment));
    return address | static_cast<std::uint64_t>(kind) << address_bits |
           std::uint64_t{logarithm} << (address_bits + kind_bits) | std::uint64_t{zeroed} << zeroed_at |
           std::uint64_t{early} << early_at;
  }
  /// The stamp is that of the free before it.
  [[nodiscard]] bool is_stamped_early() const noexcept { return (what >> early_at & 1) != 0; }
};
static_assert(sizeof(ring_record) == 32);

/// Of one ring. Only its thread writes, except to that of ring 0, which all threads without a ring
/// of their own share: they take places by atomic additions.
struct alignas(64) ring_head {
  std::atomic<std::uint64_t> taken;      ///< places, while no thread has the ring
  std::atomic<std::uint64_t> waited_ns;  ///< because the ring was full; of ring 0, also before there were rings
  std::atomic<std::uint64_t> read;       ///< places, by the reader, which alone writes to it

  [[nodiscard]] std::uint64_t limit(std::uint64_t records) const noexcept {
    return read.load(std::memory_order_acquire) + records;
  }
};

/// Anonymous memory that the program itself has mapped, and that is no malloc's. 0: a free place.
struct own_mapping {
  std::atomic<std::uint64_t> begin, bytes;
};

/// The file of rings, beside the segment: PID-START-N.rings. The recorder holds a lock (flock) for
/// as long as it reads, of their folder, or of the segment of a process that it has not started:
/// without it no thread waits. The process keeps the file open when a recorder goes; the next one
/// goes on where that one has read to. Behind this there are `rings` heads, and at `records_at` the
/// rings, each of `records` records.
struct alignas(64) ring_file {
  static constexpr std::array<char, 16> right_magic{'h', 'e', 'a', 'p', 'w', 'r', 'i', 'g',
                                                    'h', 't', ' ', 'r', 'i', 'n', 'g', 's'};
  static constexpr std::uint32_t right_version = 5;

  std::array<char, 16> magic;
  std::uint32_t version;
  std::uint32_t rings;
  std::uint64_t records;  ///< a power of two
  std::uint64_t records_at;
  std::atomic<std::uint64_t> forks;              ///< that were recorded
  std::uint64_t anonymous_before;                ///< bytes of the process, when it began to record
  alignas(64) std::atomic<std::uint64_t> looks;  ///< of the reader, which alone writes to it
  alignas(64) std::array<own_mapping, 4096> own_mappings;

  [[nodiscard]] ring_head& head(std::uint32_t ring) noexcept { return reinterpret_cast<ring_head*>(this + 1)[ring]; }
  [[nodiscard]] ring_record* begin_of(std::uint32_t ring) noexcept {
    return reinterpret_cast<ring_record*>(reinterpret_cast<std::byte*>(this) + records_at) + ring * records;
  }
};
static_assert(sizeof(ring_file) % alignof(ring_head) == 0);

}  // namespace heapwright::trace
