#include "trace_writer.hpp"

#include <algorithm>
#include <utility>

namespace heapwright::trace {
namespace {

constexpr std::size_t most_definition_bytes = 1 << 20;

}  // namespace

trace_writer::trace_writer(sink to, std::uint64_t most_bytes) : to_(std::move(to)), most_bytes_(most_bytes) {
  put(file_beginning());
  plan_round();
}

/// An event has some two bytes, so that a round takes a quarter of what is left.
void trace_writer::plan_round() {
  if (most_bytes_ == 0) return;
  constexpr std::uint64_t least_events = 512, bytes_per_event = 8;
  const std::uint64_t left = most_bytes_ - std::min(written_, most_bytes_);
  round_events_ = std::clamp<std::uint64_t>(left / bytes_per_event, least_events, most_events);
}

void trace_writer::put(std::span<const std::byte> bytes) {
  if (has_failed_) return;
  has_failed_ = !to_(bytes);
  if (!has_failed_) written_ += bytes.size();
}

void trace_writer::put(const chunk_head& head, const byte_writer& payload) { put(packer_.pack(head, payload.bytes())); }

void trace_writer::add(const process& p) {
  byte_writer payload;
  payload.number(p.id);
  payload.number(p.forked_from_plus_one);
  payload.number(p.started_unix_ns);
  payload.text(p.program);
  payload.text(p.allocator);
  payload.number(p.arguments.size());
  for (const std::string& argument : p.arguments) payload.text(argument);
  put({.kind = static_cast<std::uint32_t>(chunk_kind::process), .process = p.number}, payload);
}

void trace_writer::add(const stack& s) {
  if (is_full()) return;
  stacks_.number(s.process);
  stacks_.number(s.id);
  stacks_.number(s.addresses.size());
  std::uint64_t last = 0;
  for (const std::uint64_t address : s.addresses) {
    stacks_.difference(static_cast<std::int64_t>(address - last));
    last = address;
  }
  if (stacks_.size() >= most_definition_bytes) put_definitions(chunk_kind::stacks, stacks_);
}

void trace_writer::add(const module& m) {
  modules_.number(m.process);
  modules_.number(m.begin);
  modules_.number(m.end - m.begin);
  modules_.number(m.base);
  modules_.text(m.path);
}

void trace_writer::add(const interpreted_code& c) {
  codes_.number(c.process);
  codes_.number(c.id);
  codes_.number(c.interpreter_at);
  codes_.text(c.name);
  codes_.text(c.file);
  codes_.difference(c.first_line);
  codes_.number(c.lines);
  codes_.text(c.table);
  if (codes_.size() >= most_definition_bytes) put_definitions(chunk_kind::codes, codes_);
}

void trace_writer::add(const note& n) {
  flush();
  byte_writer payload;
  payload.number(n.at_ns);
  payload.text(n.text);
  put({.kind = static_cast<std::uint32_t>(chunk_kind::note), .process = n.process}, payload);
}

void trace_writer::add(const memory& m) {
  if (is_full()) return;
  memory_.number(m.process);
  memory_.number(m.at_ns);
  memory_.number(m.bytes);
}

void trace_writer::add(const touched& t) {
  if (is_full()) return;
  touched_.number(t.block.by.process);
  touched_.number(t.block.by.thread);
  touched_.number(t.block.number);
  touched_.number(t.bytes);
}

event_writer& trace_writer::begin_thread(thread_number by) {
  if (by.process >= threads_.size()) threads_.resize(by.process + std::size_t{1});
  auto& threads = threads_[by.process];
  if (by.thread >= threads.size()) threads.resize(by.thread + std::size_t{1});
  return threads[by.thread];
}

void trace_writer::note_event() {
  ++events_;
  if (++waiting_ >= round_events_) flush();
}

block_id trace_writer::allocate(thread_number by, const request& asked, std::uint64_t at_ns) {
  if (is_full()) return {};
  const std::uint64_t number = of(by).allocate(asked, at_ns / time_unit);
  note_event();
  return {by, number};
}

void trace_writer::deallocate(thread_number by, const block_id& block, std::uint64_t at_ns) {
  if (is_full()) return;
  of(by).deallocate(by, block, at_ns / time_unit);
  note_event();
}

block_id trace_writer::reallocate(thread_number by, const block_id& before, const request& asked, std::uint64_t at_ns) {
  if (is_full()) return {};
  const std::uint64_t number = of(by).reallocate(by, before, asked, at_ns / time_unit);
  note_event();
  return {by, number};
}

void trace_writer::end_thread(thread_number which, std::uint64_t at_ns) {
  if (is_full()) return;
  of(which).end_thread(at_ns / time_unit);
  note_event();
}

void trace_writer::put_definitions(chunk_kind kind, byte_writer& waiting) {
  if (waiting.size() == 0) return;
  put({.kind = static_cast<std::uint32_t>(kind)}, waiting);
  waiting.clear();
}

void trace_writer::flush() {
  put_definitions(chunk_kind::modules, modules_);
  put_definitions(chunk_kind::codes, codes_);
  put_definitions(chunk_kind::stacks, stacks_);
  put_definitions(chunk_kind::memory, memory_);
  put_definitions(chunk_kind::touched, touched_);
  if (waiting_ == 0) return;
  for (std::uint32_t process = 0; process < threads_.size(); ++process) {
    for (std::uint32_t thread = 0; thread < threads_[process].size(); ++thread) {
      event_writer& of = threads_[process][thread];
      if (of.empty()) continue;
      byte_writer payload;
      of.write(payload);
      put({.kind = static_cast<std::uint32_t>(chunk_kind::events),
           .process = process,
           .thread = thread,
           .round = round_},
          payload);
      of.clear();
    }
  }
  waiting_ = 0;
  ++round_;
  plan_round();
}

void trace_writer::end(const ending& how) {
  flush();
  byte_writer payload;
  payload.text(how.reason);
  payload.number((how.is_piece ? is_a_piece : 0) | (how.is_torn ? is_of_a_torn_trace : 0));
  put({.kind = static_cast<std::uint32_t>(chunk_kind::ending)}, payload);
}

}  // namespace heapwright::trace
