// The GNU extensions that look at the heap or tune it (<malloc.h>). Their fields are glibc's,
// filled with what they mean here.
#include <cstddef>
#include <cstdio>

#include <malloc.h>

#include <heapwright/core/text.hpp>

#include "../../abi/export.hpp"
#include "../process_heap.hpp"
#include "../statistics.hpp"

using namespace heapwright;
using namespace heapwright::process;

extern "C" {

/// Bytes, of all threads, which wait in their slow steps meanwhile. Other fields are 0.
/// - `arena`, `hblkhd`: address space held, for small blocks and free runs, and for large blocks
/// - `uordblks`: of small blocks in use
/// - `fordblks`: free, in spans, in thread caches, in runs, given back or not
/// - `fsmblks`: of these, in thread caches
/// - `keepcost`: free pages in memory, which malloc_trim gives back
/// - `hblks`: 1 if there are large blocks
HEAPWRIGHT_EXPORT struct mallinfo2 mallinfo2() noexcept {
  const malloc_statistics s = collect_statistics();
  struct mallinfo2 info {};
  info.arena = s.mapped - s.large_in_use;
  info.hblkhd = s.large_in_use;
  info.hblks = s.large_in_use > 0 ? 1 : 0;
  info.uordblks = s.small_in_use;
  info.fordblks = s.cached + s.free_in_spans + s.free_resident + s.free_decommitted;
  info.fsmblks = s.cached;
  info.keepcost = s.free_resident;
  return info;
}

/// As mallinfo2, in numbers of 32 bits: sizes from 2 GiB on are cut off.
HEAPWRIGHT_EXPORT struct mallinfo mallinfo() noexcept {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info {};
  info.arena = static_cast<int>(wide.arena);
  info.hblkhd = static_cast<int>(wide.hblkhd);
  info.hblks = static_cast<int>(wide.hblks);
  info.uordblks = static_cast<int>(wide.uordblks);
  info.fordblks = static_cast<int>(wide.fordblks);
  info.fsmblks = static_cast<int>(wide.fsmblks);
  info.keepcost = static_cast<int>(wide.keepcost);
  return info;
}

/// Gives back to the system what is free and not in another thread's cache. 1 if that was anything,
/// otherwise 0. The argument is ignored.
HEAPWRIGHT_EXPORT int malloc_trim(std::size_t) noexcept { return trim() > 0 ? 1 : 0; }

/// Does nothing. 1 for a parameter that glibc knows, as programs take a refusal for an error; 0 for
/// another, and for M_MXFAST with a value outside of 0 to 160.
HEAPWRIGHT_EXPORT int mallopt(int parameter, int value) noexcept {
  switch (parameter) {
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX: return 1;
    case M_MXFAST: return value >= 0 && value <= 160 ? 1 : 0;
    default: return 0;
  }
}

/// Writes a page about the heap to stderr (docs/memory-return.md). Allocates nothing.
HEAPWRIGHT_EXPORT void malloc_stats() noexcept { write_statistics(2); }

/// Writes the same figures as XML in glibc's form. 0; EINVAL unless `options` is 0; -1 where `out`
/// cannot be written.
HEAPWRIGHT_EXPORT int malloc_info(int options, std::FILE* out) noexcept {
  if (options != 0) return EINVAL;
  const malloc_statistics s = collect_statistics();
  text<2000> xml;
  xml.add("<malloc version=\"heapwright-1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
  const auto total = [&](const char* type, std::uint64_t bytes) {
    xml.add("<total type=\"").add(type).add("\" size=\"").add(bytes).add("\"/>\n");
  };
  total("small", s.small_in_use);
  total("large", s.large_in_use);
  total("thread-caches", s.cached);
  total("free-in-spans", s.free_in_spans);
  total("free-resident", s.free_resident);
  total("free-returned", s.free_decommitted);
  xml.add("<system type=\"current\" size=\"").add(s.mapped).add("\"/>\n");
  xml.add("<system type=\"max\" size=\"").add(s.mapped_peak).add("\"/>\n");
  xml.add("<aspace type=\"total\" size=\"").add(s.mapped + s.metadata_reserved).add("\"/>\n</heap>\n");
  xml.add("<system type=\"current\" size=\"").add(s.mapped).add("\"/>\n");
  xml.add("<system type=\"max\" size=\"").add(s.mapped_peak).add("\"/>\n</malloc>\n");
  return std::fputs(xml.c_str(), out) < 0 ? -1 : 0;
}

}  // extern "C"
