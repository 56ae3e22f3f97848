"""Compiles the C++ on the pages of the documentation: each block as it stands there, all blocks of a page in one file.

usage: documented_code.py COMPILER INCLUDE_FOLDER PAGE...

Left out are programs, which begin with "// NAME.cpp": documented_programs.py runs them. A block in another language than C++ and
the console fails: nothing would run it.
"""
import re
import subprocess
import sys
from pathlib import Path

PRELUDE = "#include <heapwright/kit.hpp>\n#include <vector>\n"


def main():
    compiler, include, *pages = sys.argv[1:]
    for page in pages:
        all_blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
        if unknown := {kind for kind, _ in all_blocks} - {"cpp", "console"}:
            sys.exit(f"{page}: no test runs a block in {', '.join(unknown)}")
        blocks = [text for kind, text in all_blocks if kind == "cpp" and not re.match(r"// \w+\.cpp\n", text)]
        if not blocks:
            continue
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", include, "-x", "c++", "-"]
        result = subprocess.run(command, input=PRELUDE + "\n".join(blocks), text=True)
        if result.returncode != 0:
            sys.exit(f"{page}: its code does not compile")
        print(f"{page}: {len(blocks)} blocks")


if __name__ == "__main__":
    main()
