/* A program's own side of `heapwright live`: it opens the page, names its phases, and tells of memory that no malloc gave out. For C and C++; live.hpp is
 * these calls in C++20. C99 and later, or C++11. Linux.
 *
 * All but heapwright_live_start speak to the probe (libheapwright-probe.so, which `heapwright live -- PROGRAM` preloads), found at run time: nothing is linked. In a
 * process without the probe they do nothing and say so.
 *
 * All are thread-safe. None throws. */
#ifndef HEAPWRIGHT_LIVE_H
#define HEAPWRIGHT_LIVE_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

extern char** environ;
#if !defined(__cplusplus) && !defined(_GNU_SOURCE)
extern int pipe2(int ends[2], int flags); /* not all of libc's headers are for all programs */
#endif
#ifdef O_CLOEXEC
enum { heapwright_live_close_on_exec = O_CLOEXEC };
#else
enum { heapwright_live_close_on_exec = 02000000 };
#endif

/** What a named meter shows: of requests, sizes in bytes as asked for. */
struct heapwright_live_meter {
  uint64_t allocations;   /**< requests that got memory */
  uint64_t deallocations; /**< blocks that were freed */
  uint64_t failures;      /**< requests that got nothing */
  uint64_t total_bytes;   /**< asked for by all allocations so far */
  uint64_t in_use;        /**< bytes of live blocks */
  uint64_t peak;          /**< the most that in_use ever was */
};

/** The probe's functions; all null where there is none. */
struct heapwright_live_probe {
  int (*mark)(const char* name);
  int (*reset)(void);
  int (*record_allocation)(const void* p, size_t bytes);
  void (*record_free)(const void* p, size_t bytes);
  int (*open_meter)(const char* name);
  void (*set_meter)(int meter, const struct heapwright_live_meter* figures);
  void (*close_meter)(int meter);
};

static inline const struct heapwright_live_probe* heapwright_live_find_probe(void) {
  static const struct heapwright_live_probe none = {0, 0, 0, 0, 0, 0, 0};
  static const struct heapwright_live_probe* found = 0;
  const struct heapwright_live_probe* p = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (p == 0) {
    p = (const struct heapwright_live_probe*)dlsym((void*)0 /* RTLD_DEFAULT */, "heapwright_live_probe_functions");
    if (p == 0) p = &none;
    __atomic_store_n(&found, p, __ATOMIC_RELEASE);
  }
  return p;
}

/** Names this moment: the page shows what has grown since. Up to 55 bytes of the name are kept, and the first 64 marks. 1: it was kept. */
static inline int heapwright_live_mark(const char* name) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  return probe->mark != 0 && probe->mark(name);
}

/** The peak begins again, from what is live. 1: it has. */
static inline int heapwright_live_reset(void) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  return probe->reset != 0 && probe->reset();
}

/** Counts memory that no malloc gave out, as if it had: in live bytes, the peak, size classes, and by call stack. For allocators over mmap and the like; not for those whose
 * memory is malloc's, which is counted already. `p`, of which 48 bits count, is no more than a name for the block, which must be told to heapwright_live_record_free, with as many bytes, before it
 * is told again. 1: it was counted. */
static inline int heapwright_live_record_allocation(const void* p, size_t bytes) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  return probe->record_allocation != 0 && probe->record_allocation(p, bytes);
}

/** The block by this name is free again; `bytes` as it was told. Without the probe it does nothing. */
static inline void heapwright_live_record_free(const void* p, size_t bytes) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  if (probe->record_free != 0) probe->record_free(p, bytes);
}

/** A meter by this name (up to 39 bytes) in the figures of the process; several may have the same. 64 at a time. Its number; negative: there is none. */
static inline int heapwright_live_open_meter(const char* name) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  return probe->open_meter != 0 ? probe->open_meter(name) : -1;
}

/** What it shows from now on. One thread at a time for each meter. */
static inline void heapwright_live_set_meter(int meter, const struct heapwright_live_meter* figures) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  if (meter >= 0 && probe->set_meter != 0) probe->set_meter(meter, figures);
}

/** It stays to be seen, until its place is needed for another. */
static inline void heapwright_live_close_meter(int meter) {
  const struct heapwright_live_probe* const probe = heapwright_live_find_probe();
  if (meter >= 0 && probe->close_meter != 0) probe->close_meter(meter);
}

/** Starts `heapwright live` for this process, which must have the probe or run on libheapwright: on `host` (an address; loopback where null) and `port` (0: any), until the process
 * ends. It is no child of this process when this returns: there is nothing to wait for. The program is that in the environment variable HEAPWRIGHT, or the first `heapwright`
 * in PATH. The page's address goes to `url`. Waits until the page can be seen, up to ten seconds. 0, or an error number: ECHILD where the viewer could not begin; what is wrong is on stderr. */
static inline int heapwright_live_start(const char* host, unsigned port, char* url, size_t url_bytes) {
  /* A reader of the program's output must see its end, also while the viewer runs. */
  static char in_background[] =
      "command -v \"$0\" >/dev/null || { echo \"heapwright: no program $0; set HEAPWRIGHT to where heapwright is\" "
      ">&2; exit; }\n"
      "\"$0\" \"$@\" </dev/null >/dev/null &";
  static char shell[] = "sh", take_words[] = "-c", live[] = "live", host_is[] = "--host", port_is[] = "--port",
              quiet[] = "--no-browser", ends_with_it[] = "--exit-with-program", tell[] = "--ready-fd", three[] = "3";
  char usual[] = "heapwright", loopback[] = "127.0.0.1", port_text[12], pid_text[24], answer[512];
  char* const named = getenv("HEAPWRIGHT");
  char* const arguments[] = {shell,
                             take_words,
                             in_background,
                             named != 0 && *named != '\0' ? named : usual,
                             live,
                             host_is,
                             host != 0 ? (char*)(uintptr_t)host : loopback,
                             port_is,
                             port_text,
                             quiet,
                             ends_with_it,
                             tell,
                             three,
                             pid_text,
                             0};
  size_t count = 0, kept = 0, length = 0;
  char** environment;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  pid_t child = 0;
  int ends[2], error;
  const time_t until = time(0) + 10;
  const int has_stderr = fcntl(STDERR_FILENO, F_GETFD) >= 0;

  snprintf(port_text, sizeof port_text, "%u", port);
  snprintf(pid_text, sizeof pid_text, "%ld", (long)getpid());
  if (url != 0 && url_bytes > 0) *url = '\0';
  while (environ[count] != 0) ++count;
  environment = (char**)malloc((count + 1) * sizeof *environment);
  if (environment == 0) return ENOMEM;
  /* What is preloaded here, the probe above all, is not for the viewer. */
  for (size_t i = 0; i < count; ++i)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) environment[kept++] = environ[i];
  environment[kept] = 0;
  if (pipe2(ends, heapwright_live_close_on_exec) != 0) {
    error = errno;
    free(environment);
    return error;
  }
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* until it is known which process the viewer is */
#endif
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
  if (!has_stderr) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, 0x80); /* POSIX_SPAWN_SETSID: ctrl-C is for the program */
  error = posix_spawnp(&child, "/bin/sh", &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  free(environment);
  close(ends[1]);
  if (error == 0) {
    while (waitpid(child, 0, 0) < 0 && errno == EINTR) {
    }
    /* One line: the page's address, a space, and the viewer's process id. Or nothing, when it could not begin. */
    while (length < sizeof answer - 1 && (length == 0 || answer[length - 1] != '\n') && time(0) <= until) {
      struct pollfd from = {ends[0], POLLIN, 0};
      const int ready = poll(&from, 1, 100);
      ssize_t n;
      if (ready <= 0) continue; /* a signal, perhaps of a timer: no matter how many */
      n = read(ends[0], answer + length, sizeof answer - 1 - length);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      length += (size_t)n;
    }
  }
  close(ends[0]);
  answer[length] = '\0';
  char* const space = strchr(answer, ' ');
  if (error == 0 && space == 0) error = ECHILD;
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, error == 0 ? strtoul(space, 0, 10) : 0, 0, 0, 0);
#endif
  if (error != 0) return error;
  *space = '\0';
  if (url != 0 && url_bytes > 0) snprintf(url, url_bytes, "%s", answer);
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
