// libFuzzer: the input is the mapped file of a module, whose .eh_frame_hdr is at its beginning, and
// behind it the offset of the code that is asked about. Whatever the tables say, nothing outside of
// the module is read.
#include "../../unwind/call_frame_info.cpp"
#include "../../unwind/code_object.cpp"

#include <vector>

using namespace heapwright::unwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  if (length < 1) return 0;
  // Behind an allocation of its own length, so that AddressSanitizer sees a byte too many.
  const std::vector<std::uint8_t> file(data, data + length - 1);
  const code_object module{reinterpret_cast<std::uintptr_t>(file.data()),
                           reinterpret_cast<std::uintptr_t>(file.data() + file.size()), 0, ""};
  for (const std::size_t at : {std::size_t{data[length - 1]}, std::size_t{0}, length / 2, length - 1}) {
    (void)rule_in(module, module.begin, module.begin + at);
  }
  return 0;
}
