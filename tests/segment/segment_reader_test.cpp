// What a reader says of segments that are as they should be.
#include "segment_reader.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "segment_builder.hpp"

namespace heapwright::segment {
namespace {

class segment_reading : public testing::Test {
 protected:
  scratch_folder folder;
  segment_builder built{folder / "one.segment"};
};

TEST_F(segment_reading, tells_of_the_process) {
  segment_header& h = built.header();
  h.state = static_cast<std::uint32_t>(process_state::exited);
  h.started_ns = 100;
  h.counting = 1;
  h.counting_since_ns = 100;
  h.interval = 4096;
  h.peak = 77;
  h.class_peak[3] = 5;
  h.forked_from = 42;
  h.inherited_blocks = 3;
  h.inherited_bytes = 300;
  set_text(h.program, "/usr/bin/program");
  set_text(h.arguments, std::string("program\0\0--last\0\0", 17));
  h.arguments_bytes = 17;
  const process_figures p = segment_reader(built.path()).process();
  EXPECT_EQ(p.process_id, 1234u);
  EXPECT_EQ(p.state, process_state::exited);
  EXPECT_EQ(p.program, "/usr/bin/program");
  EXPECT_EQ(p.arguments, (std::vector<std::string>{"program", "", "--last", ""}));
  EXPECT_TRUE(p.is_counting);
  EXPECT_TRUE(p.counts_from_start());
  EXPECT_EQ(p.interval, 4096u);
  EXPECT_EQ(p.peak, 77u);
  EXPECT_EQ(p.class_peak[3], 5u);
  EXPECT_EQ(p.forked_from, 42u);
  EXPECT_EQ(p.inherited_blocks, 3u);
  EXPECT_EQ(p.inherited_bytes, 300u);
  h.interval = 1;
  h.counting_since_ns = 101;
  EXPECT_EQ(segment_reader(built.path()).process().class_peak[3], 5u);
  EXPECT_FALSE(segment_reader(built.path()).process().counts_from_start());
}

TEST_F(segment_reading, is_exact_only_where_all_was_sampled_from_the_start) {
  segment_header& h = built.header();
  segment_reader reader(built.path(), true);
  h.interval = 1;
  EXPECT_TRUE(reader.process().samples_all);
  EXPECT_EQ(reader.process().unseen_interval, 1u);
  reader.set_interval(1);
  EXPECT_TRUE(reader.process().samples_all);
  h.interval = 65536 | interval_adapts;
  EXPECT_FALSE(reader.process().samples_all);
  for (int i = 0; i < 2; ++i) {
    reader.set_interval(1);
    EXPECT_FALSE(reader.process().samples_all);
    EXPECT_EQ(reader.process().unseen_interval, 65536u) << "blocks from before the change may be unseen";
  }
  reader.set_interval(0);
  reader.set_interval(1);
  EXPECT_FALSE(reader.process().samples_all);
}

TEST_F(segment_reading, shows_a_program_by_the_link_that_started_it) {
  segment_header& h = built.header();
  module& program = built.add_module();
  program.begin = 1;
  program.end = 2;
  set_text(program.path, "/usr/bin/program-2");
  const auto shown = [&](const std::string& text) {
    set_text(h.program, text);
    const snapshot s = segment_reader(built.path()).read();
    EXPECT_EQ(s.process.program, "/usr/bin/program-2");
    EXPECT_EQ(s.modules.at(0).path, "/usr/bin/program-2");
    EXPECT_EQ(s.modules.at(0).shown_path, s.process.shown_program);
    return s.process.shown_program;
  };
  EXPECT_EQ(shown(std::string{"/usr/bin/program-2\0program", 26}), "/usr/bin/program");
  EXPECT_EQ(shown(std::string{"/usr/bin/program-2\0../x\0\0\0\0", 27}), "");
  EXPECT_EQ(shown(std::string{"/usr/bin/program-2\0\0\0\0\0\0\0\0", 27}), "");
}

TEST_F(segment_reading, dates_a_peak_that_was_not_published_no_later_than_the_end) {
  segment_header& h = built.header();
  h.peak = 100;
  h.peak_at_ns = 5;
  built.add_thread(1, 1);
  built.slot(1).classes[3].allocated_bytes = 200;
  const snapshot running = segment_reader(built.path()).read();
  EXPECT_EQ(running.process.peak, 200u);
  EXPECT_EQ(running.process.peak_at_ns, running.at_ns);
  for (const process_state state : {process_state::exited, process_state::replaced}) {
    h.state = static_cast<std::uint32_t>(state);
    h.ended_ns = 1000;
    EXPECT_EQ(segment_reader(built.path()).read().process.peak_at_ns, 1000u);
  }
}

TEST_F(segment_reading, knows_the_code_of_python_that_is_complete) {
  segment_reader reader(built.path());
  EXPECT_EQ(reader.read().codes, nullptr);
  const reference first = built.add_code("keep", "/app/a.py", "12", line_table::python_3_9);
  const reference second = built.add_code("x", "", std::string(5000, 't'), line_table::python_3_11);
  const reference third = built.add_code("later", "/app/b.py", "", line_table::none);
  const auto codes = reader.read().codes;
  ASSERT_EQ(codes->size(), 2U);
  EXPECT_EQ(codes->at(first).name, "keep");
  EXPECT_EQ(codes->at(first).file, "/app/a.py");
  EXPECT_EQ(codes->at(first).table, "12");
  EXPECT_EQ(codes->at(first).first_line, 5);
  EXPECT_EQ(codes->at(second).table.size(), 5000U);
  EXPECT_EQ(reader.read().codes, codes) << "nothing is new";
  built.code_at(third).lines = static_cast<std::uint32_t>(line_table::python_3_10);
  EXPECT_EQ(reader.read().codes->at(third).name, "later");
  EXPECT_EQ(codes->size(), 2U) << "what was read before stays as it was";
}

TEST_F(segment_reading, code_of_python_that_makes_no_sense_ends_what_is_read) {
  const reference first = built.add_code("keep", "/app/a.py", "12", line_table::python_3_9);
  const reference second = built.add_code("wrong", "/app/b.py", "", line_table::python_3_9);
  (void)built.add_code("behind", "/app/c.py", "", line_table::python_3_9);
  built.code_at(second).table_bytes = 0xffff'fff0;
  const auto codes = segment_reader(built.path()).read().codes;
  EXPECT_EQ(codes->size(), 1U);
  EXPECT_TRUE(codes->contains(first));
}

/// One block passes from thread to thread while the segment is read.
TEST_F(segment_reading, no_peak_counts_a_block_twice_that_moves_while_it_is_read) {
  constexpr unsigned c = 60;
  constexpr std::uint64_t block = 3 << 20;
  for (std::uint32_t i = 1; i < segment_builder::slots; ++i) built.add_thread(i, i);
  std::atomic<bool> enough{false};
  std::thread mover([&] {
    for (std::uint32_t i = 0; !enough; ++i) {
      class_counters& holder = built.slot(1 + i % (segment_builder::slots - 1)).classes[c];
      holder.allocated_bytes += block;
      holder.freed_bytes += block;
    }
  });
  const segment_reader reader(built.path());
  std::uint64_t peak = 0, class_peak = 0;
  for (int i = 0; i < 2'000; ++i) {
    const snapshot s = reader.read();
    peak = std::max(peak, s.process.peak);
    class_peak = std::max(class_peak, s.process.class_peak[c]);
  }
  enough = true;
  mover.join();
  EXPECT_LE(peak, block);
  EXPECT_LE(class_peak, block);
}

TEST_F(segment_reading, takes_a_text_without_an_end_for_what_it_is) {
  set_text(built.header().program, std::string(256, 'p'));
  set_text(built.header().arguments, std::string(1024, 'a'));
  built.header().arguments_bytes = 1024;
  const process_figures p = segment_reader(built.path()).process();
  EXPECT_EQ(p.program, std::string(256, 'p'));
  EXPECT_EQ(p.arguments, std::vector<std::string>{std::string(1024, 'a')});
}

TEST_F(segment_reading, sums_threads) {
  built.slot(0).classes[2].allocations = 1000;
  thread_slot& worker = built.add_thread(3, 33);
  set_text(worker.name, "worker");
  worker.classes[2].allocations = 7;
  worker.classes[2].allocated_bytes = 7 * 48;
  worker.classes[79].frees = 2;
  worker.classes[2].requested_bytes = 300;
  worker.classes[3].requested_bytes = 20;
  built.add_thread(7, 77, slot_state::gone).classes[2].frees = 5;
  const snapshot s = segment_reader(built.path()).read();
  ASSERT_EQ(s.threads.size(), 3u);
  EXPECT_EQ(s.threads[0].slot, 0u);
  EXPECT_EQ(s.threads[1].slot, 3u);
  EXPECT_EQ(s.threads[1].thread_id, 33u);
  EXPECT_EQ(s.threads[1].name, "worker");
  EXPECT_EQ(s.threads[1].total().requested_bytes, 320u);
  EXPECT_EQ(s.threads[2].state, slot_state::gone);
  EXPECT_EQ(s.threads[1].total().frees, 2u);
  EXPECT_EQ(s.total().allocations, 1007u);
  EXPECT_EQ(s.total().frees, 7u);
  EXPECT_EQ(s.by_class()[2].allocated_bytes, 336u);
  EXPECT_FALSE(s.is_torn);
  EXPECT_GT(s.at_ns, 0u);
}

TEST_F(segment_reading, waits_while_figures_move_to_slot_0) {
  thread_slot& gone = built.add_thread(1, 11, slot_state::gone);
  const segment_reader reader(built.path());
  int whole = 0;
  for (int i = 0; i < 500 && whole < 10; ++i) {
    built.slot(0).classes[0].allocations = 0;
    gone.classes[0].allocations = 10;
    ++built.header().fold_sequence;
    std::atomic<bool> begun = false;
    std::thread probe([&] {
      begun.wait(false);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      built.slot(0).classes[0].allocations = 10;
      gone.classes[0].allocations = 0;
      ++built.header().fold_sequence;
    });
    begun = true;
    begun.notify_one();
    const snapshot s = reader.read();
    probe.join();
    // A busy machine may not let the writer run in time: then the reader says so.
    if (s.is_torn) continue;
    ++whole;
    EXPECT_EQ(s.total().allocations, 10u);
  }
  EXPECT_GT(whole, 0);
}

TEST_F(segment_reading, does_not_wait_for_a_killed_program) {
  built.header().fold_sequence = 7;
  built.slot(0).classes[0].allocations = 10;
  const snapshot s = segment_reader(built.path()).read();
  EXPECT_TRUE(s.is_torn);
  EXPECT_EQ(s.total().allocations, 10u);
}

TEST_F(segment_reading, sums_are_right_while_slots_are_reused) {
  std::atomic<bool> done = false;
  thread_slot& worker = built.add_thread(1, 11);
  worker.classes[0].allocations = 1'000'000;
  std::thread probe([&] {
    std::uint64_t worked = 1'000'000;
    while (!done) {
      // Of the million that there always is, more and more is in slot 0.
      ++built.header().fold_sequence;
      built.slot(0).classes[0].allocations += 1;
      worker.classes[0].allocations = --worked;
      ++built.header().fold_sequence;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  const segment_reader reader(built.path());
  unsigned whole = 0;
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    const snapshot s = reader.read();
    if (s.is_torn) continue;
    ++whole;
    EXPECT_EQ(s.total().allocations, 1'000'000u);
  }
  done = true;
  probe.join();
  EXPECT_GT(whole, 0u);
}

TEST_F(segment_reading, finds_stacks_with_what_they_count) {
  const reference first = built.add_stack(1, {0x10, 0x20, 0x30});
  const reference second = built.add_stack(17, {0x40});  // same chain
  const reference deepest = built.add_stack(2, std::vector<std::uint64_t>(512, 0x50));
  stack_counters& c = built.stack_at(second).counters;
  c.allocations = 3 * 1024 + 512;
  c.frees = 1024;
  c.allocated_bytes = 350;
  c.freed_bytes = 100;
  c.samples = 11;
  c.freed_samples = 9;
  c.lifetimes[5] = 100;
  built.stack_at(first).is_cut = 1;
  const auto stacks = segment_reader(built.path()).stacks();
  ASSERT_EQ(stacks.size(), 3u);
  EXPECT_EQ(stacks[0].id, first);
  EXPECT_EQ(stacks[0].addresses, (std::vector<std::uint64_t>{0x10, 0x20, 0x30}));
  EXPECT_TRUE(stacks[0].is_cut);
  EXPECT_EQ(stacks[1].id, second);
  EXPECT_DOUBLE_EQ(stacks[1].allocations, 3.5);
  EXPECT_DOUBLE_EQ(stacks[1].live_blocks(), 2.5);
  EXPECT_EQ(stacks[1].live_bytes(), 250u);
  EXPECT_EQ(stacks[1].lifetimes[5], 100u);
  EXPECT_EQ(stacks[1].live_samples, 2u);
  EXPECT_EQ(stacks[2].id, deepest);
  EXPECT_EQ(stacks[2].addresses.size(), 512u);
}

TEST_F(segment_reading, has_allocated_what_lives) {
  stack_counters& c = built.stack_at(built.add_stack(1, {0x10})).counters;
  c.allocations = 3 * 1024;
  c.frees = 1024;
  c.allocated_bytes = 300;
  c.freed_bytes = 100;
  c.thinned_bytes = 250;  // live samples stand for more since
  c.thinned_blocks = 4 * 1024;
  const auto stacks = segment_reader(built.path()).stacks();
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].live_bytes(), 450u);
  EXPECT_EQ(stacks[0].allocated_bytes, 450u);
  EXPECT_DOUBLE_EQ(stacks[0].live_blocks(), 6);
  EXPECT_DOUBLE_EQ(stacks[0].allocations, 6);
}

TEST_F(segment_reading, passes_over_stacks_that_are_not_written) {
  const reference first = built.add_stack(1, {0x10});
  const reference announced = built.take_stack(3);
  built.stack_at(announced).depth = 3;
  const reference after_announced = built.add_stack(2, {0x20});
  built.take_stack(5);  // nothing is known of it, not even its length
  const reference last = built.add_stack(3, {0x30});
  const reference very_last = built.add_stack(3 + segment_builder::buckets, {0x40});
  std::vector<reference> ids;
  for (const stack_figures& s : segment_reader(built.path()).stacks()) ids.push_back(s.id);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<reference>{first, after_announced, last, very_last}));
}

TEST_F(segment_reading, adds_up_what_threads_have_counted_of_one_stack) {
  const reference everyones = built.add_stack(7, {0x10, 0x20});
  const reference other = built.add_stack(7, {0x10, 0x30}, 1);  // another one, whatever its hash
  const reference first_threads = built.add_stack(7, {0x10, 0x20}, 1);
  const reference second_threads = built.add_stack(7, {0x10, 0x20}, 2);
  const reference cut = built.add_stack(7, {0x10, 0x20}, 3);
  built.stack_at(cut).is_cut = 1;
  std::uint64_t n = 1;
  for (const reference r : {everyones, other, first_threads, second_threads, cut}) {
    stack_counters& c = built.stack_at(r).counters;
    for (counter* const f : {&c.samples, &c.allocated_bytes, &c.freed_bytes, &c.short_lived_bytes}) *f = n;
    for (counter* const f : {&c.allocations, &c.frees, &c.short_lived}) *f = n * 1024;
    c.freed_samples = n == 8 ? 1 : 0;
    c.lifetimes[3] = n;
    n *= 2;
  }
  built.stack_at(first_threads).counters.first_ns = 50;
  built.stack_at(first_threads).counters.last_ns = 90;
  built.stack_at(second_threads).counters.first_ns = 40;
  built.stack_at(second_threads).counters.last_ns = 60;
  for (const reference r : {everyones, other, first_threads, second_threads, cut}) built.add_sample(r * 0x1000, r);

  const segment_reader reader(built.path());
  const auto stacks = reader.stacks();
  ASSERT_EQ(stacks.size(), 3u);
  const stack_figures& sum = stacks[0];
  EXPECT_EQ(sum.id, everyones) << "of the one that was there first";
  EXPECT_EQ(sum.addresses, (std::vector<std::uint64_t>{0x10, 0x20}));
  for (const std::uint64_t f : {sum.samples, sum.allocated_bytes, sum.freed_bytes, sum.short_lived_bytes})
    EXPECT_EQ(f, 13u);
  for (const double f : {sum.allocations, sum.frees, sum.short_lived}) EXPECT_DOUBLE_EQ(f, 13);
  EXPECT_EQ(sum.live_samples, 12u);
  EXPECT_EQ(sum.lifetimes[3], 13u);
  EXPECT_EQ(sum.first_ns, 40u);
  EXPECT_EQ(sum.last_ns, 90u);
  EXPECT_EQ(stacks[1].id, other);
  EXPECT_EQ(stacks[2].id, cut);
  std::vector<reference> of_samples;
  for (const sample_figures& s : reader.live_samples()) of_samples.push_back(s.at_stack);
  EXPECT_EQ(of_samples, (std::vector<reference>{everyones, other, everyones, everyones, cut}));
}

TEST_F(segment_reading, keeps_apart_what_threads_of_different_names_have_asked_for) {
  const std::uint32_t reader_name = built.add_thread_name("reader"), writer_name = built.add_thread_name("writer");
  const reference of_reader = built.add_stack(7, {0x10, 0x20}, 1, reader_name);
  const reference of_writer = built.add_stack(7, {0x10, 0x20}, 2, writer_name);
  const reference of_unknown = built.add_stack(7, {0x10, 0x20}, 3);
  const reference readers_for_all = built.add_stack(7, {0x10, 0x20}, 0, reader_name);
  const reference inherited = built.add_stack(7, {0x10, 0x20}, inherited_owner, writer_name);
  const reference other = built.add_stack(9, {0x30}, 1, reader_name);
  std::uint64_t bytes = 1;
  for (const reference r : {of_reader, of_writer, of_unknown, readers_for_all, inherited, other}) {
    built.stack_at(r).counters.allocated_bytes = bytes *= 10;
    built.add_sample(r * 0x1000, r);
  }
  built.stack_at(readers_for_all).counters.freed_bytes = 10'003;  // another thread has freed these

  const segment_reader reader(built.path());
  const snapshot seen = reader.read();
  const auto stacks = reader.stacks();
  ASSERT_EQ(stacks.size(), 4u);
  std::vector<std::string> names;
  for (const stack_figures& s : stacks) names.push_back(seen.name_of_threads(s));
  EXPECT_EQ(names, (std::vector<std::string>{"reader", "writer", "(other threads)", "reader"}));
  EXPECT_EQ(stacks[0].id, of_reader);
  EXPECT_EQ(stacks[0].live_bytes(), 10u + 10'000u - 10'003u);
  EXPECT_EQ(stacks[1].live_bytes(), 100u + 100'000u);
  EXPECT_EQ(stacks[2].live_bytes(), 1'000u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(stacks[i].first_with_calls, stacks[0].first_with_calls) << i;
  EXPECT_EQ(stacks[3].first_with_calls, other);
  std::vector<reference> of_samples;
  for (const sample_figures& s : reader.live_samples()) of_samples.push_back(s.at_stack);
  EXPECT_EQ(of_samples, (std::vector<reference>{of_reader, of_writer, of_unknown, of_reader, of_writer, other}));
  std::uint64_t own = 0;
  for (const stack_figures& s : reader.own_stacks()) own += s.allocated_bytes;
  EXPECT_EQ(own, 1'011'110u) << "without what was inherited";
}

TEST_F(segment_reading, finds_live_samples) {
  sample& s = built.add_sample(0x1000, 5, 4800);
  s.bytes = 48;
  built.add_sample(0, 5);       // free
  built.add_sample(0x3000, 0);  // not yet complete
  built.add_sample(0x7fff'1234'5670, 6).bytes = 100;
  const auto samples = segment_reader(built.path()).live_samples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].address, 0x1000u);
  EXPECT_EQ(samples[0].bytes, 48u);
  EXPECT_NEAR(static_cast<double>(samples[0].bytes_for), 4824, 5);
  EXPECT_NEAR(samples[0].stands_for, 100.5, 0.1);
  EXPECT_EQ(samples[0].at_stack, 5u);
  EXPECT_EQ(samples[1].address, 0x7fff'1234'5670u);
  EXPECT_EQ(samples[1].bytes_for, 100u);
  EXPECT_DOUBLE_EQ(samples[1].stands_for, 1);
}

TEST_F(segment_reading, finds_modules) {
  module& m = built.add_module();
  m.begin = 0x1000;
  m.end = 0x2000;
  m.base = 0x800;
  set_text(m.path, "/lib/a.so");
  built.add_module().end = 0x3000;  // without a path
  const auto modules = segment_reader(built.path()).read().modules;
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].path, "/lib/a.so");
  EXPECT_EQ(modules[0].base, 0x800u);
}

TEST_F(segment_reading, has_misuse_reports_as_far_as_they_are_written) {
  built.add_misuse_report(5'000, "heapwright: double free: 0x10\n");
  built.add_misuse_report(0, "not yet begun");
  built.add_misuse_report(6'000, "");
  built.add_misuse_report(7'000, "torn").length = UINT32_MAX;
  const segment_reader reader(built.path());
  const auto reports = reader.misuse_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].text, "heapwright: double free: 0x10\n");
  EXPECT_EQ(reports[0].at_ns, 5'000u);
  EXPECT_EQ(reports[0].mistakes, 1u);
  EXPECT_EQ(reports[1].text.size(), sizeof(misuse_report::text));
  EXPECT_EQ(reader.process().mistakes, 4u);

  built.header().misuse_reports_used = UINT64_MAX;
  EXPECT_EQ(reader.misuse_reports().size(), 2u);
  built.header().misuse_reports_at = UINT64_MAX - 100;
  EXPECT_TRUE(reader.misuse_reports().empty());
}

TEST_F(segment_reading, tells_the_probe_what_to_do) {
  segment_reader reader(built.path(), true);
  reader.set_counting(true);
  reader.set_interval(12345);
  reader.reset_peak();
  reader.reset_peak();
  EXPECT_EQ(built.header().counting, 1u);
  EXPECT_EQ(built.header().interval, 12345u);
  EXPECT_EQ(built.header().reset, 2u);
  reader.set_counting(false);
  EXPECT_FALSE(reader.process().is_counting);
}

TEST_F(segment_reading, controls_only_where_it_may) {
  segment_reader reader(built.path());
  EXPECT_THROW(reader.set_counting(true), std::logic_error);
  EXPECT_EQ(built.header().counting, 0u);
}

TEST_F(segment_reading, keeps_marks_while_there_is_room) {
  segment_reader reader(built.path(), true);
  EXPECT_TRUE(reader.add_mark("before"));
  EXPECT_TRUE(reader.add_mark(std::string(54, 'x') + "\u00e4\u00e4"));  // the 55th byte is within a character
  built.header().mark_count++;                                          // begun by another, not complete
  auto marks = reader.process().marks;
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].name, "before");
  EXPECT_EQ(marks[1].name, std::string(54, 'x'));
  EXPECT_GE(marks[1].at_ns, marks[0].at_ns);
  for (int i = 3; i < 64; ++i) EXPECT_TRUE(reader.add_mark("more"));
  EXPECT_FALSE(reader.add_mark("too many"));
  EXPECT_EQ(reader.process().marks.size(), 63u);
}

TEST_F(segment_reading, finds_segments_newest_first) {
  built.header().started_unix_ns = 10;
  segment_builder newer(folder / "b.segment"), oldest(folder / "c.segment");
  newer.header().started_unix_ns = 20;
  oldest.header().started_unix_ns = 5;
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::copy_file("/proc/self/exe", folder / "program");
  EXPECT_EQ(segments_in(folder.path()),
            (std::vector<std::filesystem::path>{newer.path(), built.path(), oldest.path()}));
  EXPECT_TRUE(segments_in(folder / "no such folder").empty());
}

TEST(process, is_there_until_it_ends) {
  const auto start_of = [](pid_t pid) {
    process_figures p;
    p.process_id = static_cast<std::uint32_t>(pid);
    char stat[1024] = {};
    FILE* const file = fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
    fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    unsigned long long start = 0;
    sscanf(strrchr(stat, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
           &start);
    p.process_start = start;
    return p;
  };
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  process_figures p = start_of(child);
  EXPECT_TRUE(is_there(p));
  p.process_start += 1;
  EXPECT_FALSE(is_there(p)) << "another process with its id";
  p.process_start -= 1;
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(is_there(p)) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_there(p));
}

TEST(process, may_end_while_it_is_looked_at) {
  std::atomic<pid_t> looked_at = 0;
  std::atomic<bool> is_over = false;
  std::jthread looks([&] {
    while (!is_over) (void)process_start(static_cast<std::uint32_t>(looked_at.load()));
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      usleep(1000);
      _exit(0);
    }
    looked_at = child;
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
  is_over = true;
}

}  // namespace
}  // namespace heapwright::segment
