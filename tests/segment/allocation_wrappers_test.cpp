#include "allocation_wrappers.hpp"

#include <string>

#include <gtest/gtest.h>

namespace {

using namespace heapwright::tool;

bool is_wrapper(const std::string& function) {
  return known_allocation_wrappers().find(qualified_name(function)) != nullptr;
}

TEST(AllocationWrappers, OfTheLanguages) {
  for (const char* const name :
       {"malloc", "operator new", "operator new[](unsigned long)", "void* operator new(unsigned long)",
        "std::allocator_traits<std::allocator<char> >::allocate", "__gnu_cxx::new_allocator<int>::allocate",
        "std::__new_allocator<int>::allocate", "std::vector<int, std::allocator<int> >::push_back(int&&)",
        "void std::swap<int>(int&, int&)", "alloc::raw_vec::finish_grow",
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate", "heap.CAllocator.alignedAlloc",
        "buffer::operator new", "std::_Function_handler<void (int), main::{lambda(int)#1}>::_M_invoke"})
    EXPECT_TRUE(is_wrapper(name)) << name;
}

TEST(AllocationWrappers, OfWellKnownPrograms) {
  for (const char* const name : {"zmalloc_usable",
                                 "ztrycalloc_usable_internal",
                                 "sdsnewlen",
                                 "_sdsnewlen",
                                 "sdstrynewlen",
                                 "_sdsMakeRoomFor",
                                 "sdscatfmt",
                                 "hi_sdsnewlen",
                                 "palloc0",
                                 "MemoryContextAllocZero",
                                 "PyObject_Malloc",
                                 "_PyObject_GC_NewVar",
                                 "os::malloc",
                                 "AllocateHeap",
                                 "g_malloc0",
                                 "sqlite3DbMallocRawNN",
                                 "CRYPTO_zalloc",
                                 "xrealloc",
                                 "Perl_safesysmalloc",
                                 "Perl_safesyscalloc",
                                 "Perl_safesysrealloc",
                                 "ngx_alloc",
                                 "ngx_memalign",
                                 "ngx_palloc_large",
                                 "ngx_pcalloc",
                                 "Unsafe_AllocateMemory0"})
    EXPECT_TRUE(is_wrapper(name)) << name;
}

// As perf maps of OpenJDK name them.
TEST(AllocationWrappers, OfJavaCode) {
  for (const char* const name :
       {"long jdk.internal.misc.Unsafe.allocateMemory0(long)", "long jdk.internal.misc.Unsafe.allocateMemory(long)",
        "void java.nio.DirectByteBuffer.<init>(int)", "java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)"})
    EXPECT_TRUE(is_wrapper(name)) << name;
  for (const char* const name : {"void app.Cache.<init>(int)", "java.nio.ByteBuffer java.nio.DirectByteBuffer.slice()"})
    EXPECT_FALSE(is_wrapper(name)) << name;
}

TEST(AllocationWrappers, OfHeapwrightItself) {
  for (const char* const name :
       {"heapwright_live_record_allocation", "heapwright::live::record_allocation(void const*, unsigned long)",
        "heapwright::upstream_malloc::allocate(heapwright::layout)",
        "heapwright::metered<heapwright::upstream_malloc, "
        "heapwright::live::meter_report>::allocate(heapwright::layout)",
        "heapwright::arena<heapwright::upstream_malloc>::add_chunk(unsigned long)",
        "std::unique_ptr<int, heapwright::deleter<int, heapwright::pool<> > > "
        "heapwright::make_unique<int>(heapwright::pool<>&)",
        "heapwright::heap<recipe>::allocate(unsigned long)"})
    EXPECT_TRUE(is_wrapper(name)) << name;
  for (const char* const name :
       {"heapwright::tool::live(heapwright::tool::live_options const&)", "app::heapwright::live"})
    EXPECT_FALSE(is_wrapper(name)) << name;
}

TEST(AllocationWrappers, NotWhatOnlyLooksLikeThem) {
  for (const char* const name :
       {"main", "(anonymous namespace)::look_up(unsigned long)", "std_index::add",
        "std::vector<int> store::make<int>(char)", "std::unique_ptr<a, std::default_delete<a> > make_shape(int)",
        "store::operator()(std::string)", "main::{lambda(std::string)#1}::operator()", "sdssplitargs", "my_malloc",
        "store::operator<", "(anonymous namespace)::zmalloc_test::run()"})
    EXPECT_FALSE(is_wrapper(name)) << name;
}

TEST(QualifiedName, HasNoReturnTypeArgumentsOrParameters) {
  EXPECT_EQ(qualified_name("std::vector<int> store::make<int>(char)"), "store::make");
  EXPECT_EQ(qualified_name("void* operator new(unsigned long)"), "operator new");
  EXPECT_EQ(qualified_name("(anonymous namespace)::look_up(unsigned long)"), "(anonymous)::look_up");
  EXPECT_EQ(qualified_name("a::operator()(int)"), "a::operator()");
  EXPECT_EQ(qualified_name("bool a::operator<<b>(b)"), "a::operator<<b>");
  EXPECT_EQ(qualified_name("module+0x12"), "module+0x12");
  EXPECT_EQ(qualified_name(""), "");
}

}  // namespace
