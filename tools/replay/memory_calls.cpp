#include "memory_calls.hpp"

#include <atomic>
#include <cstddef>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heapwright::replay {
namespace {

std::atomic<std::uint64_t> calls{0};
std::atomic<int> listener{0};  ///< where the kernel asks; 0: not yet, less: never

/// Until the process ends.
void* let_pass(void*) noexcept {
  while (listener.load(std::memory_order_acquire) == 0) usleep(100);
  const int fd = listener.load(std::memory_order_relaxed);
  if (fd < 0) return nullptr;
  for (;;) {
    seccomp_notif asked{};
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
    calls.fetch_add(1, std::memory_order_relaxed);
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

/// A descriptor; less than 0: it is not allowed.
int ask_about_memory_calls() noexcept {
  constexpr std::uint32_t counted[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mprotect, SYS_brk};
  constexpr auto count = static_cast<std::uint8_t>(std::size(counted));
  sock_filter program[count + 3] = {};
  program[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr)));
  for (std::uint8_t i = 0; i < count; ++i)
    program[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, counted[i], static_cast<std::uint8_t>(count - i), 0);
  program[count + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[count + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

}  // namespace

bool count_memory_calls() noexcept {
  // First the thread: of what it needs itself nobody is asked.
  pthread_t answering{};
  if (pthread_create(&answering, nullptr, let_pass, nullptr) != 0) return false;
  pthread_detach(answering);
  const int fd = ask_about_memory_calls();
  listener.store(fd > 0 ? fd : -1, std::memory_order_release);
  return fd > 0;
}

std::uint64_t memory_calls() noexcept { return calls.load(std::memory_order_relaxed); }

}  // namespace heapwright::replay
