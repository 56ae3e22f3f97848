// What is written into a trace is read from it. Where the file is cut off, or any byte of it is
// another, the reader has what was whole before, and says how the trace has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "read_parts.hpp"
#include "trace_writer.hpp"

namespace heapwright::trace {
namespace {

using file_bytes = std::vector<std::byte>;

trace_writer::sink into(file_bytes& all) {
  return [&all](std::span<const std::byte> more) {
    all.insert(all.end(), more.begin(), more.end());
    return true;
  };
}

using by_thread = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<event>>;

by_thread events_of(const std::vector<part>& parts) {
  by_thread result;
  for (const part& p : parts) {
    if (const auto* const some = std::get_if<events>(&p)) {
      auto& to = result[{some->by.process, some->by.thread}];
      to.insert(to.end(), some->all.begin(), some->all.end());
    }
  }
  return result;
}

template <class T>
std::vector<T> all_of(const std::vector<part>& parts) {
  std::vector<T> result;
  for (const part& p : parts) {
    if (const T* const one = std::get_if<T>(&p)) result.push_back(*one);
  }
  return result;
}

/// A random program: threads of two processes that free their own blocks, each other's, and some
/// from before the recording.
struct random_program {
  explicit random_program(unsigned seed) : random(seed) {}

  void run(trace_writer& to, int steps) {
    for (int step = 0; step < steps; ++step) {
      const thread_number by{static_cast<std::uint32_t>(random() % 2), static_cast<std::uint32_t>(random() % 3)};
      now += random() % 30'000;
      event e;
      e.at_ns = now / time_unit * time_unit;
      const auto choice = random() % 10;
      if (choice < 5 || live.empty()) {
        e.asked = asked();
        e.block = to.allocate(by, e.asked, now);
      } else if (choice < 8) {
        e.kind = event_kind::deallocate;
        e.block = choice == 7 && random() % 8 == 0 ? block_id{} : taken();
        to.deallocate(by, e.block, now);
      } else {
        e.kind = event_kind::reallocate;
        e.before = random() % 16 == 0 ? block_id{} : taken();
        e.asked = asked();
        e.block = to.reallocate(by, e.before, e.asked, now);
      }
      if (e.kind != event_kind::deallocate) live.push_back(e.block);
      expected[{by.process, by.thread}].push_back(e);
    }
  }

  request asked() {
    request r{.size = random() % 3 == 0 ? random() % (1ULL << 40) : random() % 500,
              .alignment = 0,
              .stack = static_cast<std::uint32_t>(random() % 300),
              .zeroed = random() % 5 == 0};
    if (random() % 7 == 0) r.alignment = std::uint64_t{1} << random() % 30;
    return r;
  }

  block_id taken() {
    std::swap(live[random() % live.size()], live.back());
    const block_id b = live.back();
    live.pop_back();
    return b;
  }

  std::mt19937_64 random;
  std::uint64_t now = 0;
  std::vector<block_id> live;
  by_thread expected;
};

TEST(Trace, HasTheEventsOfEachThreadInProgramOrder) {
  file_bytes bytes;
  trace_writer writer(into(bytes));
  random_program program(1);
  program.run(writer, 300'000);
  writer.end_thread({1, 2}, program.now);
  program.expected[{1, 2}].push_back({event_kind::end_thread, program.now / time_unit * time_unit, {}, {}, {}});
  writer.end({.reason = "the program has exited"});
  EXPECT_EQ(writer.written(), bytes.size());
  EXPECT_EQ(writer.events(), 300'001U);
  const std::vector<part> parts = read_parts(bytes);
  EXPECT_EQ(std::get<ending>(parts.back()), (ending{.reason = "the program has exited"}));
  EXPECT_EQ(events_of(parts), program.expected);
}

TEST(Trace, AnAllocationIsInNoLaterRoundThanItsFree) {
  file_bytes bytes;
  trace_writer writer(into(bytes));
  random_program(2).run(writer, 600'000);
  writer.end({});
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> round_of;
  std::uint32_t last = 0;
  const std::vector<events> all = all_of<events>(read_parts(bytes));
  for (const events& some : all) {
    EXPECT_GE(some.round, last);
    last = some.round;
    for (const event& e : some.all) {
      if (e.kind != event_kind::deallocate)
        round_of[{e.block.by.process, e.block.by.thread, e.block.number}] = some.round;
    }
  }
  EXPECT_GT(last, 1U);
  for (const events& some : all) {
    for (const event& e : some.all) {
      const block_id& freed = e.kind == event_kind::deallocate ? e.block : e.before;
      if (freed.number != 0) {
        ASSERT_LE((round_of.at({freed.by.process, freed.by.thread, freed.number})), some.round);
      }
    }
  }
}

TEST(Trace, HasProcessesStacksModulesAndNotes) {
  const process first{
      0, 1234, 0, 1'700'000'000'000'000'000, "/usr/bin/program", "/lib/libc.so.6", {"program", "", "an argument"}};
  const process child{1, 1235, 1, 1'700'000'000'000'000'001, "/usr/bin/program", "", {}};
  const stack deep{0, 7, {0x7fff'0000'1000, 0x55'0000, 0x7fff'0000'0fff, 1}}, flat{1, 1, {}};
  const module library{0, 0x1000, 0x9000, 0x400, "/lib/a library.so"};
  const std::string table("\x80\x00\xff a table", 11);
  const interpreted_code method{1, 99, 0x2000, "Shop.page_for", "/srv/shop.py", -1, 3, table},
      nameless{0, 0xffff'ffff, 0, "", "", 0, 0, ""};
  const note waited{1, 5 * time_unit, "a thread waited for 3 ms"};
  file_bytes bytes;
  trace_writer writer(into(bytes));
  writer.add(first);
  writer.add(child);
  writer.add(library);
  writer.add(method);
  writer.add(nameless);
  writer.add(deep);
  writer.add(flat);
  writer.allocate({0, 0}, {.size = 10, .alignment = 0, .stack = 7, .zeroed = false}, 0);
  writer.add(waited);
  writer.end({});
  const std::vector<part> parts = read_parts(bytes);
  EXPECT_EQ(all_of<process>(parts), (std::vector{first, child}));
  EXPECT_EQ(all_of<stack>(parts), (std::vector{deep, flat}));
  EXPECT_EQ(all_of<module>(parts), (std::vector{library}));
  EXPECT_EQ(all_of<interpreted_code>(parts), (std::vector{method, nameless}));
  EXPECT_EQ(all_of<note>(parts), (std::vector{waited}));
  // A stack comes before its events, and a note after those before it.
  ASSERT_EQ(parts.size(), 10U);
  EXPECT_TRUE(std::holds_alternative<events>(parts[7]));
  EXPECT_TRUE(std::holds_alternative<note>(parts[8]));
}

/// Some of everything, in several rounds.
file_bytes small_trace() {
  file_bytes bytes;
  trace_writer writer(into(bytes));
  writer.add(process{0, 1, 0, 2, "program", "malloc", {"an argument"}});
  writer.add(module{0, 1, 2, 3, "path"});
  writer.add(interpreted_code{0, 1, 2, "name", "file", 2, 3, "table"});
  random_program program(3);
  for (std::uint32_t i = 1; i < 4; ++i) {
    writer.add(stack{0, i, {1, 2, 3}});
    program.run(writer, 20);
    writer.flush();
  }
  writer.add(note{0, 1, "note"});
  writer.end({.reason = "exited"});
  return bytes;
}

/// `parts` without its ending begins `all`; events may be fewer chunks, never parts of one.
bool is_beginning(const std::vector<part>& parts, const std::vector<part>& all) {
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i].index() != all[i].index()) return false;
    if (const auto* const some = std::get_if<events>(&parts[i]); some && some->all != std::get<events>(all[i]).all)
      return false;
  }
  return parts.size() <= all.size();
}

TEST(Trace, TheEndingOfAPieceSaysThatItIsOneAndWhetherTheWholeIsTorn) {
  for (const ending& e : {ending{.reason = "a piece", .is_piece = true},
                          ending{.reason = "a piece", .is_torn = true, .is_piece = true}}) {
    file_bytes bytes;
    trace_writer writer(into(bytes));
    writer.end(e);
    EXPECT_EQ(std::get<ending>(read_parts(bytes).back()), e);
  }
}

TEST(Trace, CutOffAnywhereHasWhatWasWholeBefore) {
  const file_bytes whole = small_trace();
  const std::vector<part> all = read_parts(whole);
  std::size_t had = 0;
  for (std::size_t length = 16; length < whole.size(); ++length) {
    const std::vector<part> parts = read_parts(std::span(whole).first(length));
    ASSERT_TRUE(std::get<ending>(parts.back()).is_torn) << length;
    ASSERT_TRUE(is_beginning(parts, all)) << length;
    ASSERT_GE(parts.size(), had) << "more bytes, fewer parts, at " << length;
    had = parts.size();
  }
  EXPECT_EQ(had, all.size());
  for (std::size_t length = 0; length < 16; ++length) {
    store(std::span(whole).first(length));
    EXPECT_THROW(trace_reader{trace_path()}, bad_trace) << length;
  }
  std::filesystem::remove(trace_path());
}

TEST(Trace, ADamagedByteEndsTheTraceBeforeItsChunk) {
  const file_bytes whole = small_trace();
  const std::vector<part> all = read_parts(whole);
  for (std::size_t at = 16; at < whole.size(); ++at) {
    for (const std::byte change : {std::byte{1}, std::byte{0x80}, std::byte{0xff}}) {
      file_bytes damaged = whole;
      damaged[at] ^= change;
      const std::vector<part> parts = read_parts(damaged);
      ASSERT_TRUE(std::get<ending>(parts.back()).is_torn) << at;
      ASSERT_TRUE(is_beginning(parts, all)) << at;
    }
  }
}

TEST(Trace, WhatIsNoTraceIsRefusedWithTheReason) {
  const auto complaint = [&] {
    try {
      trace_reader reader(trace_path());
    } catch (const bad_trace& why) {
      return std::string(why.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint(), trace_path().string() + " cannot be read: No such file or directory");
  store({});
  EXPECT_EQ(complaint(), trace_path().string() + " is not a trace");
  file_bytes newer = small_trace();
  newer[12] = std::byte{9};
  store(newer);
  EXPECT_EQ(complaint(), trace_path().string() + " is a trace of version 9; this heapwright reads 1");
  EXPECT_THROW(trace_reader("/dev/null"), bad_trace);
  EXPECT_THROW(trace_reader("/"), bad_trace);
  std::filesystem::remove(trace_path());
}

TEST(Trace, AFullTraceHasTheBeginningOfWhatEachThreadDid) {
  constexpr std::size_t most = 100'000;
  file_bytes bytes;
  trace_writer writer(into(bytes), most);
  random_program program(3);
  program.run(writer, 300'000);
  EXPECT_TRUE(writer.is_full());
  const std::uint64_t events = writer.events();
  EXPECT_LT(events, 300'000U);
  writer.end({.reason = "full"});
  EXPECT_GE(bytes.size(), most);
  EXPECT_LT(bytes.size(), most + 8192);
  std::uint64_t read = 0;
  for (const auto& [thread, all] : events_of(read_parts(bytes))) {
    read += all.size();
    const auto& expected = program.expected[thread];
    ASSERT_LE(all.size(), expected.size());
    EXPECT_TRUE(std::equal(all.begin(), all.end(), expected.begin()));
  }
  EXPECT_EQ(read, events);
}

TEST(Trace, ASinkThatFailsIsNotCalledAgain) {
  int calls = 0;
  trace_writer writer([&](std::span<const std::byte>) { return ++calls < 3; });
  EXPECT_FALSE(writer.has_failed());
  random_program(4).run(writer, 300'000);
  writer.end({});
  EXPECT_TRUE(writer.has_failed());
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace heapwright::trace
