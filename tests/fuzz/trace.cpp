// libFuzzer: the input is the file of a trace from its 17th byte on; or, behind a byte that says
// so, the payload of one chunk, whose head and hash are right.
#include <vector>

#include "chunk.hpp"
#include "scratch_file.hpp"
#include "trace_reader.hpp"

using namespace heapwright;
using fuzzing::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  static fuzzing::scratch_file file;
  static trace::chunk_packer packer;
  const auto beginning = trace::file_beginning();
  std::vector<std::byte> bytes(beginning.begin(), beginning.end());
  const auto input = std::as_bytes(std::span(data, length));
  if (length > 0 && data[0] != 'H') {  // a chunk begins with that
    const auto chunk = packer.pack({.kind = data[0], .process = 1, .thread = 2, .round = 3}, input.subspan(1));
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  } else {
    bytes.insert(bytes.end(), input.begin(), input.end());
  }
  file.set(bytes.data(), bytes.size());
  trace::trace_reader reader(file.path());
  for (std::size_t parts = 0;; ++parts) {
    const trace::part p = reader.next();
    require(parts <= length + 1);
    if (const auto* const some = std::get_if<trace::events>(&p)) {
      for (const trace::event& e : some->all) require(e.kind != trace::event_kind::allocate || e.block.by == some->by);
    }
    if (std::holds_alternative<trace::ending>(p)) break;
  }
  require(reader.position() <= reader.size());
  return 0;
}
