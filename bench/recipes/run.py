"""The four measurements of "a framework for tailored allocators", each under every malloc there is: libc's, the peers, ours as it comes, and ours from a
recipe that is fitted to the row. Interleaved rounds, a process per figure; ratios are taken within a round.

usage: script/bench recipes [--quick] [--rounds N] [--json FILE] [--plots FOLDER] [ROW...]    ROW: locality, local, threads, memory
       script/bench recipes --misses [--json FILE]    cache misses of the row locality, by cachegrind
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cachegrind

BUILD = ROOT / "build/release"
RECIPES = ROOT / "build/recipes"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
PEERS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "tbb": "libtbbmalloc_proxy.so.2"}

# row: (fitted recipes, has a variant with a heap object, the seed's ratio to glibc, the statistic over the rounds)
P50, P90 = 0.5, 0.9
ROWS = {
    "locality": ({"fitted": "dense_in_huge_pages"}, True, 1.41, P50),
    "local": ({"fitted": "dense_in_huge_pages", "4 KiB pages": "dense"}, True, 2.9, P50),
    "threads": ({"fitted": "passed_on"}, False, 2.06, P90),
    "memory": ({"fitted": "lean"}, False, 1.09e9 / 95e6, P50),
}
# The figures that the seeds' ratios are of.
HEADLINE_FIGURES = {("locality", "ns"), ("local", "unwritten_ns"), ("threads", "ns"), ("memory", "virtual_bytes")}
TITLES = {
    ("locality", "ns"): "32-byte blocks, written and read with cold caches",
    ("local", "ns"): "37 sizes on one thread, allocated, written and freed",
    ("local", "unwritten_ns"): "37 sizes on one thread, allocated and freed; the writes between not timed",
    ("local", "write_ns"): "37 sizes on one thread, written",
    ("local", "allocate_ns"): "37 sizes on one thread, allocated",
    ("local", "free_ns"): "37 sizes on one thread, freed",
    ("threads", "ns"): "four threads that free each other's blocks, P90",
    ("memory", "resident_bytes"): "resident memory after 16 such threads",
    ("memory", "virtual_bytes"): "address space after 16 such threads",
}
OURS = ("heapwright", "fitted", "4 KiB pages", "own heap")


def build_recipes(names):
    RECIPES.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        command = [BUILD / "bin/heapwright", "build", ROOT / "bench/recipes/fitted.hpp", "--recipe", name, "-o", RECIPES / f"lib{name}.so"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)


def variants(row):
    """{name: (library or None, arguments)}"""
    fitted, has_own, _, _ = ROWS[row]
    found = {"glibc": (None, []), "heapwright": (BUILD / "lib/libheapwright.so", [])}
    found.update({name: (RECIPES / f"lib{recipe}.so", []) for name, recipe in fitted.items()})
    if has_own:
        found["own heap"] = (None, ["own"])
    found.update({n: (LIBRARIES / f, []) for n, f in PEERS.items() if (LIBRARIES / f).exists()})
    return found


def measure(row, rounds):
    """{variant: [figures of a round]}"""
    runs = {name: [] for name in variants(row)}
    for number in range(rounds):
        if sys.stderr.isatty():
            print(f"\r{row}: round {number + 1} of {rounds}   ", end="", file=sys.stderr, flush=True)
        for name, (library, arguments) in variants(row).items():
            environment = {**os.environ, **({"LD_PRELOAD": str(library)} if library else {})}
            result = subprocess.run([BUILD / "bin/recipes_bench", row, *arguments], env=environment, capture_output=True, text=True)
            if result.returncode != 0:
                sys.exit(f"{row} under {name}: {result.stderr}")
            runs[name].append(json.loads(result.stdout))
    return runs


def misses():
    """Rows of the JSON: misses per block of the row locality, in the part that the row times and in the whole program."""
    blocks = 1_024_000
    result = []
    for name, (library, arguments) in variants("locality").items():
        if sys.stderr.isatty():
            print(f"\rcachegrind: {name}    ", end="", file=sys.stderr, flush=True)
        environment = {**os.environ, **({"LD_PRELOAD": str(library)} if library else {})}
        timed, whole = cachegrind.counts([BUILD / "bin/recipes_bench", "locality", *arguments], ["write_and_read"], environment)
        result.append({"system": "S4", "row": "locality", "memory": name, "caches": cachegrind.CACHES,
                       **{f"{part}_{key}": value / blocks for part, of in (("timed", timed), ("whole", whole)) for key, value in (
                           ("instructions", of["Ir"]), ("first_level_misses", cachegrind.first_level_misses(of)), ("last_level_misses", cachegrind.last_level_misses(of)))}})
    return result


def show_misses(rows):
    print(f"{'per block of 32 bytes':24}{'written and read':^36}{'the whole program':^36}")
    print(f"{'':24}" + 2 * f"{'L1 misses':>12}{'LL misses':>12}{'instr.':>12}")
    for r in rows:
        print(f"{r['memory']:24}" + "".join(f"{r[f'{part}_first_level_misses']:>12.3f}{r[f'{part}_last_level_misses']:>12.3f}{r[f'{part}_instructions']:>12.1f}" for part in ("timed", "whole")))
    print("\nmisses of data, simulated: " + cachegrind.CACHES)


def quantile(values, q):
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]


def table(row, runs):
    """Rows of the JSON, one per figure."""
    _, _, headline, q = ROWS[row]
    result = []
    for key in runs["glibc"][0]:
        values = {name: quantile([r[key] for r in of], q) for name, of in runs.items()}
        # The figure a P90 stands for is of a row's whole distribution; a median is one of ratios within a round.
        ratios = {name: (quantile([a[key] for a in runs["glibc"]], q) / values[name] if q == P90 else
                         statistics.median(a[key] / b[key] for a, b in zip(runs["glibc"], of))) for name, of in runs.items()}
        best = max((n for n in OURS if n in ratios), key=ratios.get)
        unit = "bytes" if key.endswith("bytes") else "ns"
        result.append({
            "system": "S4", "row": row, "size": 0, "figure": key, "unit": unit, "ours": best, f"ours_{unit}": values[best],
            f"glibc_{unit}": values["glibc"], "speedup": ratios[best], "ratios": ratios,
            "others": {n: v for n, v in sorted(values.items()) if n not in ("glibc", best)}, f"floor_{unit}": None,
            "headline": headline if (row, key) in HEADLINE_FIGURES else None,
        })
    return result


def show(rows):
    names = list(dict.fromkeys(n for r in rows for n in r["ratios"]))
    print(f"{'glibc to it':26}" + "".join(f"{n:>12}" for n in names) + f"{'the seed':>10}")
    for r in rows:
        print(f"{r['row'] + ' ' + r['figure']:26}" + "".join(f"{r['ratios'][n]:>12.2f}" if n in r["ratios"] else f"{'-':>12}" for n in names)
              + (f"{r['headline']:>10.2f}" if r["headline"] else ""))
    print("\nmore is better: so many times faster than glibc, so many times less memory")


def plot(rows, folder):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "heapwright"})
    from matplotlib import pyplot
    folder.mkdir(parents=True, exist_ok=True)
    for r in rows:
        names = sorted(r["ratios"], key=r["ratios"].get)
        figure, axes = pyplot.subplots(figsize=(6.5, 3))
        axes.barh(names, [r["ratios"][n] for n in names], color=["#c0392b" if n in OURS else "#34495e" for n in names])
        if r["headline"]:
            axes.axvline(r["headline"], color="black", linewidth=1, linestyle=":")
        axes.set(title=TITLES[r["row"], r["figure"]], xlabel="glibc's figure to this one's: more is better" + (", dotted: to beat" if r["headline"] else ""))
        axes.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(folder / (re.sub(r"\W+", "-", f"{r['row']}-{r['figure']}") + ".svg"), metadata={"Date": None})
        pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="script/bench recipes")
    parser.add_argument("--quick", action="store_true", help="five rounds instead of 21")
    parser.add_argument("--misses", action="store_true", help="cache misses of the row locality, by cachegrind's simulation")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_intermixed_args()
    rounds = (5 if arguments.quick else 21) if arguments.rounds is None else arguments.rounds
    if rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {arguments.json.absolute().parent}")
    if unknown := [r for r in arguments.rows if r not in ROWS]:
        parser.error(f"no row is called {' or '.join(unknown)}; there are: {', '.join(ROWS)}")
    if arguments.misses and (arguments.rows or arguments.plots or arguments.rounds or arguments.quick):
        parser.error("--misses is about the row locality, counts once, and has no plot")
    chosen = ["locality"] if arguments.misses else arguments.rows or list(ROWS)
    build_recipes({recipe for row in chosen for recipe in ROWS[row][0].values()})
    rows = misses() if arguments.misses else [r for row in chosen for r in table(row, measure(row, rounds))]
    if sys.stderr.isatty():
        print("\r" + 40 * " " + "\r", end="", file=sys.stderr)
    show_misses(rows) if arguments.misses else show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.plots:
        plot(rows, arguments.plots)


if __name__ == "__main__":
    main()
