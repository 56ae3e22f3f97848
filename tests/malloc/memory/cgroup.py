#!/usr/bin/env python3
"""Under a memory limit of a cgroup, as in a container: programs that need less than the limit at any moment, but ask for much more
in address space or over time, run to their end and are not killed. Needs a cgroup (v1 or v2) in which we may make another;
where there is none the test is skipped.

    cgroup.py LIBRARY -- COMMAND...
"""
import os
import signal
import subprocess
import sys

LIMIT = 96 << 20
SKIPPED = 77


def make_group():
    """(directory, name of the limit's file) of a new group; None and a list of reasons where we may not."""
    reasons = []
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"),
                          ("/sys/fs/cgroup/unified", "memory.max")):
        directory = os.path.join(parent, f"heapwright-test-{os.getpid()}")
        try:
            os.mkdir(directory)
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
            continue
        if os.path.exists(os.path.join(directory, limit)):
            return directory, limit
        os.rmdir(directory)
        reasons.append(f"{parent}: no memory controller")
    print(f"skipped: no cgroup to be had: {'; '.join(reasons)}", file=sys.stderr)
    sys.exit(SKIPPED)


def main():
    library, command = sys.argv[1], sys.argv[3:]
    directory, limit = make_group()
    try:
        try:
            with open(os.path.join(directory, limit), "w") as f:
                f.write(str(LIMIT))
        except OSError as error:
            print(f"skipped: no limit can be set: {error.strerror}", file=sys.stderr)
            sys.exit(SKIPPED)

        def enter():
            with open(os.path.join(directory, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))

        result = subprocess.run(command, env=dict(os.environ, LD_PRELOAD=library), preexec_fn=enter, timeout=100)
        if result.returncode == -signal.SIGKILL:
            print("killed: it went over the limit", file=sys.stderr)
        sys.exit(0 if result.returncode == 0 else 1)
    finally:
        os.rmdir(directory)


if __name__ == "__main__":
    main()
