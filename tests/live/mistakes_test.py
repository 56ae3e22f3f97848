"""What libheapwright reports of a program's mistakes, as `heapwright live` shows it.

usage: mistakes_test.py HEAPWRIGHT LIBHEAPWRIGHT LIBHEAPWRIGHT-HARDENED MISTAKEN_SERVER
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from watched import HEAPWRIGHT, LIBRARY, Watched, clean_environment, wait_for

HARDENED, SERVER = (os.path.abspath(path) for path in sys.argv[3:5])


def served(**more):
    watched = Watched(SERVER, preload=HARDENED, environment={"HEAPWRIGHT_ON_MISUSE": "report"}, **more)
    assert watched.hear() == "ready"
    return watched


def watch(lines, *options, **environment):
    return subprocess.run([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", *options, "--", SERVER], input=lines,
                          env=clean_environment(LD_PRELOAD=HARDENED, **environment), capture_output=True, text=True, timeout=60)


class Mistakes(unittest.TestCase):
    def test_each_is_shown_once_with_its_calls_and_counted_when_it_comes_again(self):
        with served() as server:
            self.assertEqual(server.state()["process"]["mistakes"], 0)
            self.assertEqual(server.get("/api/mistakes")["reports"], [])
            for line in ("write beyond", "free twice", "write beyond", "write beyond"):
                server.tell(line)
            self.assertEqual(server.new_state()["process"]["mistakes"], 4)
            answer = server.get("/api/mistakes")
            self.assertEqual(answer["mistakes"], 4)
            self.assertEqual([r["mistakes"] for r in answer["reports"]], [3, 1])
            beyond, twice = (r["text"] for r in answer["reports"])
            self.assertRegex(beyond, r"\Aheapwright: write beyond a block: 0x\w+ .*\n  here, in thread \d+:\n    #1 .*close_session")
            self.assertRegex(twice, r"\Aheapwright: double free: 0x\w+ .*\n")
            self.assertIn("write_beyond", beyond)
            self.assertIn("free_twice", twice)
            self.assertRegex(server.text("/metrics"), r"heapwright_mistakes_total\{[^}]*\} 4\n")

    def test_the_probe_does_not_find_a_mistake_before_the_program_has_made_it(self):
        ended = watch("free twice\nwrite beyond\n", HEAPWRIGHT_ON_MISUSE="report")
        self.assertEqual(ended.returncode, 0)
        self.assertEqual([ended.stderr.count(mistake) for mistake in ("double free", "write beyond")], [1, 1], ended.stderr)
        self.assertNotIn("free ??", ended.stderr)

    def test_the_report_of_a_process_that_it_has_ended_is_saved_and_shown_by_top(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "saved")
            self.assertEqual(watch("free twice\n", "--save", saved).returncode, 128 + 6)
            top = subprocess.run([HEAPWRIGHT, "top", "--file", saved], capture_output=True, text=True, timeout=60)
            self.assertRegex(top.stdout, r"(?m)^mistakes 1   double free: 0x\w+")

    def test_a_guarded_sample_is_reported_with_who_has_freed_and_allocated_it(self):
        with Watched(SERVER, preload=LIBRARY, environment={"HEAPWRIGHT_GUARD_SAMPLE": "100"}) as server:
            self.assertEqual(server.hear(), "ready")
            server.tool.stdin.write("read freed\n")
            server.tool.stdin.flush()
            wait_for("the report", lambda: server.state()["process"]["state"] == "killed")
            reports = server.get("/api/mistakes")["reports"]
            self.assertEqual(len(reports), 1)
            self.assertEqual(re.findall(r"(?m)^  (here|freed|allocated),? in thread", reports[0]["text"]), ["here", "freed", "allocated"])
            self.assertRegex(reports[0]["text"], r"\Aheapwright: read after free: ")
            for function in ("read_freed", "close_session", "open_session"):
                self.assertIn(function, reports[0]["text"])

    def test_a_child_of_fork_has_reports_of_its_own(self):
        program = ("import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\nlibc.free.argtypes = [ctypes.c_void_p]\n"
                   "def twice():\n  p = libc.malloc(1000)\n  libc.free(p)\n  libc.free(p)\n"
                   "twice()\nif os.fork() == 0: twice(); os._exit(0)\nos.wait()\nprint('ready', flush=True)\ntime.sleep(60)\n")
        with Watched("/usr/bin/python3", "-c", program, preload=HARDENED, environment={"HEAPWRIGHT_ON_MISUSE": "report"}) as watched:
            self.assertEqual(watched.hear(), "ready")
            processes = watched.get("/api/processes")
            names = [row[processes["columns"].index("name")] for row in processes["rows"]]
            self.assertEqual(len(names), 2)
            self.assertEqual([watched.get(f"/api/mistakes?process={name}")["mistakes"] for name in names], [1, 1])


if __name__ == "__main__":
    del sys.argv[1:5]
    unittest.main(verbosity=2)
