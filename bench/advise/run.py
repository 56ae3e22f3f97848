"""Whether advice gains what it predicts: planted programs, recorded, advised, and run as they are and as they are advised.

usage: script/bench advise [--rounds N] [--times N] [--json FILE] [PROGRAM...]

A program's gain is processor time as it is less that as advised, by medians of interleaved rounds. `real/predicted` is 1 where the prediction is right. The prediction is
that of all advice at once.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEAPWRIGHT = ROOT / "build/release/bin/heapwright"
PLANTED = ROOT / "build/release/bin/planted"
PROGRAMS = ["tree", "pool", "text", "nested", "growing"]


def run(*command):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    return subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def processor_seconds(*command):
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    run(*command)
    return used() - before


def measured(program, times, rounds):
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        run(HEAPWRIGHT, "record", "-o", trace, "--", PLANTED, program, times)
        found = json.loads(run(HEAPWRIGHT, "advise", "--rounds", max(rounds, 2), trace, "--json", "-"))
    saves = found["together"] or (found["advice"][0]["saves"] if found["advice"] else None)
    as_is, advised = [], []
    for _ in range(rounds):
        as_is.append(processor_seconds(PLANTED, program, times))
        advised.append(processor_seconds(PLANTED, program, "advised", times))
    real = statistics.median(as_is) - statistics.median(advised)
    predicted = saves["seconds"] if saves else 0
    return {"program": program, "kinds": [a["kind"] for a in found["advice"] if a["is_worth_it"]], "seconds": statistics.median(as_is), "advised_seconds": statistics.median(advised),
            "real": real, "predicted": predicted, "ratio": real / predicted if predicted else None}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--json", type=Path)
    options.add_argument("programs", nargs="*", metavar="PROGRAM")
    arguments = options.parse_args()
    results = []
    for program in arguments.programs or PROGRAMS:
        results.append(measured(program, arguments.times, arguments.rounds))
        one = results[-1]
        ratio = "none predicted" if one["ratio"] is None else f"real/predicted {one['ratio']:.2f}"
        print(f"{program:<9} {one['seconds']:.3f} s -> {one['advised_seconds']:.3f} s: gains {one['real']:.3f} s, predicted {one['predicted']:.3f} s, {ratio}  ({', '.join(one['kinds'])})", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
