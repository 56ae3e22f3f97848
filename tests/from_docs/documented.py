"""What these tests share: the tool under test, the programs that they run it on, and a test case with a folder of its own.

Usage of each test: NAME_test.py path/to/heapwright path/to/programs path/to/build [unittest options]
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

HEAPWRIGHT = sys.argv[1]
PROGRAMS = pathlib.Path(sys.argv[2])
BUILD = pathlib.Path(sys.argv[3])
LIBRARY = BUILD / "lib" / "libheapwright.so"
PROBE = BUILD / "lib" / "libheapwright-probe.so"
NO_SUCH_PROCESS = "4194305"  # above the kernel's highest process id
IS_ROOT = os.geteuid() == 0


def program(name):
    return str(PROGRAMS / name)


ENDINGS = program("endings")
LEAKING = program("leaking")


def environment(**changes):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HEAPWRIGHT", "LD_PRELOAD"))}
    return {**clean, **{name: str(value) for name, value in changes.items()}}


def run(*command, **options):
    options = {"stdin": subprocess.DEVNULL, "env": environment(), "timeout": 60,
               "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([str(word) if not isinstance(word, bytes) else word for word in command],
                          encoding="utf-8", errors="surrogateescape", **options)


def heapwright(*arguments, **options):
    return run(HEAPWRIGHT, *arguments, **options)


def as_nobody():
    """Options for `run`: the command belongs to another user, who has no special rights."""
    return {"user": 65534, "group": 65534, "extra_groups": []}


def main():
    del sys.argv[1:4]
    unittest.main()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)

    def starts(self, *command, **options):
        options = {"stdin": subprocess.DEVNULL, "env": environment(), "text": True, **options}
        process = subprocess.Popen([str(word) for word in command], **options)
        self.addCleanup(self.end, process)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                self.addCleanup(pipe.close)
        return process

    @staticmethod
    def end(process):
        """SIGTERM first: a tool then ends its command and clears up, which it could not do after SIGKILL."""
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def file(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def refused(self, result, code, *words):
        """The command was not run, nothing is on stdout, and stderr names the culprit in a short message."""
        self.assertEqual(result.returncode, code, result)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertLess(max(map(len, result.stderr.splitlines())), 300, "a message that can be read at a glance")

    def ended(self, result, code):
        self.assertEqual(result.returncode, code, result)
