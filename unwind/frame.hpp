// One step of a walk: from a function's frame to its caller's, by the rule for its code
// (call_frame_info.hpp).
//
// Never reads beyond the stack: a frame lies above the one before it and below the stack's end, or
// the walk ends. From C that Go has called the walk goes over to the goroutine's stack, and does
// not read beyond that. Allocates nothing.
#pragma once

#include <cstdint>
#include <cstring>

#include <pthread.h>
#include <unistd.h>

#include "call_frame_info.hpp"

extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace heapwright::unwind {

/// Of the calling thread; 0: not known. libc keeps what it knows of a thread at the end of the
/// thread's stack: nothing else says where that is without calling malloc.
inline std::uintptr_t end_of_this_stack() noexcept {
  if (::getpid() != ::gettid()) return static_cast<std::uintptr_t>(::pthread_self());
  return &__libc_stack_end != nullptr ? reinterpret_cast<std::uintptr_t>(__libc_stack_end) : 0;
}

struct machine_state {
  std::uintptr_t pc, sp, fp;
};

/// Where the processor is now. Inlined, so it is in the frame of the function that asks.
[[gnu::always_inline]] inline machine_state current_state() noexcept {
  machine_state s{};
#if defined(__x86_64__)
  asm volatile("lea 1(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(s.pc), "=r"(s.sp), "=r"(s.fp));
#elif defined(__aarch64__)
  asm volatile("adr %0, .+4\n\tmov %1, sp\n\tmov %2, x29" : "=r"(s.pc), "=r"(s.sp), "=r"(s.fp));
#elif defined(__riscv)
  asm volatile("auipc %0, 0\n\taddi %0, %0, 4\n\tmv %1, sp\n\tmv %2, s0" : "=&r"(s.pc), "=&r"(s.sp), "=r"(s.fp));
#endif
  return s;
}

inline std::uintptr_t word_at(std::uintptr_t address) noexcept {
  std::uintptr_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

/// Return addresses may be signed (ARMv8.3): the upper bits are no part of the address.
inline std::uintptr_t without_signature(std::uintptr_t address) noexcept {
  return address & ((std::uintptr_t{1} << 56) - 1);
}

class stack_bounds {
 public:
  constexpr stack_bounds(std::uintptr_t begin, std::uintptr_t end) noexcept
      : begin_(begin), end_(begin < end ? end : 0) {}

  /// Whether there is a word. Of a stack that is not the thread's own (a coroutine's) only the
  /// beginning is known.
  [[nodiscard]] bool has(std::uintptr_t address) const noexcept {
    constexpr std::uintptr_t believable = 1 << 20;
    return address >= begin_ && address % 8 == 0 && address < (end_ != 0 ? end_ - 7 : begin_ + believable);
  }

  [[nodiscard]] bool is_known() const noexcept { return end_ != 0; }
  [[nodiscard]] std::uintptr_t begin() const noexcept { return begin_; }
  [[nodiscard]] stack_bounds from(std::uintptr_t begin) const noexcept { return {begin, end_}; }

 private:
  std::uintptr_t begin_, end_;
};

/// In bytes from where the runtime keeps the goroutine: how long the used part of its stack is.
#if defined(__aarch64__)
constexpr int from_goroutine_to_length = 8;
#else
constexpr int from_goroutine_to_length = -8;
#endif

/// The used part of the stack of the goroutine that has called C. `at`: where the runtime keeps the
/// goroutine. While C runs Go neither moves nor frees that stack. Not known where what is there
/// cannot be that.
template <class Readable>
stack_bounds goroutines_stack(std::uintptr_t at, const stack_bounds& stack, const Readable& is_readable) noexcept {
  constexpr stack_bounds unknown{0, 0};
  const std::uintptr_t length_at = at + static_cast<std::uintptr_t>(from_goroutine_to_length);
  if (!stack.is_known() || !stack.has(length_at) || !stack.has(at)) return unknown;
  const std::uintptr_t goroutine = word_at(at), length = word_at(length_at);
  if (!is_readable(goroutine, 16)) return unknown;
  const std::uintptr_t lowest = word_at(goroutine), end = word_at(goroutine + 8);
  if (lowest >= end || length >= end - lowest) return unknown;
  return {end - length, end};
}

/// Where the frame on the goroutine's stack begins. `stack`: from its stack pointer on; on AArch64
/// the caller's frame pointer lies below that.
inline std::uintptr_t frame_on_goroutine(const machine_state& f, stack_bounds& stack) noexcept {
#if defined(__aarch64__)
  stack = stack.from(stack.begin() - 8);
  return f.sp + 16;
#else
  (void)stack;
  return f.fp + 16;
#endif
}

/// What a step has read.
struct places {
  std::uintptr_t return_address = 0, frame_pointer = 0;
};

/// The caller's frame, and the stack that it is on. False: there is none, or it is not known.
/// `is_readable(address, bytes)`: asked about what lies beside the stack.
template <class Readable>
bool step(machine_state& f, const frame_rule& rule, stack_bounds& stack, places& read,
          const Readable& is_readable) noexcept {
  const auto plus = [](std::uintptr_t from, std::int64_t bytes) { return from + static_cast<std::uintptr_t>(bytes); };
  std::uintptr_t cfa = 0;
  switch (rule.kind) {
    case frame_kind::none: return false;
    case frame_kind::stack_pointer: cfa = plus(f.sp, rule.cfa_offset); break;
    case frame_kind::on_other_stack:
      stack = goroutines_stack(plus(f.sp, rule.cfa_offset), stack, is_readable);
      if (!stack.is_known()) return false;
      f.sp = stack.begin();
      cfa = frame_on_goroutine(f, stack);
      break;
    case frame_kind::guessed:
      if (!stack.is_known()) return false;
      [[fallthrough]];
    case frame_kind::frame_pointer: cfa = plus(f.fp, rule.cfa_offset); break;
    case frame_kind::realigned:
      if (!stack.has(plus(f.fp, rule.cfa_offset))) return false;
      cfa = word_at(plus(f.fp, rule.cfa_offset));
      break;
  }
  const bool is_realigned = rule.kind == frame_kind::realigned;
  const bool is_beside_others = !is_realigned && rule.kind != frame_kind::on_other_stack;
  const std::uintptr_t return_address = plus(cfa, rule.return_address_words() * 8);
  if (cfa <= f.sp || rule.return_address_at == 0 || !stack.has(return_address)) return false;
  f.pc = without_signature(word_at(return_address));
  if (is_beside_others) read.return_address = return_address;
  if (is_realigned || rule.frame_pointer_at != 0) {
    read.frame_pointer = plus(is_realigned ? f.fp : cfa, rule.frame_pointer_at * 8);
    if (!stack.has(read.frame_pointer)) return false;
    f.fp = word_at(read.frame_pointer);
  }
  f.sp = cfa;
  return f.pc != 0;
}

}  // namespace heapwright::unwind
