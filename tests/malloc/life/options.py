#!/usr/bin/env python3
"""Options from the environment: each does what its name says, a bad value is reported once by name and the program goes on as if
it had not been given, and a program that is run with more rights than its caller has ignores all of them.

    options.py PROGRAM LIBRARY              the library preloaded
    options.py PROGRAM                      a program with the library in it
    options.py --setuid LINKED_PROGRAM      a program linked to the library, made setuid; needs root

PROGRAM exits with 0, and says nothing of its own.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(command, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HEAPWRIGHT_")}
    return subprocess.run(command, env=dict(clean, **environment), capture_output=True, text=True, timeout=60)


def expect(result, *patterns):
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr}"
    lines = result.stderr.splitlines()
    for pattern in patterns:
        assert sum(bool(re.search(pattern, line)) for line in lines) == 1, f"not once {pattern!r} in: {result.stderr!r}"
    if not patterns:
        assert lines == [], f"expected silence: {result.stderr!r}"


def check_options(program, library=""):
    def with_options(**options):
        return run([program], LD_PRELOAD=library, **options)

    expect(with_options())
    expect(with_options(HEAPWRIGHT_VERBOSE="1"), r"^heapwright \S+ \(\w+\): loaded into process \d+$")
    expect(with_options(HEAPWRIGHT_STATS="1"), r"^heapwright .*process \d+: .*" + re.escape(os.path.basename(program)) + "$",
           r"records, in memory +[\d.]+ KiB", r"records, reserved +[\d.]+ \w+", r"mapped at the peak +[\d.]+ \w+")
    expect(with_options(HEAPWRIGHT_PURGE_DELAY_MS="0"))
    expect(with_options(HEAPWRIGHT_PURGE_DELAY_MS="1000"))
    for bad in ("abc", "", "-1", "1x", " 5", "99999999999999999999999999", "0x10"):
        expect(with_options(HEAPWRIGHT_PURGE_DELAY_MS=bad), r"^heapwright: HEAPWRIGHT_PURGE_DELAY_MS=" + re.escape(bad) + " ")
    expect(with_options(HEAPWRIGHT_STATS="2"), r"^heapwright: HEAPWRIGHT_STATS=2 ")
    expect(with_options(HEAPWRIGHT_PURGE_DELAY_MS="9" * 3000), r"^heapwright: HEAPWRIGHT_PURGE_DELAY_MS=9999")


def check_setuid(linked):
    if os.geteuid() != 0:
        print("skipped: only root can make a program setuid to another user and run it as a third", file=sys.stderr)
        sys.exit(SKIPPED)
    options = {"HEAPWRIGHT_VERBOSE": "1", "HEAPWRIGHT_STATS": "1", "HEAPWRIGHT_PURGE_DELAY_MS": "abc"}
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = os.path.join(directory, "program")
        shutil.copy(linked, program)
        os.chmod(program, 0o755)
        as_another = ["setpriv", "--reuid", "65534", "--clear-groups", program]
        ordinary = run(as_another, **options)
        if ordinary.returncode != 0 or "loaded into process" not in ordinary.stderr:
            print(f"skipped: user 65534 cannot run the program with its library: {ordinary.stderr}", file=sys.stderr)
            sys.exit(SKIPPED)
        os.chmod(program, 0o4755)
        expect(run(as_another, **options))


if __name__ == "__main__":
    check_setuid(sys.argv[2]) if sys.argv[1] == "--setuid" else check_options(*sys.argv[1:3])
