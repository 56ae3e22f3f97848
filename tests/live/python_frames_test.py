"""Calls in Python in `heapwright live`, in each Python that is here.

usage: python_frames_test.py HEAPWRIGHT LIBHEAPWRIGHT [unittest options]
"""
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

from watched import HEAPWRIGHT, LIBRARY, PATIENCE, PYTHON, Watched, clean_environment

# Keeps blocks, each of a size of its own, from calls of several kinds; says of each size which calls led to it.
PROGRAM = '''
import asyncio, functools, json, sys, threading

kept, calls_of = [], {}

def calls():
    frame, found = sys._getframe(1), []
    while frame:
        code = frame.f_code
        found.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found

def keep(size):
    kept.append(bytearray(size)); calls_of[size] = calls()

def through_c(size):
    sorted([1], key=lambda _: keep(size))

def generator(size):
    yield keep(size)

async def coroutine(size):
    await asyncio.sleep(0)
    keep(size)

def recursive(size, depth):
    return recursive(size, depth - 1) if depth else keep(size)

class Server:
    def handle(self, size):
        keep(
            size
        )

    @property
    def value(self):
        return keep(1_700_000)

def rückwärts_名前(size):
    keep(size)

def raising(size):
    try:
        raise ValueError("no")
    except ValueError:
        keep(size)

def many_lines(size):
''' + "".join(f"    x{i} = {i}\n" for i in range(300)) + '''    keep(size)

keep(1_000_000)
through_c(1_100_000)
list(generator(1_200_000))
asyncio.run(coroutine(1_300_000))
recursive(1_400_000, 20)
Server().handle(1_600_000)
Server().value
rückwärts_名前(1_800_000)
raising(1_900_000)
many_lines(2_000_000)
exec(compile("def made():\\n\\n  keep(2_100_000)\\nmade()", "made here", "exec"))
def reducing(a, b):
    keep(2_200_000)
functools.reduce(reducing, [1, 2])
def in_thread():
    keep(2_300_000)
thread = threading.Thread(target=in_thread, name="keeps")
thread.start()
thread.join()
class Meta(type):
    def __new__(cls, name, bases, body):
        keep(2_400_000)
        return super().__new__(cls, name, bases, body)
class Made(metaclass=Meta): pass
class Node:
    def __init__(self, size):
        keep(size)
def made_often(size):
    Node(size)
for size in [0] * 50 + [2_900_000]: made_often(size)
def malloc(size):
    kept.append(bytearray(size))
malloc(7_000_000)
sys.setrecursionlimit(5000)
def very_deep(depth):
    if depth: very_deep(depth - 1)
    else: kept.append(bytearray(9_000_000))
very_deep(1500)
exec(compile("\\n" * 5 + "\\n".join(f"v{i} = [{i}, 'x']" for i in range(40_000)) + "\\nkept.append(bytearray(8_000_000))", "long module", "exec"))
def after_a_library_was_unloaded():
    import _ctypes
    _ctypes.dlclose(_ctypes.dlopen("libresolv.so.2", 2))
    keep(2_500_000)
after_a_library_was_unloaded()
def encoded():
    kept.append(json.dumps([i for i in range(500_000)], indent=0))
encoded()
print(json.dumps(calls_of), flush=True)
sys.stdin.readline()
'''


def pythons():
    """Of each version one: the system's, and those that pyenv has."""
    found = {}
    for path in sorted([PYTHON, *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))]):
        said = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, text=True, env=clean_environment())
        if said.returncode == 0 and (3, 9) <= (version := tuple(map(int, said.stdout.split()))) <= (3, 14):
            found[path] = version
    return found


def calls_in_python(answer, site):
    """[function, file, line] of each, the innermost first."""
    places = (answer["places"][place] for place in site["stack"])
    return [list(place[:3]) for place in places if place[1] and place[1] == place[3]]


class PythonFrames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "kept_blocks.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)

    def test_calls_in_python_stand_among_the_others(self):
        for path, version in pythons().items():
            with self.subTest(path), Watched(path, self.script, sample="1") as program:
                calls_of = {int(size): calls for size, calls in json.loads(program.hear()).items() if int(size)}
                program.stop()
                answer = program.get("/api/sites?value=live&most=1000")
                site_of = {site["live_bytes"] // 100_000 * 100_000: site for site in answer["sites"]}
                for size, calls in calls_of.items():
                    self.assertIn(size, site_of, (version, calls))
                    site = site_of[size]
                    self.assertEqual(calls_in_python(answer, site), calls, (version, size))
                    names = [answer["places"][place][0] for place in site["stack"]]
                    self.assertFalse([name for name in names if name == "_PyEval_EvalFrameDefault"], (version, names))
                    self.assertIn(answer["places"][site["stack"][-1]][0], ("_start", "main", "clone3", "clone", "__clone3", "start_thread"), names)

    def test_the_site_is_a_line_of_the_program(self):
        with Watched(PYTHON, self.script, sample="1") as program:
            program.hear()
            program.stop()
            sites = [(names[site["site"]], names[site["caller"]], site["live_bytes"]) for names, site in program.sites("value=live&most=1000")
                     if site["live_bytes"] >= 1_000_000 and site["caller"] is not None]
            self.assertEqual({site for site, _, _ in sites}, {"keep", "encoded", "malloc"}, "not json's encoder, which is Python's own")
            self.assertIn(("encoded", "<module>"), [site[:2] for site in sites])
            answer = program.get("/api/sites?value=live&most=1000")
            places = [answer["places"][site["stack"][site["site"]]][:3] for site in answer["sites"] if site["live_bytes"] >= 7_000_000]
            self.assertIn(["<module>", "long module", 40_006], places)
            self.assertIn("very_deep", [function for function, _, _ in places], "of 1500 calls the innermost are there")
            self.assertLessEqual({"made", "through_c.<locals>.<lambda>", "Server.handle", "coroutine"}, {caller for _, caller, _ in sites})

    def test_the_tree_can_do_without_the_interpreter(self):
        with Watched(PYTHON, self.script, sample="1") as program:
            program.hear()
            program.stop()
            hidden, shown = (program.get(f"/api/stacks?value=live&most=100000&interpreter={how}") for how in ("hidden", "shown"))
            self.assertEqual(hidden["total"][0], shown["total"][0])
            roots = [hidden["places"][hidden["place"][node]][0] for node, parent in enumerate(hidden["parent"]) if parent == 0]
            self.assertIn("<module>", roots)
            self.assertIn("Thread._bootstrap", roots)
            self.assertIn("_PyFunction_Vectorcall", {place[0] for place in shown["places"]})
            in_python = {node for node, place in enumerate(hidden["place"]) if node and hidden["places"][place][1] == hidden["places"][place][3] != ""}
            below = {node for node in range(1, len(hidden["place"])) if hidden["parent"][node] in in_python}
            self.assertNotIn("_PyFunction_Vectorcall", {hidden["places"][hidden["place"][node]][0] for node in below})

    def test_objects_in_arenas_are_seen_where_that_is_asked_for(self):
        program = ["-c", "import sys\nkept = [str(i) for i in range(100_000)]\nprint('ready', flush=True)\nsys.stdin.readline()"]
        for more, least, most in ((["--python-objects"], 5_000_000, 20_000_000), ([], 0, 3_000_000)):
            with self.subTest(more), Watched(PYTHON, *program, sample="1", options=more) as watched:
                watched.hear()
                watched.stop()
                of_list = sum(site["live_bytes"] for names, site in watched.sites("value=live&most=1000") if names[site["site"]] == "<listcomp>")
                self.assertGreaterEqual(of_list, least)
                self.assertLessEqual(of_list, most)

    def test_a_program_that_cannot_be_observed_forks_as_others_do(self):
        probe = os.path.join(os.path.dirname(LIBRARY), "libheapwright-probe.so")
        forks = "import os, sys\nchild = os.fork()\nif child: sys.exit(os.waitpid(child, 0)[1])"
        self.assertEqual(subprocess.run([PYTHON, "-c", forks], env=clean_environment(LD_PRELOAD=probe, HEAPWRIGHT_SEGMENT_DIR="/nonexistent/folder")).returncode, 0)

    def test_a_running_program_has_chosen_where_its_objects_are(self):
        said = subprocess.run([HEAPWRIGHT, "live", "--python-objects", str(os.getpid())], stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(said.returncode, 125)
        self.assertIn("--python-objects is for a COMMAND", said.stderr)


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
