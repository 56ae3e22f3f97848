"""Runs the programs on a page of the documentation, and compares what they print with what the page says.

usage: documented_programs.py COMPILER INCLUDE_FOLDER PAGE...

A program is a C++ block whose first line is "// NAME.cpp". A console block has commands, after "$ ", and their output. Addresses,
process ids and folders may differ; "..." stands for any lines. `c++` is COMPILER. A command whose tool is not installed is skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(cpp|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The shell's own words about a program that ended by a signal.
OF_THE_SHELL = re.compile(r"^(Aborted|sh: |.*: Aborted)")


def masked(text):
    text = re.sub(r"0x[0-9a-fA-F]+", "0x", text)
    text = re.sub(r"^==\d+==", "====", text, flags=re.MULTILINE)
    return [line for line in text.splitlines() if not OF_THE_SHELL.match(line)]


def agrees(expected, seen):
    pattern = "".join("(.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in seen)) is not None


def run(command, folder, environment):
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.replace(f"{folder}/", "/src/")


def check_page(page, folder, environment):
    """How many commands were run, and what is wrong with them."""
    commands, trouble = 0, []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "cpp":
            if name := re.match(r"// (\w+\.cpp)\n", text):
                (folder / name[1]).write_text(text)
            continue
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            tools = [part.split()[0] for part in command.split("&&")]
            if missing := [t for t in tools if not t.startswith("./") and not shutil.which(t, path=environment["PATH"])]:
                print(f"{page}: skipped, {missing[0]} is not installed: {command}")
                continue
            commands += 1
            seen = run(command, folder, environment)
            if not agrees(masked(expected), masked(seen)):
                trouble.append(f"{page}: $ {command}\nthe page says:\n{expected}\nit prints:\n{seen}")
    return commands, trouble


def main():
    compiler, include, *pages = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/c++").symlink_to(shutil.which(compiler))
        environment = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "CPLUS_INCLUDE_PATH": include}
        for page in pages:
            commands, trouble = check_page(Path(page), folder, environment)
            if trouble or commands == 0:
                sys.exit("\n".join(trouble) or f"{page}: no command in it")
            print(f"{page}: {commands} commands")


if __name__ == "__main__":
    main()
