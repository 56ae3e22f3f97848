"""What each switch of recipe.hardening costs and finds: mallocs with one switch more each, beside the default.

usage: script/bench hardening [--rounds N] [--only SWITCHES[,SWITCHES]...] [--json FILE] [PROGRAM...]     PROGRAM: how a name begins; default: all of script/bench malloc

A ratio of time or peak RSS is to the default malloc, within a round; the geometric mean over the programs is printed, for real programs, for
workloads on one thread and for those on several. *found* counts the mistakes of script/bench misuse that a malloc finds or makes harmless.
"""
import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"

SWITCHES = {
    "check_callers": ".check_callers = true",
    "guard_large": ".guard_large = true",
    "check_callers, guard_large": ".check_callers = true, .guard_large = true",  # checked_recipe
    "random_places": ".random_places = true",
    "guard_large, separate_classes": ".guard_large = true, .separate_classes = true",
    "sealed": ".sealed = true",
    "sealed, check_reuse": ".sealed = true, .check_reuse = true",
    "sealed, quarantine": ".sealed = true, .quarantine_bytes = 2048",
    "sealed, check_reuse, quarantine": ".sealed = true, .check_reuse = true, .quarantine_bytes = 2048",
    "hardened": None,  # libheapwright-hardened.so: all of them
}
THREADED = ("threads-", "messages-", "server", "ring", "stealing", "short-threads", "sharing")
PATIENCE = 20  # seconds for one mistake
KINDS = ("real programs", "one thread", "several threads")


def yardstick():
    """bench/malloc/run.py, which has the programs."""
    spec = importlib.util.spec_from_file_location("yardstick", ROOT / "bench/malloc/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kind_of(name, real):
    return "real programs" if name in real else "several threads" if name.startswith(THREADED) else "one thread"


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def build(name, fields, folder):
    """The library with these switches."""
    if fields is None:
        return BUILD / "lib/libheapwright-hardened.so"
    word = name.replace(", ", "_")
    header = folder / f"{word}.hpp"
    header.write_text(f"#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe {word}{{.hardening = {{{fields}}}}};\n")
    library = folder / f"lib{word}.so"
    subprocess.run([BUILD / "bin/heapwright", "build", header, "-o", library], check=True, stdout=subprocess.DEVNULL)
    return library


def found_by(library):
    """(mistakes found or harmless, all)"""
    program = BUILD / "bin/corruptions"
    names = subprocess.run([program, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()

    def is_found(name):
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        try:
            done = subprocess.run([program, name], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE)
        except subprocess.TimeoutExpired:  # a list that the mistake has made a ring
            return False
        return done.returncode <= 0

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(is_found, names)), len(names)


def ratios(y, command, libraries, rounds):
    """{switches: {"time": ratio, "peak": ratio}} of one program; without those that failed."""
    line = [BUILD / "bin/heapwright", "compare", "--rounds", str(rounds), "--json", "-", "--only", "heapwright", "--ignore-output"]
    for i, library in enumerate(libraries.values()):
        line += ["--with", f"s{i}={library}"]
    done = subprocess.run([*line, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"] if row["failure"] is None and row["samples"]}
    if "heapwright" not in rows:
        sys.exit(f"{' '.join(map(str, command))}: failed under the default malloc")
    return {name: {metric: y.ratio(rows, f"s{i}", "heapwright", y.METRICS[metric])[0] for metric in ("time", "peak")}
            for i, name in enumerate(libraries) if f"s{i}" in rows}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.quick = False
    chosen = SWITCHES
    if arguments.only:
        chosen = {name: SWITCHES[name] for name in SWITCHES if name.replace(", ", "+") in arguments.only.split(",")}
        if not chosen:
            sys.exit(f"no such switches; there are: {', '.join(n.replace(', ', '+') for n in SWITCHES)}")
    y = yardstick()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        libraries = {name: build(name, fields, Path(folder)) for name, fields in chosen.items()}
        mistakes = {"default": found_by(BUILD / "lib/libheapwright.so")}
        for name, library in libraries.items():
            progress(f"mistakes: {name}")
            mistakes[name] = found_by(library)
        for name, command in y.programs(arguments).items():
            progress(name)
            found[name] = ratios(y, command, libraries, arguments.rounds)
    progress("")
    means = {name: {kind: {metric: mean([of[name][metric] for program, of in found.items() if name in of and kind_of(program, y.REAL) == kind])
                           for metric in ("time", "peak")} for kind in KINDS} for name in chosen}
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"programs": found, "means": means, "mistakes": mistakes}, indent=1))
    show = lambda value: f"{value:.2f}" if value is not None else "-"
    print("| switches | found | " + " | ".join(f"{kind}: time | peak" for kind in KINDS) + " |")
    print("|---|" + "---|" * (1 + 2 * len(KINDS)))
    print(f"| none (the default) | {mistakes['default'][0]} of {mistakes['default'][1]} | " + "1.00 | " * (2 * len(KINDS)))
    for name in chosen:
        cells = [show(means[name][kind][metric]) for kind in KINDS for metric in ("time", "peak")]
        print(f"| {name} | {mistakes[name][0]} of {mistakes[name][1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
