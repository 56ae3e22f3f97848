"""Runs kit_bench in interleaved rounds: the kit, std::pmr and Boost, and malloc once more under each preloaded peer. Prints a table
per system, the seed's speed-up over its own malloc beside ours; optionally writes JSON and a plot per row.

usage: script/bench kit [--quick] [--rounds N] [--json FILE] [--plots FOLDER] [ROW...]    ROW: how a name begins, as S0/list
       script/bench kit --first [--rounds N] [--json FILE]    S2 for the first time in a process: nothing is warm. Medians of 41 rounds.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
PEERS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
OURS = {
    "S0": ["best_fit", "best_fit merging", "pools", "arena", "arena, nothing back",
           "best_fit shards", "best_fit shards, deferred", "best_fit, one lock"],
    "S1": ["arena", "arena, nothing back"],
    "S2": ["slab", "segregated slabs", "pool"],
    "S3": ["pool", "compact copy in a pool"],
}
FLOORS = ["floor", "floor, bump", "floor, lists"]  # what the rest of the row costs: memory without an allocator

QUICK_SIZES = {1, 2, 8, 16, 50, 64, 100, 112, 144, 400, 950, 1000, 1024, 4000, 32768}

# The seeds' own speed-up over their system's malloc, by row and size; a row without sizes has one for all.
SIZES = [1024, 2048, 4096, 8192, 16384, 32768]


def of_pairs(text):
    """"ours|theirs ..." per size, as the seed printed them."""
    return {n: float(b) / float(a) for n, (a, b) in zip(SIZES, (pair.split("|") for pair in text.split()))}


HEADLINES = {
    "S0/vector push_back": of_pairs("1.8|2.6 2.3|3.2 3.2|4.2 5.2|6.3 9.4|10.7 18.6|19.6"),
    "S0/deque push_back": of_pairs("2.4|3.0 3.6|4.6 5.8|7.9 10.3|14.2 19.2|27.1 36.6|53.4"),
    "S0/deque pop_front": of_pairs("1.6|1.8 2.0|2.5 2.7|3.8 4.0|6.2 6.8|11.2 12.5|21.0"),
    "S0/deque both": of_pairs("3.1|3.4 4.4|5.5 7.5|9.6 13.9|18.2 25.7|35.2 50.5|68.8"),
    "S0/list push_back": of_pairs("6.9|26.3 12.5|51.8 24.1|103.4 51.1|203.7 93.0|408.9 186.9|812.9"),
    "S0/list pop_front": of_pairs("5.9|34.0 10.8|67.9 21.3|134.9 41.0|274.0 85.4|547.7 148.5|1084.2"),
    "S0/list both": of_pairs("8.6|39.9 16.3|78.4 33.5|156.8 68.9|316.4 152.4|638.8 348.1|1276.4"),
    "S0/list of strings push_back": of_pairs("543.2|3569.2 1727.3|9743.8 3770.5|23369.3 8599.2|58418.5 21685.6|120360.0 70585.9|268069.0"),
    "S0/list of strings pop_front": of_pairs("30.9|1504.1 135.5|3196.7 328.4|5267.2 696.6|12642.3 1455.6|28169.7 2985.3|70063.7"),
    "S0/list of strings both": of_pairs("548.1|1031.8 1885.8|4147.5 4209.9|13091.0 10105.8|32339.7 24767.0|74833.7 84584.5|168244.0"),
    "S0/map insert": of_pairs("28.8|49.2 60.3|102.0 127.8|221.3 268.1|490.6 568.8|1002.4 1222.8|2354.8"),
    "S0/map erase": of_pairs("16.9|57.1 31.9|111.1 64.0|221.5 122.4|439.5 245.7|801.9 522.7|1564.6"),
    "S0/map both": of_pairs("44.5|79.2 99.7|166.3 216.3|360.1 473.7|763.3 1020.5|1573.7 2218.1|3261.7"),
    "S0/unordered_map insert": of_pairs("17.5|42.5 35.9|80.8 69.0|153.8 147.1|331.3 300.3|606.0 569.6|1282.3"),
    "S0/unordered_map erase": of_pairs("10.7|38.9 19.8|78.6 37.4|162.5 68.6|357.8 143.5|674.3 265.4|1327.1"),
    "S0/unordered_map both": of_pairs("28.2|61.6 55.0|127.1 114.7|233.9 219.7|492.6 442.7|975.7 908.8|1928.0"),
    "S1/vector of 100": dict(zip([8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192], [2.2, 2.6, 2.9, 3.1, 3.5, 3.9, 4.4, 93, 150, 190, 230])),
    "S2/100 blocks of": {0x10: 3.58, 0x40: 2.81, 0x70: 1.85, 0x90: 2.53},
    "S2/600 blocks of": {0x10: 1.78, 0x40: 0.87, 0x70: 0.55, 0x90: 1.43},
    "S3/pairs": dict.fromkeys([1, 10, 100, 1000], 80 / 5),  # "2-5 ns" against "80 ns"
}


def cells_of(program, arguments):
    """[(system, row, memory, size, full name)], those asked for."""
    listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        system, row, memory, size = name.split("/")[:4]
        asked = not arguments.rows or any(f"{system}/{row}".startswith(r) for r in arguments.rows)
        if asked and (not arguments.quick or int(size) in QUICK_SIZES):
            yield system, row, memory, int(size), name


def nanoseconds(program, name, library):
    """Of one cell, in a process of its own: what malloc did before changes what it does. (glibc keeps more once large blocks were freed.)"""
    environment = dict(os.environ)
    if library:
        environment["LD_PRELOAD"] = str(library)
    command = [program, f"--benchmark_filter=^{name}$", "--benchmark_format=json"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{name}: {result.stderr[-2000:]}")
    return json.loads(result.stdout)["benchmarks"][0]["ns"]


def measure(arguments):
    """A {(system, row, memory, size): ns} per round."""
    cells = list(cells_of(arguments.program, arguments))
    if not cells:
        sys.exit(f"no row begins with {' or '.join(arguments.rows)}")
    runs = [(cell, cell[2], None) for cell in cells]
    for name, file in PEERS.items():
        if (LIBRARIES / file).exists():
            runs += [(cell, name, LIBRARIES / file) for cell in cells if cell[2] == "malloc"]
    # What is compared runs one after another.
    runs.sort(key=lambda run: (run[0][0], run[0][1], run[0][3]))
    rounds = []
    for number in range(arguments.rounds):
        times = {}
        for done, ((system, row, _, size, name), memory, library) in enumerate(runs):
            if done % 20 == 0:
                print(f"\rround {number + 1} of {arguments.rounds}: {100 * done // len(runs)} %   {system}/{row:30}", end="", file=sys.stderr, flush=True)
            times[system, row, memory, size] = nanoseconds(arguments.program, name, library)
        rounds.append(times)
    print("\r" + 80 * " " + "\r", end="", file=sys.stderr, flush=True)
    return rounds


def table(rounds):
    """Rows of the JSON. A figure is the least of the rounds: what disturbs a run only adds, here by half as much again for seconds at a time, so
    that even medians of two runs of the same code differ by a fifth."""
    least = {cell: min(times[cell] for times in rounds) for cell in rounds[0]}
    result = []
    for system, row, size in sorted({(s, r, n) for s, r, _, n in least}):
        of = {m: ns for (s, r, m, n), ns in least.items() if (s, r, n) == (system, row, size)}
        floors = [of.pop(m) for m in FLOORS if m in of]
        best = min((m for m in OURS[system] if m in of), key=of.get, default=None)
        if best is None or "malloc" not in of:
            continue
        result.append({
            "system": system, "row": row, "size": size, "ours": best, "ours_ns": of[best], "glibc_ns": of["malloc"],
            "speedup": of["malloc"] / of[best],
            "speedups": {m: of["malloc"] / of[m] for m in OURS[system] if m in of},
            "others": {m: ns for m, ns in sorted(of.items()) if m not in ("malloc", best)},
            "floor_ns": min(floors, default=None),
            "headline": HEADLINES.get(f"{system}/{row}", {}).get(size),
        })
    return result


def show(rows):
    """Each cell with the fastest of ours, by name; then all of ours, one by one."""
    for system in sorted({r["system"] for r in rows}):
        print(f"\n{system:28}{'size':>8}{'ours ns':>12}{'glibc ns':>12}{'speed-up':>10}{'headline':>10}{'most':>9}   by                best of the others")
        for r in (r for r in rows if r["system"] == system):
            headline = f"{r['headline']:.2f}x" if r["headline"] else "-"
            most = f"{r['glibc_ns'] / r['floor_ns']:.2f}x" if r["floor_ns"] else "-"
            mark = " <" if missed(r) else ""
            others = {m: ns for m, ns in r["others"].items() if m not in OURS[system]}
            rival = min(others, key=others.get) if others else "-"
            print(f"  {r['row']:26}{r['size']:>8}{r['ours_ns']:>12.1f}{r['glibc_ns']:>12.1f}{r['speedup']:>9.2f}x{headline:>10}{mark:2}{most:>7}   {r['ours']:18}"
                  f"{rival} {others.get(rival, 0) / r['ours_ns']:.2f}x")
        names = [n for n in OURS[system] if any(n in r["speedups"] for r in rows if r["system"] == system)]
        print(f"\n  {'speed-up over glibc of':26}{'size':>8}" + "".join(f"{n:>24}" for n in names))
        for r in (r for r in rows if r["system"] == system):
            cells = (f"{r['speedups'][n]:.2f}x" if n in r["speedups"] else "-" for n in names)
            print(f"  {r['row']:26}{r['size']:>8}" + "".join(f"{c:>24}" for c in cells))
    print(f"\n{sum(1 for r in rows if r['headline'] and not missed(r))} headlines beaten, {sum(1 for r in rows if missed(r))} not (<). "
          "most: the speed-up that memory without an allocator would have.")


def first_rounds(arguments):
    """Rows of the JSON: each row and memory in fresh processes, interleaved; medians over the rounds, of times and of ratios within a round."""
    memories = ["malloc", "slab", "slab on malloc", "pool"]
    rows = [(n, size) for n in (100, 600) for size in (0x10, 0x40, 0x70, 0x90)]
    times = {(row, m): [] for row in rows for m in memories}
    faults = {}
    for number in range(arguments.rounds):
        print(f"\rround {number + 1} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
        for row in rows:
            for i in range(len(memories)):
                memory = memories[(i + number) % len(memories)]
                result = subprocess.run([arguments.program, "--first", memory, *map(str, row)], capture_output=True, text=True, check=True)
                ns, faults[row, memory] = map(int, result.stdout.split())
                times[row, memory].append(ns)
    print("\r" + 40 * " " + "\r", end="", file=sys.stderr, flush=True)
    return [{"blocks": n, "size": size, "memory": m, "ns": statistics.median(times[(n, size), m]), "page_faults": faults[(n, size), m],
             "speedup": statistics.median(g / t for g, t in zip(times[(n, size), "malloc"], times[(n, size), m]))} for n, size in rows for m in memories]


def show_first(rows):
    print(f"{'S2, first in a process':24}{'memory':18}{'ns':>9}{'page faults':>13}{'speed-up':>10}")
    for r in rows:
        print(f"  {r['blocks']} blocks of {r['size']:<11}{r['memory']:18}{r['ns']:>9.0f}{r['page_faults']:>13}{r['speedup']:>9.2f}x")


def missed(row):
    return row["headline"] is not None and row["speedup"] <= row["headline"]


def plot(rows, rounds, folder):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "heapwright"})  # small, and the same for the same figures
    from matplotlib import pyplot
    folder.mkdir(parents=True, exist_ok=True)
    for system, row in sorted({(r["system"], r["row"]) for r in rows}):
        lines = {}
        for s, name, memory, size in rounds[0]:
            if (s, name) == (system, row):
                lines.setdefault(memory, []).append((size, min(t[s, name, memory, size] for t in rounds)))
        figure, axes = pyplot.subplots(figsize=(8.5, 4.5))
        # Slowest first, as the lines lie. Ours are thick, what is not an allocator is dotted; glibc and the floors are black.
        colours = iter(pyplot.get_cmap("tab20").colors)
        for memory, points in sorted(lines.items(), key=lambda line: -max(ns for _, ns in line[1])):
            bare = memory in FLOORS or memory == "hand-written"
            axes.loglog(*zip(*sorted(points)), label="glibc malloc" if memory == "malloc" else memory, marker="o", markersize=3,
                        linewidth=3 if memory in OURS[system] else 1.2, linestyle=":" if bare else "-",
                        color="black" if bare or memory == "malloc" else next(colours))
        axes.set(title=f"{system}: {row}", xlabel="size", ylabel="nanoseconds")
        axes.grid(True, which="both", alpha=0.25)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()
        figure.savefig(folder / (re.sub(r"\W+", "-", f"{system}-{row}") + ".svg"))
        pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="script/bench kit")
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a few sizes, two rounds: under three minutes")
    parser.add_argument("--first", action="store_true", help="S2 for the first time in a process")
    parser.add_argument("--rounds", type=int, help="2 with --quick, 41 with --first, otherwise 7")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_intermixed_args()
    if arguments.rounds is None:
        arguments.rounds = 41 if arguments.first else 2 if arguments.quick else 7
    # Before the work, or it would be lost.
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {arguments.json.absolute().parent}")
    if arguments.first:
        rows = first_rounds(arguments)
        show_first(rows)
    else:
        rounds = measure(arguments)
        rows = table(rounds)
        show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.plots and not arguments.first:
        plot(rows, rounds, arguments.plots)


if __name__ == "__main__":
    main()
