"""What a malloc finds: programs with one mistake each, under every malloc there is.

usage: script/bench misuse [--with NAME=LIBRARY]... [--only NAME[,NAME]...] [--json FILE] [--all] [KIND...]     KIND: how a mistake's name begins

A mistake is *found* if the malloc ends the program, or a page stops it; *named* if stderr says what kind of mistake it is, in our words or
glibc's; *harmless* if there is nothing to be seen of it. The rest is not found. --all lists each mistake.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
PATIENCE = 60  # seconds for one mistake
HARMLESS, NOT_FOUND = 0, 3

# What a message must say to have named the mistake, by how its name begins.
NAMED = {
    "double-free": r"double free|free(d)? already|freed already",
    "invalid": r"pointer into a block|foreign pointer|invalid pointer",
    "foreign": r"foreign pointer|invalid pointer",
    "wrong-size": r"wrong size",
    "wrong-alignment": r"wrong alignment",
    "mismatch": r"allocated by .*freed by",
    "size": r"write beyond a block",
    "overflow": r"write beyond a block",
    "underflow": r"write before a block|write beyond a block",
    "write-after-free": r"write after free",
}


def mallocs(arguments):
    """{name: library}; an empty name of a library: libc's own."""
    debian = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4", "tbbmalloc": "libtbbmalloc_proxy.so.2"}
    found = {"glibc": ""}
    for name in ("heapwright", "heapwright-checked", "heapwright-hardened"):
        library = BUILD / f"lib/lib{name}.so"
        if library.exists():
            found[name] = str(library)
    for name, file in debian.items():
        library = Path("/usr/lib/x86_64-linux-gnu") / file
        if library.exists():
            found[name] = str(library)
    for library in sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so")):
        found["scudo"] = str(library)
    for one in arguments.with_:
        name, _, library = one.rpartition("=")
        found[name or Path(library).stem] = str(Path(library).resolve())
    if arguments.only:
        wanted = arguments.only.split(",")
        unknown = [name for name in wanted if name not in found]
        if unknown:
            sys.exit(f"no malloc is called {' or '.join(unknown)}; there are: {', '.join(found)}")
        found = {name: found[name] for name in wanted}
    return found


def made(mistake, library):
    """(found, harmless, not found; whether it was named; what became of the program)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_", "MALLOC_", "GLIBC_"))}
    if library:
        environment["LD_PRELOAD"] = library
    try:
        done = subprocess.run([BUILD / "bin/corruptions", mistake], env=environment, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "not found", False, f"did not end within {PATIENCE} s"
    said = (done.stderr + done.stdout).decode(errors="replace").strip()
    if done.returncode < 0:
        pattern = NAMED.get(mistake.split("/")[0])
        is_named = done.returncode == -signal.SIGABRT and pattern is not None and re.search(pattern, said) is not None
        return "found", is_named, f"{signal.Signals(-done.returncode).name} {said}".strip()
    if done.returncode == HARMLESS:
        return "harmless", False, said
    return "not found", False, f"exit code {done.returncode} {said}" if done.returncode != NOT_FOUND else said


def main():
    parser = argparse.ArgumentParser(prog="script/bench misuse", usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--with", dest="with_", action="append", default=[])
    parser.add_argument("--only")
    parser.add_argument("--json")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("kinds", nargs="*")
    arguments = parser.parse_args()
    mistakes = subprocess.run([BUILD / "bin/corruptions", "--list"], capture_output=True, text=True, check=True).stdout.split()
    if arguments.kinds:
        mistakes = [m for m in mistakes if any(m.startswith(kind) for kind in arguments.kinds)]
    rows = {}
    for name, library in mallocs(arguments).items():
        print(f"\r{name:40}", end="", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rows[name] = dict(zip(mistakes, pool.map(lambda m: made(m, library), mistakes)))
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    kinds = list(dict.fromkeys(m.split("/")[0] for m in mistakes))
    print(f"{'found or harmless':24}" + "".join(f"{kind:>18}" for kind in kinds) + f"{'all':>12}{'named':>8}")
    count = lambda row, kind=None: [sum(m.split("/")[0] == kind or kind is None for m in row if row[m][0] != "not found"), sum(m.split("/")[0] == kind or kind is None for m in row)]
    for name, row in rows.items():
        cells = "".join(f"{'%d of %d' % tuple(count(row, kind)):>18}" for kind in kinds)
        print(f"{name:24}{cells}{'%d/%d' % tuple(count(row)):>12}{sum(v[1] for v in row.values()):>8}")
    if arguments.all:
        for mistake in mistakes:
            print(f"\n{mistake}")
            for name, row in rows.items():
                print(f"  {name:22}{row[mistake][0]:12}{row[mistake][2].splitlines()[0] if row[mistake][2] else ''}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({name: {m: {"outcome": v[0], "is_named": v[1], "end": v[2]} for m, v in row.items()} for name, row in rows.items()}, file, indent=1)


if __name__ == "__main__":
    main()
