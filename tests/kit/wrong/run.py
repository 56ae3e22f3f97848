"""Compiles what must not compile. The compiler's first error must be the sentence that says why, and not a wall of template arguments before it. Of a header that is read as C++17 it is the only error.

  each .cpp here     its first line has the sentence
  each public header and the single header, told to be C++17: they need C++20
  a compiler for a system of 32 bits

usage: run.py COMPILER INCLUDE_FOLDER SINGLE_HEADER_SCRIPT
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_BEFORE = 3000  # characters: what was included from where, and what was instantiated


def fault(compiler, include, standard, source, sentence, alone=False, options=()):
    """What is wrong with the compiler's answer, or None."""
    result = subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", "-I", include, *options, "-x", "c++", "-"], input=source, capture_output=True, text=True)
    if result.returncode == 0:
        return "it compiles"
    first = re.search(r"^.*?error: .*$", result.stderr, re.MULTILINE)
    if not re.search(sentence, first.group(0) if first else ""):
        return f"the first error is not '{sentence}'\n{result.stderr[:1500]}"
    if first.start() > MOST_BEFORE:
        return f"{first.start()} characters before the sentence\n{result.stderr[:1500]}"
    errors = re.findall(r"^.*?error: .*$", result.stderr, re.MULTILINE)
    if alone and len(errors) > 1:
        return f"{len(errors)} errors\n{result.stderr[:1500]}"
    return None


def main():
    compiler, include, single_header_script = sys.argv[1:]
    faults = {}
    needs = "Heapwright needs C\\+\\+20: compile with -std=c\\+\\+20"
    for file in sorted(Path(__file__).parent.glob("*.cpp")):
        sentence = re.match(r"// says: (.*)\n", file.read_text()).group(1)
        faults[file.name] = fault(compiler, include, "c++20", file.read_text(), sentence)
    # Those of macOS include headers that only macOS has.
    headers = sorted(header for header in Path(include).rglob("*.hpp") if header.parent.name != "macos")
    for header in headers:
        name = header.relative_to(include)
        faults[f"{name} as C++17"] = fault(compiler, include, "c++17", f"#include <{name}>\n", needs, alone=True)
    faults["32 bits"] = fault(compiler, include, "c++20", "#include <heapwright/core/language.hpp>\n", "Heapwright needs pointers of 64 bits: compile for a 64-bit system",
                              alone=True, options=["-U__SIZEOF_POINTER__", "-D__SIZEOF_POINTER__=4"])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, single_header_script, include, f"{folder}/heapwright.hpp"], check=True)
        faults["the single header as C++17"] = fault(compiler, folder, "c++17", "#include <heapwright.hpp>\n", needs, alone=True)
    for name, what in faults.items():
        if what:
            print(f"{name}: {what}")
    sys.exit(1 if any(faults.values()) or not headers else 0)


if __name__ == "__main__":
    main()
