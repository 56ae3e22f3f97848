// as_linux_4_19 COMMAND ARGUMENT...: runs it where the system calls and the advice that came after
// Linux 4.19 are not known, nor rseq. For programs that ask the kernel and go by its answer; not
// for what Linux 4.19 does otherwise.
//
// 77: the kernel filters no system calls. 127: there is no such command.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(test, value, then, otherwise) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, then, otherwise)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

int main(int argc, char** argv) {
  enum { first_after_4_19 = 424, last_advice = 19 };  // pidfd_send_signal, MADV_KEEPONFORK
  struct sock_filter filter[] = {
      LOAD(nr),
      IF(BPF_JGE, first_after_4_19, 4, 0),
      IF(BPF_JEQ, SYS_rseq, 3, 0),
      IF(BPF_JEQ, SYS_madvise, 0, 3),
      LOAD(args[2]),
      IF(BPF_JGT, last_advice, 2, 1),
      ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
      ANSWER(SECCOMP_RET_ALLOW),
      ANSWER(SECCOMP_RET_ERRNO | EINVAL),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (argc < 2) return 127;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("as_linux_4_19: no filter of system calls");
    return 77;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
