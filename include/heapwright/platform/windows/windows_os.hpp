// Windows as a platform (concept.hpp). Keeps the last error: free must not change it.
//
// Windows takes address space back in whole reservations, as VirtualAlloc has made them; the heap
// gives back any pages. So:
//   unmap     decommits. The reservation is released when none of it is committed any more
//   protect   leaves the pages committed, without access. So a protected range is not unmapped, and
//             its reservation stays
// Neighbouring reservations may be one range for the heap: what it passes is cut where one ends.
// One lock orders all that decommits, so that no reservation is released under another thread.
//
// Memory that is mapped is committed: it counts against what the system has promised to all
// processes (its RAM and page files), also before it is touched.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/check.hpp>
#include <heapwright/core/windows/system_functions.hpp>
#include <heapwright/platform/concept.hpp>

namespace heapwright {

class windows_os {
  using region = detail::memory_region;

 public:
  static std::size_t page_size() noexcept {
    return 4096;  // on x86-64 and AArch64
  }

  static void* map(std::size_t bytes) noexcept {
    last_error_keeper keep;
    return ::VirtualAlloc(nullptr, bytes, reserved | committed, read_write);
  }

  static bool unmap(void* p, std::size_t bytes) noexcept {
    last_error_keeper keep;
    const exclusive held;
    const bool done = for_each_region(p, bytes, [](void* first, std::size_t n, const region& r) {
      if (r.state == reserved) return true;
      // Huge pages can be released, but not decommitted.
      if (n == r.bytes && is_whole_reservation(r)) return ::VirtualFree(first, 0, release) != 0;
      return ::VirtualFree(first, n, decommit) != 0;
    });
    release_empty_reservations(static_cast<std::byte*>(p), bytes);
    return done;
  }

  static bool discard(void* p, std::size_t bytes) noexcept { return replace(p, bytes, read_write); }

  /// Windows moves no pages.
  static void* remap(void*, std::size_t, std::size_t) noexcept { return nullptr; }

  static bool protect(void* p, std::size_t bytes) noexcept { return replace(p, bytes, detail::memory_access::none); }

  static bool unprotect(void* p, std::size_t bytes) noexcept {
    last_error_keeper keep;
    return for_each_region(p, bytes, [](void* first, std::size_t n, const region&) {
      unsigned long before;
      return ::VirtualProtect(first, n, read_write, &before) != 0;
    });
  }

  static std::size_t most_protected() noexcept { return SIZE_MAX; }

  static void* map_huge(std::size_t bytes) noexcept {
    last_error_keeper keep;
    constexpr std::size_t huge_page = 2u << 20;
    if (::GetLargePageMinimum() != huge_page || !may_lock_memory()) return nullptr;
    return ::VirtualAlloc(nullptr, bytes, reserved | committed | detail::memory_state::large_pages, read_write);
  }

  /// Windows has no huge pages that a program does not ask for at once.
  static bool advise_huge(void*, std::size_t) noexcept { return false; }

  static void advise_sparse(void*, std::size_t) noexcept {}

  static void touch(void* p, std::size_t bytes) noexcept {
    auto* const pages = static_cast<volatile unsigned char*>(p);
    for (std::size_t i = 0; i < bytes; i += page_size()) pages[i] = pages[i];
  }

  static std::size_t resident(void* p, std::size_t bytes) noexcept {
    last_error_keeper keep;
    struct asked_page {  // PSAPI_WORKING_SET_EX_INFORMATION
      void* page;
      std::uintptr_t is_there;  // bit 0
    };
    constexpr std::size_t at_once = 256;
    asked_page asked[at_once];
    auto* const first = static_cast<std::byte*>(p);
    const std::size_t pages = bytes / page_size();
    std::size_t count = 0;
    for (std::size_t done = 0; done < pages; done += at_once) {
      const std::size_t part = std::min(at_once, pages - done);
      for (std::size_t i = 0; i < part; ++i) asked[i] = {first + (done + i) * page_size(), 0};
      const auto length = static_cast<unsigned long>(part * sizeof asked[0]);
      if (::K32QueryWorkingSetEx(::GetCurrentProcess(), asked, length) == 0) break;
      count += static_cast<std::size_t>(
          std::count_if(asked, asked + part, [](const asked_page& a) { return (a.is_there & 1) != 0; }));
    }
    return count * page_size();
  }

  static bool lock_pages(void* p, std::size_t bytes) noexcept {
    last_error_keeper keep;
    if (::VirtualLock(p, bytes) != 0) return true;
    constexpr unsigned long beyond_quota = 1453;
    return ::GetLastError() == beyond_quota && raise_quota(bytes) && ::VirtualLock(p, bytes) != 0;
  }

  static bool unlock_pages(void* p, std::size_t bytes) noexcept {
    last_error_keeper keep;
    if (::VirtualUnlock(p, bytes) != 0) return true;
    // Of a range that is locked in part it unlocks nothing.
    constexpr unsigned long not_locked = 158;
    bool done = true;
    for (std::size_t i = 0; i < bytes; i += page_size()) {
      const bool was_unlocked = ::VirtualUnlock(static_cast<std::byte*>(p) + i, page_size()) != 0;
      done = done && (was_unlocked || ::GetLastError() == not_locked);
    }
    return done;
  }

  /// Windows takes a node only with the request for the memory.
  static bool bind(void*, std::size_t, int) noexcept { return false; }

  /// That nobody can guess. No requirement of a platform: for heaps that are sealed.
  static std::uint64_t random_number() noexcept {
    last_error_keeper keep;
    std::uint64_t number = 0;
    if (::SystemFunction036(&number, sizeof number) == 0) die("the system has no random numbers");
    return number;
  }

  static std::uint64_t milliseconds() noexcept { return ::GetTickCount64(); }

  static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    last_error_keeper keep;
    constexpr unsigned long without_end = ~0UL;
    ::WaitOnAddress(&word, &expected, sizeof word, without_end);
  }

  static void wake_one(std::atomic<std::uint32_t>& word) noexcept {
    last_error_keeper keep;
    ::WakeByAddressSingle(&word);
  }

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  /// Windows has no fork.
  static void at_fork(void (*)(), void (*)(), void (*)()) noexcept {}

 private:
  static constexpr unsigned long reserved = detail::memory_state::reserved;
  static constexpr unsigned long committed = detail::memory_state::committed;
  static constexpr unsigned long decommit = detail::memory_state::decommit;
  static constexpr unsigned long release = detail::memory_state::release;
  static constexpr unsigned long read_write = detail::memory_access::read_write;

  /// Calls f(first, bytes, region) for each part of a range that lies in one region: in one
  /// reservation, and in one state. Until it returns false. False: it did, or a part of the range
  /// is no memory of a reservation.
  template <class F>
  static bool for_each_region(void* p, std::size_t bytes, F f) noexcept {
    auto* at = static_cast<std::byte*>(p);
    std::byte* const end = at + bytes;
    while (at < end) {
      region r;
      if (!detail::find_region(at, r) || r.state == detail::memory_state::free) return false;
      const auto n = static_cast<std::size_t>(std::min(r.end(), end) - at);
      if (!f(at, n, r)) return false;
      at += n;
    }
    return true;
  }

  [[nodiscard]] static bool is_whole_reservation(const region& r) noexcept {
    region next;
    return r.begin == r.reservation && detail::find_region(r.end(), next) && next.reservation != r.reservation;
  }

  /// Of those that a range lies in. The caller holds the lock.
  static void release_empty_reservations(std::byte* at, std::size_t bytes) noexcept {
    for (std::byte* const end = at + bytes; at < end;) {
      region r;
      if (!detail::find_region(at, r)) return;
      at = r.end();
      if (r.state == reserved && is_empty(r.reservation)) ::VirtualFree(r.reservation, 0, release);
    }
  }

  [[nodiscard]] static bool is_empty(void* reservation) noexcept {
    region r;
    for (auto* at = static_cast<std::byte*>(reservation);; at = r.end()) {
      if (!detail::find_region(at, r) || r.reservation != reservation) return true;
      if (r.state == committed) return false;
    }
  }

  /// Pages without contents in place of those that are there.
  static bool replace(void* p, std::size_t bytes, unsigned long access) noexcept {
    last_error_keeper keep;
    const exclusive held;
    return for_each_region(p, bytes, [access](void* first, std::size_t n, const region& r) {
      if (r.state != committed || ::VirtualFree(first, n, decommit) == 0) return false;
      commit_again(first, n, access);
      return true;
    });
  }

  /// What has just been decommitted. Others may have taken the memory at that moment.
  static void commit_again(void* p, std::size_t bytes, unsigned long access) noexcept {
    constexpr int tries = 100;
    for (int i = 0; i < tries; ++i) {
      if (::VirtualAlloc(p, bytes, committed, access) != nullptr) return;
      ::Sleep(10);
    }
    die("the system has no memory for pages that it has just taken back", p, "");
  }

  /// Raises how much memory the process may keep to itself; a user's processes may.
  static bool raise_quota(std::size_t bytes) noexcept {
    std::size_t least, most;
    void* const self = ::GetCurrentProcess();
    if (::GetProcessWorkingSetSize(self, &least, &most) == 0) return false;
    return ::SetProcessWorkingSetSize(self, least + bytes, std::max(most, least + bytes) + bytes) != 0;
  }

  /// Whether the process has the privilege that large pages need. An administrator gives it to a
  /// user (secpol.msc, "Lock pages in memory"); a process has to switch it on.
  static bool may_lock_memory() noexcept {
    constexpr unsigned long to_adjust = 0x20, to_query = 0x8, enabled = 2, success = 0;
    void* token;
    if (::OpenProcessToken(::GetCurrentProcess(), to_adjust | to_query, &token) == 0) return false;
    struct {  // TOKEN_PRIVILEGES
      unsigned long count = 1;
      unsigned long name[2]{};
      unsigned long attributes = enabled;
    } wanted;
    // It says yes as well where the user has no such privilege.
    const bool has_it =
        ::LookupPrivilegeValueW(nullptr, L"SeLockMemoryPrivilege", reinterpret_cast<_LUID*>(wanted.name)) != 0 &&
        ::AdjustTokenPrivileges(token, 0, reinterpret_cast<_TOKEN_PRIVILEGES*>(&wanted), 0, nullptr, nullptr) != 0 &&
        ::GetLastError() == success;
    ::CloseHandle(token);
    return has_it;
  }

  struct last_error_keeper {
    last_error_keeper() noexcept : kept(::GetLastError()) {}
    ~last_error_keeper() { ::SetLastError(kept); }
    last_error_keeper(const last_error_keeper&) = delete;
    last_error_keeper& operator=(const last_error_keeper&) = delete;
    unsigned long kept;
  };

  struct exclusive {
    exclusive() noexcept { ::AcquireSRWLockExclusive(lock()); }
    ~exclusive() { ::ReleaseSRWLockExclusive(lock()); }
    exclusive(const exclusive&) = delete;
    exclusive& operator=(const exclusive&) = delete;

   private:
    static _RTL_SRWLOCK* lock() noexcept { return reinterpret_cast<_RTL_SRWLOCK*>(&word); }
    static inline constinit void* word = nullptr;  // SRWLOCK_INIT
  };
};

static_assert(platform<windows_os>);

}  // namespace heapwright
