#!/usr/bin/env python3
"""Runs a command that must die of SIGABRT and say why: a line of its stderr matches PATTERN. What else it says is shown when it does not.

    dies.py PATTERN COMMAND...
"""
import re
import signal
import subprocess
import sys


def main():
    pattern, command = sys.argv[1], sys.argv[2:]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode == -signal.SIGABRT and re.search(pattern, result.stderr, re.MULTILINE):
        return
    sys.exit(f"expected SIGABRT and {pattern!r}, got exit {result.returncode} and: {result.stderr}")


if __name__ == "__main__":
    main()
