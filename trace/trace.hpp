// What a trace has: the processes of a command, the places where they allocate, and every event of
// every thread in program order. docs/trace.md describes the file.
//
// A trace names blocks, not addresses: a block is the n-th allocation of its thread. So a replay
// can give each block an address of its own, and knows for each free whose allocation it waits for.
// It has nothing of what the program keeps in its memory.
//
// Threads are recorded side by side. The order between two of them is known by rounds (all events
// of a round come before those of the next) and by blocks (an allocation comes before its free).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace heapwright::trace {

inline constexpr std::uint32_t version = 1;

/// Of a moment of an event, in nanoseconds since the recording began: times are multiples of it.
inline constexpr std::uint64_t time_unit = 1 << 16;

/// A thread of a process. Both are numbered from 0, in the order in which they were first seen.
struct thread_number {
  std::uint32_t process = 0, thread = 0;

  friend bool operator==(const thread_number&, const thread_number&) = default;
};

/// A block: the `number`-th allocation of `by`, from 1. 0: one that was allocated before the
/// recording began.
struct block_id {
  thread_number by;
  std::uint64_t number = 0;

  friend bool operator==(const block_id&, const block_id&) = default;
};

/// What an allocation asks for.
struct request {
  std::uint64_t size = 0;       ///< bytes
  std::uint64_t alignment = 0;  ///< a power of two; 0: what every block has
  std::uint32_t stack = 0;      ///< of the process; 0: not known
  bool zeroed = false;          ///< calloc

  friend bool operator==(const request&, const request&) = default;
};

/// `end_thread` is the last event of its thread, and has nothing but its time.
enum class event_kind : std::uint8_t { allocate, deallocate, reallocate, end_thread };

struct event {
  event_kind kind = event_kind::allocate;
  std::uint64_t at_ns = 0;  ///< a multiple of time_unit
  block_id block;           ///< which it gives to the program, or takes back
  block_id before;          ///< of a reallocation: the block that became `block`
  request asked;            ///< of an allocation, and of a reallocation

  friend bool operator==(const event&, const event&) = default;
};

// --- what a trace is made of, in the order of the file

struct process {
  std::uint32_t number = 0;
  std::uint32_t id = 0;  ///< the system's
  /// Whose blocks it began with, as fork gives them: the number of a process + 1; 0: none.
  std::uint32_t forked_from_plus_one = 0;
  std::uint64_t started_unix_ns = 0;
  std::string program, allocator;  ///< paths
  std::vector<std::string> arguments;

  friend bool operator==(const process&, const process&) = default;
};

/// A call stack, before the first event that has it.
struct stack {
  std::uint32_t process = 0;
  std::uint32_t id = 0;                  ///< not 0
  std::vector<std::uint64_t> addresses;  ///< return addresses, and interpreted calls; the innermost first

  friend bool operator==(const stack&, const stack&) = default;
};

/// A file that was mapped with its code: for names of addresses.
struct module {
  std::uint32_t process = 0;
  std::uint64_t begin = 0, end = 0;  ///< addresses
  std::uint64_t base = 0;            ///< what the file's own addresses are shifted by
  std::string path;

  friend bool operator==(const module&, const module&) = default;
};

/// Code that an interpreter executes: for names of calls in stacks, which are no addresses then (a
/// segment's interpreted calls).
struct interpreted_code {
  std::uint32_t process = 0;
  std::uint32_t id = 0;              ///< by which such calls name it
  std::uint64_t interpreter_at = 0;  ///< an address within the interpreter's file
  std::string name, file;
  std::int32_t first_line = 0;
  std::uint32_t lines = 0;  ///< what kind of table the next one is, as a segment says it
  std::string table;

  friend bool operator==(const interpreted_code&, const interpreted_code&) = default;
};

/// Events of one thread, one after the other.
struct events {
  thread_number by;
  std::uint32_t round = 0;
  std::vector<event> all;
};

/// What happened to the recording: a thread waited, a process ended, ...
struct note {
  std::uint32_t process = 0;
  std::uint64_t at_ns = 0;
  std::string text;

  friend bool operator==(const note&, const note&) = default;
};

/// The anonymous memory that a process had, less what it had when its recording began, and less
/// what it has mapped itself: what is left is the malloc's, and stacks of threads.
struct memory {
  std::uint32_t process = 0;
  std::uint64_t at_ns = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const memory&, const memory&) = default;
};

/// How much of a large block (ring.hpp) was resident when it was freed, or when its process exited.
/// Of a large block without one it is not known; smaller ones have none.
struct touched {
  block_id block;
  std::uint64_t bytes = 0;

  friend bool operator==(const touched&, const touched&) = default;
};

/// The last part of each trace. A reader makes one where the file has none.
struct ending {
  std::string reason;     ///< of a torn one, "torn: the file is cut off"; of a piece, "a piece of app.trace, which ..."
  bool is_torn = false;   ///< events may be missing: the file, or the trace that it is a piece of, has lost its end
  bool is_piece = false;  ///< of another trace

  friend bool operator==(const ending&, const ending&) = default;
};

using part = std::variant<process, stack, module, interpreted_code, events, note, memory, touched, ending>;

/// Not a trace, or not one that this version reads.
class bad_trace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace heapwright::trace
