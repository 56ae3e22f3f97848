// A program that allocates a little and then ends in the way its argument names. Without an
// argument it prints a line.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* volatile kept;

static void wait_for_a_signal(void) {
  puts("ready");
  fflush(stdout);
  alarm(100);  // should the test not live to end it
  for (;;) pause();
}

static int child_ends_with(int code) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    kept = malloc(300000);
    exit(code);
  }
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  kept = malloc(1000000);
  memset(kept, 1, 1000000);
  if (strcmp(how, "exit") == 0) exit(5);
  if (strcmp(how, "late") == 0) exit(usleep(300000) + 5);
  if (strcmp(how, "_exit") == 0) _exit(6);
  if (strcmp(how, "quick_exit") == 0) quick_exit(7);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "term") == 0) raise(SIGTERM);
  if (strcmp(how, "fork") == 0) return child_ends_with(4);
  if (strcmp(how, "exec") == 0) execvp(argv[2], argv + 2);
  if (strcmp(how, "wait") == 0) wait_for_a_signal();
  if (strcmp(how, "print") == 0) puts("printed by the program");
  if (argc == 1) puts("ran");
  return 0;
}
