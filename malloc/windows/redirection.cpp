// Modules call malloc of a C library through slots that the loader has filled in (their imports),
// or through what GetProcAddress returns. So two tables are changed, and no code:
//
//   exports of each C library     the loader and GetProcAddress find our entries from then on
//   imports of each module        what was filled in before
//
// A C library is a module that exports malloc, free, calloc, realloc, _msize and _errno: no list of
// names is kept. Its exports are 32-bit offsets, so they lead to a page of jumps near behind it,
// and from there to our entries.
//
// Modules that are loaded later are told to us by the loader (LdrRegisterDllNotification), under
// its lock, which guards all of this.
//
// Not redirected: a module that has a C library within itself (linked statically), and what a C
// library calls within itself. Blocks of those go back to where they come from.
#include "redirection.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/text.hpp>

#include "c_libraries.hpp"
#include "child_processes.hpp"
#include "loaded_module.hpp"
#include "module_list.hpp"
#include "utf8.hpp"

extern "C" IMAGE_DOS_HEADER __ImageBase;  // of this module; the linker defines it

extern "C" {
__declspec(dllexport) constinit heapwright::process::module_list heapwright_modules{
    .magic = "heapwright mod1", .bytes = sizeof(heapwright::process::module_list), .count = 0, .modules = {}};
}

namespace heapwright::process {
namespace {

constexpr module_list& seen = heapwright_modules;

constinit std::size_t library_count = 0;

/// The addresses of the functions of c_libraries, as they were, in the order of
/// functions_to_redirect.
using addresses = std::array<void*, redirected_count>;
constinit std::array<addresses, c_library::most> originals{};

constexpr std::size_t page_bytes = 4 * KiB;

// Where this module lies.
constinit const std::byte* this_begin = nullptr;
constinit const std::byte* this_end = nullptr;

/// Of each C library the page of jumps, or null.
constinit std::array<const std::byte*, c_library::most> jump_pages{};

[[nodiscard]] HMODULE this_module() noexcept { return reinterpret_cast<HMODULE>(&__ImageBase); }

/// Writes to memory of a module that may be read-only.
template <class T>
void write_protected(T* to, T value) noexcept {
  DWORD before = 0;
  if (::VirtualProtect(to, sizeof value, PAGE_READWRITE, &before) == 0) return;
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
  DWORD ours;
  ::VirtualProtect(to, sizeof value, before, &ours);
}

// --- C libraries

/// A page of memory within 4 GiB behind `base`; null: there is none.
[[nodiscard]] std::byte* map_behind(const std::byte* base, const std::byte* from) noexcept {
  constexpr std::size_t granularity = 64 * KiB;
  const std::uintptr_t end = address_of(base) + UINT32_MAX - granularity;
  MEMORY_BASIC_INFORMATION region;
  for (std::uintptr_t at = align_up(address_of(from), granularity); at < end;) {
    if (::VirtualQuery(reinterpret_cast<void*>(at), &region, sizeof region) == 0) return nullptr;
    const std::uintptr_t region_end = address_of(region.BaseAddress) + region.RegionSize;
    if (region.State == MEM_FREE && region_end - at >= granularity) {
      void* const p = ::VirtualAlloc(reinterpret_cast<void*>(at), granularity, MEM_RESERVE, PAGE_NOACCESS);
      if (p != nullptr) return static_cast<std::byte*>(::VirtualAlloc(p, page_bytes, MEM_COMMIT, PAGE_READWRITE));
      at += granularity;  // somebody else was quicker
    } else {
      at = align_up(region_end, granularity);
    }
  }
  return nullptr;
}

/// jmp [rip]; the address follows.
constexpr std::size_t jump_bytes = 16;

void write_jump(std::byte* at, const void* to) noexcept {
  constexpr unsigned char code[] = {0xFF, 0x25, 0, 0, 0, 0};
  std::memcpy(at, code, sizeof code);
  std::memcpy(at + sizeof code, &to, sizeof to);
}

[[nodiscard]] bool is_c_library(const loaded_module& m) noexcept {
  const char* const needed[] = {"malloc", "free", "calloc", "realloc", "_msize", "_errno"};
  return std::all_of(std::begin(needed), std::end(needed),
                     [&](const char* name) { return m.export_named(name) != nullptr; });
}

/// Keeps the functions of a C library, and lets its exports lead to our entries. False: there are
/// too many.
[[nodiscard]] bool add_library(HMODULE module, const loaded_module& m) noexcept {
  if (library_count == c_library::most) return false;
  const std::size_t k = library_count;
  const redirected_functions& functions = functions_to_redirect();
  c_library& library = c_libraries[k];
  library.module = module;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const DWORD* const offset = m.export_named(functions[i].name);
    void* const address = offset == nullptr ? nullptr : m.begin() + *offset;
    originals[k][i] = address;
    if (functions[i].original != redirected_function::no_original)
      std::memcpy(reinterpret_cast<std::byte*>(&library) + functions[i].original, &address, sizeof address);
  }
  ++library_count;
  // Blocks of it may be freed at any time.
  HMODULE pinned;
  ::GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       reinterpret_cast<const wchar_t*>(module), &pinned);
  static_assert(redirected_count * jump_bytes <= page_bytes);
  std::byte* const jumps = map_behind(m.begin(), m.end());
  if (jumps == nullptr) return true;  // imports are redirected all the same
  jump_pages[k] = jumps;
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (functions[i].entry[k] != nullptr) write_jump(jumps + i * jump_bytes, functions[i].entry[k]);
  DWORD before;
  ::VirtualProtect(jumps, page_bytes, PAGE_EXECUTE_READ, &before);
  ::FlushInstructionCache(::GetCurrentProcess(), jumps, page_bytes);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    DWORD* const offset = functions[i].entry[k] == nullptr ? nullptr : m.export_named(functions[i].name);
    if (offset != nullptr) write_protected(offset, static_cast<DWORD>(jumps + i * jump_bytes - m.begin()));
  }
  return true;
}

// --- modules

/// Our entry for the function of a C library at this address; null: it is none that is redirected.
[[nodiscard]] void* entry_for(const void* address) noexcept {
  for (std::size_t k = 0; k < library_count; ++k) {
    const auto found = std::find(originals[k].begin(), originals[k].end(), address);
    if (found == originals[k].end()) continue;
    return functions_to_redirect()[static_cast<std::size_t>(found - originals[k].begin())].entry[k];
  }
  return nullptr;
}

/// Whether a call to the address comes to an entry of ours, by itself or by a jump.
[[nodiscard]] bool is_redirected(const void* address) noexcept {
  const auto leads_to = [&](const redirected_function& f) {
    return std::find(f.entry.begin(), f.entry.end(), address) != f.entry.end();
  };
  const auto has_jump = [&](const std::byte* page) {
    return page != nullptr && address >= page && address < page + redirected_count * jump_bytes;
  };
  const redirected_functions& functions = functions_to_redirect();
  return std::any_of(jump_pages.begin(), jump_pages.end(), has_jump) ||
         (address >= this_begin && address < this_end && std::any_of(functions.begin(), functions.end(), leads_to));
}

[[nodiscard]] bool is_c_library_here(HMODULE module) noexcept {
  return std::any_of(c_libraries.begin(), c_libraries.begin() + library_count,
                     [&](const c_library& l) { return l.module == module; });
}

/// Returns how many imports of C libraries come to our entries, those included that the loader has
/// filled in by changed exports.
unsigned redirect_imports(HMODULE module) noexcept {
  unsigned count = 0;
  const bool has_starts = !starts_for_others(module);
  loaded_module(module).for_each_import([&](void** slot) {
    if (void* const entry = entry_for(*slot))
      write_protected(slot, entry);
    else if (void* const start = has_starts ? entry_for_start(*slot) : nullptr)
      write_protected(slot, start);
    if (is_redirected(*slot)) ++count;
  });
  return count;
}

/// Null: there are more than can be told of.
[[nodiscard]] seen_module* note(HMODULE module) noexcept {
  for (std::uint32_t i = 0; i < seen.count; ++i)
    if (seen.modules[i].module == module) return &seen.modules[i];
  if (seen.count == module_list::most) return nullptr;
  seen_module& fresh = seen.modules[seen.count];
  fresh = {.module = module, .name = {}, .kind = module_kind::other, .imports = 0};
  wchar_t path[MAX_PATH];
  DWORD from = ::GetModuleFileNameW(module, path, MAX_PATH - 1);
  path[from] = L'\0';
  while (from > 0 && path[from - 1] != L'\\' && path[from - 1] != L'/') --from;
  copy_as_utf8(path + from, fresh.name, sizeof fresh.name);
  ++seen.count;
  return &fresh;
}

void redirect(HMODULE module) noexcept {
  // The C library in heapwright.dll was there before us, and keeps its malloc.
  if (module == this_module() && module != ::GetModuleHandleW(nullptr)) return;
  const unsigned imports = redirect_imports(module);
  if (seen_module* const m = note(module)) m->imports = imports;
}

/// True: it is one that was not known.
[[nodiscard]] bool look_for_library(HMODULE module) noexcept {
  const loaded_module m(module);
  if (module == this_module() || is_c_library_here(module) || !is_c_library(m)) return false;
  const bool is_added = add_library(module, m);
  if (seen_module* const s = note(module)) s->kind = is_added ? module_kind::c_library : module_kind::further_library;
  return is_added;
}

template <class F>
void for_each_module(F f) noexcept {
  static constinit std::array<HMODULE, 4096> all{};
  DWORD bytes = 0;
  if (::K32EnumProcessModules(::GetCurrentProcess(), all.data(), sizeof all, &bytes) == 0) return;
  const std::size_t n = std::min(all.size(), bytes / sizeof all[0]);
  std::for_each_n(all.begin(), n, f);
}

void redirect_all() noexcept {
  bool is_any_new = false;
  for_each_module([&](HMODULE m) { is_any_new |= look_for_library(m); });
  for_each_module(redirect);
}

// --- what is loaded later (ntdll; documented, but in no header)

struct notification {
  ULONG flags;
  const void* full_name;
  const void* base_name;
  void* base;
  ULONG bytes;
};
constexpr ULONG loaded = 1;
constexpr ULONG unloaded = 2;

void forget(HMODULE module) noexcept {
  for (std::uint32_t i = 0; i < seen.count; ++i) {
    if (seen.modules[i].module == module) seen.modules[i] = seen.modules[--seen.count];
  }
}

void CALLBACK note_module(ULONG reason, const notification* of, void*) {
  const auto module = static_cast<HMODULE>(of->base);
  if (reason == unloaded) return forget(module);
  if (reason != loaded) return;
  // One that was loaded with it may call it already.
  if (look_for_library(module)) return redirect_all();
  redirect(module);
}

}  // namespace

bool is_redirected_already() noexcept {
  bool is_any = false;
  for_each_module([&](HMODULE module) {
    const loaded_module m(module);
    const DWORD* const place = module == this_module() ? nullptr : m.export_named("heapwright_modules");
    if (place == nullptr) return;
    const auto* const other = reinterpret_cast<const module_list*>(m.begin() + *place);
    const bool is_list = std::memcmp(other->magic, module_list::expected_magic, sizeof other->magic) == 0;
    is_any |= is_list && other->count > 0;
  });
  return is_any;
}

void redirect_modules() noexcept {
  MODULEINFO here{};
  ::K32GetModuleInformation(::GetCurrentProcess(), this_module(), &here, sizeof here);
  this_begin = static_cast<const std::byte*>(here.lpBaseOfDll);
  this_end = this_begin + here.SizeOfImage;
  redirect_all();
  using register_function = LONG(NTAPI*)(ULONG, void(CALLBACK*)(ULONG, const notification*, void*), void*, void**);
  const HMODULE ntdll = ::GetModuleHandleW(L"ntdll.dll");
  const auto tell_me = reinterpret_cast<register_function>(
      reinterpret_cast<void*>(::GetProcAddress(ntdll, "LdrRegisterDllNotification")));
  void* cookie = nullptr;
  if (tell_me != nullptr) tell_me(0, note_module, nullptr, &cookie);
}

const module_list& seen_modules() noexcept { return seen; }

}  // namespace heapwright::process
