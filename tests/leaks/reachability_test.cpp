// The mark phase, in a memory of its own.
#include "reachability.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace {

using namespace heapwright::tool;

class fake_memory final : public word_source {
 public:
  void put(std::uint64_t address, std::uint64_t word) { words_[address] = word; }

  void for_each_words(address_range range, const std::function<void(std::span<const std::uint64_t>)>& each) override {
    for (auto at = words_.lower_bound(range.begin); at != words_.end() && at->first + 8 <= range.end; ++at)
      each({&at->second, 1});
  }

 private:
  std::map<std::uint64_t, std::uint64_t> words_;
};

struct Reachability : testing::Test {
  fake_memory memory;
  std::vector<heap_block> blocks;
  root_set roots{{{0x1000, 0x2000}}, {}};

  /// Blocks of 64 bytes, one behind the other.
  void make(int count) {
    for (int i = 0; i < count; ++i) blocks.push_back({at(i), 64});
  }
  static std::uint64_t at(int block) { return 0x10000 + static_cast<std::uint64_t>(block) * 64; }
  void refer(int from, int to, std::uint64_t offset = 0) { memory.put(at(from) + offset, at(to)); }

  std::string judged() {
    std::string text;
    for (const verdict v : judge(blocks, roots, memory).of)
      text += v == verdict::reachable ? 'r' : v == verdict::lost ? 'L' : 'i';
    return text;
  }
};

TEST_F(Reachability, NothingIsReachableWithoutRoots) {
  make(3);
  EXPECT_EQ(judged(), "LLL");
}

TEST_F(Reachability, NoBlocks) { EXPECT_EQ(judged(), ""); }

TEST_F(Reachability, RootsReachThroughBlocks) {
  make(4);
  memory.put(0x1008, at(0));
  refer(0, 2, 16);
  refer(2, 3, 56);
  EXPECT_EQ(judged(), "rLrr");
}

TEST_F(Reachability, RegistersAreRoots) {
  make(2);
  roots.words = {0, at(1)};
  EXPECT_EQ(judged(), "Lr");
}

TEST_F(Reachability, AnyAddressWithinABlockIsAReference) {
  make(3);
  memory.put(0x1000, at(0) + 63);
  memory.put(0x1008, at(2) + 64);  // behind it
  EXPECT_EQ(judged(), "rLL");
}

TEST_F(Reachability, TheTailOfABlockMayBelongToTheNext) {
  make(2);
  for (heap_block& b : blocks) b.unreferenced_tail = 8;
  memory.put(0x1000, at(0) + 56);
  memory.put(0x1008, at(1) + 55);
  EXPECT_EQ(judged(), "Lr");
}

TEST_F(Reachability, TagsOfPointersAreIgnored) {
  make(1);
  memory.put(0x1000, at(0) | std::uint64_t{0xab12} << 48);
  EXPECT_EQ(judged(), "r");
}

TEST_F(Reachability, AChainIsLostWithItsFirst) {
  make(4);
  refer(3, 1);
  refer(1, 0);
  refer(0, 2);
  EXPECT_EQ(judged(), "iiiL");
  EXPECT_EQ(judge(blocks, roots, memory).leader, (std::vector<std::uint32_t>{3, 3, 3, 3}));
}

TEST_F(Reachability, OneOfACircleLeadsTheOthers) {
  make(3);
  refer(0, 1);
  refer(1, 2);
  refer(2, 0);
  EXPECT_EQ(judged(), "Lii");
}

TEST_F(Reachability, TheOldestOfACircleLeads) {
  make(3);
  blocks[0].allocated_ns = 30;
  blocks[1].allocated_ns = 10;
  blocks[2].allocated_ns = 20;
  refer(0, 1);
  refer(1, 2);
  refer(2, 0);
  EXPECT_EQ(judged(), "iLi");
}

TEST_F(Reachability, NoneOfACircleLeadsWhereSomethingLeadsToIt) {
  make(4);
  refer(0, 1);
  refer(1, 0);
  refer(3, 1);  // found after both of the circle
  refer(1, 2, 8);
  EXPECT_EQ(judged(), "iiiL");
}

TEST_F(Reachability, TwoCirclesOneAfterTheOther) {
  make(4);
  refer(0, 1);
  refer(1, 0);
  refer(2, 3);
  refer(3, 2);
  refer(3, 0, 8);
  EXPECT_EQ(judged(), "iiLi");
}

TEST_F(Reachability, ABlockThatRefersToItselfIsLost) {
  make(1);
  refer(0, 0, 8);
  EXPECT_EQ(judged(), "L");
}

TEST_F(Reachability, LostBlocksMayReferToReachableOnes) {
  make(2);
  memory.put(0x1000, at(1));
  refer(0, 1);
  EXPECT_EQ(judged(), "Lr");
}

TEST_F(Reachability, OfBlocksWithinEachOtherTheInnermostIsMeant) {
  blocks = {{0x10000, 4096}, {0x10100, 64}, {0x10400, 64}, {0x12000, 64}};
  memory.put(0x1000, 0x10000);
  memory.put(0x10108, 0x12000);  // in the first inner block, which nothing leads to
  memory.put(0x10800, 0x10400);  // beyond both
  EXPECT_EQ(judged(), "rLri");
}

TEST_F(Reachability, AnAddressBehindAnInnerBlockIsTheOuterOnes) {
  blocks = {{0x10000, 4096}, {0x10100, 64}};
  memory.put(0x1000, 0x10f00);
  EXPECT_EQ(judged(), "rL");
}

TEST_F(Reachability, LongChainsNeedNoStack) {
  make(200'000);
  for (int i = 0; i + 1 < 200'000; ++i) refer(i, i + 1);
  const judgement all = judge(blocks, roots, memory);
  EXPECT_EQ(all.of.front(), verdict::lost);
  EXPECT_EQ(std::count(all.of.begin(), all.of.end(), verdict::indirectly_lost), 199'999);
}

}  // namespace
