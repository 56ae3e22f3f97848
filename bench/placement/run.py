"""What placement by lifetimes, and compaction, could gain: a model of spans, fed with traces.

usage: script/bench placement TRACE...     of `heapwright record`

Each cell: bytes, of those that the spans have as they are: the most, the mean and the last of some hundred looks. bench/placement/main.cpp says what the columns are.
"""
import json
import subprocess
import sys
from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent.parent / "build/release/bin/placement_bench"


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    heading = None
    for trace in sys.argv[1:]:
        done = subprocess.run([MODEL, trace], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.returncode)
        found = json.loads(done.stdout)
        spans = found["spans"]
        if heading is None:
            heading = [name for name in found if name != "spans"]
            print(f"{'trace':20} {'spans, MiB':>12}" + "".join(f"{name.replace('_', ' '):>22}" for name in heading))
        cells = (" ".join(f"{found[name][key] / max(spans[key], 1):.2f}" for key in ("most", "mean", "last")) for name in heading)
        print(f"{Path(trace).stem:20} {spans['most'] / 2**20:>12.1f}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


main()
