"""The yardstick: runs many programs under every malloc there is, in interleaved rounds, and says who is faster and leaner.

usage: script/bench malloc [--quick] [--rounds N] [--json FILE] [--plot FILE] [PROGRAM...]     PROGRAM: how a name begins; default: all

Each program is one `heapwright compare`, so a ratio is taken within a round. The peers are Debian's, and the newest of `script/bench peers`
where that was run. "ours/best" is our time to that of the fastest peer of the program, with its 95 % interval.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release/bin"
PROGRAMS = ROOT / "bench/malloc/programs"
INPUTS = ROOT / "tests/programs/inputs"
OURS = "heapwright"

QUICK = ["churn", "strings", "messages-1", "lua"]

# The same work, shared between so many threads.
SCALING = {threads: f"threads-{threads}" for threads in (1, 2, 8, 64)}

START_UP_ROUNDS = 100

# Real programs: what has to be installed, and the command.
REAL = {
    "python": (["/usr/bin/python3"], ["/usr/bin/python3", ROOT / "bench/demo/index.py"]),
    "perl": (["perl"], ["perl", INPUTS / "words.pl", "300000"]),
    "lua": (["lua5.4"], ["lua5.4", PROGRAMS / "tables.lua"]),
    "node": (["node"], ["node", INPUTS / "workers.js", "8"]),
    "sqlite": (["sqlite3"], ["sqlite3", ":memory:", f".read {ROOT / 'bench/demo/orders.sql'}"]),
    "g++": (["g++"], ["g++", "-std=c++20", "-O1", "-c", "-o", "/dev/null", ROOT / "bench/workloads/structures.cpp"]),
    "redis": (["redis-server", "redis-benchmark"], ["bash", PROGRAMS / "redis.sh"]),
}

METRICS = {"time": "wall_seconds", "peak": "peak_rss_bytes", "settled": "end_rss_bytes", "faults": "page_faults"}

T_95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]  # Student's t, 97.5 %, by degrees of freedom


def programs(arguments):
    """{name: command}, those asked for and installed."""
    listed = subprocess.run([BUILD / "workloads", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {line.split()[0]: [BUILD / "workloads", line.split()[0]] for line in listed.splitlines()}
    for name, (needed, command) in REAL.items():
        missing = [n for n in needed if shutil.which(n) is None]
        if missing:
            print(f"{name}: left out, {' and '.join(missing)} is not installed", file=sys.stderr)
        else:
            found[name] = command
    if arguments.programs:
        unknown = [p for p in arguments.programs if not any(n.startswith(p) for n in found)]
        if unknown:
            sys.exit(f"no program begins with {' or '.join(unknown)}; there are: {', '.join(found)}")
        return {n: c for n, c in found.items() if any(n.startswith(p) for p in arguments.programs)}
    return {n: c for n, c in found.items() if n in QUICK} if arguments.quick else found


def newest_peers():
    """{name: library}, of those that `script/bench peers` has built."""
    names = {"jemalloc": "jemalloc 5.3.1", "mimalloc2": "mimalloc 2.3", "mimalloc3": "mimalloc 3.3", "rpmalloc": "rpmalloc",
             "snmallocshim": "snmalloc", "tcmalloc": "google tcmalloc"}
    found = {name: ROOT / f"build/peers/lib/lib{library}.so" for library, name in names.items()}
    return {name: library for name, library in found.items() if library.exists()}


def compare(command, rounds):
    line = [BUILD / "heapwright", "compare", "--rounds", str(rounds), "--json", "-"]
    for name, library in newest_peers().items():
        line += ["--with", f"{name}={library}"]
    result = subprocess.run([*line, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode not in (0, 1) or not result.stdout:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr}")
    return json.loads(result.stdout)


def value(sample, metric):
    if metric == "page_faults":
        return sample["minor_faults"] + sample["major_faults"]
    return sample[metric]


def ratio(rows, a, b, metric):
    """(ratio of a to b, low, high), from the ratios within the rounds."""
    logs = [math.log(value(x, metric) / value(y, metric)) for x, y in zip(rows[a]["samples"], rows[b]["samples"])]
    mean = statistics.fmean(logs)
    half = T_95[min(len(logs) - 2, len(T_95) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return tuple(math.exp(x) for x in (mean, mean - half, mean + half))


def figures(result):
    """{metric: {allocator: ratio to glibc}}, and ours to the best peer in time."""
    rows = {row["name"]: row for row in result["rows"] if row["failure"] is None and row["samples"]}
    names = [n for n in rows if n not in ("glibc", "as built")]
    found = {m: {n: ratio(rows, n, "glibc", key)[0] for n in names} for m, key in METRICS.items()}
    found["time"]["glibc"] = found["peak"]["glibc"] = found["settled"]["glibc"] = found["faults"]["glibc"] = 1.0
    peers = [n for n in found["time"] if n != OURS]
    best = min(peers, key=found["time"].get)
    found["to best"] = {"peer": best, "ratio": ratio(rows, OURS, best, "wall_seconds")} if OURS in rows else None
    return found


def geometric_means(all_figures):
    """{allocator: {metric: mean}}, of allocators that did all the programs."""
    everywhere = set.intersection(*(set(f["time"]) for f in all_figures.values()))
    return {n: {m: math.exp(statistics.fmean(math.log(f[m][n]) for f in all_figures.values())) for m in METRICS}
            for n in sorted(everywhere)}


def under(library, command):
    """What a command prints that is run with this library as its malloc, or with libc's."""
    environment = {**os.environ, **({"LD_PRELOAD": str(library)} if library else {})}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def latencies(libraries, rounds):
    """{allocator: {operation: {quantile: median over the rounds}}}"""
    runs = {n: [] for n in libraries}
    for number in range(rounds):
        for name, library in libraries.items():
            progress(f"latency: round {number + 1} of {rounds}, {name}")
            runs[name].append(json.loads(under(library, [BUILD / "latency"])))
    return {n: {o: {q: statistics.median(r[o][q] for r in of) for q in of[0][o]} for o in ("malloc", "free")} for n, of in runs.items()}


def scaling(libraries, rounds):
    """{allocator: {"1 to 2": throughput on two threads to that on one, ...}}, medians of the ratios within a round"""
    steps = {"1 to 2": (1, 2), "2 to 8": (2, 8), "2 to 64": (2, 64)}
    ratios = {n: {step: [] for step in steps} for n in libraries}
    for number in range(rounds):
        for name, library in libraries.items():
            progress(f"scaling: round {number + 1} of {rounds}, {name}")
            seconds = {}
            for threads, program in SCALING.items():
                begin = time.monotonic()
                under(library, [BUILD / "workloads", program])
                seconds[threads] = time.monotonic() - begin
            for step, (few, many) in steps.items():
                ratios[name][step].append(seconds[few] / seconds[many])
    return {n: {step: statistics.median(of) for step, of in steps_of.items()} for n, steps_of in ratios.items()}


def start_up():
    """{allocator: {"microseconds": more than under glibc, "KiB": more than under glibc}} of `true`, medians of the differences within a round"""
    rows = {row["name"]: row["samples"] for row in compare(["true"], START_UP_ROUNDS)["rows"] if row["failure"] is None}
    units = {"microseconds": ("wall_seconds", 1e6), "KiB": ("peak_rss_bytes", 1 / 1024)}
    return {n: {unit: statistics.median((a[key] - b[key]) * scale for a, b in zip(of, rows["glibc"])) for unit, (key, scale) in units.items()}
            for n, of in rows.items() if n not in ("glibc", "as built")}


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:78}", end="\r", file=sys.stderr, flush=True)


def plot(means, file):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams["svg.hashsalt"] = "heapwright"
    figure, axes = plt.subplots(figsize=(7, 4.6))
    for name, of in means.items():
        ours = name == OURS
        # The label goes below where a neighbour's would be in its way.
        crowded = any(n != name and abs(other["time"] - of["time"]) < 0.08 and 0 <= other["peak"] - of["peak"] < 0.06
                      for n, other in means.items())
        axes.scatter(of["time"], of["peak"], s=90 if ours else 45, color="#c0392b" if ours else "#34495e", zorder=3)
        axes.annotate(name, (of["time"], of["peak"]), xytext=(5, -13 if crowded else 6), textcoords="offset points", fontsize=9,
                      weight="bold" if ours else "normal")
    axes.axhline(1, color="#bbb", linewidth=0.8)
    axes.axvline(1, color="#bbb", linewidth=0.8)
    axes.set_xlabel("time, relative to glibc (less is better)")
    axes.set_ylabel("peak memory, relative to glibc (less is better)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def line(title, columns, cell):
    return f"{title:22}" + "".join(f"{cell(n):>{max(12, len(n)) + 2}}" for n in columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a program of each kind, two rounds")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    rounds = (2 if arguments.quick else 5) if arguments.rounds is None else arguments.rounds
    if rounds < 2:
        sys.exit("--rounds: at least 2, or there is no interval")
    if not (BUILD / "workloads").exists():
        sys.exit("build first: script/build")
    for file in filter(None, (arguments.json, arguments.plot)):
        if not file.resolve().parent.is_dir():
            sys.exit(f"{file}: its folder does not exist")

    chosen = programs(arguments)
    results, every, columns = {}, {}, []
    for done, (name, command) in enumerate(chosen.items()):
        progress(f"{done} of {len(chosen)}: {name}")
        results[name] = compare(command, rounds)
        every[name] = figures(results[name])
        for row in results[name]["rows"]:
            if row["failure"]:
                print(f"{name}: {row['name']} {row['failure']}", file=sys.stderr)
        if not columns:
            columns = [n for n in every[name]["time"] if n != "glibc"]
            print(line("time|peak RSS to glibc", columns, lambda n: n) + "   ours/best")
        of, best = every[name], every[name]["to best"]
        print(line(name, columns, lambda n: f"{of['time'][n]:.2f}|{of['peak'][n]:5.2f}" if n in of["time"] else "-")
              + ("   {:.2f} ({:.2f}-{:.2f}) {}".format(*best["ratio"], best["peer"]) if best else ""), flush=True)
    means = geometric_means(every)
    for metric in METRICS:
        print(line("mean " + metric, columns, lambda n: f"{means[n][metric]:.3f}" if n in means else "-"))

    found = {"programs": results, "figures": every, "means": means}
    write(arguments.json, found)
    if arguments.plot:
        plot(means, arguments.plot)
    if arguments.programs:
        return
    libraries = {row["name"]: row["library"] for row in next(iter(results.values()))["rows"] if row["name"] != "as built"}
    found["start-up"] = start_up()
    print(f"\n{'`true`, more than glibc':24}{'microseconds':>14}{'KiB':>8}")
    for name, of in found["start-up"].items():
        print(f"{name:24}{of['microseconds']:14.0f}{of['KiB']:8.0f}")
    found["latency"] = latencies(libraries, rounds)
    print(f"\n{'ns: p50, p99, p99.9, max':24}{'malloc':>32}{'free':>34}")
    for name, of in found["latency"].items():
        print(f"{name:24}" + "  ".join("".join(f"{of[o][q]:8.0f}" for q in of[o]) for o in ("malloc", "free")))
    write(arguments.json, found)
    if arguments.quick:
        return
    found["scaling"] = scaling(libraries, rounds + 3)
    print(f"\n{'throughput, threads':24}" + "".join(f"{step:>10}" for step in found["scaling"][OURS]))
    for name, of in found["scaling"].items():
        print(f"{name:24}" + "".join(f"{ratio:10.2f}" for ratio in of.values()))
    write(arguments.json, found)


def write(file, found):
    if file:
        file.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
