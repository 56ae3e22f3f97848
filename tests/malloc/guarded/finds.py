#!/usr/bin/env python3
"""Runs a program that makes one mistake again and again, one in 100 of whose allocations is guarded. The report must match. Of several threads
that make it at one time each run must have one: that takes some runs.

    finds.py PATTERN PROGRAM MISTAKE [THREADS]
"""
import os
import re
import subprocess
import sys


def is_found(pattern, command):
    done = subprocess.run(command, env={**os.environ, "HEAPWRIGHT_GUARD_SAMPLE": "100"}, capture_output=True, text=True, timeout=100)
    print(done.returncode, done.stderr)
    is_told = re.search(f"^heapwright: {pattern}", done.stderr, re.DOTALL | re.MULTILINE)
    # A report that names no function of the program is of no use.
    is_named = re.search(r"^    #\d+ .*(\(anonymous namespace\)|/guarded\+0x)", done.stderr, re.MULTILINE)
    survives = {"own_handler": 7, "in_child": 0, "jumping": 0}
    is_ended = done.returncode == survives[command[1]] if command[1] in survives else done.returncode < 0
    return is_told and is_named and is_ended


def main():
    pattern, *command = sys.argv[1:]
    has_threads = len(command) > 2
    sys.exit(0 if all(is_found(pattern, command) for _ in range(40 if has_threads else 1)) else 1)


if __name__ == "__main__":
    main()
