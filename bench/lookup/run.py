"""How free finds a block's span: the heap's page map beside headers found by masking the address, and a search in sorted ranges. Times in interleaved rounds, a
process per figure, as ratios within a round; instructions and cache misses by cachegrind. bench/lookup/main.cpp says what is measured.

usage: script/bench lookup [--quick] [--rounds N] [--json FILE]
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cachegrind

PROGRAM = ROOT / "build/release/bin/lookup_bench"
MAPS = ["page-map", "mask", "coloured", "search"]
SPANS = [10, 1_000, 100_000]
LOOKUPS, REGISTRATIONS = 1 << 18, 1000
FUNCTIONS = {"lookup": ("look_up_all", LOOKUPS), "free": ("free_all", LOOKUPS), "register": ("register_some", REGISTRATIONS)}
# Bytes that only the lookup needs, for a span of 16 KiB. Each has a record of the span besides.
METADATA = {"page-map": "48: 12 for each page, apart from the blocks", "mask": "64: a block's room in each span, which has to be aligned to its size",
            "coloured": "64 likewise", "search": "16, in one piece"}


def rows(quick):
    spans = SPANS[:-1] if quick else SPANS
    return [("lookup", n, a) for n in spans for a in ("random", "local")] + [("free", n, a) for n in spans for a in ("random", "local")] + [
        ("register", n, "random") for n in spans]


def command(work, a_map, spans, access, passes):
    return [PROGRAM, work, a_map, str(spans), access, str(passes)]


def timed(all_rows, rounds):
    """{(row, map): [nanoseconds of a round]}"""
    times = {(row, m): [] for row in all_rows for m in MAPS}
    for number in range(rounds):
        if sys.stderr.isatty():
            print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        for row in all_rows:
            work, spans, access = row
            for i in range(len(MAPS)):
                m = MAPS[(i + number) % len(MAPS)]
                result = subprocess.run(command(work, m, spans, access, 5), capture_output=True, text=True)
                if result.returncode != 0:
                    sys.exit(result.stderr)
                times[row, m].append(json.loads(result.stdout)["ns"])
    return times


def simulated(row, a_map):
    """Instructions and misses per operation: the difference of a long and a short run, so of passes that find the caches as one before has left them."""
    work, spans, access = row
    function, operations = FUNCTIONS[work]
    few, many = (cachegrind.counts(command(work, a_map, spans, access, passes), [function])[0] for passes in (1, 3))
    per = {event: (many[event] - few[event]) / 2 / operations for event in many}
    return {"instructions": per["Ir"], "first_level_misses": cachegrind.first_level_misses(per), "last_level_misses": cachegrind.last_level_misses(per)}


def table(all_rows, times):
    result = []
    for row in all_rows:
        work, spans, access = row
        for m in MAPS:
            if sys.stderr.isatty():
                print(f"\rcachegrind: {work} {m}, {spans} spans    ", end="", file=sys.stderr, flush=True)
            result.append({"work": work, "spans": spans, "access": access, "map": m, "ns": statistics.median(times[row, m]),
                           "ratio": statistics.median(t / p for t, p in zip(times[row, m], times[row, "page-map"])), **simulated(row, m)})
    return result


def show(result):
    print(f"{'':32}{'map':12}{'ns':>11}{'ratio':>10}{'instr.':>10}{'L1 misses':>11}{'LL misses':>11}")
    last = None
    for r in result:
        name = f"{r['work']}, {r['spans']:,} spans" + (f", {r['access']}" if r["work"] != "register" else "")
        print(f"{name if name != last else '':32}{r['map']:12}{r['ns']:>11.2f}{r['ratio']:>10.2f}{r['instructions']:>10.1f}{r['first_level_misses']:>11.2f}{r['last_level_misses']:>11.2f}")
        last = name
    print("\nratio: time to that of the page map, within a round; less is better. Misses of data per operation, simulated: " + cachegrind.CACHES)
    for m in MAPS:
        print(f"bytes per span of 16 KiB, {m}: {METADATA[m]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="script/bench lookup")
    parser.add_argument("--quick", action="store_true", help="without 100,000 spans, three rounds")
    parser.add_argument("--rounds", type=int, help="3 with --quick, otherwise 11")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rounds = (3 if arguments.quick else 11) if arguments.rounds is None else arguments.rounds
    if rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {arguments.json.absolute().parent}")
    all_rows = rows(arguments.quick)
    result = table(all_rows, timed(all_rows, rounds))
    if sys.stderr.isatty():
        print("\r" + 60 * " " + "\r", end="", file=sys.stderr)
    show(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
