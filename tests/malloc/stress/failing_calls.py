#!/usr/bin/env python3
"""Every call for memory may fail: under the shim `fail_nth`, a stress program runs once for each call that the malloc makes, with
that call failing, then with several in a row and with all that follow. It must end with its blocks' contents right each
time; nulls are allowed.

    failing_calls.py SHIM LIBRARY RUNS COMMAND...      at most RUNS of each kind, the first calls densely, then spread
"""
import os
import subprocess
import sys
import tempfile

LOADER_FAILED = 127  # the first calls may come before main, where the loader itself needs memory


def run(command, preload, settings):
    environment = dict(os.environ, LD_PRELOAD=preload, STRESS_MAY_FAIL="1", HEAPWRIGHT_PURGE_DELAY_MS="0", **settings)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def chosen(calls, runs):
    first = min(runs // 4, calls)
    step = max(1, (calls - first) // (runs - first))
    return list(range(1, first + 1)) + list(range(first + 1, calls + 1, step))


def main():
    shim, library, runs, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    preload = f"{shim} {library}"
    with tempfile.NamedTemporaryFile() as report:
        undisturbed = run(command, preload, {"FAIL_REPORT": report.name})
        calls = int(report.read() or 0)
    if undisturbed.returncode != 0 or calls < 10:
        sys.exit(f"without failures: exit {undisturbed.returncode}, {calls} calls counted\n{undisturbed.stderr}")
    failed = 0
    for count in ("1", "5", "0"):
        for call in chosen(calls, runs):
            result = run(command, preload, {"FAIL_FROM": str(call), "FAIL_COUNT": count})
            if result.returncode not in (0, LOADER_FAILED):
                failed += 1
                print(f"FAIL_FROM={call} FAIL_COUNT={count}: exit {result.returncode}\n{result.stderr}", file=sys.stderr)
    print(f"{calls} calls; {failed} runs failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
