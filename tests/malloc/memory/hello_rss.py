#!/usr/bin/env python3
"""A program that needs no memory must not pay for ours: hello world has at most 256 KiB more resident than under glibc, now and
at its peak. Means of many runs, for single ones differ by 200 KiB: how much of libc the kernel maps around a fault depends on where
libc happens to lie. And where the system gives huge pages unasked, none of its mappings is one it would give them to.

    hello_rss.py HELLO LIBRARY
"""
import os
import statistics
import subprocess
import sys

ALLOWED = 256 * 1024


RUNS = 50


def mean_bytes(hello, preload):
    figures = []
    for _ in range(RUNS):
        environment = dict(os.environ, LD_PRELOAD=preload, HEAPWRIGHT_VERBOSE="1")
        out = subprocess.run([hello], env=environment, capture_output=True, text=True, check=True)
        if preload and "loaded into process" not in out.stderr:
            sys.exit(f"the library is not in the process: {out.stderr}")
        resident, peak, eligible = (int(n) for n in out.stdout.splitlines()[1].split())
        if eligible > 0:
            sys.exit(f"{eligible >> 20} MiB may come to lie in huge pages")
        # The kernel's account of the peak lags behind by some hundred KiB; what is resident is exact.
        figures.append((resident, max(resident, peak)))
    return [statistics.mean(column) for column in zip(*figures)]


def main():
    hello, library = sys.argv[1:3]
    glibc, ours = mean_bytes(hello, ""), mean_bytes(hello, library)
    failed = False
    for name, theirs, mine in zip(("resident", "peak"), glibc, ours):
        print(f"{name}: {mine / 1024:.0f} KiB, glibc {theirs / 1024:.0f} KiB, difference {(mine - theirs) / 1024:.0f} KiB")
        failed = failed or mine > theirs + ALLOWED
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
