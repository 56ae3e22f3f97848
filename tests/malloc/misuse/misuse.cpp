// One mistake that a program makes with malloc, by name; the process must not live on as if nothing
// had happened.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/opaque.h"
#include "../support/require.h"

extern "C" [[gnu::weak]] void free_sized(void*, std::size_t);
extern "C" [[gnu::weak]] void free_aligned_sized(void*, std::size_t, std::size_t);
extern "C" [[gnu::weak]] void* __libc_malloc(std::size_t);

namespace {

int of_the_program = 1;

void free_twice(std::size_t size) {
  void* const p = opaque(std::malloc(opaque_size(size)));
  std::free(opaque(p));
  std::free(opaque(p));
}

void free_twice_with_others_between() {
  void* const p = opaque(std::malloc(opaque_size(100)));
  void* const q = opaque(std::malloc(opaque_size(100)));
  std::free(opaque(p));
  std::free(opaque(q));
  std::free(opaque(p));
}

void free_twice_from_two_threads() {
  void* const p = opaque(std::malloc(opaque_size(200)));
  std::thread([p] { std::free(opaque(p)); }).join();
  std::free(opaque(p));
}

void free_at_offset(std::size_t size, std::size_t offset) {
  std::free(opaque(static_cast<char*>(opaque(std::malloc(opaque_size(size)))) + offset));
}

/// A handler that uses malloc, as those of crash reporters do.
void handle_abort() {
  std::signal(SIGABRT, [](int) {
    for (int i = 0; i < 5000; ++i) (void)opaque(std::malloc(opaque_size(400)));
  });
}

void free_at_offset_with_handler() {
  handle_abort();
  free_at_offset(400, 16);
  ::malloc_trim(0);
}

/// Written to as far as the program may.
void* filled(void* p) { return std::memset(opaque(p), 0x41, malloc_usable_size(opaque(p))); }

/// Others are freed after it, so that it may have left the quarantine when the process ends, and
/// lie in a free list.
void write_after_free_and_exit() {
  auto* const late = static_cast<char*>(opaque(std::malloc(opaque_size(48))));
  std::free(opaque(late));
  static_cast<char*>(opaque(late))[20] = 'w';
  for (int i = 0; i < 3; ++i) std::free(opaque(std::malloc(opaque_size(48))));
  std::exit(0);
}

/// The only block of its size, so what lies before it was never given out, or is no block.
void write_before_a_block_and_exit() {
  auto* const p = static_cast<char*>(opaque(std::malloc(opaque_size(8000))));
  static_cast<char*>(opaque(p))[-1] = 'w';
  std::free(opaque(p));
  std::exit(0);
}

void write_beyond_a_kept_block_and_exit(std::size_t size) {
  static_cast<char*>(opaque(std::malloc(opaque_size(size))))[size] = 'w';
  std::exit(0);
}

/// Aborts if each of many processes does.
void in_many_processes(void (*make)()) {
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) make();
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status)) return;
  }
  std::abort();
}

/// Of a free block only its link is overwritten, as what lies before it is live.
void write_beyond_blocks_into_links() {
  constexpr int count = 200;
  static char* all[count];
  for (char*& p : all) p = static_cast<char*>(opaque(std::malloc(opaque_size(40))));
  for (int i = 0; i < count; i += 2) std::free(opaque(all[i]));
  for (int i = 1; i < count; i += 20) std::memset(opaque(all[i]), 'A', opaque_size(56));
  for (int i = 0; i < 2 * count; ++i) opaque(std::malloc(opaque_size(40)));
}

struct mistake {
  const char* name;
  void (*make)();
};

constexpr mistake mistakes[] = {
    {"double_free", [] { free_twice(40); }},
    {"double_free_of_16_bytes", [] { free_twice(16); }},
    {"double_free_of_largest_class", [] { free_twice(32'768); }},
    {"double_free_large", [] { free_twice(1'000'000); }},
    {"double_free_later", free_twice_with_others_between},
    {"double_free_threads", free_twice_from_two_threads},
    {"interior", [] { free_at_offset(400, 16); }},
    {"interior_with_handler", free_at_offset_with_handler},
    {"interior_odd", [] { free_at_offset(400, 1); }},
    {"interior_large", [] { free_at_offset(1'000'000, 4096); }},
    {"interior_large_same_page", [] { free_at_offset(1'000'000, 16); }},
    {"stack",
     [] {
       alignas(16) char local[256];
       std::memset(local, 0, sizeof local);
       std::free(opaque(local + 64));
     }},
    {"static", [] { std::free(opaque(&of_the_program)); }},
    {"garbage", [] { std::free(opaque(reinterpret_cast<void*>(0x6b6b6b6b6b6b6b60U))); }},
    {"garbage_low", [] { std::free(opaque(reinterpret_cast<void*>(0x1230U))); }},
    {"garbage_canonical", [] { std::free(opaque(reinterpret_cast<void*>(0x123456789ab0U))); }},
    {"realloc_freed",
     [] {
       void* const p = opaque(std::malloc(opaque_size(100)));
       std::free(opaque(p));
       std::free(opaque(std::realloc(opaque(p), opaque_size(5000))));
     }},
    {"write_beyond_into_links", write_beyond_blocks_into_links},
    {"write_before_at_exit", write_before_a_block_and_exit},
    {"write_beyond_kept_16", [] { write_beyond_a_kept_block_and_exit(16); }},
    {"write_beyond_kept_1000", [] { write_beyond_a_kept_block_and_exit(1000); }},
    {"write_beyond_kept_100000", [] { write_beyond_a_kept_block_and_exit(100'000); }},
    {"write_beyond_kept_with_handler",
     [] {
       handle_abort();
       write_beyond_a_kept_block_and_exit(400);
     }},
    {"write_after_free_at_exit", [] { in_many_processes(write_after_free_and_exit); }},
    {"wrong_size_delete", [] { ::operator delete(opaque(::operator new(opaque_size(100))), opaque_size(200)); }},
    {"wrong_size_delete_array",
     [] { ::operator delete[](opaque(::operator new[](opaque_size(100))), opaque_size(5000)); }},
    {"wrong_size_free_sized", [] { free_sized(opaque(std::malloc(opaque_size(100))), opaque_size(1000)); }},
    {"wrong_size_free_aligned_sized",
     [] { free_aligned_sized(opaque(std::aligned_alloc(64, opaque_size(100))), 64, opaque_size(1000)); }},
    // Not mistakes: these must pass.
    {"right_sizes",
     [] {
       for (std::size_t size = 0; size < 3'000'000; size += size / 8 + 1) {
         ::operator delete(opaque(::operator new(opaque_size(size))), opaque_size(size));
         free_sized(opaque(std::malloc(opaque_size(size))), size);
         free_aligned_sized(opaque(std::aligned_alloc(256, opaque_size(size))), 256, size);
       }
     }},
    {"right_sizes_after_realloc",
     [] {
       constexpr std::size_t sizes[] = {100, 30'000, 200'000, 261'000, 261'440, 262'144, 262'145, 400'000, 3'000'000};
       for (const std::size_t from : sizes) {
         for (const std::size_t between : sizes) {
           for (const std::size_t to : sizes) {
             void* p = filled(std::malloc(opaque_size(from)));
             p = filled(std::realloc(opaque(p), opaque_size(between)));
             p = filled(std::realloc(opaque(p), opaque_size(to)));
             free_sized(opaque(p), to);
           }
         }
       }
     }},
    {"right_alignments",
     [] {
       for (std::size_t alignment = 8; alignment <= 1 << 20; alignment *= 2) {
         for (const std::size_t size : {0, 1, 1000, 200'000, 400'000}) {
           const auto as = static_cast<std::align_val_t>(alignment);
           ::operator delete(filled(::operator new(opaque_size(size), as)), opaque_size(size), as);
           ::operator delete(filled(::operator new(opaque_size(size), as)), as);
           free_aligned_sized(filled(std::aligned_alloc(alignment, opaque_size(size))), alignment, size);
           // Not so in the standard, but as code does that knows no aligned new.
           ::operator delete(filled(::operator new(opaque_size(size), as)));
         }
       }
     }},
    {"libc_malloc",
     [] {
       REQUIRE(__libc_malloc != nullptr);
       for (std::size_t size = 1; size < 1 << 20; size *= 3) {
         void* p = __libc_malloc(size);
         std::memset(p, 1, size);
         p = std::realloc(opaque(p), size * 2);
         REQUIRE(p != nullptr && static_cast<char*>(p)[size - 1] == 1);
         std::free(p);
       }
     }},
};

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  std::free(opaque(std::malloc(opaque_size(1))));
  for (const mistake& m : mistakes) {
    if (std::strcmp(m.name, argv[1]) == 0) return m.make(), 0;
  }
  std::fprintf(stderr, "no mistake is called %s\n", argv[1]);
  return 2;
}
