// `heapwright info`: what is redirected in a running process, module by module.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <heapwright/core/text.hpp>

#include "../../malloc/windows/module_list.hpp"
#include "command.hpp"
#include "other_process.hpp"

namespace heapwright::tool {
namespace {

using process::module_list;

/// Throws `failure` where it has none.
module_list read_list(const other_process& process) {
  for (const auto& [library, there] : process.exports_named("heapwright_modules")) {
    module_list list{};
    if (!process.read(there, &list, sizeof list) || list.bytes != sizeof list ||
        std::memcmp(list.magic, module_list::expected_magic, sizeof list.magic) != 0)
      throw other_version_in(process, library);
    if (list.count > 0) return list;  // of a second copy, which does nothing, it is empty
  }
  throw no_malloc_in(process);
}

}  // namespace

int info(const words& given) {
  const module_list list = read_list(other_process(given, "info"));
  for (std::uint32_t i = 0; i < std::min(list.count, module_list::most); ++i) {
    text<300> line;
    list.modules[i].write(line);
    std::fputs(line.c_str(), stdout);
  }
  return 0;
}

}  // namespace heapwright::tool
