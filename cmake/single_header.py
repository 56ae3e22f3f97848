"""Writes the kit, the heaps and what programs tell the live view as one header: `script/build single-header`.

usage: single_header.py INCLUDE_FOLDER OUTPUT
"""
import re
import sys
from pathlib import Path

FRONT_DOORS = ["heapwright/kit.hpp", "heapwright/heap.hpp", "heapwright/live.hpp"]

INCLUDE = re.compile(r"^\s*#\s*include\s*<(heapwright/[^>]+)>")


def inline(root, name, seen, lines, is_conditional=False):
    """Appends the lines of a header and, where it includes them first, those of others.

    A header below an #if may be missing for those that come later, so there it must not be the first to include anything
    but what is for one system alone.
    """
    if name in seen:
        return
    seen.add(name)
    depth = 0
    for line in (root / name).read_text().splitlines():
        depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
        match = INCLUDE.match(line)
        if line.strip() == "#pragma once":
            continue
        if not match:
            lines.append(line)
        elif is_conditional and match[1] not in seen and not re.search("/(linux|macos|posix|windows)/", match[1]):
            sys.exit(f"{root / name}: includes {match[1]}, which nothing has before, and is itself included below an #if")
        else:
            inline(root, match[1], seen, lines, depth > 0)


def main():
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    lines = ["// Heapwright's kit, heaps and live view in one file, made from their headers; do not edit. MIT license.", "#pragma once"]
    seen = set()
    for name in FRONT_DOORS:
        inline(root, name, seen, lines)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
