#!/usr/bin/env python3
"""A program that needs no memory must not pay for ours: hello world has at most 272 KiB more resident than under glibc, and 288 at
its peak, which the kernel counts with an error. And where the system gives huge pages unasked, none of its mappings is one it would give them to.

How much of libc the kernel maps around a fault depends on where libc happens to lie. One run differs from the next by 65 KiB
(standard deviation), so we take means of a thousand runs, which vary by 2 KiB. It also depends on the pieces in which libc is in the
page cache: half a megabyte more after it has been written to a disk. In a tmpfs the pieces are single pages: copies of libc and of
our library are used that lie there.

    hello_rss.py HELLO LIBRARY [KIB]     KIB: what is allowed instead, for a library that is no release
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

RUNS = 1000
COPIES = 3  # each lies elsewhere in memory


def mean_bytes(hello, preload, libraries):
    figures = []
    for _ in range(RUNS):
        environment = dict(os.environ, LD_PRELOAD=preload, HEAPWRIGHT_VERBOSE="1", LD_LIBRARY_PATH=libraries)
        out = subprocess.run([hello], env=environment, capture_output=True, text=True, check=True)
        if preload and "loaded into process" not in out.stderr:
            sys.exit(f"the library is not in the process: {out.stderr}")
        resident, peak, eligible = (int(n) for n in out.stdout.splitlines()[1].split())
        if eligible > 0:
            sys.exit(f"{eligible >> 20} MiB may come to lie in huge pages")
        # The kernel's account of the peak lags behind by some hundred KiB; what is resident is exact.
        figures.append((resident, max(resident, peak)))
    return [statistics.mean(column) for column in zip(*figures)]


def copy_of_libc(hello, folder):
    """The folder with a copy of the program's libc in it, or "" if programs cannot be loaded from there."""
    listed = subprocess.run(["ldd", hello], capture_output=True, text=True, check=True).stdout
    shutil.copy(re.search(r"/\S*libc\.so\S*", listed)[0], folder)
    tried = subprocess.run([hello], env=dict(os.environ, LD_LIBRARY_PATH=folder), capture_output=True, check=False)
    return folder if tried.returncode == 0 else ""


def main():
    hello, library = sys.argv[1:3]
    allowed = 1024 * (int(sys.argv[3]) if len(sys.argv) > 3 else 272)
    error_of_peak = 16 * 1024
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    differences = []
    for _ in range(COPIES):
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            libraries = copy_of_libc(hello, folder)
            copy = shutil.copy(library, folder) if libraries else library
            glibc, ours = mean_bytes(hello, "", libraries), mean_bytes(hello, copy, libraries)
        differences.append([mine - theirs for theirs, mine in zip(glibc, ours)])
    failed = False
    for name, values in zip(("resident", "peak"), zip(*differences)):
        print(f"{name}: {statistics.median(values) / 1024:.0f} KiB more than under glibc ({', '.join(f'{v / 1024:.0f}' for v in values)})")
        failed = failed or statistics.median(values) > allowed + (error_of_peak if name == "peak" else 0)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
