"""What an installed program or library needs from the system it runs on: which libraries, and how new a glibc.

usage: needed_libraries.py READELF FILE [--glibc X.Y] LIBRARY...

Fails if FILE needs another library than those named. With --glibc it also fails if FILE needs a version of glibc above X.Y, or a
symbol version of another library. A weak need counts: some loaders refuse it too.
"""
import re
import subprocess
import sys


def read(readelf, option, file):
    return subprocess.run([readelf, "-W", option, file], check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def main():
    readelf, file, *allowed = sys.argv[1:]
    oldest = None
    if allowed and allowed[0] == "--glibc":
        oldest = allowed[1]
        allowed = allowed[2:]
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", read(readelf, "--dynamic", file))
    trouble = [f"needs {library}" for library in needed if library not in allowed]
    if oldest is not None:
        for name in sorted(set(re.findall(r"Name: (\S+)\s+Flags:", read(readelf, "--version-info", file)))):
            version = re.fullmatch(r"GLIBC_([0-9.]+)", name)
            if version is None:
                trouble.append(f"needs {name}")
            elif number(version[1]) > number(oldest):
                users = re.findall(rf" (\w+)@{re.escape(name)} ", read(readelf, "--dyn-syms", file))
                trouble.append(f"needs {name}: {', '.join(users)}")
    if trouble:
        sys.exit("\n".join(f"{file} {line}" for line in trouble))
    print(f"{file} needs {', '.join(needed) or 'nothing'}")


if __name__ == "__main__":
    main()
