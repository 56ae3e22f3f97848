#include "../../tools/live/jvm.hpp"

#include <gtest/gtest.h>

namespace {

using heapwright::tool::jvm_part;
using heapwright::tool::jvm_parts_in;

TEST(Jvm, PartsHaveWhatTheirLinesSay) {
  constexpr std::string_view answer =
      "0\n4711:\n\nNative Memory Tracking:\n\n"
      "Total: reserved=8028732721, committed=484228401\n"
      "       malloc: 7314737 #4112\n"
      "       mmap:   reserved=8021417984, committed=476913664\n\n"
      "-                 Java Heap (reserved=6320816128, committed=406847488)\n"
      "                            (mmap: reserved=6320816128, committed=406847488)\n \n"
      "-                     Class (reserved=1073818583, committed=207831)\n"
      "                            (classes #486)\n"
      "                            (malloc=76759 #555) (at peak)\n"
      "                            (mmap: reserved=1073741824, committed=131072)\n \n"
      "-    Native Memory Tracking (reserved=71936, committed=71936)\n"
      "                            (malloc=6144 #88)\n"
      "                            (tracking overhead=65792)\n";
  EXPECT_EQ(jvm_parts_in(answer), (std::vector<jvm_part>{{"Java Heap", 6320816128, 406847488, 0},
                                                         {"Class", 1073818583, 207831, 76759},
                                                         {"Native Memory Tracking", 71936, 71936, 6144}}));
}

TEST(Jvm, AnAnswerWithoutPartsHasNone) {
  EXPECT_EQ(jvm_parts_in("0\n4711:\nNative memory tracking is not enabled\n"), std::vector<jvm_part>{});
  EXPECT_EQ(jvm_parts_in(""), std::vector<jvm_part>{});
  EXPECT_EQ(jvm_parts_in("-"), std::vector<jvm_part>{});
  EXPECT_EQ(jvm_parts_in("- (reserved="), (std::vector<jvm_part>{{"", 0, 0, 0}}));
}

}  // namespace
