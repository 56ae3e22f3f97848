// What the heap needs from an operating system, and what it may rely on. A platform is a class of
// static functions, so that it costs nothing, and so that a test can pass one that fails on purpose
// or has pages of another size:
//
//   page_size()            bytes per page, a power of two >= 4096; constant for the life of the
//                          process
//   map(bytes)             bytes: multiple of page_size(). Readable, writable, zeroed, page-aligned
//                          memory that costs address space only until it is touched; null when
//                          there is none
//   unmap(p, bytes)        p, bytes: page-aligned part of what map returned. False: the system
//                          refused, nothing changed
//   discard(p, bytes)      the same; contents are dropped and read as zero afterwards. False:
//                          contents are unchanged
//   remap(p, from, to)     page-aligned part of what map returned, from < to, whole pages: the same
//                          contents `to` bytes long and at any address, without a copy; what is new
//                          is zero. Null: nothing changed
//   protect(p, bytes)      page-aligned part of what map returned: its contents are dropped, and
//                          touching it is a fault from now on; it can still be unmapped. False: the
//                          system refused; at most the contents are gone
//   unprotect(p, bytes)    what was protected: it can be touched again, and reads as zero. False:
//                          the system refused, nothing changed
//   most_protected()       so many ranges may be protected at once: more could take the last
//                          mappings that the system gives a process
//   map_huge(bytes)        bytes: multiple of 2 MiB. As map, but in pages of 2 MiB that the system
//                          keeps for this use, aligned to their size; null when it has too few.
//                          Unmapped in multiples of 2 MiB
//   advise_huge(p, bytes)  2 MiB-aligned part of what map returned: asks for pages of 2 MiB
//                          wherever it is touched from now on. False: the system gives none; the
//                          memory is usable all the same
//   advise_sparse(p, n)    page-aligned part of what map returned, little of which will ever be
//                          touched: asks that a touch cost a single page, whatever the system does
//                          elsewhere
//   touch(p, bytes)        page-aligned part of what map returned: every page of it is in memory,
//                          contents as they were, as far as the system has any; otherwise the first
//                          touch will tell
//   resident(p, bytes)     the same: bytes of it that are in memory
//   lock_pages(p, bytes)   page-aligned part of what map returned: it is in memory, and stays there
//                          until it is unlocked or unmapped; meanwhile discard may fail. Locks do
//                          not nest; a forked child has none. False: the system refused (a quota,
//                          as a rule), and no other pages are locked than before
//   unlock_pages(p, bytes) the same; locked or not. False: the system refused, nothing changed
//   bind(p, bytes, node)   the same, not touched yet: its pages come from this NUMA node. False:
//                          the system refused or has no such node
//   milliseconds()         a steady clock, coarse (a few ms) and cheap
//   wait(word, expected)   sleeps while word == expected, until wake; may return early
//   wake_one(word)         wakes one thread sleeping on word
//   relax()                tells the processor that this thread waits for another
//   system_lock            optional. A type, the system's own mutex: lock (sync/lock.hpp) is that,
//                          and calls neither wait nor wake_one
//   give_back()            optional. There is no memory: others give back what they can spare.
//                          False: there is none
//   at_fork(b, p, c)       from now on calls b() before every fork, then p() in the parent and c()
//                          in the child; does nothing where the system has no fork
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <heapwright/core/language.hpp>

namespace heapwright {

/// None of the functions throws, allocates or changes errno, or what Windows calls the last error.
/// All may be called by any thread. `linux_os`, `macos_os` and `windows_os` are such; `native_os`
/// is the one of the system that is compiled for.
template <class P>
concept platform = requires(void* p, std::size_t n, std::atomic<std::uint32_t>& word) {
  { P::page_size() } noexcept -> std::same_as<std::size_t>;
  { P::map(n) } noexcept -> std::same_as<void*>;
  { P::unmap(p, n) } noexcept -> std::same_as<bool>;
  { P::discard(p, n) } noexcept -> std::same_as<bool>;
  { P::remap(p, n, n) } noexcept -> std::same_as<void*>;
  { P::protect(p, n) } noexcept -> std::same_as<bool>;
  { P::unprotect(p, n) } noexcept -> std::same_as<bool>;
  { P::most_protected() } noexcept -> std::same_as<std::size_t>;
  { P::map_huge(n) } noexcept -> std::same_as<void*>;
  { P::advise_huge(p, n) } noexcept -> std::same_as<bool>;
  { P::advise_sparse(p, n) } noexcept;
  { P::touch(p, n) } noexcept;
  { P::resident(p, n) } noexcept -> std::same_as<std::size_t>;
  { P::lock_pages(p, n) } noexcept -> std::same_as<bool>;
  { P::unlock_pages(p, n) } noexcept -> std::same_as<bool>;
  { P::bind(p, n, int{}) } noexcept -> std::same_as<bool>;
  { P::milliseconds() } noexcept -> std::same_as<std::uint64_t>;
  { P::wait(word, std::uint32_t{}) } noexcept;
  { P::wake_one(word) } noexcept;
  { P::relax() } noexcept;
  {
    P::at_fork(
        +[]() noexcept {}, +[]() noexcept {}, +[]() noexcept {})
  } noexcept;
};

}  // namespace heapwright
