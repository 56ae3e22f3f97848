"""How right a replay is. Real programs under each malloc, beside replays of their trace under glibc: the peak of anonymous memory, and the order of mallocs by peak
and by time.

usage: script/bench replay [--rounds N] [--json FILE] [PROGRAM...]     PROGRAM: how a name begins; default: all

A program's own peak under a malloc is that of `heapwright record` on it, which looks at its memory every 10 ms. Its time is processor time of `heapwright compare`.
Two mallocs are in the right order if the program and the replay say the same of who is better; only those are counted that differ by more than 5 % in the program.
"""
import argparse
import itertools
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
HEAPWRIGHT = BUILD / "bin/heapwright"
INPUTS = ROOT / "tests/programs/inputs"
LIBRARIES = {"glibc": "libc.so.6", "heapwright": BUILD / "lib/libheapwright.so", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}
DIFFERENCE = 1.05

PORT = 7392
PATIENCE = 60  # seconds

# What has to be installed, the environment, the command; of a server, what drives it and what ends it.
PROGRAMS = {
    "python": (["/usr/bin/python3"], {"PYTHONMALLOC": "malloc"}, ["/usr/bin/python3", ROOT / "bench/demo/index.py"]),
    "sqlite": (["sqlite3"], {}, ["sqlite3", ":memory:", f".read {ROOT / 'bench/demo/orders.sql'}"]),
    "g++": (["g++"], {}, ["g++", "-std=c++20", "-O1", "-c", "-o", "/dev/null", ROOT / "bench/workloads/structures.cpp"]),
    "perl": (["perl"], {}, ["perl", INPUTS / "words.pl", "300000"]),
    "lua": (["lua5.4"], {}, ["lua5.4", ROOT / "bench/malloc/programs/tables.lua"]),
    "redis": (["redis-server", "redis-cli"], {}, ["redis-server", "--port", PORT, "--save", "", "--appendonly", "no"],
              ["/usr/bin/python3", ROOT / "bench/fit/refill.py", PORT], ["redis-cli", "-p", PORT, "shutdown", "nosave"]),
    "node": (["node"], {}, ["node", INPUTS / "workers.js", "8"]),
}


def clean(**more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))} | more


def run(*command, **environment):
    done = subprocess.run(list(map(str, command)), env=clean(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-600:]}")
    return done.stdout


def wait_for_port(server):
    begin = time.monotonic()
    while server.poll() is None and time.monotonic() < begin + PATIENCE:
        try:
            return socket.create_connection(("127.0.0.1", PORT)).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise RuntimeError(f"the server does not answer: {server.stderr.read()[-600:] if server.poll() is not None else ''}")


def recorded(trace, command, library, environment, driver=None, end=None):
    preload = {"LD_PRELOAD": str(library)} if library else {}
    words = [HEAPWRIGHT, "record", "-o", trace, "--", *command]
    if driver is None:
        run(*words, **environment, **preload)
        return
    with subprocess.Popen(list(map(str, words)), env=clean(**environment, **preload), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            wait_for_port(server)
            run(*driver)
        finally:
            run(*end)


def driven(driver=None, _end=None):
    """What compare is told of it."""
    return ["--driver", shlex.join(map(str, driver)), "--ready-port", PORT] if driver else []


def own_peak(trace):
    """Of the process that a replay would choose: that with most events."""
    events, peaks = {}, {}
    for line in subprocess.Popen([HEAPWRIGHT, "trace", "dump", trace], stdout=subprocess.PIPE, text=True).stdout:
        if line[0].isdigit():
            process = int(line[:line.index(".")])
            events[process] = events.get(process, 0) + 1
        elif line.startswith("memory "):
            _, process, _, bytes = line.split()
            peaks[int(process)] = max(peaks.get(int(process), 0), int(bytes))
    return peaks[max(events, key=events.get)]


def order(real, replayed):
    """(right, counted) pairs."""
    right = counted = 0
    for a, b in itertools.combinations(real, 2):
        if max(real[a], real[b]) < DIFFERENCE * min(real[a], real[b]):
            continue
        counted += 1
        right += (real[a] < real[b]) == (replayed[a] < replayed[b])
    return right, counted


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    chosen = {name: of for name, of in PROGRAMS.items() if not arguments.programs or any(name.startswith(p) for p in arguments.programs)}
    results = {}
    peaks_right = peaks_counted = times_right = times_counted = 0
    print(f"{'':10}{'malloc':12}{'own peak':>12}{'replayed':>12}{'error':>9}{'own time':>12}{'in malloc':>12}", flush=True)
    for name, (needed, environment, command, *driver) in chosen.items():
        missing = [n for n in needed if shutil.which(n) is None]
        if missing:
            print(f"{name}: left out, {' and '.join(missing)} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            own = {}
            for malloc, library in LIBRARIES.items():
                recorded(f"{folder}/{malloc}", command, library, environment, *driver)
                own[malloc] = own_peak(f"{folder}/{malloc}")
            rows = {row["allocator"]: row for row in json.loads(run(HEAPWRIGHT, "replay", f"{folder}/glibc", "--only", "heapwright,jemalloc,mimalloc", "--rounds", arguments.rounds, "--json", "-"))}
        compared = json.loads(run(HEAPWRIGHT, "compare", "--ignore-output", "--rounds", max(2, arguments.rounds), "--only", "heapwright,jemalloc,mimalloc", *driven(*driver), "--json", "-", "--", *command, **environment))
        times = {row["name"]: row["metrics"]["cpu_seconds"]["median"] for row in compared["rows"] if row["name"] in LIBRARIES}
        results[name] = {m: {"own_peak_bytes": own[m], "replayed_peak_bytes": rows[m]["peak_rss_bytes"], "own_cpu_seconds": times[m], "replayed_seconds": rows[m]["seconds"]} for m in LIBRARIES}
        for malloc, of in results[name].items():
            error = of["replayed_peak_bytes"] / of["own_peak_bytes"] - 1
            print(f"{name:10}{malloc:12}{of['own_peak_bytes'] / 2**20:>8.1f} MiB{of['replayed_peak_bytes'] / 2**20:>8.1f} MiB{error * 100:>+7.1f} %{of['own_cpu_seconds']:>10.3f} s{of['replayed_seconds']:>10.3f} s", flush=True)
        right, counted = order(own, {m: rows[m]["peak_rss_bytes"] for m in LIBRARIES})
        peaks_right, peaks_counted = peaks_right + right, peaks_counted + counted
        right, counted = order(times, {m: rows[m]["seconds"] for m in LIBRARIES})
        times_right, times_counted = times_right + right, times_counted + counted
    errors = [abs(of["replayed_peak_bytes"] / of["own_peak_bytes"] - 1) for program in results.values() for of in program.values()]
    print(f"peaks within 5 %: {sum(e <= 0.05 for e in errors)} of {len(errors)}; order by peak right: {peaks_right} of {peaks_counted}, by time: {times_right} of {times_counted}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
