"""How right fit is. Real programs: its answer, and beside it the best of random recipes, found by real runs.

usage: script/bench fit [--for GOAL] [--minutes N] [--random N | --equal N] [--rounds N] [--json FILE] [PROGRAM...]     PROGRAM: how a name begins; default: all

The best random recipe is the one with the least median of the goal's figure (peak RSS, or processor time), beside the default and what fit has made: of all over --rounds
rounds (the peak RSS of a program of more than some 15 MiB that is no server: in one run, as it is nearly the same in each), and of the five best of these over three times as many, for the best of
many looks looks better than it is.

With --equal each program is fitted N times beside a copy of the default, called twin: every answer that twin is better is a false gain.
"""
import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import random_recipes

ROOT = Path(__file__).resolve().parent.parent.parent
HEAPWRIGHT = ROOT / "build/release/bin/heapwright"
INPUTS = ROOT / "tests/programs/inputs"
WORKLOADS = ROOT / "build/release/bin/workloads"
REDIS = ["--driver", f"/usr/bin/python3 {ROOT / 'bench/fit/refill.py'} 7391", "--ready-port", "7391", "--figure", r"rate:higher=requests per second: (\d+)"]
AT_ONCE = 20  # recipes in one comparison
FINALISTS = 5

# What has to be installed, options of fit and compare, the environment, the command.
PROGRAMS = {
    "python": (["/usr/bin/python3"], [], {"PYTHONMALLOC": "malloc"}, ["/usr/bin/python3", ROOT / "bench/demo/index.py"]),
    "sqlite": (["sqlite3"], [], {}, ["sqlite3", ":memory:", f".read {ROOT / 'bench/demo/orders.sql'}"]),
    "g++": (["g++"], [], {}, ["g++", "-std=c++20", "-O1", "-c", "-o", "/dev/null", ROOT / "bench/workloads/structures.cpp"]),
    "perl": (["perl"], [], {}, ["perl", INPUTS / "words.pl", "300000"]),
    "redis": (["redis-server"], REDIS, {}, ["redis-server", "--port", "7391", "--save", "", "--appendonly", "no"]),
    "node": (["node"], [], {}, ["node", INPUTS / "workers.js", "8"]),
    "trees": ([], [], {}, [WORKLOADS, "trees"]),
    "server": ([], [], {}, [WORKLOADS, "server"]),
    "messages": ([], [], {}, [WORKLOADS, "messages-4"]),
}


def run(words, environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    done = subprocess.run(list(map(str, words)), env=clean | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr[-600:]}")
    return json.loads(done.stdout)


def medians(options, environment, command, libraries, rounds, figure):
    """Of the default, and of these libraries."""
    withs = [word for name, path in libraries.items() for word in ("--with", f"{name}={path}")]
    rows = run([HEAPWRIGHT, "compare", "--ignore-output", "--rounds", rounds, "--only", "heapwright", *withs, *options, "--json", "-", "--", *command], environment)["rows"]
    return {row["name"]: row["metrics"][figure]["median"] for row in rows if not row["failure"]}


def peak_of_one_run(environment, command, library):
    """At least that of this process, which the kernel counts before the command is executed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    started = subprocess.Popen(list(map(str, command)), env=clean | environment | {"LD_PRELOAD": str(library)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_maxrss if started.returncode == 0 else math.inf


def built_at_random(count):
    """Libraries of random recipes, by name. They are the same ones for all programs, and are kept until the malloc is built anew."""
    folder = ROOT / "build/random-recipes"
    folder.mkdir(parents=True, exist_ok=True)
    random_recipes.write(folder, count, 1)
    libraries = {}
    newest = (ROOT / "build/release/lib/libheapwright.so").stat().st_mtime
    for number in range(count):
        library = libraries[f"r{number}"] = folder / f"r{number}.so"
        if library.exists() and library.stat().st_mtime > newest:
            continue
        print(f"building random recipe {number + 1} of {count}", file=sys.stderr)
        subprocess.run([HEAPWRIGHT, "build", folder / f"r{number}.hpp", "-o", library], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return libraries


def best_of_random(count, rounds, figure, options, environment, command, fitted):
    """Ratios to the default: of the best random recipe, and of the fitted one. Those that look best are looked at again, beside the fitted one."""
    libraries = built_at_random(count)
    names, ratios = list(libraries), {}
    if figure == "peak_rss_bytes":
        peaks = {name: peak_of_one_run(environment, command, path) for name, path in libraries.items()}
        if min(peaks.values()) > 1.1 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            ratios, names = peaks, []
    for begin in range(0, count, AT_ONCE):
        found = medians(options, environment, command, {name: libraries[name] for name in names[begin:begin + AT_ONCE]}, rounds, figure)
        ratios |= {name: value / found["heapwright"] for name, value in found.items() if name in libraries}
    finalists = {name: libraries[name] for name in sorted(ratios, key=ratios.get)[:FINALISTS]}
    if fitted:
        finalists["fitted"] = fitted
    found = medians(options, environment, command, finalists, 3 * rounds, figure)
    ratio = {name: value / found["heapwright"] for name, value in found.items()}
    print(f"{'':10}{', '.join(f'{name} {ratio[name]:.3f}' for name in finalists if name in ratio)}", file=sys.stderr, flush=True)
    return min([1.0] + [ratio[name] for name in finalists if name != "fitted" and name in ratio]), ratio.get("fitted", 1.0)


def false_gains(count, goal, minutes, options, environment, command, folder):
    """How often a copy of the default is said to be better than it, and what the answers are."""
    twin = f"{folder}/libtwin.so"
    shutil.copy(ROOT / "build/release/lib/libheapwright.so", twin)
    found = {"twin": 0, "fitted": 0, "keep-default": 0, "other": 0}
    for _ in range(count):
        answer = run([HEAPWRIGHT, "fit", "--for", goal, "--minutes", minutes, "--ignore-output", "--only", "glibc", "--with", f"twin={twin}", "-o", f"{folder}/fit", *options, "--json", "-", "--", *command], environment)
        verdict = answer["verdict"] if answer["verdict"] != "other-allocator" else "twin" if answer["malloc"] == "twin" else "other"
        found[verdict] += 1
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--for", dest="goal", choices=["memory", "time", "both"], default="both")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--equal", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="from 2 on")
    parser.add_argument("--json", type=Path)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    results = {}
    for name, (needed, options, environment, command) in PROGRAMS.items():
        if arguments.programs and not any(name.startswith(p) for p in arguments.programs):
            continue
        missing = [n for n in needed if shutil.which(n) is None]
        if missing:
            print(f"{name}: left out, {' and '.join(missing)} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            if arguments.equal:
                found = results[name] = false_gains(arguments.equal, arguments.goal, arguments.minutes, options, environment, command, folder)
                print(f"{name:10}of {arguments.equal} fits {found['twin']} say that an equal malloc is better; {found['keep-default']} keep the default, {found['fitted']} fit, {found['other']} name glibc", flush=True)
                continue
            answer = run([HEAPWRIGHT, "fit", "--for", arguments.goal, "--minutes", arguments.minutes, "--ignore-output", "-o", f"{folder}/fit", *options, "--json", "-", "--", *command], environment)
            results[name] = {key: answer[key] for key in ("verdict", "sentence", "proof", "changes", "seconds")}
            print(f"{name:10}{answer['verdict']:18}{answer['seconds']:>6.0f} s  {answer['sentence']}", flush=True)
            if arguments.random:
                steady = bool(options)
                figure = "cpu_seconds" if arguments.goal == "time" else "steady_rss_bytes" if steady else "peak_rss_bytes"
                best, fitted = best_of_random(arguments.random, arguments.rounds, figure, options, environment, command, answer["library"])
                results[name] |= {"best_random": best, "fitted": fitted}
                print(f"{'':10}{figure}: best of {arguments.random} random recipes {best:.3f}, fitted {fitted:.3f} of the default's", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
