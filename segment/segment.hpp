// The segment: a file in memory into which the probe of one process writes what its program does
// with malloc, and which other processes read, while it runs and after it has ended in whatever
// way.
//
//   segment_header                                     at 0
//   module[max_modules]                                at modules_at
//   misuse_report[max_misuse_reports]                  at header.misuse_reports_at
//   interpreted_code records, each at a multiple of 16 at header.codes_at, up to codes_used
//   thread_slot[header.thread_slots]                   at header.threads_at
//   std::atomic<std::uint32_t>[header.stack_buckets]   at header.stack_index_at: the first stack of
//                                                      each chain, see reference
//   stacks, each at a multiple of 64                   at header.stacks_at, up to stacks_used
//   std::atomic<std::uint32_t>[header.sample_buckets]  at header.sample_index_at: the first sample
//                                                      of each chain
//   samples                                            at header.samples_at, up to samples_used
//
// Numbers are as the machine has them. The file is sparse: what has not been used is not in memory.
// Records refer to each other by `reference`s, so that the file can be mapped anywhere. A reader
// trusts nothing: a program that is killed, or that overwrites what is not its own, leaves
// anything.
//
// Everything that changes is atomic. Counters of a thread have one writer, the thread; a reader
// sees each as it was at some moment of its reading. What is counted: a block's bytes are
// malloc_usable_size's. A realloc that succeeds is a free of the old block and an allocation of the
// new.
//
// Sampling: a block of s bytes is sampled with the probability p(s) = 1 - exp(-s / interval), as if
// each byte were chosen with 1 / interval. A sampled block stands for 1 / p(s) blocks and s / p(s)
// bytes: so every sum over samples estimates the same sum over all blocks without bias. With an
// interval of 1 every block is sampled and stands for itself.
//
// The interval may change at any time. A thread goes by a new one after its next sample, and each
// sample has the weight of the interval that it was drawn by: the estimates stay without bias. A
// block of s bytes adds (s / p)^2 (1 - p) to the variance of its sum; stacks keep these sums, so
// the error of each figure is known.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "size_scale.hpp"

namespace heapwright::segment {

inline constexpr auto relaxed = std::memory_order_relaxed;
using counter = std::atomic<std::uint64_t>;
static_assert(counter::is_always_lock_free && sizeof(counter) == 8);

/// Changes with every change of this file that a reader could misunderstand.
inline constexpr std::uint32_t segment_version = 12;

/// In segment_header::interval.
inline constexpr std::uint64_t interval_adapts = std::uint64_t{1} << 63;

/// In segment_header::interval_before_all: an interval that has no room there, or there were no
/// samples.
inline constexpr std::uint32_t interval_unknown = ~std::uint32_t{0};

inline constexpr std::array<char, 16> segment_magic{"heapwright segm"};

/// Where a stack or a sample is: its distance from the first one's place, in units of 16 bytes,
/// plus 1; 0: none.
using reference = std::uint32_t;
inline constexpr std::size_t reference_unit = 16;

/// What references can name at all, in bytes.
inline constexpr std::uint64_t reference_reach = std::uint64_t{~reference{0}} * reference_unit;

enum class process_state : std::uint32_t {
  running = 1,
  exited = 2,
  replaced = 3
};  ///< killed: running, but the process is gone

/// As the kernel keeps it, with nulls behind it.
using thread_name = std::array<char, 16>;

/// A moment that the program or a viewer has given a name.
struct mark {
  counter at_ns;  ///< CLOCK_MONOTONIC; 0: not yet complete
  std::array<char, 56> name;
};

enum class meter_state : std::uint32_t { unused = 0, being_made = 1, open = 2, closed = 3 };

/// What an allocator of the program's own has counted, under a name. One thread at a time writes.
struct named_meter {
  std::array<char, 40> name;
  std::atomic<std::uint32_t> state;  ///< meter_state
  std::uint32_t padding;
  std::array<counter, 6> figures;  ///< allocations, deallocations, failures; bytes in total, in use, at the peak
};

/// Memory that the malloc below has mapped for itself. `begin` 0: unused.
struct malloc_mapping {
  counter begin, bytes;
};

/// Bits of segment_header::counting. The second one stays as it was when the process began.
inline constexpr std::uint32_t counting_is_on = 1, counting_is_of_samples = 2;

/// Of segment_header::recording.
inline constexpr std::uint32_t recorded_from_start = 1;

struct segment_header {
  std::array<char, 16> magic{};
  std::uint32_t version{};
  std::uint32_t header_bytes{};
  std::uint32_t process_id{};
  std::atomic<std::uint32_t> state{};  ///< process_state
  std::uint64_t started_ns{};          ///< CLOCK_MONOTONIC when the segment was made
  std::uint64_t started_unix_ns{};     ///< the same moment by CLOCK_REALTIME
  std::uint64_t process_start{};       ///< when the process began, in clock ticks since boot: /proc/PID/stat, field 22
  counter ended_ns{};                  ///< CLOCK_MONOTONIC; 0: has not ended, or was killed
  std::uint64_t fork_number{};         ///< of the parent's forks while it recorded, from 1; 0: it did not
  /// Process id of the parent; 0: none. The figures of this segment began with what was live in the
  /// parent at the fork, as if this process had allocated it, and with nothing of what was freed.
  std::uint64_t forked_from{};
  std::uint64_t inherited_blocks{}, inherited_bytes{};  ///< that was live then; inherited_owner has its stacks

  std::uint64_t bytes{};  ///< of the whole file
  std::uint64_t misuse_reports_at{};
  std::uint64_t codes_at{};
  std::uint64_t threads_at{};
  std::uint64_t stack_index_at{};
  std::uint64_t stacks_at{};
  std::uint64_t sample_index_at{};
  std::uint64_t samples_at{};
  std::uint32_t thread_slots{};
  std::uint32_t stack_buckets{};   ///< a power of two
  std::uint32_t sample_buckets{};  ///< a power of two
  std::uint32_t class_count{};     ///< of size_scale
  counter interpreter_at{};        ///< an address within the file that has the interpreter; 0: none is known
  counter codes_used{};            ///< bytes behind codes_at that are taken
  counter stacks_used{};           ///< bytes behind stacks_at that are taken
  counter samples_used{};          ///< bytes behind samples_at that are taken

  // --- control: written by readers, obeyed by the program within its next calls

  /// counting_is_on: the probe counts; otherwise it only passes calls on, and blocks allocated
  /// meanwhile are not known when they are freed. counting_is_of_samples: only samples are counted,
  /// each as the blocks that it stands for: all figures are estimates, and numbers of blocks are in
  /// 1/1024.
  std::atomic<std::uint32_t> counting{};
  std::atomic<std::uint32_t> reset{};  ///< each increase makes the peak start again from what is live
  /// Not 0: the probe records each call (trace/ring.hpp), if it does not count.
  /// recorded_from_start: so do its children. Other numbers: of this process alone, each of another
  /// recorder.
  std::atomic<std::uint32_t> recording{};
  /// The interval that a reader last replaced by 1, at most interval_unknown: blocks from before
  /// that may be unseen. 0: the interval has been 1 throughout, or is not 1.
  std::atomic<std::uint32_t> interval_before_all{};
  /// Bytes between samples, on average; 1: all blocks; 0: none. See sampling_interval. With
  /// `interval_adapts` the probe changes it, until a viewer stores one without that bit.
  counter interval{};

  // --- figures of the whole process

  counter
      counting_since_ns{};  ///< CLOCK_MONOTONIC; 0: it does not count. Later than started_ns: what was live by then is not known
  counter live{};  ///< bytes that the threads have published, see published_net. Live bytes are the sum of net_bytes
  counter peak{};  ///< the most bytes that were live at one moment, to peak_grain for each thread, either way
  /// Where samples alone are counted: of `live`, and of class_live below. The bits of doubles, in
  /// bytes^2; what rounding leaves may be below 0. Peaks are then of what was certainly live
  /// (certain_part): estimates go up and down where nothing does, and the highest of many would be
  /// far above the truth.
  counter live_variance{};
  std::array<counter, size_scale::count> class_live_variance{};
  counter peak_at_ns{};
  counter peak_number{};  ///< changes with each new peak: see stack_counters::at_peak
  /// Since the peak began (again): the most by which a thread's net bytes were beyond what it had
  /// published. 0: the interval was 1 throughout, and the peak is exact.
  counter peak_grain{};
  std::array<counter, size_scale::count> class_live{};  ///< bytes by class that the threads have published
  /// The most bytes of each class that were live at one moment. Never more than there were; where
  /// peak_grain is not 0, perhaps less: by what each thread allocates between two of its samples,
  /// and peak_grain for each thread.
  std::array<counter, size_scale::count> class_peak{};
  counter threads_ever{};
  counter threads_folded{};  ///< threads that are gone and whose slots others have; their figures are in slot 0
  counter fold_sequence{};   ///< odd while figures move from a slot to slot 0: reading again gives a right sum
  counter lost_samples{};    ///< for want of room in this file or of memory for it
  counter sampling_ns{};     ///< time that threads have spent on samples while the interval adapts
  counter processor_ns{};    ///< time that the process has had of the processor, when the probe last looked
  // While the interval adapts, as the bits of doubles: the time that has passed, in seconds, and
  // the integral of the interval over it. The quotient is the mean interval.
  counter adapted_seconds{};
  counter interval_by_seconds{};
  counter mark_count{};  ///< marks that were made; those beyond the last are not kept
  std::array<mark, 64> marks{};

  /// Path of the executable. Behind its null, where it was started by a link in the same folder,
  /// the name of that: redis-server is one to redis-check-rdb.
  std::array<char, 256> program{};
  std::array<char, 256> allocator{};   ///< path of the library, or program, whose malloc is below the probe
  std::array<char, 1024> arguments{};  ///< each with a null behind it
  std::uint32_t arguments_bytes{};     ///< of `arguments`, with the nulls
  /// errno of the probe where it could not make its file of rings: this process is not recorded. 0:
  /// it could, or has not tried.
  std::atomic<std::uint16_t> why_not_recorded{};
  /// errno where a child of a fork could make no segment. The child stores it: it has the parent's
  /// segment mapped.
  std::atomic<std::uint16_t> why_child_not_recorded{};
  counter modules_used{};         ///< of `modules`
  counter misuse_reports_used{};  ///< those beyond the last are not kept
  counter mistakes{};             ///< of the program, that the malloc has found

  std::array<named_meter, 64> meters{};

  /// What is known of the malloc's memory: empty for libc's, and for one within the program.
  std::array<malloc_mapping, 512> malloc_mappings{};
  counter lost_mappings{};  ///< for want of room there

  /// Each name that a thread has had when it was sampled, once.
  std::array<thread_name, 255> thread_names{};
  counter thread_names_used{};
};

/// Over the time in which it adapted; 0: it never has.
[[nodiscard]] inline std::uint64_t mean_interval(const segment_header& h) noexcept {
  const double mean = std::bit_cast<double>(h.interval_by_seconds.load(relaxed)) /
                      std::bit_cast<double>(h.adapted_seconds.load(relaxed));
  return mean > 0 && mean < 0x1p62 ? static_cast<std::uint64_t>(mean) : 0;  // a damaged segment has any bits
}

/// Whether the call stack of every block has been noted since counting began.
[[nodiscard]] inline bool samples_all(const segment_header& h) noexcept {
  return h.interval.load(relaxed) == 1 && h.interval_before_all.load(relaxed) == 0;
}

/// The interval by which blocks may be unseen; 1: none is, or nothing is known of those that are.
[[nodiscard]] inline std::uint64_t unseen_interval(const segment_header& h) noexcept {
  if (samples_all(h)) return 1;
  const std::uint32_t before = h.interval_before_all.load(relaxed);
  std::uint64_t interval = h.interval.load(relaxed) & ~interval_adapts;
  if (interval == 1 && before != interval_unknown) interval = before;
  return std::max(interval, mean_interval(h));
}

/// What was mapped from a file when code in it was first seen in a stack: code at `pc` is at pc -
/// base + the file's own first address, as ELF files say.
struct module {
  std::uint64_t begin;  ///< of the mapping
  std::uint64_t end;
  std::uint64_t base;  ///< what the file's own addresses are shifted by
  std::array<char, 232> path;
};
inline constexpr std::size_t max_modules = 512;

/// How the line of a call is found: by a table, as in PyCodeObject of these versions and of later
/// ones, or without one, as the call has it itself (PHP, Ruby, Perl).
enum class line_table : std::uint32_t { none = 0, python_3_9 = 1, python_3_10 = 2, python_3_11 = 3, line_of_call = 4 };

/// Code of an interpreted language that a stack names. Its name, its file and its table of lines
/// follow it, the first two in UTF-8.
struct alignas(16) interpreted_code {
  std::atomic<std::uint32_t> lines;  ///< line_table; written last: none until the record is complete
  std::int32_t first_line;
  std::uint32_t name_bytes, file_bytes, table_bytes;
  std::array<std::uint32_t, 3> padding;
};
static_assert(sizeof(interpreted_code) == 32);

/// Bytes from one record to the next.
[[nodiscard]] constexpr std::size_t interpreted_code_length(std::uint64_t name, std::uint64_t file,
                                                            std::uint64_t table) noexcept {
  return (sizeof(interpreted_code) + name + file + table + 15) / 16 * 16;
}

/// An interpreted call stands in a stack beside return addresses: with a bit that these do not
/// have, a position within the code, and the code's record; 0: there was no room for it. The
/// position is the distance of the instruction from the code's first one, in bytes; with
/// line_of_call the line.
inline constexpr std::uint64_t interpreted_call_bit = std::uint64_t{1} << 63;

[[nodiscard]] constexpr std::uint64_t interpreted_call_of(reference code, std::int64_t position) noexcept {
  return interpreted_call_bit | static_cast<std::uint64_t>(std::clamp<std::int64_t>(position, 0, 0x7fffffff)) << 32 |
         code;
}
[[nodiscard]] constexpr bool is_interpreted_call(std::uint64_t word) noexcept {
  return (word & interpreted_call_bit) != 0;
}
[[nodiscard]] constexpr reference code_of_call(std::uint64_t word) noexcept { return static_cast<reference>(word); }
[[nodiscard]] constexpr std::uint32_t position_in_call(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32) & 0x7fffffff;
}

/// What the malloc below has written about a mistake of the program: lines of text.
struct misuse_report {
  counter at_ns;  ///< CLOCK_MONOTONIC; 0: not yet begun
  std::uint32_t thread_id;
  std::atomic<std::uint32_t> length;  ///< bytes of `text` that are there; it grows
  counter mistakes;                   ///< how often the mistake was made from these calls
  std::array<char, 4072> text;
};
static_assert(sizeof(misuse_report) == 4096);
inline constexpr std::size_t max_misuse_reports = 64;

struct class_counters {
  counter allocations;
  counter allocated_bytes;
  counter requested_bytes;  ///< what was asked for of these: the rest is rounding
  counter frees;            ///< by this thread, of blocks of any thread
  counter freed_bytes;
};

enum class slot_state : std::uint32_t {
  unused = 0,
  alive = 1,
  gone = 2,  ///< the thread has ended; the slot waits for another one
  everyone =
      3,  ///< slot 0: threads whose slots were taken over, threads on their way out, and those for which there was no slot
};

/// What one thread has done. 4 KiB; only the thread writes, except to what it has published, and to
/// slot 0, where all add atomically.
struct alignas(64) thread_slot {
  std::atomic<std::uint32_t> state{};  ///< slot_state
  std::uint32_t thread_id{};           ///< the system's; of slot 0: 0
  thread_name name{};                  ///< as it was when last looked at
  counter began_ns{};                  ///< CLOCK_MONOTONIC, when it first called
  counter ended_ns{};                  ///< 0: it has not
  counter
      net_bytes{};  ///< allocated less freed by this thread, modulo 2^64: negative where it frees what others allocate
  // While net_bytes lies within these, none of it need be published; see published_net.
  counter band_begin{}, band_bytes{};
  counter band_ahead{};                      ///< how much of the band is beyond what is published
  std::atomic<std::int64_t> until_sample{};  ///< bytes, on average, until the next sample
  counter sampled_since_published{};         ///< bytes that its samples stand for since it published its classes
  counter drawn_by{};                        ///< the interval that the next sample was drawn by; 0: none is due
  counter random{};                          ///< state of the thread's random numbers
  std::uint64_t stack_at{};                  ///< an address in the thread's stack, as near to its outer end as is known
  counter peak_net{};  ///< the most that net_bytes has been since header.peak began; less by header.peak_grain at most
  std::array<class_counters, size_scale::count> classes{};
  std::array<counter, size_scale::count>
      class_published{};  ///< what of each class's net bytes is in the header's class_live
  counter gross_bytes{};  ///< allocated by this thread while its band was endless; differences count
};
static_assert(sizeof(thread_slot) <= 4096);

/// The band of a thread that publishes nothing in the header's `live`; it is to be looked at. With
/// interval 1 some do so.
inline constexpr std::uint64_t endless_band = std::uint64_t{1} << 62;

/// What of a thread's net bytes is in the header's `live`.
[[nodiscard]] inline std::uint64_t published_net(const thread_slot& s) noexcept {
  const std::uint64_t bytes = s.band_bytes.load(relaxed);
  return bytes == endless_band ? 0 : s.band_begin.load(relaxed) + bytes - s.band_ahead.load(relaxed);
}

inline constexpr std::size_t thread_slot_bytes = 4096;
inline constexpr std::size_t most_thread_slots = 16 * 1024;

inline constexpr unsigned lifetime_buckets = 16;

/// Lifetimes are counted by powers of four: bucket 0 below a microsecond, 1 below 4, 2 below 16,
/// ... the last for all longer ones (from 268 s).
[[nodiscard]] constexpr unsigned lifetime_bucket(std::uint64_t ns) noexcept {
  const unsigned bucket = ns < 1000 ? 0 : static_cast<unsigned>(std::bit_width(ns / 1000) + 1) / 2;
  return bucket < lifetime_buckets ? bucket : lifetime_buckets - 1;
}

/// Sums over samples, in what they stand for. Counts are in 1/1024 of a block.
///
///   live samples = samples - thinned_samples - freed_samples
///   live bytes   = allocated_bytes - freed_bytes + thinned_bytes; blocks and variance have the
///                  same sum of their own counters
struct stack_counters {
  counter samples;  ///< as many blocks were really looked at
  counter allocations;
  counter allocated_bytes;
  counter last_ns;   ///< CLOCK_MONOTONIC of the last sample
  counter first_ns;  ///< and of the first
  counter frees;
  counter freed_bytes;
  counter short_lived;  ///< allocations that lived less than a millisecond
  counter short_lived_bytes;
  counter allocated_variance;  ///< of allocated_bytes, in bytes^2: the bits of a double
  counter freed_variance;      ///< what of it is of blocks that are freed
  // What thinning (probe/thinning.hpp) has changed, modulo 2^64: samples that it dropped, and by
  // how much more those that it kept stand for now, less what the dropped ones stood for. 0 on
  // average.
  counter thinned_samples;
  counter thinned_blocks;
  counter thinned_bytes;
  counter thinned_variance;  ///< of live bytes: the bits of a double, which may be negative
  /// Live bytes when the process was at its peak, modulo 2^64: where
  /// peak_number is still the header's. Where it is not, the counters have not changed since the
  /// newer peak, and what they say is of that moment.
  counter at_peak;
  counter peak_number;
  counter freed_samples;
  std::array<counter, lifetime_buckets> lifetimes;  ///< freed_bytes, by how long they lived
};

/// Of stacks: see there.
inline constexpr std::uint32_t inherited_owner = 0xffffffff;

/// A call stack and what one thread has done with blocks that it has allocated there. Its calls
/// follow it, the innermost first, `depth` of them: return addresses, and in the place of an
/// interpreter's loops the calls that these execute. There are several with the
/// same addresses: one for each thread slot (`owner`), which alone writes its counters, and one
/// with owner 0, for all others: threads without a slot, and those who free what the owner has
/// allocated. What was live in the parent at a fork stands apart, with owner inherited_owner; all
/// threads count there what becomes of it. All these are there again for each name of the threads
/// that have allocated: the sums over those of one name are what these threads have asked for.
struct alignas(16) stack {
  std::uint64_t hash;           ///< of the addresses; 0: not yet complete
  std::atomic<reference> next;  ///< in its chain
  std::uint32_t depth;
  std::uint32_t is_cut;  ///< 1: there were more frames
  std::uint32_t owner;
  std::atomic<reference> everyones;  ///< the one with owner 0, once it has been needed
  std::uint32_t name_of_threads;     ///< 1: the first of segment_header::thread_names; 0: not known
  stack_counters counters;
};

/// Whether all threads count there.
[[nodiscard]] inline bool counts_for_all(const stack& s) noexcept { return s.owner == 0 || s.owner == inherited_owner; }

/// Bytes from one stack to the next.
[[nodiscard]] constexpr std::size_t stack_length(std::size_t depth) noexcept {
  return (sizeof(stack) + depth * sizeof(std::uint64_t) + 63) / 64 * 64;
}

/// A sampled block that is live, or a record to be used again. It belongs to its chain for ever.
///
///   address_and_interval   0               free
///                          being_written   claimed by a thread that writes the other fields
///                          other           a live block: 48 bits of address, 16 of interval
///
/// A thread that removes the sample, or gives it another interval, does so by changing this field.
/// Another thread may read the other fields meanwhile: what it has read holds if the field is the
/// one that it has read before them.
struct alignas(16) sample {
  static constexpr std::uint64_t being_written = 1;

  counter address_and_interval;
  counter bytes;  ///< malloc_usable_size's. What it stands for: sample_weight.hpp
  counter at_ns;  ///< CLOCK_MONOTONIC
  std::atomic<reference> at_stack;
  std::atomic<reference> next;  ///< in its chain

  static constexpr unsigned address_bits = 48;

  [[nodiscard]] static constexpr std::uint64_t address_of(std::uint64_t address_and_interval) noexcept {
    return address_and_interval & ((std::uint64_t{1} << address_bits) - 1);
  }
};
static_assert(sizeof(sample) == 32);

static_assert(sizeof(stack) % reference_unit == 0 && sizeof(sample) % reference_unit == 0);

/// Where modules are: behind the header, at its own alignment.
inline constexpr std::size_t modules_at = (sizeof(segment_header) + 63) / 64 * 64;

}  // namespace heapwright::segment
