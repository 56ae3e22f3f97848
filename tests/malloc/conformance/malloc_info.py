#!/usr/bin/env python3
"""malloc_info writes well-formed XML with glibc's root and element names, and its figures are true: 100 MiB are seen when they are
allocated, and seen to go.

    malloc_info.py PROGRAM LIBRARY
"""
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

MIB = 1 << 20


def figures(text):
    root = xml.fromstring(text)
    assert root.tag == "malloc" and root.get("version"), "the root is not <malloc version=...>"
    heaps = root.findall("heap")
    assert heaps, "no <heap>"
    total = {t.get("type"): int(t.get("size")) for h in heaps for t in h.findall("total")}
    system = {s.get("type"): int(s.get("size")) for s in root.findall("system")}
    return total, system


def main():
    program, library = sys.argv[1:3]
    out = subprocess.run([program], env=dict(os.environ, LD_PRELOAD=library), capture_output=True, text=True, check=True)
    before, full, after = [figures(part) for part in out.stdout.split("--\n")[:3]]

    def grown(this, kind, least, most):
        difference = this[0][kind] - before[0][kind]
        assert least <= difference <= most, f"{kind}: grew by {difference}, expected {least} to {most}"

    grown(full, "small", 48 * MIB, 60 * MIB)
    grown(full, "large", 50 * MIB, 52 * MIB)
    assert full[1]["current"] >= 98 * MIB, "system current is less than what is in use"
    grown(after, "small", -MIB, MIB)
    grown(after, "large", -MIB, MIB)
    assert after[1]["max"] >= 98 * MIB, "the peak has been forgotten"
    assert sum(after[0].values()) == after[1]["current"], f"the totals do not add up: {after}"


if __name__ == "__main__":
    main()
