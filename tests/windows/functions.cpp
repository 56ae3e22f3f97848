// Every function of a C library that gives out memory or takes it back, by each of the ways in
// which a program comes to call it.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include <direct.h>
#include <malloc.h>

#include "redirected.hpp"

extern "C" __declspec(dllimport) char* take_early_block();
#ifdef LINKED
extern "C" __declspec(dllimport) const char* heapwright_version();
#endif

namespace {

constexpr std::size_t large = 1 << 20;
volatile std::size_t too_much = SIZE_MAX;

bool is_aligned(const void* p, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; }

bool is_all(const void* p, std::size_t from, std::size_t to, char value) {
  for (std::size_t i = from; i < to; ++i) {
    if (static_cast<const char*>(p)[i] != value) return false;
  }
  return true;
}

void test_basic() {
  CHECK(takes(large, [] { return std::malloc(large); }));
  CHECK(takes(large, [] { return std::calloc(2, large / 2); }));
  CHECK(takes(large, [] { return std::realloc(nullptr, large); }));
  for (const std::size_t size : {0, 1, 100, 5000, 300'000, 10'000'000}) {
    auto* p = static_cast<char*>(std::malloc(size));
    CHECK(p != nullptr && is_aligned(p, 16) && _msize(p) >= size);
    std::memset(p, 'a', size);
    p = static_cast<char*>(std::realloc(p, 2 * size + 1));
    CHECK(p != nullptr && is_all(p, 0, size, 'a'));
    p = static_cast<char*>(std::realloc(p, size / 2 + 1));
    CHECK(p != nullptr && is_all(p, 0, size / 2, 'a'));
    CHECK(_expand(p, size / 2) == p);
    std::free(p);
    auto* const zeroed = static_cast<char*>(std::calloc(size, 1));
    CHECK(zeroed != nullptr && is_all(zeroed, 0, size, 0));
    std::free(zeroed);
  }
  std::free(nullptr);
  CHECK(std::realloc(std::malloc(10), 0) == nullptr);
}

/// Of the C library that has them: msvcrt.dll has not all, nor do mingw's import libraries.
void test_recalloc() {
  CHECK(::LoadLibraryA("ucrtbase.dll") != nullptr);
  auto* const recalloc = function_of<void*(void*, std::size_t, std::size_t)>("ucrtbase.dll", "_recalloc");
  auto* p = static_cast<char*>(recalloc(nullptr, 10, 10));
  CHECK(p != nullptr && is_all(p, 0, 100, 0));
  std::memset(p, 'a', 100);
  const std::size_t had = _msize(p);
  std::memset(p + 100, 'b', had - 100);
  p = static_cast<char*>(recalloc(p, 1000, 10));
  CHECK(p != nullptr && is_all(p, 0, 100, 'a') && is_all(p, had, 10'000, 0));
  std::free(p);

  auto* const aligned_recalloc =
      function_of<void*(void*, std::size_t, std::size_t, std::size_t)>("ucrtbase.dll", "_aligned_recalloc");
  auto* const aligned_msize =
      function_of<std::size_t(void*, std::size_t, std::size_t)>("ucrtbase.dll", "_aligned_msize");
  p = static_cast<char*>(aligned_recalloc(nullptr, 10, 10, 256));
  CHECK(p != nullptr && is_aligned(p, 256) && is_all(p, 0, 100, 0) && aligned_msize(p, 256, 0) >= 100);
  std::memset(p, 'a', 100);
  p = static_cast<char*>(aligned_recalloc(p, 1000, 1000, 256));
  CHECK(p != nullptr && is_aligned(p, 256) && is_all(p, 0, 100, 'a') && is_all(p, 1000, 1'000'000, 0));
  _aligned_free(p);
}

void test_aligned() {
  for (const std::size_t alignment : {8, 32, 4096, 1 << 20}) {
    auto* p = static_cast<char*>(_aligned_malloc(1000, alignment));
    CHECK(p != nullptr && is_aligned(p, alignment));
    std::memset(p, 'a', 1000);
    p = static_cast<char*>(_aligned_realloc(p, 100'000, alignment));
    CHECK(p != nullptr && is_aligned(p, alignment) && is_all(p, 0, 1000, 'a'));
    _aligned_free(p);
    p = static_cast<char*>(_aligned_offset_malloc(1000, alignment, 4));
    CHECK(p != nullptr && is_aligned(p + 4, alignment));
    std::memset(p, 'a', 1000);
    p = static_cast<char*>(_aligned_offset_realloc(p, 5000, alignment, 4));
    CHECK(p != nullptr && is_aligned(p + 4, alignment) && is_all(p, 0, 1000, 'a'));
    _aligned_free(p);
  }
  CHECK(takes(large, [] { return _aligned_malloc(large, 64); }));
  errno = 0;
  CHECK(_aligned_malloc(100, 3) == nullptr && errno == EINVAL);
}

void test_copies() {
  const std::string text(large, 'x');
  CHECK(takes(large, [&] { return _strdup(text.c_str()); }));
  const std::wstring wide(large, L'x');
  CHECK(takes(2 * large, [&] { return _wcsdup(wide.c_str()); }));
  char* const copy = _strdup("copy");
  CHECK(std::strcmp(copy, "copy") == 0);
  std::free(copy);
}

void test_no_memory() {
  errno = 0;
  CHECK(std::malloc(too_much) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(std::calloc(too_much, 2) == nullptr && errno == ENOMEM);
  errno = 0;
  void* const p = std::malloc(10);
  CHECK(std::realloc(p, too_much) == nullptr && errno == ENOMEM);
  CHECK(_expand(p, too_much) == nullptr);
  std::free(p);
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
  bool has_thrown = false;
  try {
    ::operator delete(::operator new(too_much));
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  CHECK(has_thrown);
}

void test_operators() {
  CHECK(takes(large, [] { return ::operator new(large); }));
  CHECK(takes(large, [] { return ::operator new(large, std::align_val_t{256}); }));
  struct alignas(256) wide {
    char bytes[256];
  };
  auto* const w = new wide[10];
  CHECK(is_aligned(w, 256));
  delete[] w;
}

/// What was allocated before heapwright.dll was there, or within the C library, goes back there.
void test_foreign() {
  char* const early = take_early_block();
  CHECK(std::strcmp(early, "early") == 0);
  auto* const longer = static_cast<char*>(std::realloc(early, 100'000));
  CHECK(longer != nullptr && std::strcmp(longer, "early") == 0 && _msize(longer) >= 100'000);
  std::free(longer);
  for (int i = 0; i < 100; ++i) {
    char* const folder = _getcwd(nullptr, 0);
    CHECK(folder != nullptr);
    std::free(folder);
    std::free(_fullpath(nullptr, "a", 0));
    std::free(_tempnam("", "a"));
  }
}

void test_loaded_later() {
  CHECK(::LoadLibraryA("windows_later.dll") != nullptr);
  auto* const copy_of = function_of<char*(const char*)>("windows_later.dll", "copy_of");
  auto* const release = function_of<void(char*)>("windows_later.dll", "release");
  const std::string text(large, 'x');
  CHECK(takes(large, [&] { return copy_of(text.c_str()); }));
  for (int i = 0; i < 100; ++i) {
    std::free(copy_of("a"));
    release(static_cast<char*>(std::malloc(100)));
  }
}

/// By address, as plugins and languages do; and of a C library that the program does not import.
void test_by_address(const char* library) {
  CHECK(::LoadLibraryA(library) != nullptr);
  auto* const its_malloc = function_of<void*(std::size_t)>(library, "malloc");
  auto* const its_free = function_of<void(void*)>(library, "free");
  auto* const its_strdup = function_of<char*(const char*)>(library, "_strdup");
  auto* const its_getcwd = function_of<char*(char*, int)>(library, "_getcwd");
  auto* const its_errno = function_of<int*()>(library, "_errno");
  CHECK(takes(large, [&] { return its_malloc(large); }));
  its_free(its_strdup("a"));
  its_free(its_getcwd(nullptr, 0));
  its_free(std::malloc(100));
  std::free(its_malloc(100));
  *its_errno() = 0;
  CHECK(its_malloc(too_much) == nullptr && *its_errno() == ENOMEM);
}

void test_last_error_is_kept() {
  ::SetLastError(1234);
  for (int i = 0; i < 100; ++i) std::free(std::malloc(1'000'000));
  CHECK(::GetLastError() == 1234);
}

}  // namespace

int main() {
#ifdef LINKED
  std::printf("linked to heapwright.dll %s\n", heapwright_version());
#endif
  test_basic();
  test_recalloc();
  test_aligned();
  test_copies();
  test_no_memory();
  test_operators();
  test_foreign();
  test_loaded_later();
  test_by_address("msvcrt.dll");
  test_by_address("ucrtbase.dll");
  test_last_error_is_kept();
  if (failures == 0) std::puts("all hold");
  return failures == 0 ? 0 : 1;
}
