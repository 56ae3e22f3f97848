#!/usr/bin/env python3
"""Every call for memory may fail: under the shim `fail_nth`, the stress program runs once for each call that the malloc makes, with
that call failing, then with several in a row and with all that follow. It must end with its blocks' contents right each
time; nulls are allowed.

    failing_calls.py STRESS SHIM LIBRARY [RUNS]      at most RUNS of each kind (default 60), spread over the calls
"""
import os
import subprocess
import sys
import tempfile


def run(stress, preload, settings):
    environment = dict(os.environ, LD_PRELOAD=preload, STRESS_MAY_FAIL="1", HEAPWRIGHT_PURGE_DELAY_MS="0", **settings)
    return subprocess.run([stress, "2", "12000", "7"], env=environment, capture_output=True, text=True, timeout=120)


def main():
    stress, shim, library = sys.argv[1:4]
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    preload = f"{shim} {library}"
    with tempfile.NamedTemporaryFile() as report:
        undisturbed = run(stress, preload, {"FAIL_REPORT": report.name})
        calls = int(report.read() or 0)
    if undisturbed.returncode != 0 or calls < 20:
        sys.exit(f"without failures: exit {undisturbed.returncode}, {calls} calls counted\n{undisturbed.stderr}")
    failed = 0
    step = max(1, calls // runs)
    for count in ("1", "5", "0"):
        for call in list(range(1, min(runs, calls) // 4)) + list(range(min(runs, calls) // 4, calls + 1, step)):
            result = run(stress, preload, {"FAIL_FROM": str(call), "FAIL_COUNT": count})
            # 127: the process could not even be loaded, as before main there was no memory for the loader.
            if result.returncode not in (0, 127):
                failed += 1
                print(f"FAIL_FROM={call} FAIL_COUNT={count}: exit {result.returncode}\n{result.stderr}", file=sys.stderr)
    print(f"{calls} calls; {failed} runs failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
