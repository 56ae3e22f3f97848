#!/usr/bin/env python3
"""Runs the workloads under every installed allocator and prints, for each, the ratio of time and peak RSS to glibc's.

usage: script/bench [--rounds N] [--json FILE] [WORKLOAD...]     default: all workloads, 5 rounds

Each workload is one `heapwright compare`: interleaved rounds, ratios taken within a round. Build first: script/build.
"""
import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

RELEASE = Path(__file__).resolve().parent.parent / "build/release/bin"


def compare(workload, rounds):
    command = [RELEASE / "heapwright", "compare", "--rounds", str(rounds), "--json", "-", "--", RELEASE / "workloads", workload]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"{workload}: {result.stderr}")
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("workloads", nargs="*")
    arguments = parser.parse_args()
    if not (RELEASE / "workloads").exists():
        sys.exit("build first: script/build")
    listed = subprocess.run([RELEASE / "workloads", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = arguments.workloads or [line.split()[0] for line in listed.splitlines()]

    results, columns, logs = {}, None, {}
    for name in names:
        results[name] = compare(name, arguments.rounds)
        rows = {row["name"]: row for row in results[name]["rows"]}
        if columns is None:
            columns = [n for n in rows if n != "glibc"]
            print(f"{'time|peak RSS to glibc':24}" + "".join(f"{c:>14}" for c in columns) + f"{'ours/best':>11}")
        time = {n: rows[n]["metrics"]["wall_seconds"]["ratio"]["estimate"] for n in columns}
        memory = {n: rows[n]["metrics"]["peak_rss_bytes"]["ratio"]["estimate"] for n in columns}
        peers = [n for n in columns if n not in ("heapwright", "tbb")]
        best = min(time[n] for n in peers)
        print(f"{name:24}" + "".join(f"{time[n]:8.2f}|{memory[n]:5.2f}" for n in columns) + f"{time['heapwright'] / best:11.2f}", flush=True)
        for n in columns:
            logs.setdefault(n, []).append((math.log(time[n]), math.log(memory[n])))
    means = {n: [math.exp(sum(c) / len(c)) for c in zip(*logs[n])] for n in columns}
    print(f"{'geometric mean':24}" + "".join(f"{means[n][0]:8.2f}|{means[n][1]:5.2f}" for n in columns))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
