// libFuzzer: the input is what is wrong with a segment (patched_segment.hpp). All that can be asked
// of it is asked, and marks are made in it.
#include "segment_reader.hpp"

#include "patched_segment.hpp"

using namespace heapwright;
using fuzzing::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  static fuzzing::patched_segment segment;
  try {
    segment::segment_reader reader(segment.change(data, length), true);
    const segment::snapshot now = reader.read();
    (void)now.total();
    (void)now.by_class();
    (void)segment::is_there(now.process);
    for (const segment::stack_figures& s : reader.stacks()) require(s.addresses.size() <= 512);
    (void)reader.live_samples();
    for (const segment::misuse_report_figures& r : reader.misuse_reports())
      require(r.text.size() <= sizeof(segment::misuse_report::text));
    reader.set_interval(4096);
    reader.reset_peak();
    (void)reader.add_mark("a mark with a name that is longer than there is room for in a segment, and has to be cut");
    (void)reader.process();
  } catch (const segment::bad_segment&) {
  }
  return 0;
}
