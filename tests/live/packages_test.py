"""What belongs to the program's own code, what to packages and libraries, in C++, Python and node; and lines of source around a call.

usage: packages_test.py HEAPWRIGHT LIBHEAPWRIGHT NAMED_THREADS
"""
import os
import re
import shutil
import sys
import tempfile
import unittest
import urllib.parse

from watched import PYTHON, Watched

PROGRAM = os.path.abspath(sys.argv[3])

FILES = {
    "app/main.py": """import cached, sys

def serve():
    cached.put(3_000_000)

serve()
print("ready", flush=True)
sys.stdin.readline()
""",
    "site-packages/cached/__init__.py": "from cached.inner.store import put\n",
    "site-packages/cached/inner/__init__.py": "",
    "site-packages/cached/inner/store.py": """import json
kept = []
def put(size):
    kept.append(bytearray(size))
    kept.append(json.dumps([1] * 400_000))
    single.put(size)
import single
""",
    "site-packages/single.py": "kept = []\ndef put(size): kept.append(bytearray(size))\n",
    "app/main.js": """const { each } = require("express");
function serve() { each(30); }
serve();
console.log("ready");
process.stdin.resume();
""",
    "app/node_modules/express/index.js": """const { put } = require("@scope/cache");
exports.each = function each(n) { for (let i = 0; i < n; i++) put(100_000); };
""",
    "app/node_modules/@scope/cache/index.js": "const kept = [];\nexports.put = function put(size) { kept.push(Buffer.alloc(size, 1)); };\n",
}


def ways(answer, least):
    """The names on each way from the root to what has so much itself, with its total."""
    names, found = [], {}
    for parent, place, own, total in zip(answer["parent"], answer["place"], answer["own"], answer["total"]):
        names.append(names[parent] + (answer["places"][place][0],) if parent >= 0 else ())
        if own >= least:
            found[names[-1]] = total
    return found


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = os.path.realpath(folder.name)
        for name, text in FILES.items():
            path = os.path.join(cls.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)

    def ask(self, watched, least=1_000_000, **question):
        return set(ways(watched.get("/api/stacks?" + urllib.parse.urlencode({"most": 100_000, "interpreter": "hidden", **question})), least))

    def check_totals(self, watched):
        totals = {by: watched.get("/api/stacks?" + by)["total"][0] for by in ("", "by=line", "by=package", "libraries=folded", "by=package&libraries=folded")}
        self.assertEqual(len(set(totals.values())), 1, totals)

    def test_cpp(self):
        with Watched(PROGRAM) as watched:
            watched.hear()
            watched.tell("tables")
            watched.stop()
            self.check_totals(watched)
            program = os.path.basename(PROGRAM)
            self.assertIn((program, "libc.so.6", program), self.ask(watched, 100_000, by="package"))
            # Of the C++ library, its templates within the program too, nothing is left between main and the site.
            own = ("main", "(anonymous namespace)::fill_table")
            self.assertIn(own, self.ask(watched, 100_000, libraries="folded"))
            self.assertIn(own[::-1], {way[:2] for way in ways(watched.get("/api/stacks?libraries=folded&from=site"), 1)})
            self.assertTrue(any("std::" in name for way in self.ask(watched, 100_000) for name in way))
            # What has no code of the program's own is there by its packages.
            self.assertTrue(any(way[0].startswith("ld-") and way[1:] == ("libstdc++.so.6",) for way in self.ask(watched, 10_000, libraries="folded")))

    def test_python(self):
        main, store = (os.path.join(self.folder, name) for name in ("app/main.py", "site-packages/cached/inner/store.py"))
        with Watched(PYTHON, main, environment={"PYTHONPATH": os.path.join(self.folder, "site-packages")}) as watched:
            self.assertEqual(watched.hear(), "ready")
            watched.stop()
            self.check_totals(watched)
            for question, outer in (({"by": "package"}, ("app/",)), ({"libraries": "folded"}, ("<module>", "serve"))):
                with self.subTest(**question):
                    found = {way for way in self.ask(watched, **question) if way[0] == outer[0]}
                    self.assertEqual({way for way in found if way[-1] != "python"}, {(*outer, "cached"), (*outer, "cached", "single")})
                    self.assertEqual(len(found), 3, f"{found}: json's too")
            self.check_source(watched, main, store)

    def check_source(self, watched, main, store):
        def source(file, line):
            return watched.get("/api/source?" + urllib.parse.urlencode({"file": file, "line": line}))
        text = FILES["app/main.py"].splitlines()
        for line, first, last in ((4, 1, 8), (1, 1, 6), (8, 3, 8)):
            answer = source(main, line)
            self.assertEqual((answer["line"], answer["first"], answer["lines"]), (line, first, text[first - 1:last]))
            self.assertFalse(answer["is_newer"])
        self.assertEqual(source(store, 4)["lines"][3], "    kept.append(bytearray(size))")
        # A line beyond the end, files that no stack names though they are there, and one that is not.
        for file, line in ((main, 9), (main, 2 ** 30), ("/etc/passwd", 1), (os.path.join(self.folder, "app/main.js"), 1), (main + "/../main.py", 1),
                           (os.path.dirname(main), 1), ("", 1), ("<frozen importlib._bootstrap>", 1), ("main.py", 1)):
            with self.subTest(file=file, line=line):
                self.assertEqual(source(file, line)["lines"], [])
        with open(main, "wb") as file:
            file.write(b"\xff" * 1_000 + b"\n<b>\n")
        answer = source(main, 2)
        self.assertTrue(answer["is_newer"])
        self.assertEqual(answer["lines"][1], "<b>")
        self.assertLess(len(answer["lines"][0]), 500, "a long line is cut")
        self.assertEqual(source(main, 4)["lines"], [])
        os.remove(main)
        self.assertEqual(source(main, 2)["lines"], [])
        os.mkfifo(main)
        self.assertEqual(source(main, 2)["lines"], [], "a pipe is not waited for")

    @unittest.skipIf(shutil.which("node") is None, "node is not installed")
    def test_node(self):
        with Watched("node", os.path.join(self.folder, "app/main.js")) as watched:
            self.assertEqual(watched.hear(), "ready")
            watched.stop()
            self.check_totals(watched)
            packages = ("express", "@scope/cache", "node")
            self.assertIn(("node", "app/", *packages), self.ask(watched, by="package"))
            self.assertIn(("(anonymous)", "serve", *packages), self.ask(watched, libraries="folded"))
            # V8 describes code of its own in the same file as that of scripts.
            for question in ({"by": "package"}, {"libraries": "folded"}):
                names = {name for way in self.ask(watched, 1, value="allocated", **question) for name in way}
                self.assertEqual({name for name in names if re.search(r"perf-\d+\.map|^(Builtin|BytecodeHandler|RegExp|Stub):", name)}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
