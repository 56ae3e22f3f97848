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

from watched import HEAPWRIGHT, PATIENCE, PYTHON, Watched, clean_environment

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
                calls_of = {int(size): calls for size, calls in json.loads(program.hear()).items()}
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
            names = [names[site["site"]] for names, site in program.sites("value=live&most=1000") if 1_000_000 <= site["live_bytes"] < 2_500_000]
            self.assertGreaterEqual(names.count("keep"), 14, names)


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
