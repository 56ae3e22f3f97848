// macOS as a platform (concept.hpp), by calls of Mach. Keeps errno: free must not change it.
//
// madvise does not make pages read as zero here, or not at once. So `discard` and `protect` map new
// pages over those that are there. That would also drop a lock of them, which the system tells of a
// range (user_wired_count).
//
// Built, and never run: docs/macos.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <mach/mach.h>
#include <os/lock.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <heapwright/core/check.hpp>
#include <heapwright/core/posix/errno_keeper.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

class macos_os {
 public:
  /// A thread that waits lends its priority to the holder. Without that, a thread in the background
  /// which holds a lock may keep the user's waiting.
  class system_lock {
   public:
    constexpr system_lock() noexcept = default;
    system_lock(const system_lock&) = delete;
    system_lock& operator=(const system_lock&) = delete;

    void acquire() noexcept { ::os_unfair_lock_lock(&word_); }
    [[nodiscard]] bool try_acquire() noexcept { return ::os_unfair_lock_trylock(&word_); }
    void release() noexcept { ::os_unfair_lock_unlock(&word_); }
    void reset_after_fork() noexcept { word_ = OS_UNFAIR_LOCK_INIT; }

   private:
    os_unfair_lock word_ = OS_UNFAIR_LOCK_INIT;
  };

  static std::size_t page_size() noexcept {
    return vm_page_size;  // 16 KiB on Apple silicon; 4 KiB on Intel's processors, and for their programs
  }

  static void* map(std::size_t bytes) noexcept {
    vm_address_t at = 0;
    return ::vm_allocate(mach_task_self(), &at, bytes, VM_FLAGS_ANYWHERE | tag) == KERN_SUCCESS ? pointer(at) : nullptr;
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    return ::vm_deallocate(mach_task_self(), address(p), bytes) == KERN_SUCCESS;
  }

  static bool discard(void* p, std::size_t bytes) noexcept {
    vm_address_t at = address(p);
    return !is_locked(at, bytes) &&
           ::vm_allocate(mach_task_self(), &at, bytes, VM_FLAGS_FIXED | VM_FLAGS_OVERWRITE | tag) == KERN_SUCCESS;
  }

  /// vm_remap would move pages, but share them with the children of a fork.
  static void* remap(void*, std::size_t, std::size_t) noexcept { return nullptr; }

  static bool protect(void* p, std::size_t bytes) noexcept {
    return discard(p, bytes) &&
           ::vm_protect(mach_task_self(), address(p), bytes, no_maximum, VM_PROT_NONE) == KERN_SUCCESS;
  }

  static bool unprotect(void* p, std::size_t bytes) noexcept {
    constexpr vm_prot_t read_write = VM_PROT_READ | VM_PROT_WRITE;
    return ::vm_protect(mach_task_self(), address(p), bytes, no_maximum, read_write) == KERN_SUCCESS;
  }

  static std::size_t most_protected() noexcept { return SIZE_MAX; }

  /// Apple silicon has no pages of 2 MiB for programs.
  static void* map_huge(std::size_t) noexcept { return nullptr; }

  static bool advise_huge(void*, std::size_t) noexcept { return false; }

  static void advise_sparse(void*, std::size_t) noexcept {}

  static void touch(void* p, std::size_t bytes) noexcept {
    auto* const pages = static_cast<volatile unsigned char*>(p);
    for (std::size_t i = 0; i < bytes; i += page_size()) pages[i] = pages[i];
  }

  static std::size_t resident(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    constexpr std::size_t at_once = 1024;
    char is_there[at_once];
    auto* const first = static_cast<char*>(p);
    const std::size_t pages = bytes / page_size();
    std::size_t count = 0;
    for (std::size_t done = 0; done < pages; done += at_once) {
      const std::size_t part = std::min(at_once, pages - done);
      if (::mincore(first + done * page_size(), part * page_size(), is_there) != 0) break;
      count += static_cast<std::size_t>(
          std::count_if(is_there, is_there + part, [](char c) { return (c & MINCORE_INCORE) != 0; }));
    }
    return count * page_size();
  }

  static bool lock_pages(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    return ::mlock(p, bytes) == 0;
  }

  static bool unlock_pages(void* p, std::size_t bytes) noexcept {
    detail::errno_keeper keep;
    // Of what is not locked it unlocks nothing.
    return !is_locked(address(p), bytes) || ::munlock(p, bytes) == 0;
  }

  /// macOS has no nodes.
  static bool bind(void*, std::size_t, int) noexcept { return false; }

  /// That nobody can guess. No requirement of a platform: for heaps that are sealed.
  static std::uint64_t random_number() noexcept {
    detail::errno_keeper keep;
    std::uint64_t number = 0;
    if (::getentropy(&number, sizeof number) != 0) die("the system has no random numbers");
    return number;
  }

  static std::uint64_t milliseconds() noexcept {
    return ::clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX) / 1'000'000;
  }

  /// Not until it is woken: for a moment. Locks do not wait here.
  static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    constexpr mach_msg_timeout_t one_millisecond = 1;
    if (word.load(std::memory_order_relaxed) == expected)
      ::thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, one_millisecond);
  }

  static void wake_one(std::atomic<std::uint32_t>&) noexcept {}

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  static void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
    ::pthread_atfork(before, in_parent, in_child);
  }

 private:
  static constexpr int tag = VM_MAKE_TAG(VM_MEMORY_MALLOC);  // what vmmap and Instruments show the memory as
  static constexpr boolean_t no_maximum = 0;                 // the protection now is set, not the greatest

  [[nodiscard]] static vm_address_t address(void* p) noexcept { return reinterpret_cast<vm_address_t>(p); }
  [[nodiscard]] static void* pointer(vm_address_t at) noexcept { return reinterpret_cast<void*>(at); }

  /// Whether some of the range is.
  [[nodiscard]] static bool is_locked(vm_address_t begin, std::size_t bytes) noexcept {
    const vm_address_t end = begin + bytes;
    while (begin < end) {
      vm_size_t length = 0;
      natural_t depth = 1;
      vm_region_submap_info_data_64_t found;
      mach_msg_type_number_t count = VM_REGION_SUBMAP_INFO_COUNT_64;
      auto* const info = reinterpret_cast<vm_region_recurse_info_t>(&found);
      if (::vm_region_recurse_64(mach_task_self(), &begin, &length, &depth, info, &count) != KERN_SUCCESS) break;
      if (begin < end && found.user_wired_count > 0) return true;
      begin += length;
    }
    return false;
  }
};

static_assert(platform<macos_os>);

}  // namespace heapwright
