#include "code_object.hpp"

#include <algorithm>
#include <cstddef>

#include <dlfcn.h>
#include <link.h>

#include "../abi/written_at_start.hpp"

namespace heapwright::unwind {

[[HEAPWRIGHT_WRITTEN_AT_START]] constinit find_object_function* find_object = nullptr;

namespace {

struct search {
  std::uintptr_t pc;
  code_object* object;
  const std::uint8_t* frame_header;
};

int look_into(dl_phdr_info* of, std::size_t, void* into) noexcept {
  auto& s = *static_cast<search*>(into);
  code_object o{~std::uintptr_t{0}, 0, of->dlpi_addr, of->dlpi_name};
  const std::uint8_t* frame_header = nullptr;
  for (unsigned i = 0; i < of->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = of->dlpi_phdr[i];
    const std::uintptr_t begin = of->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frame_header = reinterpret_cast<const std::uint8_t*>(begin);
    if (part.p_type != PT_LOAD) continue;
    o.begin = std::min(o.begin, begin);
    o.end = std::max(o.end, begin + part.p_memsz);
  }
  if (s.pc < o.begin || s.pc >= o.end) return 0;
  *s.object = o;
  s.frame_header = frame_header;
  return 1;
}

}  // namespace

const std::uint8_t* find_code_object(std::uintptr_t pc, code_object& object) noexcept {
  if (find_object == nullptr) {
    search s{pc, &object, nullptr};
    ::dl_iterate_phdr(look_into, &s);
    return s.frame_header;
  }
  dl_find_object found{};
  if (find_object(reinterpret_cast<void*>(pc), &found) != 0) return nullptr;
  object = {reinterpret_cast<std::uintptr_t>(found.dlfo_map_start),
            reinterpret_cast<std::uintptr_t>(found.dlfo_map_end), found.dlfo_link_map->l_addr,
            found.dlfo_link_map->l_name};
  return static_cast<const std::uint8_t*>(found.dlfo_eh_frame);
}

}  // namespace heapwright::unwind
