"""Compiles the C++ on a page of the documentation: each block as it stands there, all blocks of a page in one file.

usage: documented_code.py COMPILER INCLUDE_FOLDER PAGE...
"""
import re
import subprocess
import sys
from pathlib import Path

PRELUDE = "#include <heapwright/kit.hpp>\n#include <vector>\n"


def main():
    compiler, include, *pages = sys.argv[1:]
    for page in pages:
        blocks = re.findall(r"^```cpp\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
        if not blocks:
            sys.exit(f"{page}: no C++ in it")
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", include, "-x", "c++", "-"]
        result = subprocess.run(command, input=PRELUDE + "\n".join(blocks), text=True)
        if result.returncode != 0:
            sys.exit(f"{page}: its code does not compile")
        print(f"{page}: {len(blocks)} blocks")


if __name__ == "__main__":
    main()
