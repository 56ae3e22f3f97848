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
import resource
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

HEAPWRIGHT, FIXTURES = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
PLAIN = str(FIXTURES / "libplain_allocator.so")
COMPARE = ["compare", "--rounds", "2", "--only", "glibc", "--with", "plain=" + PLAIN]
LIVE = ["live", "--no-browser", "--exit-with-program", "--port", "0"]
WITH_RECIPE = ["compare", "--rounds", "2", "--only", "glibc", "--with", "HEADER", "true"]
FIT = ["fit", "--minutes", "0.1", "--only", "glibc", "-o", "FOLDER"]
REPLAY = ["replay", "TRACE", "--only", "glibc", "--memory"]
SUBCOMMANDS = ["run", "compare", "advise", "build", "live", "top", "diff", "leaks", "record", "trace", "replay", "fit", "info"]

# A mount namespace of one's own. In a chroot its root cannot be made private, and is so already as a rule.
OWN_MOUNTS = ["unshare", "-m"] if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0 else ["unshare", "-m", "--propagation", "unchanged"]

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
    ("trace info", ["trace", "info", "TRACE"], 125),
    ("trace dump", ["trace", "dump", "TRACE"], 125),
    ("replay", REPLAY, 1),
    ("replay --json -", [*REPLAY, "--json", "-"], 1),
    ("replay --html -", [*REPLAY, "--html", "-"], 1),
    ("advise", ["advise", "--rounds", "2", "TRACE"], 1),
    ("advise --json -", ["advise", "--rounds", "2", "--json", "-", "TRACE"], 1),
    ("fit", [*FIT, "true"], 1),
    ("fit --json -", [*FIT, "--json", "-", "true"], 1),
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
    ("live --snapshot", [*LIVE, "--snapshot", "FILE", "--", "true"], 125),
    ("leaks -o", ["leaks", "-o", "FILE", "--", "true"], 125),
    ("record -o", ["record", "-o", "FILE", "--", "true"], 125),
    ("trace slice -o", ["trace", "slice", "TRACE", "-o", "FILE"], 125),
    ("replay --json", [*REPLAY, "--json", "FILE"], 1),
    ("replay --html", [*REPLAY, "--html", "FILE"], 1),
    ("fit --json", [*FIT, "--json", "FILE", "true"], 1),
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
        trace = cls.folder / "run.trace"
        subprocess.run([HEAPWRIGHT, "record", "-o", trace, "--", "sh", "-c", "x=$(echo 1)"], check=True, capture_output=True)
        libraries = pathlib.Path(HEAPWRIGHT).resolve().parent.parent / "lib"
        preload = f"{libraries}/libheapwright-probe.so:{libraries}/libheapwright.so"
        cls.words = {"HEADER": str(header), "SEGMENT": str(segment), "TRACE": str(trace), "LIBRARY": str(cls.folder / "libmine.so")}
        for name, environment in (("PID", {"LD_PRELOAD": preload}), ("OTHER", {})):
            child = subprocess.Popen(["sleep", "600"], env={**os.environ, **environment})
            cls.addClassCleanup(child.wait)
            cls.addClassCleanup(child.kill)
            cls.words[name] = str(child.pid)
        time.sleep(0.5)  # sleep has begun

    def command(self, words, **more):
        if "FOLDER" in words:  # anybody's, and a new one each time
            more["FOLDER"] = tempfile.mkdtemp(dir=self.folder)
            os.chmod(more["FOLDER"], 0o777)
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
        """As of every program, the signal is the end, and nothing is left behind."""
        for name, words, _ in [*ANSWERS, ("compare --with", WITH_RECIPE, 1)]:
            with self.subTest(name), tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                self.lost(words, -signal.SIGPIPE, stdout=self.closed_pipe(), env={**os.environ, "TMPDIR": scratch})
                self.assertEqual(os.listdir(scratch), [])
        for name, words in (("fit", [*FIT, "true"]), ("compare --with", WITH_RECIPE)):
            with self.subTest(name + ", progress"), tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                self.lost(words, -signal.SIGPIPE, stderr=self.closed_pipe(), env={**os.environ, "TMPDIR": scratch})
                self.assertEqual(os.listdir(scratch), [])
        for name, words, _ in REPORTS:
            with self.subTest(name):
                self.lost(words, -signal.SIGPIPE, stderr=self.closed_pipe())

    def test_a_closed_pipe_leaves_no_segments(self):
        def segments():
            return {name for name in os.listdir("/dev/shm") if name.startswith("heapwright-live-")}
        before = segments()
        ended, saved = self.folder / "ended", self.folder / "saved"
        command = ["--", "sh", "-c", f"sleep 0.3; touch {ended}"]
        for words in (["live", "--no-browser", *command], [*LIVE, "--save", str(saved), *command], ["leaks", *command],
                      ["record", "-o", str(self.folder / "closed.trace"), *command]):
            with self.subTest(words[0]):
                ended.unlink(missing_ok=True)
                self.lost(words, -signal.SIGPIPE, stderr=self.closed_pipe())
                # live does not start it where nobody would know of the page.
                self.assertEqual(ended.exists(), words[1] != "--no-browser" or "--save" in words)
        self.assertTrue(saved.exists())
        self.assertEqual(segments() - before, set())

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

    def small_file_system(self, script, *words):
        """Runs a shell script with words on a file system of one page; $SMALL is where it is."""
        small = self.folder / "small"
        small.mkdir(exist_ok=True)
        mount = f'export SMALL="{small}"; mount -t tmpfs -o size=4k,mode=777 none "$SMALL" || exit 99; '
        done = subprocess.run([*OWN_MOUNTS, "sh", "-c", mount + script, "-", *words], capture_output=True, text=True, timeout=120)
        if os.getuid() != 0 or done.returncode == 99:
            self.skipTest("may not mount")
        return done

    def test_files_on_a_full_disk(self):
        for name, words, code in FILES:
            with self.subTest(name):
                # A file that fills it is there already.
                script = 'head -c 4096 /dev/zero >"$SMALL/other"; "$@"; code=$?; ls "$SMALL"; exit $code'
                file = f"{self.folder}/small/file"
                done = self.small_file_system(script, *self.command(words, FILE=file))
                self.assertEqual(done.returncode, code, done)
                self.assertIn(file, done.stderr)
                self.assertIn("No space left on device", done.stderr)
                self.assertTrue(done.stdout.endswith("other\n"), done.stdout)

    def test_a_command_whose_output_finds_no_room(self):
        """compare keeps what a command prints in $TMPDIR, and the command fails where that is full."""
        done = self.small_file_system('TMPDIR="$SMALL" "$@"', HEAPWRIGHT, "compare", "--rounds", "2", "--only", "glibc,heapwright", "--", "seq", "100000")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertIn(f"{self.folder}/small, where its output goes, is full: name another folder in TMPDIR", done.stderr)

    def test_a_full_disk_keeps_the_file_that_was_there(self):
        for name, words, code in FILES:
            for link in ("", "yes"):
                with self.subTest(name, link=link):
                    script = ('echo good >"$SMALL/file"; [ -z "$LINK" ] || ln -s file "$SMALL/link"; '
                              '"$@"; code=$?; cat "$SMALL/file"; ls "$SMALL"; exit $code')
                    file = f"{self.folder}/small/{'link' if link else 'file'}"
                    done = self.small_file_system(f"LINK={link}; " + script, *self.command(words, FILE=file))
                    self.assertEqual(done.returncode, code, done)
                    self.assertIn("No space left on device", done.stderr)
                    self.assertTrue(done.stdout.endswith("good\nfile\n" + ("link\n" if link else "")), done.stdout)

    def written(self, words, file, **options):
        done = subprocess.run(self.command(words, FILE=str(file)), capture_output=True, timeout=120, **options)
        self.assertEqual((done.returncode, [p.name for p in file.parent.glob("*.unfinished")]), (0, []), done)

    def test_what_the_file_is_stays(self):
        """Mode, links to it and of it, devices, and what else has it open as standard output."""
        for name, words, _ in FILES:
            with self.subTest(name), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                file, link, other = (pathlib.Path(folder) / name for name in ("file", "link", "other"))
                file.write_text("before")
                file.chmod(0o640)
                link.symlink_to("file")
                self.written(words, link)
                self.assertTrue(link.is_symlink())
                self.assertGreater(file.stat().st_size, 50)
                if "build" in words:
                    continue  # its linker makes the file
                self.assertEqual(file.stat().st_mode & 0o7777, 0o640)
                with open(file, "wb+") as opened:  # as who has made a temporary file
                    self.written(words, file)
                    self.assertGreater(len(opened.read()), 50)
                file.write_text("before")
                os.link(file, other)
                self.written(words, file)
                self.assertEqual(file.stat().st_ino, other.stat().st_ino)
                self.assertGreater(other.stat().st_size, 50)
                file.unlink()
                self.written(words, link)  # leads nowhere until now
                self.assertGreater(file.stat().st_size, 50)
                self.written(words, pathlib.Path("/dev/null"))
                with open(other, "w") as out:
                    subprocess.run(self.command(words, FILE="/dev/stdout"), stdout=out, stderr=subprocess.DEVNULL, check=True, timeout=120)
                    self.assertEqual(os.fstat(out.fileno()).st_ino, other.stat().st_ino)
                self.assertGreater(other.stat().st_size, 50)
                fifo = pathlib.Path(folder) / "fifo"
                os.mkfifo(fifo)
                reader = subprocess.Popen(["wc", "-c", fifo], stdout=subprocess.PIPE)
                self.written(words, fifo)
                self.assertGreater(int(reader.communicate(timeout=60)[0].split()[0]), 50)

    @unittest.skipIf(os.getuid() != 0, "needs another user")
    def test_what_is_compared_is_not_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            script, recipe, library, data = (folder / name for name in ("script.sh", "recipe.hpp", "library.so", "data"))
            script.write_text("#!/bin/sh\ntrue\n")
            script.chmod(0o755)
            recipe.write_text("#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine{};\n")
            shutil.copy(PLAIN, library)
            data.write_text("data")
            link = folder / "link"
            link.symlink_to(script)
            for option, output, words in (("--html", script, [script]), ("--json", link, [script]), ("--json", recipe, ["--with", recipe, "true"]),
                                          ("--html", library, ["--with", f"mine={library}", "true"]), ("--json", data, ["cat", data])):
                with self.subTest(output=output.name):
                    before = output.read_bytes()
                    result = subprocess.run([HEAPWRIGHT, *COMPARE, option, output, *words], capture_output=True, text=True, timeout=60)
                    self.assertEqual(result.returncode, 125, result.stderr)
                    self.assertIn("it would replace ", result.stderr)
                    self.assertEqual(output.read_bytes(), before)
            for words in (["leaks", "-o", script, "--", script], ["leaks", "-o", self.words["SEGMENT"], self.words["SEGMENT"]], [*LIVE, "--save", script, "--", script]):
                result = subprocess.run([HEAPWRIGHT, *words], capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertIn("it would replace ", result.stderr)

    def test_two_outputs_are_not_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("same", os.path.join(folder, "linked"))
            for json, html in (("same", "./same"), ("same", "linked"), ("linked", f"{folder}/same")):
                result = subprocess.run([HEAPWRIGHT, *COMPARE, "--json", json, "--html", html, "true"], cwd=folder, capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertIn("--json and --html both go to ", result.stderr)
                self.assertEqual(os.listdir(folder), ["linked"])

    def test_a_file_that_cannot_be_replaced_is_written_in_place(self):
        """Its folder may not be written to, or it is another user's."""
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        if subprocess.run([HEAPWRIGHT, "--version"], capture_output=True, **nobody).returncode != 0:
            self.skipTest("the command is where other users may not run it")
        self.folder.chmod(0o755)
        for name, words, _ in FILES:
            if "build" in words:
                continue  # refuses
            for mode, owner in ((0o755, 65534), (0o777, 0)):
                with self.subTest(name, mode=mode), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    file = pathlib.Path(folder) / "file"
                    file.write_text("before")
                    file.chmod(0o666)
                    os.chown(file, owner, -1)
                    os.chmod(folder, mode)
                    inode = file.stat().st_ino
                    self.written(words, file, **nobody, cwd="/")
                    self.assertEqual((file.stat().st_ino, file.stat().st_uid), (inode, owner))
                    self.assertGreater(file.stat().st_size, 50)
        # Root keeps the owner of what it replaces.
        file = self.folder / "owned"
        file.write_text("before")
        os.chown(file, 65534, 65534)
        self.written([*COMPARE, "--json", "FILE", "true"], file)
        self.assertEqual((file.stat().st_uid, file.stat().st_gid), (65534, 65534))

    def test_an_interruption_leaves_no_part_and_no_loss(self):
        """SIGTERM at any time: the file is the old or the new one, whole."""
        file = self.folder / "interrupted"
        for name, words, _ in FILES:
            if "build" in words:
                continue
            for delay in (0.02, 0.1, 0.3):
                with self.subTest(name, delay=delay):
                    file.write_text("before")
                    child = subprocess.Popen(self.command(words, FILE=str(file)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(delay)
                    child.terminate()
                    child.wait(60)
                    self.assertTrue(file.read_bytes() == b"before" or file.stat().st_size > 50)
                    self.assertEqual(list(self.folder.glob("*.unfinished")), [])

    def test_what_comes_while_the_file_is_unfinished(self):
        """A signal waits until it has its name; where the disk fails, or files may not be so long, it goes away."""
        shim = self.folder / "shim.so"
        source = ('#include <errno.h>\n#include <signal.h>\n#include <unistd.h>\n'
                  'int fsync(int fd) { (void)fd; if (SIGNAL != 0) return kill(getpid(), SIGNAL); errno = EIO; return -1; }\n')
        for name, words, code in FILES:
            if "build" in words:
                continue
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, 0):
                with self.subTest(name, signal=number), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-DSIGNAL={int(number)}", "-x", "c", "-", "-o", shim],
                                   input=source, text=True, check=True, timeout=120)
                    file = pathlib.Path(folder) / "file"
                    file.write_text("before")
                    done = subprocess.run(["env", f"LD_PRELOAD={shim}", *self.command(words, FILE=str(file))], capture_output=True, timeout=120)
                    self.assertEqual(list(file.parent.iterdir()), [file])
                    self.assertEqual(file.read_bytes() == b"before", number == 0)
                    if number == 0:
                        file.write_text("")
                        subprocess.run(["env", f"LD_PRELOAD={shim}", *self.command(words, FILE=str(file))], capture_output=True, timeout=120)
                        self.assertEqual((file.read_text(), list(file.parent.iterdir())), ("", [file]))
                        self.assertEqual(done.returncode, code, done)
                        self.assertIn(b"Input/output error", done.stderr)
                    elif "--save" not in words:  # live has been about to end
                        self.assertEqual(done.returncode, -number, done)

    def test_files_may_not_be_so_long(self):
        """RLIMIT_FSIZE, of `compare` alone: the probe of `live` and `leaks` makes a longer file."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))  # the loader is asked with files, too

        for name, words, code in FILES:
            for is_ignored in (True, False):  # what Python does with SIGXFSZ
                if words[0] != "compare":
                    continue
                with self.subTest(name, is_ignored=is_ignored), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    file = pathlib.Path(folder) / "file"
                    file.write_text("before")
                    done = subprocess.run(self.command(words, FILE=str(file)), capture_output=True, timeout=120, preexec_fn=limit,
                                          restore_signals=not is_ignored)
                    self.assertEqual(done.returncode, code if is_ignored else -signal.SIGXFSZ, done)
                    self.assertEqual((file.read_text(), list(file.parent.iterdir())), ("before", [file]))
                    self.assertEqual(b"File too large" in done.stderr, is_ignored)

    @unittest.skipIf(os.getuid() != 0, "mounts a file")
    def test_a_file_that_is_mounted(self):
        """As containers have them: it cannot be replaced."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            files = [f"{folder}/{name}" for name in ("outside", "inside")]
            for file in files:
                pathlib.Path(file).write_text("before")
            script = 'mount --bind "$0" "$1" || exit 99; shift; exec "$@"'
            command = self.command([*COMPARE, "--json", "FILE", "true"], FILE=files[1])
            done = subprocess.run([*OWN_MOUNTS, "sh", "-c", script, *files, *command], capture_output=True, timeout=120)
            if done.returncode == 99:
                self.skipTest("may not mount")
            self.assertEqual(done.returncode, 0, done)
            self.assertGreater(os.path.getsize(files[0]), 1000)
            self.assertEqual(pathlib.Path(files[1]).read_text(), "before")
            self.assertEqual(len(os.listdir(folder)), 2)

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

    def test_info_on_a_narrow_terminal(self):
        for columns in (60, 100):
            lines = self.on_a_terminal(["info"], columns).replace("\r", "").splitlines()
            self.assertLessEqual(max(len(line) for line in lines if not line.startswith("library ")), columns, lines)

    def test_a_trace_on_a_narrow_terminal(self):
        trace = self.folder / "trace"
        subprocess.run(self.command(["record", "-o", str(trace), "--", "ls", "/"]), check=True, capture_output=True)
        lines = self.on_a_terminal(["trace", "info", str(trace)], 40).replace("\r", "").splitlines()
        self.assertGreater(len(lines), 5)
        words = [line for line in lines if len(line.split()) > 1]  # a word that is longer stays whole
        self.assertLessEqual(max(map(len, words)), 40, lines)

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
