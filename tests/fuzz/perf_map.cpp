// libFuzzer: the input is a list of code made at run time, which anybody may have put into /tmp; it
// is read in two parts, as a list that grows. What is found at an address is a name of the list,
// and is the same when the list is read at once.
#include "perf_map.hpp"

#include <string_view>

#include "scratch_file.hpp"

using namespace heapwright;
using fuzzing::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  // perf_map follows no link, and what memfd_create makes is reached by one.
  static const std::string path = [] {
    std::string name = "/dev/shm/heapwright-fuzz-XXXXXX";
    close(mkstemp(name.data()));
    static const struct remover {
      std::string name;
      ~remover() { unlink(name.c_str()); }
    } at_end{name};
    return name;
  }();
  const auto write = [&](std::size_t bytes) {
    FILE* const file = std::fopen(path.c_str(), "w");
    require(file != nullptr && std::fwrite(data, 1, bytes, file) == bytes && std::fclose(file) == 0);
  };
  tool::perf_map grown(path), at_once(path);
  write(length / 2);
  grown.refresh();
  write(length);
  grown.refresh();
  at_once.refresh();
  const std::string_view text(reinterpret_cast<const char*>(data), length);
  std::uint64_t pc = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::string* const found = at_once.find(pc);
    const std::string* const same = grown.find(pc);
    require((found == nullptr) == (same == nullptr) && (found == nullptr || *found == *same));
    require(found == nullptr || text.find(*found) != std::string_view::npos);
    pc = pc * 31 + (i < length ? data[i] : 1);
  }
  (void)at_once.find(UINT64_MAX);
  return 0;
}
