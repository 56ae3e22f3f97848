"""What the tests of the command share: how it is run, and what they expect of a refusal."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HEAPWRIGHT, FIXTURES = sys.argv[1], pathlib.Path(sys.argv[2])
TRUE = shutil.which("true")
PYTHON = "/usr/bin/python3"


def fixture(name):
    return str(FIXTURES / name)


PLAIN = fixture("libplain_allocator.so")


def heapwright(*arguments, stdin=subprocess.DEVNULL, **options):
    if "input" in options:
        stdin = None
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, stdin=stdin, timeout=120, **options)


def compare(*arguments, **options):
    return heapwright("compare", "--rounds", "2", "--only", "glibc", "--with", "plain=" + PLAIN, *arguments, **options)


def is_running(*words):
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().split(b"\0")[:-1] == [w.encode() for w in words]:
                return True
        except OSError:
            pass
    return False


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, result, code, *words):
        self.assertEqual(result.returncode, code, result)
        self.assertEqual(result.stdout, "", "nothing must have been measured or run")
        for word in words:
            self.assertIn(word, result.stderr)

    def copy_of_true(self, name, change=lambda content: content):
        path = self.folder / name
        path.write_bytes(change(pathlib.Path(os.path.realpath(TRUE)).read_bytes()))
        path.chmod(0o755)
        return path
