"""The house stands: every include points to its own layer or to one above it in the list, and nowhere else.

usage: include_graph.py PROJECT   prints each wrong include with file and line; exit status 1 if there is one
"""
import re
import sys
from pathlib import Path

LAYERS = ["core", "platform", "sync", "source", "allocator", "combine", "adapt", "heap"]

# malloc's public face describes the process to readers in other processes.
PUBLIC_MALLOC = "malloc"
KIT = LAYERS + [PUBLIC_MALLOC]

# These choose the platform, or are for Linux alone.
FRONT_DOORS = {"kit.hpp", "heap.hpp", "live.hpp"}

# What a folder outside of include/ may use of the kit. Tools see the library as its users do, never the heap's inside.
TOOLS_MAY_USE = {"heapwright/malloc/process_record.hpp", "heapwright/malloc/process_report.hpp", "heapwright/heap/figures.hpp"}

# What programs call in the probe.
PROBES_FACE = "heapwright/live.h"
PROBE_MAY_USE = {"core", "platform", "sync"}
PROBE_NEIGHBOURS = {"../segment/segment.hpp", "../segment/sample_weight.hpp", "../abi/cxx_runtime.hpp",
                    "../abi/default_operators.hpp", "../abi/export.hpp",
                    "../abi/own_object.hpp"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')


def includes(file: Path):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def layer_of(include: str):
    parts = include.split("/")
    return parts[1] if parts[0] == "heapwright" and len(parts) > 2 else None


def wrong_in_kit(root: Path):
    for file in sorted((root / "include/heapwright").rglob("*.hpp")):
        own = file.relative_to(root / "include/heapwright").parts[0]
        if own in FRONT_DOORS:
            continue
        if own not in KIT:
            yield file, 1, f"folder {own} is not a layer"
            continue
        for number, name in includes(file):
            target = layer_of(name)
            if target is None:
                if name.endswith(".hpp"):
                    yield file, number, f"{name}: a public header is included as <heapwright/LAYER/...>"
                continue
            if target not in KIT or KIT.index(target) > KIT.index(own):
                yield file, number, f"{own} must not include {target}"
            if "linux" in Path(name).parts and own != "platform":
                yield file, number, f"{own} must be told its platform, not choose it"


def wrong_in_tools(root: Path):
    for file in sorted((root / "tools").rglob("*.[ch]pp")):
        for number, name in includes(file):
            if name.startswith("heapwright/") and name not in TOOLS_MAY_USE:
                yield file, number, f"tools must not include {name}"
            if "malloc/" in name and not name.startswith("heapwright/"):
                yield file, number, f"tools must not reach into malloc/: {name}"


def wrong_in_probe_and_segment(root: Path):
    """The format is everybody's and needs nobody; the probe is loaded into other people's programs and brings little."""
    for file in sorted((root / "segment").rglob("*.[ch]pp")):
        for number, name in includes(file):
            if "/" in name and name.endswith(".hpp"):
                yield file, number, f"segment must not include {name}"
    for file in sorted((root / "probe").rglob("*.[ch]pp")):
        for number, name in includes(file):
            if name.startswith("heapwright/") and name != PROBES_FACE and layer_of(name) not in PROBE_MAY_USE:
                yield file, number, f"probe must not include {name}"
            if name.startswith("../") and name not in PROBE_NEIGHBOURS:
                yield file, number, f"probe must not include {name}"


def main():
    root = Path(sys.argv[1])
    wrong = list(wrong_in_kit(root)) + list(wrong_in_tools(root)) + list(wrong_in_probe_and_segment(root))
    for file, number, what in wrong:
        print(f"{file.relative_to(root)}:{number}: {what}")
    checked = len(list((root / "include").rglob("*.hpp"))) + len(list((root / "tools").rglob("*.[ch]pp")))
    print(f"{checked} files, {len(wrong)} wrong includes")
    sys.exit(1 if wrong or checked < 15 else 0)


if __name__ == "__main__":
    main()
