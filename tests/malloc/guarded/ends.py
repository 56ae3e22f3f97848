#!/usr/bin/env python3
"""Runs a program that must end by SIGSEGV, without a word.

    ends.py PROGRAM ARGUMENTS
"""
import signal
import subprocess
import sys

done = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=60)
print(done)
sys.exit(0 if done.returncode == -signal.SIGSEGV and done.stderr == "" else 1)
