// A plan, carried out in thought: each operation that takes a block must find the very block in its
// slot, in turns, and in any order that threads side by side may take. Sizes name the blocks.
#include "plan_builder.hpp"

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "failure.hpp"
#include "scratch_file.hpp"
#include "stored_trace.hpp"

namespace heapwright::tool {
namespace {

using replay::operation;
using replay::operation_kind;
using trace::block_id;
using trace::thread_number;

struct read_plan {
  std::vector<operation> operations;
  std::vector<replay::turn> turns;
  std::vector<replay::stint> stints;
  std::vector<replay::thread> threads;
  std::vector<replay::round> rounds;
  std::uint64_t slots = 0;
  plan_summary summary;
};

template <class T>
std::vector<T> part_of(const std::string& bytes, std::uint64_t at, std::uint64_t count) {
  std::vector<T> all(count);
  std::memcpy(all.data(), bytes.data() + at, count * sizeof(T));
  return all;
}

/// A process whose looks at memory reach further than the events of the trace: a look in
/// each millisecond, and an allocation of each thread at its end, up to 10 ms, in rounds of 5 ms.
traced_process torn_process(unsigned threads, bool is_torn) {
  stored_trace stored;
  for (std::uint64_t ms = 1; ms <= 20; ++ms) {
    stored.writer.add(trace::memory{0, ms * 1'000'000 - 500'000, ms << 20});
    if (ms > 10) continue;
    for (std::uint32_t t = 0; t < threads; ++t) (void)stored.writer.allocate({0, t}, {.size = 1 << 20}, ms * 1'000'000);
    if (ms % 5 == 0) stored.writer.flush();
  }
  const std::string& file = stored.end();
  if (is_torn) std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const plan_builder builder(file, std::nullopt, [](double) {});
  return builder.process();
}

read_plan plan_of(const std::string& trace, bool touches_all = false) {
  const auto quiet = [](double) {};
  plan_builder builder(trace, std::nullopt, quiet);
  const scratch_file file;
  read_plan plan;
  plan.summary = builder.build(file.fd(), quiet, touches_all);
  const std::string bytes = file.content();
  replay::plan_footer footer{};
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  plan.operations = part_of<operation>(bytes, 0, footer.operations);
  plan.turns = part_of<replay::turn>(bytes, footer.turns_at, footer.turns);
  plan.stints = part_of<replay::stint>(bytes, footer.stints_at, footer.stints);
  plan.threads = part_of<replay::thread>(bytes, footer.threads_at, footer.threads);
  plan.rounds = part_of<replay::round>(bytes, footer.rounds_at, footer.rounds);
  plan.slots = footer.slots;
  return plan;
}

/// Slots by number; 0: empty.
class slot_table {
 public:
  explicit slot_table(std::uint64_t slots) : sizes_(slots) {}

  /// False: it waits for a block.
  bool carry_out(const operation& o) {
    std::uint64_t& slot = sizes_.at(o.slot);
    if (o.kind == operation_kind::deallocate || o.kind == operation_kind::take) {
      if (slot == 0) return false;
      EXPECT_EQ(slot, o.size) << "another block is in the slot";
      slot = 0;
      return true;
    }
    EXPECT_EQ(slot, 0U) << "the slot is in use";
    slot = o.size;
    return true;
  }

  [[nodiscard]] std::uint64_t live() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : sizes_) sum += size;
    return sum;
  }

 private:
  std::vector<std::uint64_t> sizes_;
};

void carry_out_in_turns(const read_plan& plan) {
  slot_table slots(plan.slots);
  std::uint64_t at_ns = 0;
  for (const replay::turn& t : plan.turns) {
    EXPECT_GE(t.at_ns + trace::time_unit, at_ns) << "turns go by time";
    at_ns = t.at_ns;
    for (std::uint64_t i = 0; i < t.operations; ++i)
      ASSERT_TRUE(slots.carry_out(plan.operations[t.first_operation + i])) << "it would wait for ever";
    ASSERT_EQ(slots.live(), t.live);
  }
}

void carry_out_at_once(const read_plan& plan, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  slot_table slots(plan.slots);
  for (std::uint32_t round = 0; round < plan.rounds.size(); ++round) {
    std::vector<const replay::stint*> running;
    for (const replay::stint& s : plan.stints)
      if (s.round == round) running.push_back(&s);
    ASSERT_EQ(running.size(), plan.rounds[round].threads);
    std::vector<std::uint32_t> done(running.size(), 0);
    std::set<std::size_t> waiting;
    for (;;) {
      std::vector<std::size_t> can;
      for (std::size_t i = 0; i < running.size(); ++i)
        if (done[i] < running[i]->operations && !waiting.contains(i)) can.push_back(i);
      if (can.empty()) break;
      // Some run far ahead of the others.
      const std::size_t chosen = can[random() % can.size()];
      for (std::uint64_t ahead = random() % 3 == 0 ? 1000 : 1 + random() % 5; ahead > 0; --ahead) {
        if (done[chosen] == running[chosen]->operations) break;
        if (!slots.carry_out(plan.operations[running[chosen]->first_operation + done[chosen]])) {
          waiting.insert(chosen);
          break;
        }
        ++done[chosen];
        waiting.clear();
      }
    }
    for (std::size_t i = 0; i < running.size(); ++i)
      ASSERT_EQ(done[i], running[i]->operations) << "threads wait for each other";
  }
}

/// Threads that allocate, reallocate and free their own blocks and those of others; each block has
/// a size of its own.
std::string random_history(stored_trace& into, std::uint64_t seed, std::uint32_t threads, unsigned events) {
  std::mt19937_64 random(seed);
  std::vector<block_id> live;
  std::uint64_t size = 0;
  for (unsigned i = 0; i < events; ++i) {
    const thread_number by{0, static_cast<std::uint32_t>(random() % threads)};
    const std::uint64_t at_ns = i * 700;
    if (live.empty() || random() % 9 < 4) {
      live.push_back(into.writer.allocate(by, {.size = ++size}, at_ns));
    } else {
      std::swap(live[random() % live.size()], live.back());
      const block_id block = live.back();
      live.pop_back();
      if (random() % 5 == 0)
        live.push_back(into.writer.reallocate(by, block, {.size = ++size}, at_ns));
      else
        into.writer.deallocate(by, block, at_ns);
    }
    if (random() % 3000 == 0) into.writer.flush();
  }
  return into.end();
}

TEST(Plan, FindsEachBlockInItsSlotWhateverTheOrderOfThreads) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    stored_trace trace;
    const read_plan plan =
        plan_of(random_history(trace, seed, seed % 4 == 0 ? 1U : 2U + static_cast<unsigned>(seed % 7), 30'000));
    EXPECT_EQ(plan.summary.left_out, 0U);
    carry_out_in_turns(plan);
    for (std::uint64_t order = 0; order < 5; ++order) carry_out_at_once(plan, order);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Plan, NeedsSlotsForWhatLivesAndNotForAll) {
  stored_trace trace;
  const thread_number producer{0, 0}, consumer{0, 1};
  std::uint64_t at_ns = 0;
  const auto later = [&] { return at_ns += trace::time_unit; };
  for (unsigned round = 0; round < 100; ++round) {
    for (unsigned i = 0; i < 1000; ++i) {
      const block_id own = trace.writer.allocate(producer, {.size = 8}, later());
      trace.writer.deallocate(producer, own, at_ns);
      const block_id handed = trace.writer.allocate(producer, {.size = 24}, later());
      trace.writer.deallocate(consumer, handed, later());
    }
    trace.writer.flush();
  }
  const read_plan plan = plan_of(trace.end());
  EXPECT_EQ(plan.operations.size(), 400'000U);
  EXPECT_LT(plan.slots, 5000U);
  EXPECT_EQ(plan.summary.live_peak, 24U);
  carry_out_at_once(plan, 1);
}

TEST(Plan, TouchesWhatTheProgramHasTouched) {
  stored_trace trace;
  const thread_number self{0, 0};
  const block_id large = trace.writer.allocate(self, {.size = 1 << 20}, 0);
  (void)trace.writer.allocate(self, {.size = 100, .alignment = 64, .zeroed = true}, 0);
  trace.writer.add(trace::touched{large, 1 << 18});
  const std::string& file = trace.end();
  const std::vector<operation> as_recorded = plan_of(file).operations, in_full = plan_of(file, true).operations;
  EXPECT_NEAR(as_recorded.at(0).touched, operation::whole_size / 4, 1);
  EXPECT_EQ(in_full.at(0).touched, operation::whole_size);
  EXPECT_EQ(as_recorded.at(1).touched, operation::whole_size);
  EXPECT_EQ(as_recorded.at(1).alignment, 6);
  EXPECT_EQ(as_recorded.at(1).zeroed, 1);
}

TEST(Plan, LeavesOutFreesOfUnknownBlocks) {
  stored_trace trace;
  const thread_number self{0, 0};
  trace.writer.deallocate(self, {}, 0);
  trace.writer.deallocate(self, {{7, 0}, 3}, 0);  // the parent's
  (void)trace.writer.reallocate(self, {}, {.size = 5}, 0);
  const read_plan plan = plan_of(trace.end());
  ASSERT_EQ(plan.operations.size(), 1U);
  EXPECT_EQ(plan.operations[0].kind, operation_kind::allocate);
  EXPECT_EQ(plan.summary.left_out, 3U);
}

TEST(Plan, KnowsWhereThreadsEnd) {
  stored_trace trace;
  for (std::uint32_t t = 0; t < 3; ++t) {
    trace.writer.deallocate({0, t}, trace.writer.allocate({0, t}, {.size = 1}, t * 100'000), t * 100'000);
    if (t == 1) trace.writer.end_thread({0, t}, t * 100'000);
  }
  const read_plan plan = plan_of(trace.end());
  ASSERT_EQ(plan.threads.size(), 3U);
  EXPECT_EQ(plan.threads[0].ends, 0U);
  EXPECT_EQ(plan.threads[1].ends, 1U);
  EXPECT_EQ(plan.threads[2].ends, 0U);
  EXPECT_EQ(plan.rounds.at(0).begun, 3U);
}

TEST(Plan, RefusesThreadsThatWaitForEachOther) {
  stored_trace trace;
  // Each frees first what the other allocates afterwards: no program has done that.
  trace.writer.deallocate({0, 0}, {{0, 1}, 1}, 0);
  trace.writer.deallocate({0, 1}, {{0, 0}, 1}, 0);
  (void)trace.writer.allocate({0, 0}, {.size = 1}, 0);
  (void)trace.writer.allocate({0, 1}, {.size = 1}, 0);
  EXPECT_THROW((void)plan_of(trace.end()), failure);
}

TEST(torn_trace, looks_at_memory_count_as_far_as_all_events_are_known) {
  const auto looks = [](const traced_process& p) { return p.memory.size(); };
  EXPECT_EQ(looks(torn_process(1, false)), 20U);
  EXPECT_EQ(looks(torn_process(1, true)), 10U);
  EXPECT_EQ(looks(torn_process(2, true)), 5U);
}

}  // namespace
}  // namespace heapwright::tool
