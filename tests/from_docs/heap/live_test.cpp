// States what the documentation says of live.hpp and live.h in a process without the probe: "In a
// process without the probe these do nothing and say so" (docs/live.md). Written without the code.
// What the page shows with the probe: live_test.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#include <heapwright/combine/metered.hpp>
#include <heapwright/live.hpp>
#include <heapwright/source/upstream.hpp>

extern "C" int live_does_nothing_in_c(void);

namespace {

namespace live = heapwright::live;

TEST(Live, DoesNothingWithoutTheProbeAndSaysSo) {
  int block = 0;
  EXPECT_FALSE(live::mark("here"));  // "False: it was not kept, for want of a probe"
  EXPECT_FALSE(live::mark(""));
  EXPECT_FALSE(live::reset());  // "False: there is no probe."
  EXPECT_FALSE(live::record_allocation(&block, sizeof block));
  live::record_free(&block, sizeof block);  // "Without the probe it does nothing."
  live::record_free(nullptr, 0);
}

// "The same for C": a C11 file that gives the number of the first thing that is not as documented
TEST(Live, DoesNothingInCEither) { EXPECT_EQ(live_does_nothing_in_c(), 0); }

// "For `metered<A, meter_report>`: shows its meter under a name, from `open` on."
TEST(MeterReport, CountsForItsProgramAlsoWithoutTheProbe) {
  heapwright::metered<heapwright::upstream_malloc, live::meter_report> m;
  EXPECT_FALSE(m.report().open("textures"));  // "False: there is no probe"
  void* const p = m.allocate({100, 16});
  EXPECT_EQ(m.reading().allocations, 1u);
  EXPECT_EQ(m.reading().total_bytes, 100u);
  m.deallocate(p, {100, 16});
  EXPECT_EQ(m.reading().live_blocks(), 0u);
  static_assert(std::is_nothrow_move_constructible_v<live::meter_report>);
}

// "error: an error number": the viewer cannot begin, as HEAPWRIGHT names no program
TEST(Viewer, ThatCannotBeginIsAnErrorNumber) {
  setenv("HEAPWRIGHT", "/nonexistent/heapwright", 1);
  const live::viewer v = live::start("127.0.0.1", 0);
  EXPECT_FALSE(static_cast<bool>(v));  // "Whether the page can be seen."
  EXPECT_NE(v.error, 0);
  EXPECT_EQ(v.url, "");
  unsetenv("HEAPWRIGHT");
}

}  // namespace
