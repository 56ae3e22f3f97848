// mmap and its kin, passed on; calls that come from the malloc below are noted, and while the
// process records, those of the program.
//
// While the functions below are not known, calls go to the kernel: the first may come before dlsym
// can be asked.
#include <atomic>
#include <cstdarg>
#include <cstddef>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../abi/export.hpp"
#include "malloc_mappings.hpp"
#include "next_malloc.hpp"
#include "recording.hpp"

using namespace heapwright::probe;

namespace {

using mmap_function = void*(void*, std::size_t, int, int, int, off_t);
using munmap_function = int(void*, std::size_t);
using mremap_function = void*(void*, std::size_t, std::size_t, int, ...);

void* map_by_kernel(void* p, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, p, bytes, protection, flags, fd, offset));
}
int unmap_by_kernel(void* p, std::size_t bytes) { return static_cast<int>(::syscall(SYS_munmap, p, bytes)); }

constinit std::atomic<mmap_function*> next_mmap{map_by_kernel};
constinit std::atomic<munmap_function*> next_munmap{unmap_by_kernel};
constinit std::atomic<mremap_function*> next_mremap{nullptr};

template <class Function>
void look_up(std::atomic<Function*>& function, const char* name) noexcept {
  if (void* const found = ::dlsym(RTLD_NEXT, name)) function.store(reinterpret_cast<Function*>(found));
}

void* noted(void* mapped, std::size_t bytes, int flags, const void* caller) noexcept {
  find_next_malloc();  // it may map memory before it is first asked for a block
  if (mapped == MAP_FAILED) return mapped;
  if (the_mappings.is_caller(caller))
    malloc_mappings::add(mapped, bytes);
  else if (is_recording())
    record_mapping(mapped, bytes, (flags & MAP_ANONYMOUS) != 0);
  return mapped;
}

struct searched_code {
  std::uintptr_t address, begin, end;
};

/// Where the library that has this address is loaded. The program itself has no name.
int find_code(dl_phdr_info* object, std::size_t, void* into) {
  auto& code = *static_cast<searched_code*>(into);
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t at = object->dlpi_addr + header.p_vaddr;
    if (at < begin) begin = at;
    if (at + header.p_memsz > end) end = at + header.p_memsz;
  }
  if (code.address < begin || code.address >= end) return 0;
  const bool is_program = object->dlpi_name == nullptr || *object->dlpi_name == '\0';
  if (!is_program) code = {code.address, begin, end};
  return 1;
}

}  // namespace

namespace heapwright::probe {

void find_next_mappings() noexcept {
  look_up(next_mmap, "mmap");
  look_up(next_munmap, "munmap");
  look_up(next_mremap, "mremap");
  searched_code code{reinterpret_cast<std::uintptr_t>(next.allocate), 0, 0};
  ::dl_iterate_phdr(find_code, &code);
  const auto mmap_at = reinterpret_cast<std::uintptr_t>(next_mmap.load());
  const bool has_own_mmap = mmap_at - code.begin < code.end - code.begin;
  if (!has_own_mmap) the_mappings.learn(code.begin, code.end);
}

}  // namespace heapwright::probe

extern "C" {

HEAPWRIGHT_EXPORT void* mmap(void* p, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return noted(next_mmap.load(std::memory_order_relaxed)(p, bytes, protection, flags, fd, offset), bytes, flags,
               __builtin_return_address(0));
}

HEAPWRIGHT_EXPORT void* mmap64(void* p, std::size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return noted(next_mmap.load(std::memory_order_relaxed)(p, bytes, protection, flags, fd, offset), bytes, flags,
               __builtin_return_address(0));
}

HEAPWRIGHT_EXPORT int munmap(void* p, std::size_t bytes) noexcept {
  // Before: another thread can be given the addresses at once.
  if (the_mappings.is_caller(__builtin_return_address(0)))
    malloc_mappings::remove(p, bytes);
  else if (is_recording())
    record_mapping(p, bytes, false);
  return next_munmap.load(std::memory_order_relaxed)(p, bytes);
}

HEAPWRIGHT_EXPORT void* mremap(void* p, std::size_t bytes, std::size_t wanted, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* const place = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  const bool is_mallocs = the_mappings.is_caller(__builtin_return_address(0));
  mremap_function* const below = next_mremap.load(std::memory_order_relaxed);
  void* const moved = below != nullptr ? below(p, bytes, wanted, flags, place)
                                       : reinterpret_cast<void*>(::syscall(SYS_mremap, p, bytes, wanted, flags, place));
  if (moved == MAP_FAILED) return moved;
  if (is_mallocs) {
    malloc_mappings::remove(p, bytes);
    malloc_mappings::add(moved, wanted);
  } else if (is_recording()) {
    move_recorded_mapping(p, bytes, moved, wanted);
  }
  return moved;
}

}  // extern "C"
