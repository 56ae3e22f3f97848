"""`live --snapshot`: the page in one file, with the answers to its questions; of a command, a process, a saved run. And what is refused.

usage: snapshot_test.py HEAPWRIGHT LIBHEAPWRIGHT
"""
import base64
import gzip
import json
import os
import re
import subprocess
import tempfile
import unittest

from watched import HEAPWRIGHT, PATIENCE, PYTHON, Watched, clean_environment

# Keeps 1 MB that a thread has allocated until it is told to end, and so does a child.
PROGRAM = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
kept = []
def work():
    libc.prctl(15, b"worker")  # PR_SET_NAME
    kept.append(libc.malloc(1_000_000))
thread = threading.Thread(target=work)
thread.start()
thread.join()
child = os.fork()
print(flush=True)
if child == 0: time.sleep(600)
sys.stdin.readline()
libc.free(ctypes.c_void_p(kept[0]))
os.kill(child, 9)
"""


def heapwright(*arguments, **more):
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(), **more)


def answers_in(page):
    [packed] = re.findall(r'<script type="application/gzip" id="snapshot">([A-Za-z0-9+/=]*)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))


class Snapshots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.saved = cls.path("saved")
        with Watched(PYTHON, "-c", PROGRAM, options=("--snapshot", cls.path("of command"), "--save", cls.saved, "--exit-with-program")) as watched:
            watched.hear(), watched.hear()
            cls.id = watched.id
            cls.mark = watched.mark("in the middle")
            cls.served = answers_in(watched.text("/api/snapshot"))
            cls.rows = watched.get("/api/processes")["rows"]
            cls.served_of = {row[0]: answers_in(watched.text(f"/api/snapshot?process={row[1]}")) for row in cls.rows}
            cls.of_process = heapwright("live", "--snapshot", cls.path("of process"), "--no-browser", str(cls.id))
            cls.is_early = os.path.exists(cls.path("of command"))
            watched.tool.stdin.write("\n")
            watched.tool.stdin.flush()
            cls.code = watched.tool.wait(PATIENCE)
            for end in (watched.tool.stdin, watched.tool.stdout, watched.tool.stderr):
                end.close()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def answers(self, name):
        with open(self.path(name)) as file:
            return answers_in(file.read())

    def check(self, answers, since):
        """What the page asks first, of each process and in each of its lists."""
        ids = {row[1] for row in answers["common"]["/api/processes"]["rows"]}
        self.assertIn(self.id, ids)
        self.assertEqual(len(answers["processes"]), len(ids))
        usual = "by=function&from=root&interpreter=hidden&libraries=shown"
        for kept in answers["processes"].values():
            for question in ("/api/state", "/api/cells", "/api/leaks", "/api/memory", "/api/mistakes", "/api/history?most=4000"):
                self.assertIn(question, kept)
            for value in ("live", "peak", "allocated", "count", "short"):
                self.assertIn(f"/api/sites?most=1000&value={value}", kept)
                for change in ("from=site", "by=line", "by=package", "libraries=folded"):
                    key = change.partition("=")[0]
                    self.assertIn(f"/api/stacks?{re.sub(f'{key}=[a-z]+', change, usual)}&value={value}", kept)
        [kept] = [kept for kept in answers["processes"].values() if kept["/api/state"]["process"]["id"] == self.id]
        self.assertGreater(kept[f"/api/stacks?{usual}&value=peak"]["total"][0], 1_000_000)
        for moment in since:
            self.assertIn(f"/api/stacks?{usual}&since={moment}&value=live", kept)
        names = dict(kept[f"/api/stacks?{usual}&value=peak"]["threads"])
        self.assertGreaterEqual(names["worker"], 1_000_000)
        for name in names:
            for value in ("live", "peak", "allocated"):
                self.assertIn(f"/api/stacks?{usual}&threads={name}&value={value}", kept)
                self.assertIn(f"/api/sites?most=1000&threads={name}&value={value}", kept)
        self.kept_of_worker = kept[f"/api/stacks?{usual}&threads=worker&value=live"]["total"][0]
        return kept

    def test_of_a_command_is_written_at_its_end(self):
        self.assertFalse(self.is_early)
        self.assertEqual(self.code, 0)
        kept = self.check(self.answers("of command"), ["start", self.mark])
        self.assertEqual(kept["/api/state"]["process"]["state"], "exited")
        self.assertLess(self.kept_of_worker, 1_000_000, "a name is there that has little at the end")

    def test_of_a_server_is_of_now(self):
        kept = self.check(self.served, ["start", self.mark])
        self.assertEqual(kept["/api/state"]["process"]["state"], "running")

    def test_of_a_server_opens_with_the_process_that_is_asked_for(self):
        self.assertIsNone(self.served["process"])
        self.assertEqual(len(self.served_of), 2)
        for name, answers in self.served_of.items():
            self.assertEqual(answers["process"], name)
            self.check(answers, ["start", self.mark])

    def test_of_a_process_is_written_at_once(self):
        self.assertEqual((self.of_process.returncode, self.of_process.stdout, self.of_process.stderr), (0, "", ""))
        kept = self.check(self.answers("of process"), ["start"])
        self.assertEqual(kept["/api/state"]["process"]["state"], "running")

    def test_of_a_saved_run_is_written_at_once(self):
        result = heapwright("live", "--snapshot", self.path("of run"), "--file", self.saved)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        kept = self.check(self.answers("of run"), [])
        self.assertEqual(kept["/api/state"]["process"]["state"], "exited")
        self.assertTrue(any(kept["/api/history?most=4000"]["rss"]), "the time line")

    def test_lines_of_source_are_in_it(self):
        program = self.path("grows.py")
        with open(program, "w") as file:
            file.write("# first\ndef grow():\n    return bytearray(1_000_000)\nkept = grow()\n")
        result = heapwright("live", "--no-browser", "--exit-with-program", "--snapshot", self.path("with source"), "--", PYTHON, program)
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = self.answers("with source")
        [kept] = answers["processes"].values()
        self.assertEqual(kept["/api/state"]["process"]["state"], "exited", "a program that has run for a moment, too")
        self.assertEqual(answers["common"]["/api/processes"]["running"], 0)
        self.assertEqual(kept[f"/api/source?file={program}&line=3"]["lines"][2], "    return bytearray(1_000_000)")

    def test_a_page_of_a_process_without_the_probe(self):
        result = heapwright("live", "--no-browser", "--snapshot", self.path("none"), str(os.getpid()))
        self.assertEqual(result.returncode, 125)
        self.assertFalse(os.path.exists(self.path("none")))

    def test_what_is_refused_before_anything_begins(self):
        touched = self.path("touched")
        with open(self.path("there"), "w") as file:
            file.write("there")
        os.symlink("there", self.path("link"))
        os.symlink(self.saved, self.path("link to saved"))
        script = self.path("script")
        with open(script, "w") as file:
            file.write("#!/bin/sh\ntrue\n")
        os.chmod(script, 0o755)
        command, saved = ("--", "touch", touched), ("--file", self.saved)
        for words, said in ((("--snapshot", "-", *command), "--snapshot -: this goes into a file"), (("--snapshot", "-", *saved), "--snapshot -: this goes into a file"),
                            (("--snapshot", self.path("no/such"), *command), "no/such"), (("--snapshot", self.folder, *command), "Is a directory"),
                            (("--snapshot", self.path("there/in"), *saved), "Not a directory"),
                            (("--snapshot", self.path("there"), "--save", self.path("link"), *command), "both name"),
                            (("--snapshot", self.path("new"), "--save", self.path("./new"), *command), "both name"),
                            (("--snapshot", self.saved, *saved), "would replace"), (("--snapshot", self.path("link to saved"), *saved), "would replace"),
                            (("--snapshot", script, "--", script), "would replace")):
            with self.subTest(words):
                result = heapwright("live", "--no-browser", "--exit-with-program", *words)
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertIn(said, result.stderr)
                self.assertFalse(os.path.exists(touched), "the command was started")
        with open(self.path("there")) as file:
            self.assertEqual(file.read(), "there")
        with open(self.saved, "rb") as file:
            self.assertNotIn(b"<html", file.read())

    def test_a_command_that_cannot_be_started_leaves_the_file_as_it_was(self):
        for file, before in (("was not there", None), ("was there", "before")):
            if before:
                with open(self.path(file), "w") as out:
                    out.write(before)
            result = heapwright("live", "--no-browser", "--exit-with-program", "--snapshot", self.path(file), "--", "/no/such/program")
            self.assertEqual(result.returncode, 127, result.stderr)
            self.assertEqual(os.path.exists(self.path(file)), before is not None)
            if before:
                with open(self.path(file)) as out:
                    self.assertEqual(out.read(), before)


if __name__ == "__main__":
    unittest.main(argv=["snapshot_test.py"], verbosity=2)
