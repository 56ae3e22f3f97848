"""What `heapwright live PID` tells of a folder in which many programs have left their segments.

usage: attached_test.py HEAPWRIGHT PROBE
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from watched import LIBRARY as PROBE, PATIENCE, PYTHON, Viewer, Watched, clean_environment, wait_for

# Forks a child that ends, once before and once for each line.
FORKING = """
import os, sys
def fork():
    pid = os.fork()
    if pid == 0:
        block = bytes(100_000)
        os._exit(0)
    os.waitpid(pid, 0)
    print(pid, flush=True)
fork()
for line in sys.stdin:
    fork()
"""


class AttachedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = clean_environment(HEAPWRIGHT_SEGMENT_DIR=self.folder, LD_PRELOAD=PROBE)

    def run_briefly(self):
        subprocess.run(["/bin/echo"], env=self.environment, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)

    def segments(self):
        return [name for name in os.listdir(self.folder) if name.endswith(".segment")]

    def test_what_had_ended_before_is_counted_only_but_for_children(self):
        for _ in range(20):
            self.run_briefly()
        with subprocess.Popen([PYTHON, "-c", FORKING], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            self.addCleanup(program.kill)
            early_child = int(program.stdout.readline())
            self.run_briefly()
            with Viewer(str(program.pid), environment={"HEAPWRIGHT_SEGMENT_DIR": self.folder}) as viewer:
                answer = viewer.get("/api/processes")
                self.assertEqual([row[1] for row in answer["rows"]], [program.pid, early_child])
                self.assertEqual((answer["ended_before"], answer["is_asked_for"]), (21, True))
                program.stdin.write("fork\n")
                program.stdin.flush()
                late_child = int(program.stdout.readline())
                self.run_briefly()
                answer = viewer.get("/api/processes")
                self.assertEqual({program.pid, early_child, late_child} - {row[1] for row in answer["rows"]}, set())
                self.assertEqual((len(answer["rows"]), answer["ended_before"]), (4, 21), "what ends from now on is told")
                metrics = viewer.text("/metrics")
                self.assertEqual(len(re.findall("(?m)^heapwright_live_bytes{", metrics)), 4)
                answer = viewer.get("/api/processes?ended=all")
                self.assertEqual((len(answer["rows"]), answer["ended_before"]), (25, 21))
                [earlier] = [row for row in answer["rows"] if row[5].endswith("echo")][-1:]
                self.assertEqual(viewer.get("/api/state?process=" + earlier[0])["process"]["id"], earlier[1], "it can be asked for")
                os.remove(os.path.join(self.folder, earlier[0] + ".segment"))
                self.assertEqual(viewer.get("/api/processes")["ended_before"], 20)
            self.assertEqual(len(self.segments()), 24, "the viewer removes none")
            program.stdin.close()

    def test_of_a_run_that_it_has_started_all_is_told(self):
        with Watched("/bin/sh", "-c", "/bin/echo x; read line", preload=PROBE, rests=False) as watched:
            answer = wait_for("both", lambda: (a := watched.get("/api/processes"))["rows"][1:] and a)
            self.assertEqual((answer["ended_before"], answer["is_asked_for"]), (0, False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
