"""What it costs to be observed. Real programs without the probe, with it switched off, counting samples alone, counting and sampling as it does by default, with all
call stacks, and under heaptrack; and a pair of malloc and free on 1 to 8 threads. Interleaved rounds; ratios and differences are taken within a round.

usage: script/bench live [--rounds N] [--variants NAME,...] [--json FILE] [ROW...]    ROW: redis, server-1, server-16, python3, sqlite3, g++, pairs

server-1 and server-16 are the processor time of a redis-server, with one request at a time and with sixteen in a pipeline.
"""
import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
PROBE = BUILD / "lib/libheapwright-probe.so"
VARIANTS = {
    "alone": None,
    "off": {"HEAPWRIGHT_PROBE": "off"},
    "estimates": {"HEAPWRIGHT_PROBE": "estimate"},
    "counting": {},
    "all stacks": {"HEAPWRIGHT_SAMPLE": "1"},
    "heaptrack": "heaptrack",
}
THREADS = (1, 2, 4, 8)


def environment(variant, segments):
    of = dict(os.environ)
    if isinstance(VARIANTS[variant], dict):
        of.update(VARIANTS[variant], LD_PRELOAD=str(PROBE), HEAPWRIGHT_SEGMENT_DIR=segments)
    return of


def command_for(variant, command, folder):
    return ["heaptrack", "-o", f"{folder}/heaptrack", *command] if variant == "heaptrack" else command


def timed(command):
    def run(variant, folder, segments):
        begin = time.perf_counter()
        subprocess.run(command_for(variant, command, folder), env=environment(variant, segments), cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begin
    return run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def redis(variant, folder, segments, load=("-n", "200000", "-P", "8", "-t", "set,get,lpush,lpop"), is_of_server=False):
    port = str(free_port())
    server = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    process = subprocess.Popen(command_for(variant, server, folder), env=environment(variant, segments), cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = ["redis-cli", "-p", port]
    try:
        for _ in range(200):
            if subprocess.run([*client, "ping"], capture_output=True, text=True).stdout.strip() == "PONG":
                break
            time.sleep(0.05)
        now = (lambda: processor_seconds(process.pid)) if is_of_server else time.perf_counter
        begin = now()
        subprocess.run(["redis-benchmark", "-p", port, "-q", "-r", "100000", "-d", "200", *load], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return now() - begin
    finally:
        subprocess.run([*client, "shutdown", "nosave"], capture_output=True)
        process.wait()


def server(requests, pipeline):
    load = ("-c", "20", "-n", str(requests), "-P", str(pipeline), "-t", "set,get,lpush,lpop")
    return lambda variant, folder, segments: redis(variant, folder, segments, load, True)


def pairs(threads):
    def run(variant, folder, segments):
        command = [str(BUILD / "bin/probe_pair"), str(threads)]
        return float(subprocess.run(command, env=environment(variant, segments), cwd=folder, check=True, capture_output=True, text=True).stdout)
    return run


def rows():
    json_in_and_out = "import json\nd=[{'id':i,'name':'n%d'%i,'tags':[str(i%7)]} for i in range(150000)]\nfor k in range(4): d=json.loads(json.dumps(d))"
    found = {
        "redis": redis,
        "server-1": server(60_000, 1),
        "server-16": server(600_000, 16),
        "python3": timed(["/usr/bin/python3", "-c", json_in_and_out]),
        "sqlite3": timed(["sqlite3", ":memory:", f".read {ROOT / 'bench/demo/orders.sql'}"]),
        "g++": timed(["g++", "-std=c++20", "-O1", "-c", str(ROOT / "bench/workloads/structures.cpp"), "-o", "structures.o"]),
    }
    needs = {"redis": "redis-server", "server-1": "redis-server", "server-16": "redis-server", "python3": "/usr/bin/python3", "sqlite3": "sqlite3", "g++": "g++"}
    return {name: run for name, run in found.items() if shutil.which(needs[name])}


def measure(run, variants, rounds, name):
    """{variant: seconds or nanoseconds in each round}"""
    found = {v: [] for v in variants}
    for n in range(rounds):
        for variant in random.sample(variants, len(variants)):
            print(f"\r{name}: round {n + 1} of {rounds}, {variant}          ", end="", file=sys.stderr)
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
                found[variant].append(run(variant, folder, segments))
    return found


def added(found, variant):
    return statistics.median(a - b for a, b in zip(found[variant], found["alone"]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--variants", help="some of: " + ", ".join(VARIANTS) + "; `alone` is always there")
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    wanted = arguments.variants.split(",") if arguments.variants else VARIANTS
    variants = [v for v in VARIANTS if v == "alone" or (v in wanted and (v != "heaptrack" or shutil.which("heaptrack")))]
    result = {"format": "heapwright live bench 1", "programs": {}, "pairs": {}}

    chosen = {n: r for n, r in rows().items() if not arguments.rows or n in arguments.rows}
    if chosen:
        print(f"{'seconds, to alone':20}" + "".join(f"{v:>20}" for v in variants) + "   all stacks to heaptrack")
    for name, run in chosen.items():
        found = result["programs"][name] = measure(run, variants, arguments.rounds, name)
        cells = [f"{statistics.median(found[v]):.3f} {statistics.median(a / b for a, b in zip(found[v], found['alone'])):6.3f}" for v in variants]
        share = f"{added(found, 'all stacks') / added(found, 'heaptrack'):10.2f}" if "heaptrack" in found else ""
        print(f"\r{name:20}" + "".join(f"{c:>20}" for c in cells) + share, flush=True)
    if not arguments.rows or "pairs" in arguments.rows:
        few = [v for v in variants if v != "heaptrack"]
        print(f"\n{'ns a pair, more':20}" + "".join(f"{v:>20}" for v in few))
        for n in THREADS:
            found = result["pairs"][n] = measure(pairs(n), few, arguments.rounds, f"{n} threads")
            cells = [f"{statistics.median(found[v]):.1f} {added(found, v):+6.1f}" for v in few]
            print(f"\r{f'{n} threads':20}" + "".join(f"{c:>20}" for c in cells), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
