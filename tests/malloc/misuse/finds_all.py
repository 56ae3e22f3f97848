#!/usr/bin/env python3
"""Whether a malloc finds each mistake of `corruptions`, or makes it harmless. A message must say what kind of mistake it is, but where a page was touched that cannot be.

    finds_all.py CORRUPTIONS LIBRARY
"""
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# By how the name of the mistake begins. Where the library cannot tell which of two it was, both.
SAYS = {
    "double-free/usable-size": "malloc_usable_size of a freed block",
    "double-free": "double free",
    "invalid/free-within": "free of a pointer into a block",
    "invalid/free-before": "free of a (pointer into a block|foreign pointer)",
    "invalid/realloc": "realloc of a pointer into a block",
    "invalid/usable-size": "malloc_usable_size of a pointer into a block",
    "foreign/free": "free of a foreign pointer",
    "foreign/realloc": "realloc of a foreign pointer",
    "wrong-size": "free with a wrong size",
    "wrong-alignment": "free with a wrong alignment",
    "mismatch": "free with the wrong function: .*allocated by .*freed by",
    "overflow": "write beyond a block|write after free",
    "underflow": "write before a block|write beyond a block|write after free",
    "write-after-free": "write after free",
    "size": "write beyond a block",
}

# The pages of such a block can be in other use by then, or free: then nothing is known of it.
IS_FORGOTTEN = re.compile(r"double-free/later/400000$")
FORGOTTEN = "free of a foreign pointer: .*no block of this heap begins there"


def fault(program, mistake, library):
    """What is wrong, or None."""
    try:
        done = subprocess.run([program, mistake], env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if done.returncode == -signal.SIGSEGV and re.search(r"^(over|under)flow/|/(400000|5000000)$|-no-bytes/", mistake):
        return None  # a guard page: of a large block, of one that is freed, or by chance behind a span; or a block of no bytes
    if done.returncode == -signal.SIGABRT:
        said = next((words for name, words in SAYS.items() if mistake.startswith(name)), "(nothing)")
        if IS_FORGOTTEN.match(mistake):
            said += "|" + FORGOTTEN
        return None if re.search(rf"^heapwright: ({said})", done.stderr) else done.stderr
    return None if done.returncode == 0 else f"exit code {done.returncode}: {done.stdout}{done.stderr}"


def main():
    program, library = sys.argv[1:]
    mistakes = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    with ThreadPoolExecutor(2) as pool:
        faults = dict(zip(mistakes, pool.map(lambda m: fault(program, m, library), mistakes)))
    for mistake, what in faults.items():
        if what is not None:
            print(f"{mistake}: {what}")
    sys.exit(1 if any(faults.values()) or len(mistakes) < 150 else 0)


if __name__ == "__main__":
    main()
