#!/usr/bin/env python3
"""What comes with a message about a mistake: the calls that led to it, syslog, a copy for debuggers; and a process that goes on.

    reports.py CORRUPTIONS LIBRARY HARDENED DEV_LOG_SHIM
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

CORRUPTIONS, LIBRARY, HARDENED, DEV_LOG = (os.path.abspath(path) for path in sys.argv[1:5])

# What the heap can leave alone. Where a link of a free list is overwritten, or a page is touched that cannot be, a process ends;
# what is written before a block may reach the guard page of another span.
HARMLESS = re.compile(r"double-free/|invalid/|foreign/|wrong-|mismatch/|size/too-large/|overflow/by-[18]/|overflow/(calloc|aligned|new|another-thread)/|write-after-free/(second-word|end)/(16|100|1000|100000)$")


def run(*command, library=HARDENED, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    return subprocess.run(command, env={**clean, "LD_PRELOAD": library, **environment}, capture_output=True, text=True, timeout=100)


class Reports(unittest.TestCase):
    def test_the_calls_that_led_to_the_mistake(self):
        for library, mistake in ((HARDENED, "double-free/at-once/100"), (HARDENED, "overflow/by-1/1000"), (LIBRARY, "overflow/by-1/400000")):
            with self.subTest(mistake):
                done = run(CORRUPTIONS, mistake, library=library)
                self.assertEqual(done.returncode, -signal.SIGABRT)
                self.assertRegex(done.stderr, r"\Aheapwright: .*\n  here, in thread \d+:\n    #1 .*(\(anonymous namespace\)|corruptions\+0x)")

    def test_calls_without_a_name_are_told_as_places_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped")
            subprocess.run(["strip", "-o", stripped, CORRUPTIONS], check=True)
            done = run(stripped, "double-free/at-once/100")
        self.assertRegex(done.stderr, r"\Aheapwright: .*\n  here, in thread \d+:\n    #1 .*/stripped\+0x[0-9a-f]+\n    #2 .*/stripped\+0x")

    def test_the_program_sees_no_child_and_equal_calls_are_named_once(self):
        program = ("import ctypes, os, signal, time; came = []; signal.signal(signal.SIGCHLD, lambda *a: came.append(a));"
                   "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p]; p = libc.malloc(100)\n"
                   "for _ in range(5): libc.free(p)\n"
                   "time.sleep(0.1); print(len(came))\n"
                   "try: print(os.waitpid(-1, os.WNOHANG))\n"
                   "except ChildProcessError: print('no child')")
        done = run(sys.executable, "-c", program, HEAPWRIGHT_ON_MISUSE="report")
        self.assertEqual(done.stdout, "0\nno child\n", done.stderr)
        self.assertEqual(done.stderr.count("double free"), 4)
        self.assertEqual(done.stderr.count("here, in thread"), 1)

    def test_mistakes_of_another_kind_from_the_same_calls_are_named_again(self):
        program = ("import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p]\n"
                   "def finish(p): libc.free(p)\n"
                   "for again in range(3):\n"
                   "  p = libc.malloc(40); ctypes.memset(p, 1, 41); finish(p); q = libc.malloc(40); finish(q); finish(q)")
        done = run(sys.executable, "-c", program, HEAPWRIGHT_ON_MISUSE="report")
        named = re.findall(r"heapwright: ([a-z ]+): 0x.*\n  here, in thread", done.stderr)
        self.assertEqual(sorted(named), ["double free", "write beyond a block"], done.stderr)

    def test_a_process_goes_on_where_it_is_told_to(self):
        names = [name for name in run(CORRUPTIONS, "--list").stdout.split() if HARMLESS.match(name)]
        self.assertGreater(len(names), 120)
        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(lambda name: run(CORRUPTIONS, name, HEAPWRIGHT_ON_MISUSE="report"), names))
        for name, done in zip(names, ends):
            with self.subTest(name):
                self.assertIn(done.returncode, (0, 3), done.stderr)
                if done.returncode == 3:
                    self.assertRegex(done.stderr, r"\Aheapwright: ")

    def test_a_pipe_that_nobody_reads_ends_no_process(self):
        for policy, code in (("report", 3), ("abort", -signal.SIGABRT)):
            reads, writes = os.pipe()
            os.close(reads)
            done = subprocess.run([CORRUPTIONS, "double-free/at-once/100"], stdout=subprocess.DEVNULL, stderr=writes, timeout=60,
                                  preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
                                  env={**os.environ, "LD_PRELOAD": HARDENED, "HEAPWRIGHT_ON_MISUSE": policy})
            os.close(writes)
            self.assertEqual(done.returncode, code, policy)

    def test_the_default_malloc_goes_on(self):
        for mistake in ("overflow/by-1/400000", "wrong-size/delete-1/400000", "invalid/free-within+16/400000", "double-free/twice-in-a-thread/16"):
            with self.subTest(mistake):
                done = run(CORRUPTIONS, mistake, library=LIBRARY, HEAPWRIGHT_ON_MISUSE="report")
                self.assertIn(done.returncode, (0, 3), done.stderr)
                self.assertRegex(done.stderr, r"\Aheapwright: ")

    def test_a_word_that_is_none_of_them(self):
        done = run("/bin/true", HEAPWRIGHT_ON_MISUSE="continue")
        self.assertEqual((done.returncode, done.stderr), (0, "heapwright: HEAPWRIGHT_ON_MISUSE=continue is neither abort nor report; using abort\n"))

    def test_syslog(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
            place = os.path.join(folder, "log")
            daemon.bind(place)
            daemon.settimeout(20)
            run(CORRUPTIONS, "double-free/at-once/100", library=f"{DEV_LOG}:{HARDENED}", HEAPWRIGHT_SYSLOG="1", TEST_DEV_LOG=place)
            self.assertRegex(daemon.recv(1000).decode(), r"\A<10>heapwright\[\d+\]: heapwright: double free: 0x[0-9a-f]+ ")
            # Without the option nothing is sent, and without a daemon nothing is waited for.
            run(CORRUPTIONS, "double-free/at-once/100", library=f"{DEV_LOG}:{HARDENED}", TEST_DEV_LOG=place)
            daemon.setblocking(False)
            self.assertRaises(BlockingIOError, daemon.recv, 1000)
        done = run(CORRUPTIONS, "double-free/at-once/100", library=f"{DEV_LOG}:{HARDENED}", HEAPWRIGHT_SYSLOG="1", TEST_DEV_LOG="/no/such/log")
        self.assertEqual(done.returncode, -signal.SIGABRT)

    def test_the_message_is_kept_for_debuggers(self):
        program = ("import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p];"
                   "p = libc.malloc(100); libc.free(p); libc.free(p);"
                   "print((ctypes.c_char * 400).in_dll(libc, 'heapwright_misuse_message').value.decode())")
        done = run(sys.executable, "-c", program, HEAPWRIGHT_ON_MISUSE="report")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\Aheapwright: double free: 0x[0-9a-f]+ \(the block is free already; a block of class 7, ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
