// The events of one thread as bytes, in columns: what is like lies together, which packs better.
//
//   kinds    a byte for each event, and one for each step of time; see `code`
//   times    by how many time units the time advances
//   stacks   for each allocation, the number of its stack
//   sizes    for each allocation its size, behind it the binary logarithm of an alignment
//   blocks   for each free and reallocation, its block. One of this thread: how many allocations
//            the thread has made since. One of another: process, thread, and the difference to the
//            number of the last such block
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "bytes.hpp"

namespace heapwright::trace {

/// The lower four bits of a kind.
enum class code : std::uint8_t {
  allocate,
  deallocate_own,
  deallocate_others,
  deallocate_unknown,  ///< a block from before the recording
  reallocate_own,
  reallocate_others,
  reallocate_unknown,
  end_thread,
  advance_time,
};
inline constexpr std::uint8_t code_bits = 15, zeroed_bit = 16, aligned_bit = 32;

class event_writer {
 public:
  /// Of the events that follow, until `clear`.
  void begin(std::uint64_t allocations, std::uint64_t time) noexcept {
    first_allocation_ = allocations_ = allocations;
    begin_ = time_ = time;
  }

  /// The number of the block.
  std::uint64_t allocate(const request& asked, std::uint64_t time) {
    advance(time);
    return add_allocation(code::allocate, asked);
  }
  void deallocate(thread_number self, const block_id& block, std::uint64_t time) {
    advance(time);
    add_block(code::deallocate_own, self, block, 0);
  }
  std::uint64_t reallocate(thread_number self, const block_id& before, const request& asked, std::uint64_t time) {
    advance(time);
    add_block(code::reallocate_own, self, before, flags_of(asked));
    return add_request(asked);
  }

  void end_thread(std::uint64_t time) {
    advance(time);
    columns_[kinds].byte(static_cast<std::uint8_t>(code::end_thread));
  }

  [[nodiscard]] bool empty() const noexcept { return columns_[kinds].size() == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (const byte_writer& c : columns_) sum += c.size();
    return sum;
  }

  /// The payload of a chunk.
  void write(byte_writer& to) const {
    to.number(first_allocation_);
    to.number(begin_);
    for (const byte_writer& c : columns_) to.number(c.size());
    for (const byte_writer& c : columns_) to.raw(c.bytes());
  }

  /// What follows begins where this has ended.
  void clear() noexcept {
    for (byte_writer& c : columns_) c.clear();
    begin(allocations_, time_);
    last_of_others_ = 0;
  }

 private:
  friend class event_reader;
  enum column_index : std::uint8_t { kinds, times, stacks, sizes, blocks, column_count };

  static std::uint8_t flags_of(const request& asked) noexcept {
    return static_cast<std::uint8_t>((asked.zeroed ? zeroed_bit : 0) | (asked.alignment != 0 ? aligned_bit : 0));
  }

  /// The time of a thread never goes back.
  void advance(std::uint64_t time) {
    if (time <= time_) return;
    columns_[kinds].byte(static_cast<std::uint8_t>(code::advance_time));
    columns_[times].number(time - time_);
    time_ = time;
  }

  std::uint64_t add_allocation(code c, const request& asked) {
    columns_[kinds].byte(static_cast<std::uint8_t>(static_cast<std::uint8_t>(c) | flags_of(asked)));
    return add_request(asked);
  }

  std::uint64_t add_request(const request& asked) {
    columns_[stacks].number(asked.stack);
    columns_[sizes].number(asked.size);
    if (asked.alignment != 0) columns_[sizes].byte(static_cast<std::uint8_t>(std::countr_zero(asked.alignment)));
    return ++allocations_;
  }

  /// `own`: the code for a block of this thread, which those for others follow.
  void add_block(code own, thread_number self, const block_id& block, std::uint8_t flags) {
    const unsigned kind = block.number == 0 ? 2 : block.by == self ? 0 : 1;
    columns_[kinds].byte(static_cast<std::uint8_t>((static_cast<unsigned>(own) + kind) | flags));
    if (kind == 0) columns_[blocks].number(allocations_ - block.number);
    if (kind != 1) return;
    columns_[blocks].number(block.by.process);
    columns_[blocks].number(block.by.thread);
    columns_[blocks].difference(static_cast<std::int64_t>(block.number - last_of_others_));
    last_of_others_ = block.number;
  }

  std::array<byte_writer, column_count> columns_;
  std::uint64_t first_allocation_ = 0, allocations_ = 0;  ///< of the thread, before the first event and by now
  std::uint64_t begin_ = 0, time_ = 0;                    ///< in time units
  std::uint64_t last_of_others_ = 0;
};

class event_reader {
 public:
  /// Throws `bad_trace`, as does `next`.
  event_reader(thread_number self, std::span<const std::byte> payload) : self_(self) {
    byte_reader all(payload);
    allocations_ = all.number();
    time_ = all.number();
    std::array<std::uint64_t, event_writer::column_count> lengths{};
    for (std::uint64_t& length : lengths) length = all.number();
    for (std::size_t i = 0; i < lengths.size(); ++i) columns_[i] = byte_reader(all.raw(lengths[i]));
  }

  /// False: there are no more.
  [[nodiscard]] bool next(event& e) {
    for (;;) {
      if (columns_[event_writer::kinds].is_at_end()) return false;
      const std::uint8_t kind = columns_[event_writer::kinds].byte();
      const auto what = static_cast<code>(kind & code_bits);
      if (what == code::advance_time) {
        time_ += columns_[event_writer::times].number();
        continue;
      }
      if (what > code::advance_time) throw bad_trace("an event is of no known kind");
      e = {};
      e.at_ns = time_ * time_unit;
      if (what == code::end_thread) {
        e.kind = event_kind::end_thread;
        return true;
      }
      if (what == code::deallocate_own || what == code::deallocate_others || what == code::deallocate_unknown) {
        e.kind = event_kind::deallocate;
        e.block = block(what, code::deallocate_own);
        return true;
      }
      if (what != code::allocate) {
        e.kind = event_kind::reallocate;
        e.before = block(what, code::reallocate_own);
      }
      e.asked = asked(kind);
      e.block = {self_, ++allocations_};
      return true;
    }
  }

 private:
  [[nodiscard]] request asked(std::uint8_t kind) {
    request r{.stack = columns_[event_writer::stacks].small_number(), .zeroed = (kind & zeroed_bit) != 0};
    r.size = columns_[event_writer::sizes].number();
    if ((kind & aligned_bit) != 0) {
      const std::uint8_t logarithm = columns_[event_writer::sizes].byte();
      if (logarithm > 63) throw bad_trace("an alignment is none");
      r.alignment = std::uint64_t{1} << logarithm;
    }
    return r;
  }

  /// `own`: the code for a block of this thread, which those for others follow.
  [[nodiscard]] block_id block(code what, code own) {
    const int kind = static_cast<int>(what) - static_cast<int>(own);
    if (kind == 2) return {};
    byte_reader& from = columns_[event_writer::blocks];
    if (kind == 0) {
      const std::uint64_t since = from.number();
      if (since >= allocations_) throw bad_trace("a block is freed that was not allocated");
      return {self_, allocations_ - since};
    }
    block_id b;
    b.by.process = from.small_number();
    b.by.thread = from.small_number();
    last_of_others_ += static_cast<std::uint64_t>(from.difference());
    b.number = last_of_others_;
    return b;
  }

  thread_number self_;
  std::array<byte_reader, event_writer::column_count> columns_{byte_reader({}), byte_reader({}), byte_reader({}),
                                                               byte_reader({}), byte_reader({})};
  std::uint64_t allocations_ = 0, time_ = 0, last_of_others_ = 0;
};

}  // namespace heapwright::trace
