#!/usr/bin/env python3
"""The probe's tracepoints otel_memory:alloc and otel_memory:free: what the file says of them, and what gdb hears there.

Usage: told_samples_test.py path/to/libheapwright-probe.so path/to/probe_told_samples path/to/readelf path/to/gdb [unittest options]
"""
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROBE, PROGRAM, READELF, GDB = sys.argv[1:5]

LISTEN_TO_ALLOC = r"""
break -probe-stap otel_memory:alloc
commands
silent
printf "told sampled %#lx %lu %lu\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
"""
LISTEN_TO_FREE = r"""
break -probe-stap otel_memory:free
commands
silent
printf "told freed %#lx\n", $_probe_arg0
continue
end
"""
# gdb does not know that it is a tracepoint, so it does not increment the semaphore.
STOP_AT_FREE = r"""
break *'heapwright::probe::tell_freed'
commands
silent
printf "told freed\n"
continue
end
"""


class Case(unittest.TestCase):
    maxDiff = None

    def run_in_gdb(self, interval, what, *listening):
        """What the program printed and what gdb was told, each as lists of words; from main on."""
        folder = tempfile.mkdtemp(dir="/dev/shm", prefix="heapwright-test.")
        self.addCleanup(shutil.rmtree, folder)
        script = os.path.join(folder, "script")
        with open(script, "w") as to:
            to.write("set environment LD_PRELOAD %s\nset environment HEAPWRIGHT_SEGMENT_DIR %s\n" % (PROBE, folder))
            to.write("set environment HEAPWRIGHT_SAMPLE %s\nbreak main\nrun\ndelete\n" % interval)
            to.write("".join(listening) + "continue\n")
        said = subprocess.run([GDB, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off",
                               "-iex", "set width 0", "-x", script, "--args", PROGRAM, what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300, env={**os.environ, "LC_ALL": "C"}).stdout
        self.assertIn("exited normally", said)
        lines = [line.split() for line in said.splitlines()]
        return ([w for w in lines if w and w[0] in ("sampled", "freed", "block", "thinned")], [w[1:] for w in lines if w and w[0] == "told"])

    def test_the_file_has_each_once(self):
        said = subprocess.run([READELF, "-nW", PROBE], stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
        notes = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x0*([0-9a-f]+), Base: 0x0*([0-9a-f]+), Semaphore: 0x(\S+)\s+Arguments:(.*)",
                           said)
        self.assertEqual(sorted((provider, name, len(arguments.split())) for provider, name, _, _, _, arguments in notes),
                         [("otel_memory", "alloc", 3), ("otel_memory", "free", 1)])
        for _, name, _, _, semaphore, arguments in notes:
            self.assertEqual(int(semaphore, 16) != 0, name == "free")
            for argument in arguments.split():
                self.assertRegex(argument, "^8@")

    def test_each_sample_and_each_free_is_told(self):
        done, told = self.run_in_gdb(1, "each", LISTEN_TO_ALLOC, LISTEN_TO_FREE)
        self.assertGreater(len(done), 8)
        # Each block is sampled, so it stands for itself.
        self.assertEqual(told, [w + w[2:] for w in done])

    def test_a_sample_stands_for_more_than_itself(self):
        done, told = self.run_in_gdb(4096, "some", LISTEN_TO_ALLOC, LISTEN_TO_FREE)
        blocks = {p: int(size) for _, p, size in done}
        sampled = {w[1]: [int(n) for n in w[2:]] for w in told if w[0] == "sampled"}
        for p, (size, weight) in sampled.items():
            self.assertEqual(size, blocks[p])
            self.assertEqual(weight, round(size / (1 - math.exp(-size / 4096))))
        self.assertGreater(len(sampled), 100)  # of 187
        self.assertLess(len(sampled), 270)
        self.assertEqual([w[1] for w in told if w[0] == "freed"], list(sampled))

    def test_without_samples_nothing_is_told(self):
        done, told = self.run_in_gdb(0, "some", LISTEN_TO_ALLOC, LISTEN_TO_FREE)
        self.assertGreater(len(done), 8)
        self.assertEqual(told, [])

    def test_no_sample_is_dropped_while_gdb_listens(self):
        done, told = self.run_in_gdb("auto", "large_heap", LISTEN_TO_FREE)
        self.assertEqual((done, told), ([["thinned", "0"]], []))

    def test_of_a_dropped_sample_a_free_is_told(self):
        done, told = self.run_in_gdb("auto", "large_heap", STOP_AT_FREE)
        (_, thinned), = done
        self.assertGreater(int(thinned), 500)
        self.assertEqual(len(told), int(thinned))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
