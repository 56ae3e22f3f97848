"""What developers run all day: a compiler and a version control system."""
import os


def gxx(side):
    """Templates without end; the object file must be the same to the byte."""
    side.need("g++")
    source = side.input("templates.cpp.in", WIDTH=12 if side.full else 3)
    for options in (["-O2"], ["-O0"]) if side.full else (["-O2"],):
        side.call("g++", "-std=c++20", *options, "-x", "c++", "-c", source, "-o", f"{options[0][1:]}.o")
    objects = sorted(name for name in os.listdir(side.directory) if name.endswith(".o"))
    return side.call("sha256sum", *objects) + side.call("nm", "--defined-only", objects[0], digest=True)


def history(commits, files):
    """A history as `git fast-import` reads it: the same text, so the same object names, each time."""
    for commit in range(commits):
        message = f"Change number {commit}\n"
        yield f"commit refs/heads/main\ncommitter A U Thor <author@example.com> {1700000000 + commit * 60} +0000\n"
        yield f"data {len(message)}\n{message}"
        for k in range(files):
            number = (commit * 7919 + k * 104729) % 997
            text = "".join(f"line {i} of file {number}: {(i * number + commit) * 2654435761 % 1000003}\n" for i in range(60 + number % 200))
            yield f"M 100644 inline directory{number % 23}/file{number}.txt\ndata {len(text)}\n{text}\n"
    yield "done\n"


def git(side):
    """Builds a repository of thousands of objects, clones it, packs it anew, checks it and reads all of it."""
    side.need("git")
    commits, files = (1200, 8) if side.full else (300, 5)
    side.environment.update(GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.com")
    side.call("git", "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    side.call("git", "-C", "origin.git", "fast-import", "--quiet", text=history(commits, files))
    side.call("git", "clone", "--quiet", "--no-local", "origin.git", "clone")
    side.call("git", "-C", "clone", "gc", "--quiet", "--prune=now")
    outputs = [
        side.call("git", "-C", "clone", "rev-parse", "HEAD"),
        side.call("git", "-C", "clone", "fsck", "--full", "--no-progress"),
        side.call("git", "-C", "clone", "log", "--stat", "--format=%H %s", digest=True),
        side.call("git", "-C", "clone", "rev-list", "--objects", "--all", "--no-object-names", digest=True),
        side.call("git", "-C", "clone", "log", "-p", "-M", "--format=%H", digest=True),
    ]
    return "".join(outputs)
