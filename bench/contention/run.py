"""What threads would meet on many cores: atomic read-modify-writes per malloc and free, by number of threads, of each malloc.

usage: script/bench contention [--json FILE] [LIBRARY...]     default: glibc, ours, and the installed peers

On two cores contention cannot be timed. But each read-modify-write (an instruction with a lock prefix, or an exchange with memory) on a line
that another core has written to moves that line between cores, and such moves are what limits 64 cores. So they are counted: callgrind counts each
instruction, and the disassembly says which are read-modify-writes. Valgrind runs one thread at a time, so a lock is never found taken: spinning and
waiting are not in the count, and each lock counts once or twice. Each figure is the difference of a long and a short run, per malloc and free.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/release/bin/contended"
THREADS = [1, 2, 8, 64]
KINDS = ["own", "ring", "one"]
BLOCKS_PER_ROUND = 1000
SHORT, LONG = 6, 18  # rounds

READ_MODIFY_WRITE = re.compile(r"\block\b|\bxchg\w*\s.*\(")


class DoesNotRun(Exception):
    pass


@lru_cache(maxsize=None)
def read_modify_writes(library):
    """Addresses of such instructions in an object file."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = (line.partition(":") for line in text.splitlines() if line.startswith(" "))
    return frozenset(int(address, 16) for address, _, code in lines if READ_MODIFY_WRITE.search(code))


def counted(library, kind, threads, rounds):
    """{function: read-modify-writes} outside of the program itself."""
    environment = {**os.environ, "LD_PRELOAD": library}
    with tempfile.NamedTemporaryFile(prefix="callgrind.") as out:
        done = subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                               f"--callgrind-out-file={out.name}", PROGRAM, kind, str(threads), str(rounds)],
                              env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise DoesNotRun(f"under valgrind `contended {kind} {threads} {rounds}` ends with {done.returncode}")
        return parsed(open(out.name))


def parsed(lines):
    found = Counter()
    library = function = ""
    is_call = False
    for line in lines:
        if line.startswith("ob="):
            library = line[3:].strip()
        elif line.startswith("fn="):
            function = line[3:].strip()
        elif line.startswith("calls="):
            is_call = True  # the next line has the cost of the callee
        elif line.startswith("0x"):
            if not is_call and library.startswith("/") and library != str(PROGRAM):
                words = line.split()
                if int(words[0], 16) in read_modify_writes(library):
                    found[function] += int(words[-1])
            is_call = False
    return found


def short(function):
    """Without the arguments of templates and functions."""
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", function)) != function:
        function = shorter
    return function.removeprefix("heapwright::")


def measured(library, kind, threads):
    few, many = (counted(library, kind, threads, rounds) for rounds in (SHORT, LONG))
    pairs = threads * BLOCKS_PER_ROUND * (LONG - SHORT)
    many.subtract(few)
    return {function: n / pairs for function, n in many.most_common() if n > 0}


def libraries():
    """{name: library}: ours, glibc, what is installed, and the newest that `script/bench peers` has built."""
    found = {"heapwright": str(ROOT / "build/release/lib/libheapwright.so"), "glibc": ""}
    installed = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, file in (("mimalloc", "libmimalloc.so.2"), ("jemalloc", "libjemalloc.so.2"), ("tcmalloc", "libtcmalloc_minimal.so.4"),
                       ("tbb", "libtbbmalloc_proxy.so.2")):
        if match := re.search(rf"^\t{re.escape(file)} .*=> (.*)$", installed, re.MULTILINE):
            found[name] = match[1]
    for path in sorted((ROOT / "build/peers/lib").glob("lib*.so")):
        found[path.stem.removeprefix("lib") + ", new"] = str(path)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("libraries", nargs="*")
    arguments = parser.parse_args()
    chosen = {Path(path).name: os.path.abspath(path) for path in arguments.libraries} or libraries()
    columns = [(kind, threads) for kind in KINDS for threads in THREADS if kind == "own" or threads > 1]
    print("read-modify-writes per malloc and free, by threads")
    print(f"{'':22}" + "".join(f"{f'{kind} {threads}':>9}" for kind, threads in columns))
    results = {}
    for name, library in chosen.items():
        try:
            results[name] = {f"{kind} {threads}": measured(library, kind, threads) for kind, threads in columns}
        except DoesNotRun as what:
            print(f"{name:22} {what}", flush=True)
            continue
        print(f"{name:22}" + "".join(f"{sum(cell.values()):9.4f}" for cell in results[name].values()), flush=True)
    print("\nwhere, of the most threads, in thousandths")
    for name, cells in results.items():
        for kind in KINDS:
            functions = list(cells[f"{kind} {THREADS[-1]}"].items())[:4]
            print(f"{name:22}{kind:5}" + ", ".join(f"{1000 * n:.1f} {short(function)}" for function, n in functions))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
