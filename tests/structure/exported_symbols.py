"""What a library exports is what its list says: nothing goes missing, and nothing becomes part of its interface by accident.

usage: exported_symbols.py [--write] NM LIBRARY LIST

LIST has one symbol a line, demangled, sorted. Of an archive these are the strong global symbols: they collide with a program's own of the same name.
Templates and inline functions in it are weak, and must be in the namespace heapwright. --write makes the list anew.
"""
import re
import subprocess
import sys
from pathlib import Path

# What the compilers add for a catch and for noexcept.
WEAK_OF_THE_COMPILER = {"DW.ref.__gxx_personality_v0", "__clang_call_terminate"}

# Where sections end: some linkers export it.
OF_THE_LINKER = {"__bss_start", "_edata", "_end"}


def is_shared(library: str):
    return ".so" in Path(library).name


def symbols(nm: str, library: str):
    """(kind, demangled name) of each symbol that other objects can see."""
    which = "--dynamic" if is_shared(library) else "--extern-only"
    output = subprocess.run([nm, which, "--defined-only", "--demangle", "--format=posix", library], check=True, capture_output=True, text=True).stdout
    # "name kind value size"; demangled names contain spaces, and an archive's members are headings.
    return {(match[2], match[1]) for match in re.finditer(r"^(.+?) ([A-Za-z]) [0-9a-f]+(?: [0-9a-f]*)?$", output, re.M)}


def main():
    arguments = sys.argv[1:]
    write = arguments[0] == "--write"
    nm, library, listed = arguments[write:]
    exported = symbols(nm, library)
    trouble = []
    if not is_shared(library):
        weak = {name for kind, name in exported if kind in "VWuvw"}
        trouble += [f"weak, and not in namespace heapwright: {name}" for name in sorted(weak)
                    # Not each nm can take each name apart.
                    if "heapwright::" not in name and not re.match("_ZNK?10heapwright", name) and name not in WEAK_OF_THE_COMPILER]
        exported = {(kind, name) for kind, name in exported if name not in weak}
    now = sorted({name for _, name in exported} - OF_THE_LINKER)
    if write:
        Path(listed).write_text("".join(f"{name}\n" for name in now))
        return
    expected = Path(listed).read_text().splitlines()
    trouble += [f"exported, but not in the list: {name}" for name in now if name not in expected]
    trouble += [f"in the list, but not exported: {name}" for name in expected if name not in now]
    if trouble:
        sys.exit("\n".join(trouble + [f"If this is meant: {sys.argv[0]} --write {nm} {library} {listed}"]))


if __name__ == "__main__":
    main()
