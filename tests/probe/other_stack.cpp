// C that is called as Go's runtime calls it: on the thread's own stack, from a function whose frame
// is on a goroutine's. The calls there must be told; and where what the runtime keeps about that
// stack is wrong, the walk must end, and nothing else. Runs under the probe with an interval of 1.
//
//   other_stack CALL WRONG    CALL: which of the forms below; WRONG: what is spoilt, or "nothing"
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <sys/mman.h>

#include "own_segment.hpp"

// Frame pointers, but no tables: as Go's compiler and assembler have it.
//
//   on_goroutine(run, end)      calls run with the stack that ends there
//   as_VERSION(run, goroutine)  calls run on the thread's stack, as runtime.asmcgocall of that
//                               version of Go does; kept_at is then where it keeps the goroutine
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .globl on_goroutine
  .type on_goroutine, @function
on_goroutine:
  push %rbp
  mov %rsp, %rbp
  mov %rsp, thread_stack(%rip)
  mov %rsi, %rsp
  push %rbp
  xor %ebp, %ebp
  call *%rdi
  pop %rbp
  mov %rbp, %rsp
  pop %rbp
  ret
  .size on_goroutine, . - on_goroutine

  .macro calls_c name, room, prefix:vararg
  .globl \name
  .type \name, @function
\name:
  push %rbp
  mov %rsp, %rbp
  mov %rsp, %rdx
  mov thread_stack(%rip), %rsp
  sub $\room, %rsp
  and $-16, %rsp
  mov %rsi, \room - 8(%rsp)
  mov 8(%rsi), %rsi
  sub %rdx, %rsi
  mov %rsi, \room - 16(%rsp)
  lea \room - 8(%rsp), %rax
  mov %rax, kept_at(%rip)
  mov frame_pointer(%rip), %rax
  test %rax, %rax
  cmovne %rax, %rbp
  call *%rdi
  \prefix
  mov \room - 8(%rsp), %rdi
  mov 8(%rdi), %rsi
  sub \room - 16(%rsp), %rsi
  mov %rsi, %rsp
  pop %rbp
  ret
  .size \name, . - \name
  .endm
  calls_c as_1_26, 16
  calls_c as_1_26_position_independent, 16, mov $-8, %rcx
  calls_c as_1_26_shared, 16, mov kept_at(%rip), %rcx
  calls_c as_1_19, 56
  .popsection
)");
constexpr int from_goroutine_to_length = -8;
#else
asm(R"(
  .pushsection .text
  .globl on_goroutine
  .type on_goroutine, @function
on_goroutine:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  mov x19, sp
  adrp x9, thread_stack
  str x19, [x9, #:lo12:thread_stack]
  mov sp, x1
  mov x29, xzr
  blr x0
  mov sp, x19
  ldr x19, [sp, #16]
  ldp x29, x30, [sp], #32
  ret
  .size on_goroutine, . - on_goroutine

save_g:
  ret
  .globl as_1_26
  .type as_1_26, @function
as_1_26:
  str x30, [sp, #-16]!
  stur x29, [sp, #-8]
  sub x29, sp, #8
  str x28, [sp, #8]
  mov x2, sp
  mov x9, x0
  adrp x10, thread_stack
  ldr x10, [x10, #:lo12:thread_stack]
  sub sp, x10, #16
  str x1, [sp]
  ldr x5, [x1, #8]
  sub x5, x5, x2
  str x5, [sp, #8]
  mov x12, sp
  adrp x11, kept_at
  str x12, [x11, #:lo12:kept_at]
  mov x29, xzr
  blr x9
  mov x9, x0
  ldr x28, [sp]
  bl save_g
  ldr x5, [x28, #8]
  ldr x6, [sp, #8]
  sub x5, x5, x6
  mov x0, x9
  mov sp, x5
  ldr x28, [sp, #8]
  ldur x29, [sp, #-8]
  ldr x30, [sp], #16
  ret
  .size as_1_26, . - as_1_26
  .popsection
)");
constexpr int from_goroutine_to_length = 8;
#endif

extern "C" {
[[gnu::used]] std::uintptr_t thread_stack, kept_at, frame_pointer;
struct goroutine {
  std::uintptr_t lowest, end;
};
void on_goroutine(void (*run)(), std::uintptr_t end);
void as_1_26(void (*run)(), goroutine*);
#if defined(__x86_64__)
void as_1_26_position_independent(void (*run)(), goroutine*);
void as_1_26_shared(void (*run)(), goroutine*);
void as_1_19(void (*run)(), goroutine*);
#endif
}

namespace {

decltype(&as_1_26) call_c;
std::string_view wrong;
goroutine current;
void* block;

/// Return addresses, the innermost first: of the C function, then of the goroutine's functions.
std::array<std::uintptr_t, 3> expected;

/// Without its words: reads of it fail.
void* unreadable() { return ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/// For as long as C runs: the words are as they should be when it returns.
void spoil(std::uintptr_t& kept, std::uintptr_t& length) {
  if (wrong == "no_goroutine") kept = 0;
  if (wrong == "odd_goroutine") kept += 4;
  if (wrong == "unreadable_goroutine") kept = reinterpret_cast<std::uintptr_t>(unreadable());
  if (wrong == "end_below_lowest") current.end = current.lowest - 8;
  if (wrong == "longer_than_the_stack") length = current.end - current.lowest;
  if (wrong == "odd_length") length -= 4;
  if (wrong == "no_length") length = 0;
}

[[gnu::noinline]] void in_c() {
  expected[0] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  auto& kept = *reinterpret_cast<std::uintptr_t*>(kept_at);
  auto& length = *reinterpret_cast<std::uintptr_t*>(kept_at + from_goroutine_to_length);
  const std::uintptr_t right_kept = kept, right_length = length;
  const goroutine right = current;
  spoil(kept, length);
  block = std::malloc(5000);
  kept = right_kept;
  length = right_length;
  current = right;
  asm volatile("" : : : "memory");
}

[[gnu::noinline]] void remember() {
  expected[1] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  call_c(in_c, &current);
  asm volatile("" : : : "memory");
}

[[gnu::noinline]] void serve() {
  expected[2] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  remember();
  asm volatile("" : : : "memory");
}

/// The functions of the goroutine that are found, of two. Behind the C function's return address is
/// the one into remember(), or nothing.
int found_on_goroutine(const heapwright::segment::stack& s) {
  const auto* const calls = reinterpret_cast<const std::uint64_t*>(&s + 1);
  for (std::uint32_t i = 0; i < s.depth; ++i) {
    if (calls[i] != expected[0]) continue;
    if (i + 1 == s.depth) return 0;
    if (i + 3 < s.depth && calls[i + 2] == expected[1] && calls[i + 3] == expected[2]) return 2;
    break;
  }
  std::fprintf(stderr, "other_stack: other calls than there are:");
  for (std::uint32_t i = 0; i < s.depth; ++i) std::fprintf(stderr, " %lx", calls[i]);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

}  // namespace

int main(int, char** arguments) {
  wrong = arguments[2];
  call_c = as_1_26;
#if defined(__x86_64__)
  const std::string_view form = arguments[1];
  call_c = form == "as_1_19"                        ? as_1_19
           : form == "as_1_26_shared"               ? as_1_26_shared
           : form == "as_1_26_position_independent" ? as_1_26_position_independent
                                                    : as_1_26;
#endif
  constexpr std::size_t bytes = 64 * 1024;
  current.lowest = reinterpret_cast<std::uintptr_t>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  current.end = current.lowest + bytes;
  if (wrong == "frame_pointer_below") frame_pointer = current.lowest + 64;
  if (wrong == "frame_pointer_beyond") frame_pointer = current.end + 64;
  if (wrong == "small_frame_pointer") frame_pointer = 8;

  const probe_test::own_segment segment;
  const int right = wrong == "nothing" ? 2 : 0;
  for (int round = 0; round < 3; ++round) {  // stacks that are known by then, too
    on_goroutine(serve, current.end);
    const heapwright::segment::stack* const s = segment.stack_of(block);
    const int found = s == nullptr ? -1 : found_on_goroutine(*s);
    if (found != right) {
      std::fprintf(stderr, "other_stack: %d functions of the goroutine, and not %d\n", found, right);
      return 1;
    }
  }
}
