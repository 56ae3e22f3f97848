// Linux as a platform (concept.hpp). Goes through libc's functions, not raw system calls, so that
// tools which watch or refuse mmap and madvise by interposing them see ours too. Keeps errno: free
// must not change it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <heapwright/core/posix/errno_keeper.hpp>
#include <heapwright/core/posix/without_cancellation.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

class linux_os {
 public:
  static std::size_t page_size() noexcept {
    // getauxval works before libc is initialised; the answer is cached, and a race stores the same
    // value twice.
    constexpr std::size_t unknown = 1;  // other than 0, to lie with initialised data: those pages are written to anyway
    static constinit std::atomic<std::size_t> cached{unknown};
    std::size_t size = cached.load(std::memory_order_relaxed);
    if (size == unknown) [[unlikely]] {
      size = ::getauxval(AT_PAGESZ);
      cached.store(size, std::memory_order_relaxed);
    }
    return size;
  }

  static void* map(std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    return ::munmap(p, bytes) == 0;
  }

  static bool discard(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    return ::madvise(p, bytes, MADV_DONTNEED) == 0;
  }

  static void* remap(void* p, std::size_t from, std::size_t to) noexcept {
    // Not MREMAP_FIXED: before Linux 6.17 that unmaps its target first and may fail then.
    detail::errno_keeper keep;
    void* moved = ::mremap(p, from, to, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : moved;
  }

  static bool protect(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    if (has_guards()) return ::madvise(p, bytes, guard_install) == 0;
    return ::madvise(p, bytes, MADV_DONTNEED) == 0 && ::mprotect(p, bytes, PROT_NONE) == 0;
  }

  static bool unprotect(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    if (has_guards()) return ::madvise(p, bytes, guard_remove) == 0;
    return ::mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0;
  }

  static std::size_t most_protected() noexcept {
    constexpr std::size_t quarter_of_mappings = 65'530 / 4;  // vm.max_map_count; each range splits one into three
    return has_guards() ? SIZE_MAX : quarter_of_mappings;
  }

  static void* map_huge(std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    constexpr int of_2_mib = MAP_HUGETLB | 21 << MAP_HUGE_SHIFT;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | of_2_mib, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }

  static bool advise_huge(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    return !never_huge() && ::madvise(p, bytes, MADV_HUGEPAGE) == 0;
  }

  static void advise_sparse(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    ::madvise(p, bytes, MADV_NOHUGEPAGE);
  }

  static void touch(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14
    if (::madvise(p, bytes, populate_write) == 0) return;
    auto* const pages = static_cast<volatile unsigned char*>(p);
    for (std::size_t i = 0; i < bytes; i += page_size()) pages[i] = pages[i];
  }

  static std::size_t resident(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    constexpr std::size_t at_once = 1024;
    unsigned char is_there[at_once];
    auto* const first = static_cast<std::byte*>(p);
    const std::size_t pages = bytes / page_size();
    std::size_t count = 0;
    for (std::size_t done = 0; done < pages; done += at_once) {
      const std::size_t part = std::min(at_once, pages - done);
      if (::mincore(first + done * page_size(), part * page_size(), is_there) != 0) break;
      count += static_cast<std::size_t>(
          std::count_if(is_there, is_there + part, [](unsigned char c) { return (c & 1) != 0; }));
    }
    return count * page_size();
  }

  static bool lock_pages(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    if (::mlock(p, bytes) == 0) return true;
    // The quota is checked before anything changes. A lack of memory (EAGAIN) is noticed when the
    // pages are locked already.
    if (errno == EAGAIN) ::munlock(p, bytes);
    return false;
  }

  static bool unlock_pages(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    return ::munlock(p, bytes) == 0;
  }

  static bool bind(void* p, std::size_t bytes, int node) noexcept {
    detail::errno_keeper keep;
    constexpr int bind_policy = 2;  // MPOL_BIND
    constexpr int bits = 64;
    if (node < 0 || node >= bits) return false;
    const unsigned long nodes = 1UL << node;
    // The kernel reads one bit less than it is told.
    return ::syscall(SYS_mbind, p, bytes, bind_policy, &nodes, bits + 1, 0) == 0;
  }

  /// That nobody can guess. No requirement of a platform: for heaps that are sealed.
  static std::uint64_t random_number() noexcept {
    detail::errno_keeper keep;
    const detail::without_cancellation held;
    std::uint64_t number = 0;
    constexpr unsigned not_waiting = GRND_NONBLOCK;
    if (::getrandom(&number, sizeof number, not_waiting) == sizeof number) return number;
    // Early at the system's start: what the kernel has given the process.
    if (const auto* const given = reinterpret_cast<const void*>(::getauxval(AT_RANDOM)))
      std::memcpy(&number, given, sizeof number);
    return number;
  }

  static std::uint64_t milliseconds() noexcept {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  }

  static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    detail::errno_keeper keep;
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
  }

  static void wake_one(std::atomic<std::uint32_t>& word) noexcept {
    detail::errno_keeper keep;
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // `yield` is over at once on most processors
#elif defined(__riscv)
    asm volatile(".insn i 0x0F, 0, x0, x0, 0x010" ::: "memory");  // `pause`, which older processors take for a fence
#endif
  }

  static void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
    ::pthread_atfork(before, in_parent, in_child);
  }

 private:
  // Since Linux 6.13: marks in the page tables, which take no mapping of their own (MADV_GUARD_*).
  static constexpr int guard_install = 102, guard_remove = 103;

  static bool has_guards() noexcept {
    enum : int { not_known, yes, no };
    static constinit std::atomic<int> known{not_known};
    int has = known.load(std::memory_order_relaxed);
    if (has == not_known) [[unlikely]] {
      detail::errno_keeper keep;
      // Of no memory it does nothing, and says whether it is known; but QEMU knows everything.
      constexpr int nothing_is_called_so = 9999;
      const bool tells_apart = ::madvise(nullptr, 0, nothing_is_called_so) != 0;
      has = tells_apart && ::madvise(nullptr, 0, guard_install) == 0 ? yes : no;
      known.store(has, std::memory_order_relaxed);
    }
    return has == yes;
  }

  // madvise says yes where the administrator has said never, so we look. Not cached: the setting
  // may change.
  static bool never_huge() noexcept {
    const detail::without_cancellation held;
    const int fd = ::open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char choice[64];  // the one in force is in brackets
    const ssize_t length = ::read(fd, choice, sizeof choice);
    ::close(fd);
    if (length < 0) return false;
    return std::string_view(choice, static_cast<std::size_t>(length)).find("[never]") != std::string_view::npos;
  }
};

static_assert(platform<linux_os>);
static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is a 32-bit word");

}  // namespace heapwright
