#!/usr/bin/env python3
"""What is written by each subcommand arrives, or is missed: on a full disk, into a pipe that nobody reads, on a plain terminal.

usage: outputs_test.py path/to/heapwright path/to/fixtures [unittest options]

ANSWERS is the table of what goes to standard output or standard error, FILES that of what goes to a file. A subcommand without a row
fails a test.
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HEAPWRIGHT, FIXTURES = sys.argv[1], pathlib.Path(sys.argv[2])
PLAIN = str(FIXTURES / "libplain_allocator.so")
COMPARE = ["compare", "--rounds", "2", "--only", "glibc", "--with", "plain=" + PLAIN]
LIVE = ["live", "--no-browser", "--exit-with-program", "--port", "0"]
SUBCOMMANDS = ["run", "compare", "build", "live", "top", "diff", "leaks", "info"]

# Words in capitals are replaced: see setUpClass. (name, words, code when the answer is lost)
ANSWERS = [
    ("overview", [], 125),
    ("version", ["--version"], 125),
    *[(f"help {name}", [name, "--help"], 125) for name in SUBCOMMANDS],
    *[(f"help of {name}", ["help", name], 125) for name in SUBCOMMANDS],
    ("info", ["info"], 2),
    ("info --json", ["info", "--json"], 2),
    ("info PID", ["info", "PID"], 2),
    ("info --json PID", ["info", "--json", "PID"], 2),
    ("info OTHER", ["info", "OTHER"], 2),
    ("compare", [*COMPARE, "true"], 1),
    ("compare --json -", [*COMPARE, "--json", "-", "true"], 1),
    ("compare --html -", [*COMPARE, "--html", "-", "true"], 1),
    ("build", ["build", "HEADER", "-o", "LIBRARY"], 125),
    ("live --list", ["live", "--list"], 125),
    ("top --once", ["top", "--once", "PID"], 125),
    ("top", ["top", "PID"], 125),
    ("diff", ["diff", "SEGMENT", "SEGMENT"], 125),
    ("leaks SEGMENT", ["leaks", "SEGMENT"], 125),
    ("leaks --json SEGMENT", ["leaks", "--json", "SEGMENT"], 125),
    ("leaks -o -", ["leaks", "-o", "-", "--", "true"], 125),
    ("leaks --json -o -", ["leaks", "--json", "-o", "-", "--", "true"], 125),
]

# Reports that go to standard error.
REPORTS = [
    ("run --stats", ["run", "--stats", "--", "true"], 125),
    ("run --stats=all", ["run", "--stats=all", "--", "true"], 125),
    ("leaks", ["leaks", "--", "true"], 125),
    ("leaks --json", ["leaks", "--json", "--", "true"], 125),
]

# FILE is one that cannot be written in full.
FILES = [
    ("compare --json", [*COMPARE, "--json", "FILE", "true"], 1),
    ("compare --html", [*COMPARE, "--html", "FILE", "true"], 1),
    ("build", ["build", "HEADER", "-o", "FILE"], 125),
    ("live --save", [*LIVE, "--save", "FILE", "--", "true"], 125),
    ("leaks -o", ["leaks", "-o", "FILE", "--", "true"], 125),
    ("leaks --json -o", ["leaks", "--json", "-o", "FILE", "--", "true"], 125),
]


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        header = cls.folder / "recipe.hpp"
        header.write_text("#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine{};\n")
        segment = cls.folder / "run.segment"
        subprocess.run([HEAPWRIGHT, *LIVE, "--save", segment, "--", "true"], check=True, capture_output=True)
        libraries = pathlib.Path(HEAPWRIGHT).resolve().parent.parent / "lib"
        preload = f"{libraries}/libheapwright-probe.so:{libraries}/libheapwright.so"
        cls.words = {"HEADER": str(header), "SEGMENT": str(segment), "LIBRARY": str(cls.folder / "libmine.so")}
        for name, environment in (("PID", {"LD_PRELOAD": preload}), ("OTHER", {})):
            child = subprocess.Popen(["sleep", "600"], env={**os.environ, **environment})
            cls.addClassCleanup(child.wait)
            cls.addClassCleanup(child.kill)
            cls.words[name] = str(child.pid)
        time.sleep(0.5)  # sleep has begun

    def command(self, words, **more):
        return [HEAPWRIGHT, *({**self.words, **more}.get(word, word) for word in words)]

    def lost(self, words, code, **options):
        """Runs it where its output is lost, and expects a message and an exit code."""
        done = subprocess.run(self.command(words), stdin=subprocess.DEVNULL, timeout=120,
                              **{"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, **options})
        self.assertEqual(done.returncode, code, done)
        return done

    def closed_pipe(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        self.addCleanup(os.close, write_end)
        return write_end

    def test_every_subcommand_is_here(self):
        told = subprocess.run([HEAPWRIGHT], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(re.findall(r"^  ([a-z]+)  ", told, re.MULTILINE)), sorted(SUBCOMMANDS))
        tried = {words[0] for table in (ANSWERS, REPORTS, FILES) for _, words, _ in table if words and "help" not in "".join(words)}
        self.assertEqual(tried - {"--version"}, set(SUBCOMMANDS))

    def test_a_full_disk(self):
        for name, words, code in ANSWERS:
            with self.subTest(name), open("/dev/full", "w") as full:
                done = self.lost(words, code, stdout=full)
                self.assertIn(b"No space left on device", done.stderr)
                self.assertEqual(done.stderr.count(b"heapwright: the answer was lost"), 1, done.stderr)
        for name, words, code in REPORTS:
            with self.subTest(name), open("/dev/full", "w") as full:
                self.lost(words, code, stderr=full)

    def test_a_closed_pipe_where_sigpipe_is_ignored(self):
        for name, words, code in ANSWERS:
            with self.subTest(name):
                done = self.lost(words, code, stdout=self.closed_pipe(), restore_signals=False)
                self.assertIn(b"Broken pipe", done.stderr)
        for name, words, code in REPORTS:
            with self.subTest(name):
                self.lost(words, code, stderr=self.closed_pipe(), restore_signals=False)

    def test_a_closed_pipe(self):
        """As of every program, the signal is the end."""
        for name, words, _ in ANSWERS:
            with self.subTest(name):
                self.lost(words, -signal.SIGPIPE, stdout=self.closed_pipe())
        for name, words, _ in REPORTS:
            with self.subTest(name):
                self.lost(words, -signal.SIGPIPE, stderr=self.closed_pipe())

    def test_a_reader_that_takes_nothing(self):
        for name, words, _ in ANSWERS:
            with self.subTest(name):
                line = 'set -o pipefail; "$@" | head -n 0'
                done = subprocess.run(["bash", "-c", line, "-", *self.command(words)], capture_output=True, timeout=120)
                self.assertIn(done.returncode, (0, 1, 128 + signal.SIGPIPE), done)  # head may end too late

    def test_files(self):
        for name, words, code in FILES:
            if "build" in words:
                continue  # refuses what is no file
            with self.subTest(name):
                done = subprocess.run(self.command(words, FILE="/dev/full"), capture_output=True, timeout=120)
                self.assertEqual(done.returncode, code, done)
                self.assertIn(b"/dev/full", done.stderr)
                if "--save" not in words:  # a segment has holes, which a device cannot have
                    self.assertIn(b"No space left on device", done.stderr)

    @unittest.skipIf(os.getuid() != 0, "mounts a small file system")
    def test_files_on_a_small_file_system(self):
        mount = 'mount -t tmpfs -o size=4k none "$0" && exec "$@"'
        small = self.folder / "small"
        small.mkdir()
        if subprocess.run(["unshare", "-m", "sh", "-c", mount, small, "true"], capture_output=True).returncode != 0:
            self.skipTest("may not mount")
        for name, words, code in FILES:
            with self.subTest(name):
                # A file that fills it is there already.
                fill = mount.replace("exec", 'head -c 4096 /dev/zero >"$0/other"; "$@"; code=$?; ls "$0"; exit $code; exec')
                done = subprocess.run(["unshare", "-m", "sh", "-c", fill, small, *self.command(words, FILE=f"{small}/file")],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, code, done)
                self.assertIn(f"{small}/file", done.stderr)
                self.assertIn("No space left on device", done.stderr)
                self.assertNotIn(".unfinished", done.stdout)

    def test_one_lost_output_leaves_the_others(self):
        """The table is lost; the files are written."""
        files = self.folder / "c.json", self.folder / "c.html"
        with open("/dev/full", "w") as full:
            self.lost([*COMPARE, "--json", str(files[0]), "--html", str(files[1]), "true"], 1, stdout=full)
        for file in files:
            self.assertGreater(file.stat().st_size, 1000)

    def on_a_terminal(self, words, columns=0, **environment):
        """What a pseudo-terminal gets."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
        child = subprocess.Popen(self.command(words), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                 env={**plain, "TERM": "xterm-256color", **environment})
        os.close(slave)
        seen = b""
        end = time.monotonic() + 120
        has_asked = False
        while time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                try:
                    more = os.read(master, 65536)
                except OSError:
                    break
                if not more:
                    break
                seen += more
            if words[:1] == ["top"] and not has_asked and seen:
                os.write(master, b"q")
                has_asked = True
        os.close(master)
        child.wait(timeout=60)
        return seen.decode(errors="replace")

    def test_a_narrow_terminal(self):
        """A line that is drawn again must not be wrapped: its first part would stay."""
        for columns, cut in ((40, True), (200, False)):
            shown = self.on_a_terminal(["compare", "--rounds", "2", "--only", "glibc", "--with", f"a-name-that-is-long-enough={PLAIN}", "true"], columns)
            lines = re.findall("\r\x1b\\[K(\\[[^\r\n\x1b]+)", shown)
            self.assertEqual(len(lines), 6, shown)
            self.assertLess(max(map(len, lines)), columns)
            self.assertEqual(max(map(len, lines)) == 39, cut, lines)

    def test_plain_terminals(self):
        """NO_COLOR: no colours. TERM=dumb: no escapes at all, and no line that is written over."""
        is_ever_coloured = is_ever_drawn = False
        for name, words, _ in ANSWERS + REPORTS + [("live", [*LIVE, "--", "true"], 0), ("run", ["run", "true"], 0)]:
            with self.subTest(name):
                shown = self.on_a_terminal(words)
                is_ever_coloured |= re.search("\x1b\\[[0-9;]*m", shown) is not None
                is_ever_drawn |= "\x1b" in shown
                if "\x1b" in shown or re.search("\r(?!\n)", shown):
                    self.assertNotRegex(self.on_a_terminal(words, NO_COLOR="1"), "\x1b\\[[0-9;]*m")
                dumb = self.on_a_terminal(words, TERM="dumb")
                self.assertNotIn("\x1b", dumb)
                self.assertNotRegex(dumb, "\r(?!\r*\n)")
        self.assertTrue(is_ever_coloured and is_ever_drawn, "this test sees no escapes where there are some")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
