// thread_record on Windows. The compiler's thread_local does not serve: what GCC makes of it for
// Windows allocates by malloc, and is freed before the thread's last destructors run.
//
// A record is memory of the system (HeapAlloc). Its address is in a slot of the thread's own block
// (TEB), which the system gives out by TlsAlloc.
//
// States of a thread's slot   null      the thread has not asked yet
//                             a record  it has
//                             ended_    it has ended: its record is gone
//
// The loader calls each module's list of functions when a thread ends: the section .CRT$XL?, in the
// order of names, so ours comes after those of the C library, which run destructors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <heapwright/core/check.hpp>
#include <heapwright/core/windows/system_functions.hpp>

namespace heapwright {

namespace detail {

/// What a kind of thread_record does when a thread ends.
struct thread_end {
  void (*end_this_thread)() noexcept;
  thread_end* next;
};

inline constinit std::atomic<thread_end*> thread_ends{nullptr};

inline void __stdcall note_thread_end(void*, unsigned long reason, void*) {
  constexpr unsigned long thread_detach = 3;
  if (reason != thread_detach) return;
  for (const thread_end* e = thread_ends.load(std::memory_order_acquire); e != nullptr; e = e->next)
    e->end_this_thread();
}

// In each source file that is compiled with this. A further call finds nothing left to do.
[[gnu::used, gnu::section(".CRT$XLY")]] static void(__stdcall* const note_thread_end_entry)(void*, unsigned long,
                                                                                            void*) = note_thread_end;

}  // namespace detail

/// As sync/thread_record.hpp says. Ends the process with a message where the system has no slot or
/// no memory.
template <class Record>
class thread_record {
 public:
  [[nodiscard]] static Record& mine() noexcept {
    const unsigned long slot = slot_.load(std::memory_order_acquire);
    if (slot < slots_in_block) [[likely]] {
      if (void* const record = *slot_of_this_thread(slot)) [[likely]]
        return *static_cast<Record*>(record);
    }
    return find_or_make();
  }

  /// A record is there once it has been asked for, and ends then.
  static void arm() noexcept {}

 private:
  static constexpr unsigned long slots_in_block = 64, no_slot = ~0UL;

  [[nodiscard]] static void** slot_of_this_thread(unsigned long slot) noexcept {
    constexpr std::size_t first_slot = 0x1480;  // of 64-bit Windows
    std::byte* block;
#if defined(__x86_64__)
    asm("mov %%gs:0x30, %0" : "=r"(block));
#elif defined(__aarch64__)
    asm("mov %0, x18" : "=r"(block));
#endif
    return reinterpret_cast<void**>(block + first_slot) + slot;
  }

  [[gnu::noinline]] static Record& find_or_make() noexcept {
    const unsigned long slot = slot_or_new();
    if (void* const record = ::TlsGetValue(slot)) return *static_cast<Record*>(record);
    void* const memory = ::HeapAlloc(::GetProcessHeap(), 0, sizeof(Record));
    if (memory == nullptr) die("no memory for what a thread has for itself");
    auto* const record = new (memory) Record{};
    ::TlsSetValue(slot, record);
    return *record;
  }

  static unsigned long slot_or_new() noexcept {
    unsigned long known = slot_.load(std::memory_order_acquire);
    if (known != no_slot) return known;
    const unsigned long fresh = ::TlsAlloc();
    if (fresh == no_slot) die("the system has no slot left for what a thread has for itself");
    if (!slot_.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
      ::TlsFree(fresh);
      return known;
    }
    static constinit detail::thread_end end{end_this_thread, nullptr};
    end.next = detail::thread_ends.load(std::memory_order_relaxed);
    while (!detail::thread_ends.compare_exchange_weak(end.next, &end, std::memory_order_release)) {
    }
    return fresh;
  }

  static void end_this_thread() noexcept {
    const unsigned long slot = slot_.load(std::memory_order_acquire);
    auto* const record = static_cast<Record*>(::TlsGetValue(slot));
    if (record == nullptr || record == &ended_) return;
    record->at_end();
    ::TlsSetValue(slot, &ended_);
    ::HeapFree(::GetProcessHeap(), 0, record);
  }

  static inline constinit std::atomic<unsigned long> slot_{no_slot};
  static inline constinit Record ended_ = Record::ended();
};

}  // namespace heapwright
