"""Writes all of the kit as one header: `script/build single-header`.

usage: single_header.py INCLUDE_FOLDER OUTPUT
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r"^\s*#\s*include\s*<(heapwright/[^>]+)>")


def inline(root, name, seen, lines):
    if name in seen:
        return
    seen.add(name)
    for line in (root / name).read_text().splitlines():
        if line.strip() == "#pragma once":
            continue
        if match := INCLUDE.match(line):
            inline(root, match.group(1), seen, lines)
        else:
            lines.append(line)


def main():
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    lines = ["// Heapwright's kit in one file, made from its headers; do not edit. MIT license.", "#pragma once"]
    inline(root, "heapwright/kit.hpp", set(), lines)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
