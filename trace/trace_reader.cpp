#include "trace_reader.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <sys/stat.h>

#include "chunk.hpp"
#include "event_columns.hpp"

namespace heapwright::trace {
namespace {

template <class F>
void each_definition(std::span<const std::byte> payload, F read_one) {
  for (byte_reader from(payload); !from.is_at_end();) read_one(from);
}

stack read_stack(byte_reader& from) {
  stack s{.process = from.small_number(), .id = from.small_number(), .addresses = {}};
  const std::uint64_t depth = from.number();
  if (depth > from.left()) throw bad_trace("a stack is longer than its chunk");
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < depth; ++i) {
    last += static_cast<std::uint64_t>(from.difference());
    s.addresses.push_back(last);
  }
  return s;
}

module read_module(byte_reader& from) {
  module m;
  m.process = from.small_number();
  m.begin = from.number();
  m.end = m.begin + from.number();
  m.base = from.number();
  m.path = from.text();
  return m;
}

interpreted_code read_code(byte_reader& from) {
  interpreted_code c;
  c.process = from.small_number();
  c.id = from.small_number();
  c.interpreter_at = from.number();
  c.name = from.text();
  c.file = from.text();
  const std::int64_t first_line = from.difference();
  if (first_line != static_cast<std::int32_t>(first_line)) throw bad_trace("a line has too large a number");
  c.first_line = static_cast<std::int32_t>(first_line);
  c.lines = from.small_number();
  c.table = from.text();
  return c;
}

memory read_memory(byte_reader& from) {
  memory m;
  m.process = from.small_number();
  m.at_ns = from.number();
  m.bytes = from.number();
  return m;
}

touched read_touched(byte_reader& from) {
  touched t;
  t.block.by.process = from.small_number();
  t.block.by.thread = from.small_number();
  t.block.number = from.number();
  t.bytes = from.number();
  return t;
}

process read_process(std::uint32_t number, byte_reader from) {
  process p;
  p.number = number;
  p.id = from.small_number();
  p.forked_from_plus_one = from.small_number();
  p.started_unix_ns = from.number();
  p.program = from.text();
  p.allocator = from.text();
  const std::uint64_t arguments = from.number();
  for (std::uint64_t i = 0; i < arguments; ++i) p.arguments.push_back(from.text());
  return p;
}

ending read_ending(byte_reader from) {
  ending e{.reason = from.text()};
  const std::uint64_t flags = from.is_at_end() ? 0 : from.number();
  e.is_piece = (flags & is_a_piece) != 0;
  e.is_torn = (flags & is_of_a_torn_trace) != 0;
  return e;
}

events read_events(const chunk_head& head, std::span<const std::byte> payload) {
  events read{.by = {head.process, head.thread}, .round = head.round, .all = {}};
  event_reader from(read.by, payload);
  for (event e; from.next(e);) {
    if (read.all.size() == most_events) throw bad_trace("a chunk has more events than one can have");
    read.all.push_back(e);
  }
  return read;
}

}  // namespace

trace_reader::trace_reader(const std::filesystem::path& file) : file_(std::fopen(file.c_str(), "rbe")) {
  struct stat is {};
  if (file_ == nullptr || fstat(fileno(file_.get()), &is) != 0)
    throw bad_trace(file.string() + " cannot be read: " + std::strerror(errno));
  if (!S_ISREG(is.st_mode)) throw bad_trace(file.string() + " is not a file");
  size_ = static_cast<std::uint64_t>(is.st_size);
  std::array<std::byte, 16> beginning{};
  const bool has_all = read(beginning.data(), beginning.size());
  if (std::memcmp(beginning.data(), file_mark.data(), file_mark.size()) != 0)
    throw bad_trace(file.string() + " is not a trace");
  if (!has_all) throw bad_trace(file.string() + " is a torn trace: it is cut off before its first event");
  std::uint32_t its_version = 0;
  std::memcpy(&its_version, beginning.data() + file_mark.size(), sizeof its_version);
  if (its_version != version)
    throw bad_trace(file.string() + " is a trace of version " + std::to_string(its_version) +
                    "; this heapwright reads " + std::to_string(version));
}

trace_reader::~trace_reader() = default;

bool trace_reader::read(void* into, std::size_t bytes) {
  const std::size_t got = std::fread(into, 1, bytes, file_.get());
  position_ += got;
  return got == bytes;
}

void trace_reader::torn(const char* how) {
  has_ended_ = true;
  end_ = {.reason = std::string("torn: ") + how, .is_torn = true};
}

void trace_reader::read_chunk() {
  if (position_ == size_)
    return torn("the file ends before the trace does: its recorder was killed, or is still recording");
  chunk_head head;
  if (!read(&head, sizeof head)) return torn("the file is cut off");
  if (head.mark != chunk_head::right_mark || head.bytes > longest_chunk) return torn("the file is damaged");
  if (head.packed_bytes > size_ - position_) return torn("the file is cut off");
  std::vector<std::byte> packed(head.packed_bytes);
  if (!read(packed.data(), packed.size())) return torn("the file is cut off");
  if (hash_of(head, packed) != head.hash) return torn("the file is damaged");
  const std::vector<std::byte> payload = unpack(packed, head.bytes);
  if (payload.size() != head.bytes) return torn("the file is damaged");
  try {
    switch (static_cast<chunk_kind>(head.kind)) {
      case chunk_kind::process: read_ahead_.emplace_back(read_process(head.process, byte_reader(payload))); break;
      case chunk_kind::stacks:
        each_definition(payload, [&](byte_reader& from) { read_ahead_.emplace_back(read_stack(from)); });
        break;
      case chunk_kind::modules:
        each_definition(payload, [&](byte_reader& from) { read_ahead_.emplace_back(read_module(from)); });
        break;
      case chunk_kind::codes:
        each_definition(payload, [&](byte_reader& from) { read_ahead_.emplace_back(read_code(from)); });
        break;
      case chunk_kind::memory:
        each_definition(payload, [&](byte_reader& from) { read_ahead_.emplace_back(read_memory(from)); });
        break;
      case chunk_kind::touched:
        each_definition(payload, [&](byte_reader& from) { read_ahead_.emplace_back(read_touched(from)); });
        break;
      case chunk_kind::events: read_ahead_.emplace_back(read_events(head, payload)); break;
      case chunk_kind::note: {
        byte_reader from(payload);
        const std::uint64_t at_ns = from.number();
        read_ahead_.emplace_back(note{head.process, at_ns, from.text()});
        break;
      }
      case chunk_kind::ending:
        end_ = read_ending(byte_reader(payload));
        has_ended_ = true;
        break;
    }
  } catch (const bad_trace&) {
    torn("the file is damaged");
  }
}

part trace_reader::next() {
  while (read_ahead_.empty() && !has_ended_) read_chunk();
  if (read_ahead_.empty()) return end_;
  part first = std::move(read_ahead_.front());
  read_ahead_.pop_front();
  return first;
}

}  // namespace heapwright::trace
