"""Compiles what must not compile, and looks for the sentence that says why: the first line of each file.

usage: run.py COMPILER INCLUDE_FOLDER
"""
import re
import subprocess
import sys
from pathlib import Path


def main():
    compiler, include = sys.argv[1:]
    failures = 0
    for file in sorted(Path(__file__).parent.glob("*.cpp")):
        sentence = re.match(r"// says: (.*)\n", file.read_text()).group(1)
        result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", include, str(file)], capture_output=True, text=True)
        if result.returncode == 0 or not re.search(sentence, result.stderr):
            failures += 1
            print(f"{file.name}: {'it compiles' if result.returncode == 0 else 'not said: ' + sentence}\n{result.stderr[:1500]}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
