#include "memory_calls.hpp"

#include <atomic>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

// Makes a system call; its last instruction but the return is at heapwright_passed_call.
extern "C" long heapwright_system_call(long number, long a, long b, long c, long d, long e, long f) noexcept;
extern "C" const char heapwright_passed_call[];

#if defined(__x86_64__)
asm(R"(
  .text
  .globl heapwright_system_call, heapwright_passed_call
  .hidden heapwright_system_call, heapwright_passed_call
  .type heapwright_system_call, @function
heapwright_system_call:
  .cfi_startproc
  endbr64
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
heapwright_passed_call:
  ret
  .cfi_endproc
  .size heapwright_system_call, . - heapwright_system_call
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl heapwright_system_call, heapwright_passed_call
  .hidden heapwright_system_call, heapwright_passed_call
  .type heapwright_system_call, %function
heapwright_system_call:
  .cfi_startproc
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  svc #0
heapwright_passed_call:
  ret
  .cfi_endproc
  .size heapwright_system_call, . - heapwright_system_call
)");
#endif

namespace heapwright::replay {
namespace {

std::atomic<std::uint64_t> calls{0};

void pass_on(int, siginfo_t*, void* context) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  mcontext_t& at = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  greg_t* const r = at.gregs;
  r[REG_RAX] =
      heapwright_system_call(r[REG_RAX], r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
#elif defined(__aarch64__)
  auto* const r = at.regs;
  const auto word = [&](int i) { return static_cast<long>(r[i]); };
  r[0] = static_cast<unsigned long long>(
      heapwright_system_call(word(8), word(0), word(1), word(2), word(3), word(4), word(5)));
#endif
}

}  // namespace

bool count_memory_calls() noexcept {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;

  const auto passed = reinterpret_cast<std::uintptr_t>(heapwright_passed_call);
  const auto low = static_cast<std::uint32_t>(passed), high = static_cast<std::uint32_t>(passed >> 32);
  constexpr auto word_at = [](std::size_t offset) { return static_cast<std::uint32_t>(offset); };
  constexpr std::size_t instruction = offsetof(seccomp_data, instruction_pointer);
  constexpr std::uint32_t counted[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mprotect, SYS_brk};
  constexpr std::uint8_t count = sizeof counted / sizeof counted[0];
  sock_filter program[count + 8] = {};
  std::size_t n = 0;
  program[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word_at(offsetof(seccomp_data, nr)));
  for (std::uint8_t i = 0; i < count; ++i)
    program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, counted[i], static_cast<std::uint8_t>(count - i), 0);
  program[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word_at(instruction));
  program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 3);
  program[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word_at(instruction + 4));
  program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 1);
  program[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  const sock_fprog filter{static_cast<unsigned short>(n), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::uint64_t memory_calls() noexcept { return calls.load(std::memory_order_relaxed); }

}  // namespace heapwright::replay
