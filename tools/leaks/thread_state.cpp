#include "thread_state.hpp"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

namespace heapwright::tool {
namespace {

template <class Registers>
bool read_set(pid_t thread, unsigned set, Registers& into) {
  iovec part{&into, sizeof into};
  return ptrace(PTRACE_GETREGSET, thread, set, &part) == 0 && part.iov_len == sizeof into;
}

}  // namespace

#if defined(__x86_64__)

std::uint64_t red_zone_bytes() { return 128; }

std::optional<thread_state> read_thread_state(pid_t thread) {
  user_regs_struct r{};
  if (!read_set(thread, NT_PRSTATUS, r)) return std::nullopt;
  return thread_state{r.rsp,
                      r.fs_base,
                      r.orig_rax,
                      {r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15},
                      {r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11}};
}

#elif defined(__aarch64__)

std::uint64_t red_zone_bytes() { return 0; }

std::optional<thread_state> read_thread_state(pid_t thread) {
  user_regs_struct r{};
  if (!read_set(thread, NT_PRSTATUS, r)) return std::nullopt;
  constexpr unsigned call_number = 8;
  constexpr unsigned first_kept = 19;
  const auto* const kept = std::begin(r.regs) + first_kept;
  thread_state state{r.sp, 0, r.regs[call_number], {kept, std::end(r.regs)}, {std::begin(r.regs), kept}};
  (void)read_set(thread, NT_ARM_TLS, state.thread_pointer);
  return state;
}

#else
#error "registers of this processor are not known"
#endif

}  // namespace heapwright::tool
