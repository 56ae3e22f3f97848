// The merger finds for each free the allocation that it means: against histories of which the truth
// is known, read in pieces, with stamps that are a little wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "merger.hpp"
#include "read_parts.hpp"

namespace heapwright::trace {
namespace {

/// What threads do, one after the other, with addresses that are soon used again; and what each of
/// them records of it.
class history {
 public:
  history(unsigned seed, unsigned threads, std::uint64_t skew, bool stamps_early = false)
      : random_(seed), skew_(skew), stamps_early_(stamps_early), records_(threads) {}

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      const auto t = static_cast<std::uint32_t>(random_() % records_.size());
      const auto choice = random_() % 10;
      if (choice < 5 || live_.empty()) {
        allocate(t);
      } else if (choice < 9) {
        deallocate(t, any_live());
      } else {
        reallocate(t, any_live());
      }
    }
  }

  void allocate(std::uint32_t t) {
    const std::uint64_t address = free_address();
    const request asked = next_request();
    record(t, ring_kind::allocate, address, asked);
    live_[address] = {{0, t}, ++allocations_[t]};
    expected_[t].push_back({event_kind::allocate, 0, live_[address], {}, asked});
  }
  void deallocate(std::uint32_t t, std::uint64_t address) {
    record(t, ring_kind::deallocate, address, {});
    expected_[t].push_back({event_kind::deallocate, 0, live_[address], {}, {}});
    live_.erase(address);
  }
  void reallocate(std::uint32_t t, std::uint64_t address) {
    record(t, ring_kind::reallocating, address, {});
    const block_id before = live_[address];
    const auto how = random_() % 4;
    if (how == 0) {
      record(t, ring_kind::reallocated, 0, {});
      return;
    }
    live_.erase(address);
    if (how == 1) {
      record(t, ring_kind::freed_by_realloc, 0, {});
      expected_[t].push_back({event_kind::deallocate, 0, before, {}, {}});
      return;
    }
    const std::uint64_t now = how == 2 ? address : free_address();
    const request asked = next_request();
    record(t, ring_kind::reallocated, now, asked);
    live_[now] = {{0, t}, ++allocations_[t]};
    expected_[t].push_back({event_kind::reallocate, 0, live_[now], before, asked});
  }
  void end_thread(std::uint32_t t) {
    record(t, ring_kind::end_thread, 0, {});
    expected_[t].push_back({event_kind::end_thread, 0, {}, {}, {}});
  }

  /// Adds all to a merger as a reader of rings does: some of one thread, some of another; and
  /// settles what is certain.
  void read_into(merger& m) {
    std::vector<std::size_t> read(records_.size(), 0);
    for (std::uint64_t until = 0; until < ticks_ + skew_ + 1;) {
      until += random_() % 5000;
      for (std::uint32_t t = 0; t < records_.size(); ++t) {
        const auto certain = [&] {
          return read[t] < records_[t].size() && records_[t][read[t]].ticks < until + random_() % 3000;
        };
        const auto add = [&] {
          recorded& r = records_[t][read[t]++];
          if (r.read_at != 0) r.read_at = std::max(r.read_at, until + 3000);
          m.add({0, t}, r);
        };
        while (certain()) add();
        // Now and then one is read that comes much later.
        if (read[t] < records_[t].size() && random_() % 3 == 0) add();
      }
      m.settle(until > skew_ ? until - skew_ : 0);
    }
    for (std::uint32_t t = 0; t < records_.size(); ++t) {
      for (; read[t] < records_[t].size(); ++read[t]) m.add({0, t}, records_[t][read[t]]);
    }
    m.finish();
  }

  [[nodiscard]] const std::map<std::uint32_t, std::vector<event>>& expected() const { return expected_; }
  [[nodiscard]] const std::map<std::uint64_t, block_id>& live() const { return live_; }
  [[nodiscard]] std::vector<recorded>& records(std::uint32_t t) { return records_[t]; }

 private:
  void record(std::uint32_t t, ring_kind kind, std::uint64_t address, const request& asked) {
    ticks_ += 1 + random_() % 200;
    // Stamps of one thread never go back.
    const std::uint64_t stamp =
        std::max(ticks_ + random_() % (skew_ + 1), records_[t].empty() ? 0 : records_[t].back().ticks);
    records_[t].push_back({stamp, kind, address, asked});
    if (!stamps_early_ || kind != ring_kind::allocate || records_[t].size() == 1) return;
    const recorded& before = records_[t].rbegin()[1];
    if (before.kind != ring_kind::deallocate) return;
    records_[t].back().ticks = before.ticks;
    records_[t].back().read_at = stamp;
  }
  std::uint64_t free_address() {
    for (;;) {
      const std::uint64_t address = (1 + random_() % 60) * 16;
      if (!live_.contains(address)) return address;
      if (live_.size() > 50) return 0x10000 + (random_() << 20 >> 16);
    }
  }
  std::uint64_t any_live() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(random_() % live_.size()))->first;
  }
  request next_request() { return {.size = ++requests_, .alignment = 0, .stack = 1, .zeroed = false}; }

  std::mt19937_64 random_;
  std::uint64_t skew_, ticks_ = 0, requests_ = 0;
  bool stamps_early_;  ///< an allocation right behind a free has its stamp
  std::vector<std::vector<recorded>> records_;
  std::map<std::uint64_t, block_id> live_;
  std::map<std::uint32_t, std::uint64_t> allocations_;
  std::map<std::uint32_t, std::vector<event>> expected_;
};

class Merger : public testing::Test {
 protected:
  std::vector<part> parts() {
    writer_.end({});
    return read_parts(bytes_);
  }

  /// By thread of a process, without times.
  std::map<std::uint32_t, std::vector<event>> events_of(std::uint32_t process) {
    std::map<std::uint32_t, std::vector<event>> result;
    for (const part& p : parts()) {
      const auto* const some = std::get_if<events>(&p);
      if (some == nullptr || some->by.process != process) continue;
      for (event e : some->all) {
        e.at_ns = 0;
        result[some->by.thread].push_back(e);
      }
    }
    return result;
  }

  /// All events of h are there, and each block is freed at most once. Returns how many of 100 name
  /// the very block.
  std::size_t matches(history& h, std::uint64_t skew) {
    merger m(writer_, skew, {});
    m.begin_process();
    h.read_into(m);
    EXPECT_EQ(m.unknown(), 0U);
    EXPECT_EQ(m.missed_frees(), 0U);
    std::set<std::tuple<std::uint32_t, std::uint64_t>> freed;
    std::size_t frees = 0, same = 0, all = 0;
    const auto found = events_of(0);
    for (const auto& [t, expected] : h.expected()) {
      if (found.at(t).size() != expected.size()) return 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const event &is = found.at(t)[i], &should = expected[i];
        EXPECT_EQ(is.kind, should.kind);
        EXPECT_EQ(is.asked, should.asked);
        ++all;
        same += is == should ? 1 : 0;
        const block_id& block = is.kind == event_kind::deallocate ? is.block : is.before;
        if (block.number == 0) continue;
        ++frees;
        freed.insert({block.by.thread, block.number});
      }
    }
    EXPECT_EQ(freed.size(), frees);
    return 100 * same / all;
  }

  std::vector<std::byte> bytes_;
  trace_writer writer_{[this](std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return true;
  }};
};

TEST_F(Merger, FindsTheBlockOfEachFreeWhereStampsAreRight) {
  history h(1, 4, 0);
  h.run(50'000);
  merger m(writer_, 0, {});
  m.begin_process();
  h.read_into(m);
  EXPECT_EQ(m.unknown(), 0U);
  EXPECT_EQ(m.missed_frees(), 0U);
  EXPECT_EQ(events_of(0), h.expected());
}

TEST_F(Merger, EachBlockIsFreedOnceWhereStampsAreWrongByLessThanSkew) {
  constexpr std::uint64_t skew = 60;  // of 100 from one event to the next, on average
  history h(2, 4, skew);
  h.run(50'000);
  h.end_thread(3);
  EXPECT_GT(matches(h, skew), 95U)
      << "lives at one address are taken for each other now and then, as neither is seen to be first";
}

TEST_F(Merger, EachBlockIsFreedOnceWhereAllocationsHaveTheStampOfTheFreeBefore) {
  history h(3, 4, 0, true);
  h.run(50'000);
  EXPECT_GT(matches(h, 0), 80U);
}

TEST_F(Merger, EachBlockIsFreedOnceWhereManyThreadsTakeTheStampsOfFreesLongBefore) {
  history h(4, 64, 0, true);
  h.run(50'000);
  EXPECT_GT(matches(h, 0), 70U);
}

TEST_F(Merger, AnEarlyAllocationComesAfterAWholeLifeOfItsAddress) {
  merger m(writer_, 10, {});
  m.begin_process();
  constexpr std::uint64_t other = 16, shared = 32;
  m.add({0, 0}, {5, ring_kind::allocate, other, {}});
  m.add({0, 0}, {10, ring_kind::deallocate, other, {}});
  m.add({0, 1}, {50, ring_kind::allocate, shared, {.size = 7}});
  m.add({0, 1}, {60, ring_kind::deallocate, shared, {}});
  m.add({0, 0}, {10, ring_kind::allocate, shared, {.size = 8}, 150});  // it was at 100
  m.settle(500);
  m.add({0, 0}, {600, ring_kind::deallocate, shared, {}});
  m.finish();
  EXPECT_EQ(m.unknown(), 0U);
  EXPECT_EQ(m.missed_frees(), 0U);
  const auto found = events_of(0);
  ASSERT_EQ(found.at(0).size(), 4U);
  ASSERT_EQ(found.at(1).size(), 2U);
  EXPECT_EQ(found.at(0)[3].block, (block_id{{0, 0}, 2}));
  EXPECT_EQ(found.at(1)[1].block, (block_id{{0, 1}, 1}));
}

TEST_F(Merger, AFreeOfWhatWasThereBeforeIsOfAnUnknownBlock) {
  merger m(writer_, 10, {});
  m.begin_process();
  m.add({0, 0}, {100, ring_kind::deallocate, 16, {}});
  m.add({0, 0}, {200, ring_kind::reallocating, 32, {}});
  m.add({0, 0}, {210, ring_kind::reallocated, 48, {.size = 5, .alignment = 0, .stack = 0, .zeroed = false}});
  m.add({0, 1}, {300, ring_kind::deallocate, 48, {}});
  m.finish();
  EXPECT_EQ(m.unknown(), 2U);
  const auto found = events_of(0);
  EXPECT_EQ(found.at(0)[0].block, block_id{});
  EXPECT_EQ(found.at(0)[1].before, block_id{});
  EXPECT_EQ(found.at(1)[0].block, (block_id{{0, 0}, 1}));
}

TEST_F(Merger, AnAddressThatIsAllocatedAgainWithoutAFreeIsFreedFirst) {
  merger m(writer_, 10, {});
  m.begin_process();
  m.add({0, 0}, {100, ring_kind::allocate, 16, {}});
  m.add({0, 1}, {200, ring_kind::allocate, 16, {}});
  m.settle(205);
  EXPECT_EQ(m.missed_frees(), 0U) << "the free may still come";
  m.settle(1000);
  EXPECT_EQ(m.missed_frees(), 1U);
  const auto found = events_of(0);
  EXPECT_EQ(found.at(1).size(), 2U);
  EXPECT_TRUE(std::ranges::count_if(found.at(1), [](const event& e) {
                return e.kind == event_kind::deallocate && e.block == block_id{{0, 0}, 1};
              }) == 1);
}

TEST_F(Merger, AChildBeginsWithTheBlocksThatItsParentHadAtTheFork) {
  for (const bool is_child_first : {false, true}) {
    bytes_.clear();
    trace_writer writer([this](std::span<const std::byte> more) {
      bytes_.insert(bytes_.end(), more.begin(), more.end());
      return true;
    });
    merger m(writer, 10, {});
    m.begin_process();
    const auto parents = [&] {
      m.add({0, 0}, {100, ring_kind::allocate, 16, {}});
      m.add({0, 0}, {200, ring_kind::fork, 0, {.size = 7}});
      m.add({0, 0}, {300, ring_kind::deallocate, 16, {}});
      m.add({0, 0}, {400, ring_kind::allocate, 16, {}});
    };
    if (!is_child_first) {
      parents();
      m.settle(500);
    }
    m.begin_child(0, 7);
    m.add({1, 0}, {350, ring_kind::deallocate, 16, {}});
    m.settle(500);
    if (is_child_first) parents();
    m.finish();
    writer.end({});
    EXPECT_EQ(m.unknown(), 0U);
    bool has_childs = false;
    for (const part& p : read_parts(bytes_)) {
      const auto* const some = std::get_if<events>(&p);
      if (some == nullptr || some->by.process != 1) continue;
      has_childs = true;
      ASSERT_EQ(some->all.size(), 1U);
      EXPECT_EQ(some->all[0].block, (block_id{{0, 0}, 1})) << "the parent's";
    }
    EXPECT_TRUE(has_childs);
  }
}

TEST(RingRecord, HasWhatItWasMadeOf) {
  ring_record r{};
  r.what = ring_record::pack(ring_kind::reallocated, 0x7fff'1234'5670, 4096, true);
  r.size = 12345;
  const recorded read = read_record(99, r, 3);
  EXPECT_EQ(read.ticks, 99U);
  EXPECT_EQ(read.kind, ring_kind::reallocated);
  EXPECT_EQ(read.address, 0x7fff'1234'5670U);
  EXPECT_EQ(read.asked, (request{.size = 12345, .alignment = 4096, .stack = 3, .zeroed = true}));
}

}  // namespace
}  // namespace heapwright::trace
