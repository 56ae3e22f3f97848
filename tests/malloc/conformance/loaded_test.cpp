// These tests say something about our malloc only if it is the one that answers: libheapwright, or
// one that `heapwright build` made.
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

namespace {

const char* library_of(const void* symbol) {
  Dl_info info{};
  return ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "(none)";
}

TEST(Loaded, TheProcessRecordIsThere) {
  const void* const record = ::dlsym(RTLD_DEFAULT, "heapwright_process_record");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(std::memcmp(record, "heapwright", 10), 0);
}

TEST(Loaded, EveryEntryIsOurs) {
  const std::string ours = library_of(::dlsym(RTLD_DEFAULT, "heapwright_process_record"));
  for (const char* name :
       {"malloc", "free", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "memalign", "valloc",
        "pvalloc", "malloc_usable_size", "free_sized", "free_aligned_sized", "cfree", "malloc_trim", "mallinfo",
        "mallinfo2", "mallopt", "malloc_stats", "malloc_info",
        // operator new: (size), [] (size), with align_val_t, with nothrow_t, with both
        "_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
        "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
        // operator delete: (p), (p, size), with align_val_t, with nothrow_t
        "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
        "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
        "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t"}) {
    void* const entry = ::dlsym(RTLD_DEFAULT, name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(library_of(entry), ours) << name;
  }
}

}  // namespace
