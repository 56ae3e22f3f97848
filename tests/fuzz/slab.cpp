// libFuzzer: the input is a program for a slab, whose layout and plan are its first two operations.
// equal_blocks.hpp says what is checked; here for bitmaps of any length, over-aligned blocks and
// blocks of no bytes, and several numbers of empty slabs kept.
#include <heapwright/allocator/slab.hpp>

#include "equal_blocks.hpp"

using namespace heapwright;
using namespace heapwright::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  if (length < 2 * operation::bytes) return 0;
  const operation first(input(data, length)), second(input(data, length).subspan(operation::bytes));
  const layout of = any_layout(first);
  constexpr std::size_t keeps[] = {0, 1, 2, 5, SIZE_MAX};
  const slab_plan plan{.bytes = second.size(17), .keep_empty = keeps[second.code % std::size(keeps)]};

  source<> memory(512 * KiB);
  slab<upstream<source<>>> tested(of, plan, memory);
  equal_blocks program(tested, memory, of, plan.keep_empty);
  for_each_operation(input(data, length).subspan(2 * operation::bytes), [&](const operation& o) {
    program.step(o);
    program.audit();
  });
  // Otherwise the slab is destroyed with its blocks.
  if (length % 2 == 0) program.finish();
  return 0;
}
