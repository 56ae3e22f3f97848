// The malloc's entries, one by one, as docs/malloc.md describes them.
//
// Usage: malloc_entries NAME. Exit code 0: the promise holds. 1: it does not; stderr names the
// check that failed.
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void free_sized(void* p, size_t size);
void free_aligned_sized(void* p, size_t alignment, size_t size);
void cfree(void* p);
}

namespace {

// Volatile, so that the compiler neither warns about impossible sizes nor removes a pair of malloc
// and free.
volatile std::size_t zero = 0;
volatile std::size_t too_much = SIZE_MAX;
volatile std::size_t more_than_ptrdiff = std::size_t{PTRDIFF_MAX} + 1;
volatile std::size_t half_of_all = SIZE_MAX / 2 + 2;

[[noreturn]] void fail(const char* what, int line) {
  std::fprintf(stderr, "malloc_entries.cpp:%d: not so: %s\n", line, what);
  std::_Exit(1);
}

#define CHECK(condition) \
  if (!(condition)) fail(#condition, __LINE__)

bool is_aligned(const void* p, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; }

// Writes all of the block and reads it again: a block that overlaps another one is found by
// `keeps`.
void fill(void* p, int value, std::size_t size) {
  std::memset(p, value, size);
  asm volatile("" : : "r"(p) : "memory");  // else the compiler may drop a block that is only written to
}
bool keeps(const void* p, int value, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(p);
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[i] != static_cast<unsigned char>(value)) return false;
  return true;
}

bool is_refused(void* p) {
  const int error = errno;
  errno = 0;
  return p == nullptr && error == ENOMEM;
}

bool is_invalid(void* p) {
  const int error = errno;
  errno = 0;
  return p == nullptr && error == EINVAL;
}

// "malloc: a block of at least n bytes, aligned to 16."
void malloc_gives_aligned_blocks_that_do_not_overlap() {
  void* blocks[300];
  for (int i = 0; i < 300; ++i) {
    const std::size_t size = static_cast<std::size_t>(i) * static_cast<std::size_t>(i) * 7;
    blocks[i] = std::malloc(size);
    CHECK(blocks[i] != nullptr);
    CHECK(is_aligned(blocks[i], 16));
    fill(blocks[i], i, size);
  }
  for (int i = 0; i < 300; ++i)
    CHECK(keeps(blocks[i], i, static_cast<std::size_t>(i) * static_cast<std::size_t>(i) * 7));
  for (void* p : blocks) std::free(p);
}

// "A request for 0 bytes gets a block of its own."
void zero_bytes_are_a_block_of_their_own() {
  void* const a = std::malloc(zero);
  void* const b = std::malloc(zero);
  void* const c = std::calloc(zero, 8);
  CHECK(a != nullptr && b != nullptr && c != nullptr);
  CHECK(a != b && b != c && a != c);
  std::free(a);
  std::free(b);
  std::free(c);
}

// "Without memory, or for more than PTRDIFF_MAX bytes, the answer is null and errno is ENOMEM."
void too_much_is_refused() {
  errno = 0;
  CHECK(is_refused(std::malloc(too_much)));
  CHECK(is_refused(std::malloc(more_than_ptrdiff)));
  CHECK(is_refused(std::calloc(too_much, 1)));
  CHECK(is_refused(std::realloc(nullptr, too_much)));
  CHECK(is_refused(aligned_alloc(64, too_much)));
  CHECK(is_refused(memalign(64, too_much)));
  CHECK(is_refused(valloc(too_much)));
  CHECK(is_refused(pvalloc(too_much)));
}

// "calloc: ... all zero"
void calloc_clears_also_what_was_used_before() {
  for (const std::size_t size : {1ul, 100ul, 5000ul, 300000ul, 8000000ul}) {
    void* const used = std::malloc(size);
    CHECK(used != nullptr);
    fill(used, 0xff, size);
    std::free(used);
    void* const p = std::calloc(size, 1);
    CHECK(p != nullptr && is_aligned(p, 16));
    CHECK(keeps(p, 0, size));
    std::free(p);
  }
}

// "a product that does not fit into size_t is refused"
void products_that_overflow_are_refused() {
  errno = 0;
  CHECK(is_refused(std::calloc(half_of_all, 2)));
  CHECK(is_refused(reallocarray(nullptr, half_of_all, 2)));
  void* const p = std::malloc(10);
  fill(p, 7, 10);
  CHECK(is_refused(reallocarray(p, half_of_all, 2)));
  CHECK(keeps(p, 7, 10));
  std::free(p);
}

// "realloc: contents are kept up to the lesser of both sizes."
void realloc_keeps_the_contents() {
  std::size_t size = 1;
  auto* p = static_cast<unsigned char*>(std::malloc(size));
  fill(p, 3, size);
  for (const std::size_t next : {20ul, 3000ul, 70000ul, 1000000ul, 9000000ul, 200000ul, 500ul, 2ul}) {
    p = static_cast<unsigned char*>(std::realloc(p, next));
    CHECK(p != nullptr && is_aligned(p, 16));
    CHECK(keeps(p, 3, size < next ? size : next));
    fill(p, 3, next);
    size = next;
  }
  std::free(p);
}

// "If it fails, the old block stays as it is."
void realloc_that_fails_keeps_the_block() {
  void* const p = std::malloc(5000);
  fill(p, 9, 5000);
  errno = 0;
  CHECK(is_refused(std::realloc(p, too_much)));
  CHECK(keeps(p, 9, 5000));
  std::free(p);
}

// "realloc(p, 0) frees p and returns null; realloc(nullptr, n) is malloc(n)."
void realloc_at_its_ends() {
  errno = 0;
  CHECK(std::realloc(std::malloc(10), zero) == nullptr);
  CHECK(errno == 0);
  CHECK(reallocarray(std::malloc(10), zero, 8) == nullptr);
  void* const p = std::realloc(nullptr, 10);
  CHECK(p != nullptr);
  std::free(p);
  void* const empty = std::realloc(nullptr, zero);
  CHECK(empty != nullptr);
  std::free(empty);
  void* const many = reallocarray(nullptr, 100, 8);
  CHECK(many != nullptr && malloc_usable_size(many) >= 800);
  std::free(many);
}

// "Null may be freed. errno stays as it was."
void free_takes_null_and_keeps_errno() {
  errno = 77;
  std::free(nullptr);
  std::free(std::malloc(10));
  void* const large = std::malloc(50000000);
  CHECK(large != nullptr);
  fill(large, 1, 50000000);
  std::free(large);
  CHECK(errno == 77);
}

// "free_sized(p, n), free_aligned_sized(p, alignment, n), cfree(p): like free."
void other_ways_to_free() {
  free_sized(nullptr, 10);
  free_aligned_sized(nullptr, 64, 10);
  cfree(nullptr);
  for (const std::size_t size : {0ul, 10ul, 3000ul, 400000ul}) {
    free_sized(std::malloc(size), size);
    free_aligned_sized(aligned_alloc(64, size), 64, size);
    free_aligned_sized(aligned_alloc(8192, size), 8192, size);
    cfree(std::malloc(size));
  }
}

// "aligned_alloc, memalign: aligned to any power of two; n need not be a multiple of it."
void aligned_blocks() {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 24; alignment *= 2)
    for (const std::size_t size : {0ul, 1ul, 100ul, 5000ul}) {
      void* const a = aligned_alloc(alignment, size);
      void* const b = memalign(alignment, size);
      CHECK(a != nullptr && b != nullptr);
      CHECK(a != b);
      CHECK(is_aligned(a, alignment) && is_aligned(b, alignment));
      CHECK(malloc_usable_size(a) >= size && malloc_usable_size(b) >= size);
      fill(a, 1, size);
      fill(b, 2, size);
      CHECK(keeps(a, 1, size));
      std::free(a);
      std::free(b);
    }
}

// "Another alignment: null, errno EINVAL."
void alignments_that_are_no_power_of_two() {
  errno = 0;
  for (const std::size_t alignment : {0ul, 3ul, 24ul, 100ul}) {
    CHECK(is_invalid(aligned_alloc(alignment, 100)));
    CHECK(is_invalid(memalign(alignment, 100)));
  }
}

// "posix_memalign: a power of two that is a multiple of sizeof(void*), else the answer is EINVAL
// ..."
void posix_memalign_answers() {
  for (const std::size_t alignment : {sizeof(void*), std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20}) {
    void* p = nullptr;
    CHECK(posix_memalign(&p, alignment, 100) == 0);
    CHECK(p != nullptr && is_aligned(p, alignment));
    std::free(p);
    CHECK(posix_memalign(&p, alignment, zero) == 0);
    std::free(p);
  }
  // "... or ENOMEM; errno and the pointer stay as they were."
  void* const before = &errno;
  void* p = before;
  errno = 77;
  for (const std::size_t alignment : {0ul, 1ul, 4ul, 24ul, 100ul}) CHECK(posix_memalign(&p, alignment, 100) == EINVAL);
  CHECK(posix_memalign(&p, 64, too_much) == ENOMEM);
  CHECK(errno == 77);
  CHECK(p == before);
}

// "valloc: aligned to a page. pvalloc: whole pages."
void whole_pages() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page, page + 1}) {
    void* const a = valloc(size);
    void* const b = pvalloc(size);
    CHECK(a != nullptr && b != nullptr);
    CHECK(is_aligned(a, page) && is_aligned(b, page));
    CHECK(malloc_usable_size(a) >= size);
    CHECK(malloc_usable_size(b) >= (size + page - 1) / page * page);
    std::free(a);
    std::free(b);
  }
}

// "malloc_usable_size: how many bytes may be used, at least what was asked for; 0 for null."
void usable_bytes_can_be_used() {
  CHECK(malloc_usable_size(nullptr) == 0);
  void* blocks[200];
  std::size_t usable[200];
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = static_cast<std::size_t>(i) * 53;
    blocks[i] = std::malloc(size);
    usable[i] = malloc_usable_size(blocks[i]);
    CHECK(usable[i] >= size);
    fill(blocks[i], i, usable[i]);
  }
  for (int i = 0; i < 200; ++i) CHECK(keeps(blocks[i], i, usable[i]));
  for (void* p : blocks) std::free(p);
}

// "operator new and delete in all forms"
void every_form_of_new() {
  constexpr std::align_val_t line{64};
  for (const std::size_t size : {0ul, 10ul, 5000ul, 400000ul}) {
    ::operator delete(::operator new(size));
    ::operator delete(::operator new(size), size);
    ::operator delete(::operator new(size, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](size));
    ::operator delete[](::operator new[](size), size);
    ::operator delete[](::operator new[](size, std::nothrow), std::nothrow);
    void* const p = ::operator new(size, line);
    CHECK(p != nullptr && is_aligned(p, 64));
    ::operator delete(p, line);
    ::operator delete(::operator new(size, line), size, line);
    ::operator delete(::operator new(size, line, std::nothrow), line, std::nothrow);
    ::operator delete[](::operator new[](size, line), line);
    ::operator delete[](::operator new[](size, line), size, line);
    ::operator delete[](::operator new[](size, line, std::nothrow), line, std::nothrow);
  }
  void* nothing = nullptr;
  ::operator delete(nothing);
  ::operator delete[](nothing, line);
}

bool throws_bad_alloc(std::size_t size) {
  try {
    ::operator delete(::operator new(size));
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

int handler_calls;
void give_up_at_the_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

// "Without memory they call the new handler as long as there is one, then throw std::bad_alloc; the
// nothrow forms return null."
void new_without_memory() {
  CHECK(throws_bad_alloc(too_much));
  CHECK(throws_bad_alloc(more_than_ptrdiff));
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
  CHECK(::operator new[](too_much, std::align_val_t{64}, std::nothrow) == nullptr);

  std::set_new_handler(give_up_at_the_third_call);
  CHECK(throws_bad_alloc(too_much));
  CHECK(handler_calls == 3);

  handler_calls = 0;
  std::set_new_handler(give_up_at_the_third_call);
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
  CHECK(handler_calls == 3);

  std::set_new_handler([] { throw std::bad_alloc(); });
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
  std::set_new_handler(nullptr);
}

// "mallinfo2: arena = uordblks + fordblks; hblkhd are the bytes of large blocks; both together are
// what the heap has mapped."
void mallinfo_adds_up() {
  const struct mallinfo2 before = mallinfo2();
  void* const large = std::malloc(10000000);
  fill(large, 1, 10000000);
  void* const small = std::malloc(1000);
  fill(small, 1, 1000);
  const struct mallinfo2 with = mallinfo2();
  CHECK(with.uordblks + with.fordblks == with.arena);
  CHECK(with.hblkhd >= before.hblkhd + 10000000);
  std::free(large);
  std::free(small);
  const struct mallinfo2 after = mallinfo2();
  CHECK(after.uordblks + after.fordblks == after.arena);
  CHECK(after.hblkhd < with.hblkhd - 9000000);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
  CHECK(old.uordblks + old.fordblks == old.arena);
}

// "malloc_info(0, file): XML; another first argument: EINVAL."
void malloc_info_writes_xml() {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const file = open_memstream(&text, &length);
  CHECK(malloc_info(1, file) == EINVAL);
  std::fflush(file);
  CHECK(length == 0);
  CHECK(malloc_info(0, file) == 0);
  std::fclose(file);
  CHECK(std::strncmp(text, "<malloc version=\"heapwright-1\">", 31) == 0);
  CHECK(std::strstr(text, "</malloc>") != nullptr);
  std::free(text);
}

long resident_pages() {
  long all = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  CHECK(file != nullptr && std::fscanf(file, "%ld %ld", &all, &resident) == 2);
  std::fclose(file);
  return resident;
}

// "malloc_trim: gives free memory back to the system; 1 if there was some."
void malloc_trim_gives_back() {
  void* blocks[64];
  for (void*& p : blocks) {
    p = std::malloc(200000);
    fill(p, 1, 200000);
  }
  void* const needed = std::malloc(10);
  for (void* const p : blocks) std::free(p);
  CHECK(malloc_trim(0) == 1);
  CHECK(malloc_trim(0) == 0);
  CHECK(resident_pages() * sysconf(_SC_PAGESIZE) < 10000000);
  std::free(needed);
}

// "mallopt: 1 for a parameter that glibc has, else 0; changes nothing."
void mallopt_knows_its_parameters() {
  CHECK(mallopt(M_MMAP_THRESHOLD, 4096) == 1);
  CHECK(mallopt(M_ARENA_MAX, 1) == 1);
  CHECK(mallopt(12345, 1) == 0);
}

// "malloc_stats: prints the statistics to stderr."
void malloc_stats_prints() { malloc_stats(); }

// "When memory is short, requests fail and the program goes on."
void the_program_survives_a_limit() {
  const rlimit limit{256u << 20, 256u << 20};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  struct node {
    node* next;
  };
  node* all = nullptr;
  int count = 0;
  errno = 0;
  for (;;) {
    auto* const p = static_cast<node*>(std::malloc(100000));
    if (p == nullptr) break;
    fill(p, 1, 100000);
    p->next = all;
    all = p;
    ++count;
  }
  CHECK(errno == ENOMEM);
  CHECK(count > 1000);
  CHECK(throws_bad_alloc(std::size_t{1} << 30));
  while (all != nullptr) {
    node* const next = all->next;
    std::free(all);
    all = next;
  }
  void* const again = std::malloc(100000000);
  CHECK(again != nullptr);
  std::free(again);
}

std::atomic_bool* stop_flag;

void* churn(void*) {
  void* blocks[100] = {};
  for (unsigned i = 0; !stop_flag->load(); ++i) {
    void*& p = blocks[i % 100];
    std::free(p);
    p = std::malloc(i % 5000);
    fill(p, 1, i % 5000);
  }
  for (void* const p : blocks) std::free(p);
  return nullptr;
}

// "The child of a fork may use all of it, whatever other threads did at the fork."
void the_child_of_a_fork_allocates() {
  std::atomic_bool stop{false};
  stop_flag = &stop;
  pthread_t threads[3];
  for (pthread_t& t : threads) CHECK(pthread_create(&t, nullptr, churn, nullptr) == 0);
  void* const before = std::malloc(100);
  fill(before, 5, 100);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);
      CHECK(keeps(before, 5, 100));
      std::free(before);
      for (std::size_t size = 1; size < 1000000; size = size * 3 + 1) {
        void* const p = std::malloc(size);
        CHECK(p != nullptr);
        fill(p, 2, size);
        std::free(p);
      }
      std::_Exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  for (const pthread_t t : threads) pthread_join(t, nullptr);
  std::free(before);
}

void* allocate_in_a_thread(void* size) {
  void* const p = std::malloc(reinterpret_cast<std::size_t>(size));
  fill(p, 6, reinterpret_cast<std::size_t>(size));
  return p;
}

// "Any thread may free what another has allocated, also after that one has ended."
void blocks_outlive_their_threads() {
  for (const std::size_t size : {10ul, 3000ul, 50000ul, 2000000ul}) {
    pthread_t thread{};
    CHECK(pthread_create(&thread, nullptr, allocate_in_a_thread, reinterpret_cast<void*>(size)) == 0);
    void* p = nullptr;
    pthread_join(thread, &p);
    CHECK(p != nullptr && keeps(p, 6, size));
    p = std::realloc(p, size * 2);
    CHECK(p != nullptr && keeps(p, 6, size));
    std::free(p);
  }
}

struct promise {
  const char* name;
  void (*check)();
};

#define PROMISE(name) \
  { #name, name }

constexpr promise promises[] = {
    PROMISE(malloc_gives_aligned_blocks_that_do_not_overlap),
    PROMISE(zero_bytes_are_a_block_of_their_own),
    PROMISE(too_much_is_refused),
    PROMISE(calloc_clears_also_what_was_used_before),
    PROMISE(products_that_overflow_are_refused),
    PROMISE(realloc_keeps_the_contents),
    PROMISE(realloc_that_fails_keeps_the_block),
    PROMISE(realloc_at_its_ends),
    PROMISE(free_takes_null_and_keeps_errno),
    PROMISE(other_ways_to_free),
    PROMISE(aligned_blocks),
    PROMISE(alignments_that_are_no_power_of_two),
    PROMISE(posix_memalign_answers),
    PROMISE(whole_pages),
    PROMISE(usable_bytes_can_be_used),
    PROMISE(every_form_of_new),
    PROMISE(new_without_memory),
    PROMISE(mallinfo_adds_up),
    PROMISE(malloc_info_writes_xml),
    PROMISE(malloc_trim_gives_back),
    PROMISE(mallopt_knows_its_parameters),
    PROMISE(malloc_stats_prints),
    PROMISE(the_program_survives_a_limit),
    PROMISE(the_child_of_a_fork_allocates),
    PROMISE(blocks_outlive_their_threads),
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const promise& p : promises) std::puts(p.name);
    return 0;
  }
  for (const promise& p : promises)
    if (std::strcmp(argv[1], p.name) == 0) {
      p.check();
      return 0;
    }
  std::fprintf(stderr, "there is no promise named %s\n", argv[1]);
  return 2;
}
