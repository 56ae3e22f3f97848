"""Lines of Python by what lives of them, in `heapwright live` and in memray, of one run with both; and what each of the two costs, in interleaved rounds.

usage: script/bench python [--rounds N] [--json FILE] [PROGRAM...]    PROGRAM: json_churn, sqlite_rows, http_server
"""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
MEMRAY = ROOT / "build/bench/memray"
PROGRAMS = ("json_churn", "sqlite_rows", "http_server")
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))

# What lives at the end of a recording, by line. Memory that Python maps for its arenas is none of malloc's.
LIVE_LINES = """
import collections, json, sys
from memray import AllocatorType, FileReader
live = {}
for record in FileReader(sys.argv[1]).get_allocation_records():
    kind = AllocatorType(record.allocator)
    if kind == AllocatorType.FREE:
        live.pop(record.address, None)
    elif kind not in (AllocatorType.MMAP, AllocatorType.MUNMAP):
        stack = record.stack_trace(max_stacks=1)
        live[record.address] = (record.size, stack[0][1:] if stack else ("", 0))
lines = collections.Counter()
for size, line in live.values():
    lines["%s:%d" % line] += size
print(json.dumps(lines))
"""


def python():
    """Debian's, with memray beside it."""
    path = MEMRAY / "bin/python"
    if not path.exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", MEMRAY], check=True)
        subprocess.run([MEMRAY / "bin/pip", "install", "--quiet", "memray"], check=True)
    return str(path)


def program(name):
    return str(ROOT / f"bench/live/python/{name}.py")


def lines_of_live(address):
    """Of the innermost call in Python of each stack."""
    tree = json.loads(LOCAL.open(f"{address}api/stacks?value=live&by=line&most=100000").read())
    lines = collections.Counter()
    for node, own in enumerate(tree["own"]):
        while node and own:
            _, file, line, module, _ = tree["places"][tree["place"][node]]
            if file and file == module:
                lines[f"{file}:{line}"] += own
                break
            node = tree["parent"][node]
    return lines


def one_run_with_both(name, sample, folder):
    recording = f"{folder}/recording"
    Path(recording).unlink(missing_ok=True)
    live = subprocess.Popen([BUILD / "bin/heapwright", "live", "--no-browser", "--sample", sample, "--", python(), "-m", "memray", "run", "-o", recording, program(name)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = re.search(r"http://\S+", live.stderr.readline())[0]
    while live.stdout.readline() != "ready\n":
        pass
    ours = lines_of_live(address)
    live.stdin.write("\n")
    live.stdin.close()
    while "has ended" not in live.stderr.readline():
        pass
    live.terminate()
    live.wait()
    said = subprocess.run([python(), "-c", LIVE_LINES, recording], stdout=subprocess.PIPE, check=True)
    return ours, collections.Counter(json.loads(said.stdout))


def rank_correlation(pairs):
    """Spearman's."""
    ranks = []
    for side in zip(*pairs):
        order = sorted(range(len(side)), key=lambda i: side[i])
        ranks.append([order.index(i) for i in range(len(side))])
    n = len(pairs)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks)) / (n * (n * n - 1))


def agreement(name, sample, folder):
    ours, theirs = one_run_with_both(name, sample, folder)
    # What was imported before memray began is known to one of the two.
    top = [line for line, _ in theirs.most_common() if not line.startswith(("<frozen", ":"))][:10]
    pairs = [(theirs[line], ours[line]) for line in top]
    return {"lines": {line: pair for line, pair in zip(top, pairs)}, "rank_correlation": rank_correlation(pairs),
            "within_10_percent": sum(abs(b / a - 1) <= 0.1 for a, b in pairs)}


def processor_seconds(command, environment):
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed: {status}")
    return used.ru_utime + used.ru_stime


def cost(name, rounds, folder):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HEAPWRIGHT_")}
    observed = plain | {"LD_PRELOAD": str(BUILD / "lib/libheapwright-probe.so"), "HEAPWRIGHT_SEGMENT_DIR": folder, "HEAPWRIGHT_SAMPLE": "524288"}
    ratios = {"heapwright": [], "memray": []}
    for _ in range(rounds):
        alone = processor_seconds([python(), program(name)], plain)
        ratios["heapwright"].append(processor_seconds([python(), program(name)], observed) / alone)
        ratios["memray"].append(processor_seconds([python(), "-m", "memray", "run", "--force", "-o", f"{folder}/cost", program(name)], plain) / alone)
    return {tool: statistics.median(of) for tool, of in ratios.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    results = {}
    for name in options.programs or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            result = results[name] = {"processor_time": cost(name, options.rounds, folder)}
            for sample in ("1", "524288"):
                result[sample] = agreement(name, sample, folder)
        times = result["processor_time"]
        print(f"{name}: processor time {times['heapwright']:.3f} with 512 KiB between samples, {times['memray']:.2f} under memray", flush=True)
        for sample in ("1", "524288"):
            of = result[sample]
            print(f"  sample {sample}: rank correlation {of['rank_correlation']:.2f}, {of['within_10_percent']} of {len(of['lines'])} lines within 10 %")
            for line, (theirs, ours) in of["lines"].items():
                print(f"    {Path(line).name:34} memray {theirs / 1e6:8.2f} MB  heapwright {ours / theirs:6.3f} of it")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
