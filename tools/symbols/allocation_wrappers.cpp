#include "allocation_wrappers.hpp"

#include <string_view>

namespace heapwright::tool {
namespace {

// clang-format off
constexpr const char* patterns[] = {
    // C
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
    "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign", "strdup", "strndup", "__strdup",
    "__strndup", "vasprintf", "asprintf", "__asprintf*", "__vasprintf*", "open_memstream", "getline", "getdelim", "__getdelim",
    "xmalloc", "xcalloc", "xrealloc", "xstrdup", "xstrndup", "xmemdup", "x2realloc", "xnmalloc", "xzalloc",
    // C++
    "std::*", "__gnu_cxx::*", "operator new*", "operator delete*", "*::operator new", "*::operator new[]",
    "__new_allocator*", "boost::container::*", "boost::alignment::*",
    // The kit, heaps of one's own and live.h; not heapwright::tool
    "heapwright::live::*", "heapwright::detail::*", "heapwright_live_*",
    "heapwright::arena::*", "heapwright::stack_arena::*", "heapwright::pool::*", "heapwright::object_pool::*",
    "heapwright::slab::*", "heapwright::slab_memory::*", "heapwright::best_fit::*", "heapwright::size_tree::*",
    "heapwright::tiny_pages::*", "heapwright::recent_frees::*", "heapwright::bucketed::*", "heapwright::cached::*",
    "heapwright::fallback::*", "heapwright::guarded::*", "heapwright::leak_checked::*", "heapwright::locked::*",
    "heapwright::metered::*", "heapwright::poisoned::*", "heapwright::segregate::*", "heapwright::sharded::*",
    "heapwright::std_allocator::*", "heapwright::resource::*", "heapwright::recycler::*", "heapwright::make_unique",
    "heapwright::counted_new::*", "heapwright::upstream*::*", "heapwright::buffer_source::*", "heapwright::os_pages::*",
    "heapwright::guard_pages::*", "heapwright::huge_pages::*", "heapwright::linux_os::*", "heapwright::heap::*",
    "heapwright::basic_heap::*", "heapwright::local_heap::*", "heapwright::malloc_heap::*", "heapwright::heap_core::*",
    "heapwright::thread_cache::*", "heapwright::central_class::*", "heapwright::page_heap::*", "heapwright::page_supply::*",
    "heapwright::metadata_memory::*", "heapwright::run_bins::*", "heapwright::page_map::*",
    "heapwright::forwards::*", "heapwright::reallocate_by_copy",
    // Rust
    "__rust_alloc*", "__rust_realloc", "__rdl_*", "__rg_*", "_R*___rust_alloc*", "<alloc::*", "alloc::alloc::*",
    "alloc::boxed::*", "alloc::collections::*", "alloc::fmt::*", "alloc::raw_vec::*", "alloc::rc::*", "alloc::slice::*",
    "alloc::str::*", "alloc::string::*", "alloc::sync::*", "alloc::vec::*", "hashbrown::*", "<hashbrown::*",
    // Go, where it calls C
    "_cgo_*", "runtime.cgocall", "runtime.asmcgocall*", "*._Cfunc_*", "*._cgo_cmalloc*",
    // Zig. Its own compiler gives code that is inlined no namespace, and lines no file that is read
    // here.
    "heap.CAllocator.*", "heap.arena_allocator.*", "heap.ArenaAllocator.*", "mem.Allocator.*", "rawAlloc",
    "allocAdvancedWithRetAddr", "array_list.*", "hash_map.*", "array_hash_map.*", "multi_array_list.*",
    // Redis, Valkey
    "zmalloc*", "zcalloc*", "zrealloc*", "ztry*alloc*", "zstrdup", "extend_to_usable", "valkey_*alloc", "sdsnew*",
    "_sdsnew*", "sdstrynew*", "sdsempty", "sdsdup", "sdsMakeRoomFor*", "_sdsMakeRoomFor*", "sdsgrowzero", "sdscat*",
    "sdscpy*", "sdsfromlonglong", "sdsResize", "sdsRemoveFreeSpace", "hi_malloc", "hi_calloc", "hi_realloc",
    "hi_strdup", "hi_sds*",
    // PostgreSQL
    "palloc*", "repalloc*", "pstrdup", "pnstrdup", "MemoryContextAlloc*", "AllocSetAlloc*", "AllocSetRealloc",
    "AllocSetContextCreateInternal", "GenerationAlloc*", "GenerationContextCreate", "SlabAlloc*",
    "SlabContextCreate", "pg_malloc*",
    // Python
    "PyMem_*", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "_PyMem_*", "_PyObject_Malloc",
    "_PyObject_Calloc", "_PyObject_Realloc", "_PyObject_GC_*", "_PyObject_New*", "new_arena", "pymalloc_*",
    "PyType_GenericAlloc", "_PyType_AllocNoTrack",
    // Java
    "os::malloc", "os::realloc", "os::strdup", "AllocateHeap", "ReallocateHeap", "Chunk::*", "ChunkPool::*",
    "Arena::*", "CHeapObj*", "ResourceObj::*", "AnyObj::*", "ArenaObj::*", "Unsafe_AllocateMemory0",
    "Unsafe_ReallocateMemory0", "jdk.internal.misc.Unsafe.allocateMemory*", "jdk.internal.misc.Unsafe.reallocateMemory*",
    "sun.misc.Unsafe.allocateMemory*", "java.nio.DirectByteBuffer.", "java.nio.ByteBuffer.allocateDirect",
    // Perl
    "Perl_safesys*alloc", "Perl_savepv*", "Perl_savesv*",
    // Node.js and V8
    "node::Malloc*", "node::Realloc*", "node::Calloc*", "node::UncheckedMalloc*", "node::UncheckedRealloc*",
    "node::UncheckedCalloc*", "v8::internal::Malloced::*", "v8::internal::AllocWithRetry", "v8::base::Malloc*",
    "v8::base::Calloc*", "uv__malloc", "uv__calloc", "uv__realloc", "uv__strdup",
    // Other libraries
    "g_malloc*", "g_try_malloc*", "g_realloc*", "g_strdup", "g_strndup", "g_memdup*", "g_slice_alloc*",
    "sqlite3Malloc*", "sqlite3_malloc*", "sqlite3_realloc*", "sqlite3Realloc*", "sqlite3MemMalloc",
    "sqlite3MemRealloc", "sqlite3Db*alloc*", "sqlite3DbStr*Dup", "dbMallocRawFinish", "dbReallocFinish", "mallocWithAlarm",
    "CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_strdup", "CRYPTO_memdup", "apr_palloc*",
    "ngx_alloc", "ngx_calloc", "ngx_memalign", "ngx_palloc*", "ngx_pcalloc", "ngx_pnalloc", "ngx_pmemalign",
    "ngx_create_pool", "ngx_array_create", "ngx_array_push*", "ngx_list_create", "ngx_list_push", "ngx_slab_alloc*",
    "ngx_slab_calloc*", "av_malloc*", "av_realloc*",
    "av_calloc", "luaM_*", "l_alloc", "git__malloc", "git__calloc", "git__realloc", "ggc_internal_*alloc",
};
// clang-format on

constexpr std::string_view nameless = "(anonymous namespace)";

}  // namespace

const function_patterns& known_allocation_wrappers() {
  static const function_patterns all = [] {
    function_patterns made;
    for (const char* const pattern : patterns) made.add(pattern);
    return made;
  }();
  return all;
}

std::string qualified_name(const std::string& function) {
  if (function.starts_with('<')) return function;  // Rust: <Type as Trait>::function
  // What is nested in <> or {} is left out, and all from the parameters on.
  std::string name;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (function.compare(i, nameless.size(), nameless) == 0) {
      if (depth == 0) name += "(anonymous)";
      i += nameless.size() - 1;
      continue;
    }
    const bool begins_name = i == 0 || function[i - 1] == ' ' || function[i - 1] == ':';
    if (depth == 0 && begins_name && function.compare(i, 8, "operator") == 0) {
      const auto parameters = function.find('(', function.compare(i, 10, "operator()") == 0 ? i + 10 : i);
      name += function.substr(i, parameters == std::string::npos ? parameters : parameters - i);
      break;
    }
    if (c == '(' && depth == 0) break;
    if (c == '<' || c == '{') ++depth;
    if (depth == 0) name += c;
    if ((c == '>' || c == '}') && depth > 0) --depth;
  }
  const auto space = name.rfind(' ', name.find("operator"));
  if (space != std::string::npos) name.erase(0, space + 1);
  constexpr std::string_view within_glibc = "__GI_";  // what it calls itself, by another name
  return name.starts_with(within_glibc) ? name.substr(within_glibc.size()) : name;
}

}  // namespace heapwright::tool
