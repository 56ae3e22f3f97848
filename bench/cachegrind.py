"""What functions of a program cost in cachegrind's simulation: exact, and the same on every machine.

The simulated processor has caches as a core of today has them for itself, and a last level that is one program's share of a larger one. It has no
prefetcher: a miss that a real processor hides by reading ahead is counted. It has no TLB.
"""
import re
import subprocess
import tempfile

L1 = (32 * 1024, 8, 64)  # bytes, ways, bytes per line
LAST = (8 * 1024 * 1024, 16, 64)
CACHES = "first level 32 KiB, 8 ways; last level 8 MiB, 16 ways; lines of 64 bytes; no prefetcher"


def counts(command, functions, environment=None):
    """{event: count} of the functions whose name contains one of `functions`, and the same of all the program: (theirs, whole)."""
    with tempfile.NamedTemporaryFile(prefix="cachegrind.") as out:
        caches = [f"--{name}={size},{ways},{line}" for name, (size, ways, line) in (("I1", L1), ("D1", L1), ("LL", LAST))]
        result = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches, f"--cachegrind-out-file={out.name}", *map(str, command)],
                                env=environment, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} under cachegrind: {result.stderr}")
        theirs, whole = parsed(open(out.name), functions)
        if theirs.get("Ir", 0) == 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: no function is called {' or '.join(functions)}, or it did not run")
        return theirs, whole


def parsed(lines, functions):
    events, theirs, whole, is_theirs = [], {}, {}, False
    for line in lines:
        if line.startswith("events:"):
            events = line.split()[1:]
            theirs, whole = dict.fromkeys(events, 0), dict.fromkeys(events, 0)
        elif line.startswith("fn="):
            is_theirs = any(f in line for f in functions)
        elif re.match(r"\d", line):
            for event, count in zip(events, map(int, line.split()[1:])):
                whole[event] += count
                if is_theirs:
                    theirs[event] += count
    return theirs, whole


def first_level_misses(of):
    return of["D1mr"] + of["D1mw"]


def last_level_misses(of):
    """Of data: what has to come from memory."""
    return of["DLmr"] + of["DLmw"]
