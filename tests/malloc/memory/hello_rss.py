#!/usr/bin/env python3
"""A program that needs no memory must not pay for ours: hello world has at most 256 KiB more resident than under glibc, now and
at its peak. Medians of several runs, as the kernel maps library pages around a fault by chance.

    hello_rss.py HELLO LIBRARY
"""
import os
import statistics
import subprocess
import sys

ALLOWED = 256 * 1024


def median_bytes(hello, preload):
    figures = []
    for _ in range(9):
        environment = dict(os.environ, LD_PRELOAD=preload, HEAPWRIGHT_VERBOSE="1")
        out = subprocess.run([hello], env=environment, capture_output=True, text=True, check=True)
        if preload and "loaded into process" not in out.stderr:
            sys.exit(f"the library is not in the process: {out.stderr}")
        figures.append([int(n) for n in out.stdout.splitlines()[1].split()])
    return [statistics.median(column) for column in zip(*figures)]


def main():
    hello, library = sys.argv[1:3]
    glibc, ours = median_bytes(hello, ""), median_bytes(hello, library)
    failed = False
    for name, theirs, mine in zip(("resident", "peak"), glibc, ours):
        print(f"{name}: {mine / 1024:.0f} KiB, glibc {theirs / 1024:.0f} KiB, difference {(mine - theirs) / 1024:.0f} KiB")
        failed = failed or mine > theirs + ALLOWED
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
