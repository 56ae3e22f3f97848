"""`heapwright replay`, as a user meets it: whether the memory of a replay is that of the program, what it says of other mallocs, and what becomes of bad input.

usage: replay_test.py HEAPWRIGHT REPLAYED HOARDING_MALLOC ABORTING_MALLOC
"""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HEAPWRIGHT, REPLAYED, HOARDING, ABORTING = (os.path.abspath(path) for path in sys.argv[1:5])
PATIENCE = 100
MIB = 1 << 20


def heapwright(*arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment)


class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def trace_of(self, what):
        """Recorded once."""
        file = os.path.join(self.folder, what)
        if not os.path.exists(file):
            recorded = heapwright("record", "-o", file, "--", REPLAYED, what)
            self.assertEqual(recorded.returncode, 0, recorded.stderr)
        return file

    def replayed(self, what, *options, code=0, only="heapwright"):
        """Rows by the name of the malloc."""
        result = heapwright("replay", self.trace_of(what), "--only", only, *options, "--json", "-")
        self.assertEqual(result.returncode, code, result.stderr)
        return {row["allocator"]: row for row in json.loads(result.stdout)}

    def test_its_figures(self):
        rows = self.replayed("growing", "--rounds", "2")
        self.assertEqual(list(rows), ["glibc", "heapwright"])
        for row in rows.values():
            self.assertGreaterEqual(row.items(), {"failure": None}.items())
            for name in ("peak_rss_bytes", "mean_rss_bytes", "final_rss_bytes", "live_peak_bytes", "page_faults"):
                self.assertIsInstance(row[name], int)
            self.assertGreater(row["seconds"], 0)
            self.assertGreater(row["wall_seconds"], 0)
            self.assertAlmostEqual(row["live_peak_bytes"], 40_000_000, delta=2_000_000)
            self.assertAlmostEqual(row["peak_rss_bytes"], 42_000_000, delta=4_000_000)
            self.assertLess(row["mean_rss_bytes"], row["peak_rss_bytes"])
            self.assertGreater(row["page_faults"], 5000)
            # A sandbox may forbid to count them.
            self.assertTrue(row["system_calls"] is None or 0 < row["system_calls"] < 1000, row["system_calls"])

    def test_the_peak_is_that_of_the_program(self):
        for what in ("growing", "reserving", "buffers", "threads"):
            with self.subTest(what):
                row = self.replayed(what, "--memory")["glibc"]
                self.assertLess(abs(row["prediction_error"]), 0.05 if row["peak_rss_bytes"] > 8 * MIB else 0.15, row)

    def test_why_the_error_of_a_peak_is_not_known(self):
        def said(trace, *options):
            result = heapwright("replay", trace, "--memory", *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout
        brief = os.path.join(self.folder, "brief.trace")
        self.assertEqual(heapwright("record", "-o", brief, "--", "ls", "/").returncode, 0)
        self.assertRegex(said(brief, "--only", "heapwright"), r"Note: how far off the predicted peaks are is not known: its memory was (not looked at|looked at only \d times?) while")
        perl, piece = (os.path.join(self.folder, name) for name in ("perl.trace", "piece.trace"))
        code = "my @a; push @a, 'x' x 500 for 1..20000; sleep 1; push @a, 'y' x 700 for 1..20000;"
        self.assertEqual(heapwright("record", "-o", perl, "--", "/usr/bin/perl", "-e", code).returncode, 0)
        self.assertEqual(heapwright("trace", "slice", perl, "-o", piece, "--from", "0.8").returncode, 0)
        of_piece = said(piece, "--only", "heapwright")
        self.assertIn("is not known: blocks from before the piece were in its memory", of_piece)
        self.assertIn(f"Note: the trace is a piece of {perl} (from 0.8 s on), which ended: the command has ended", of_piece)
        self.assertRegex(of_piece, r"Note: [\d,]+ frees of blocks from before the piece are left out")
        short = os.path.join(self.folder, "short.trace")
        self.assertEqual(heapwright("trace", "slice", brief, "-o", short).returncode, 0)
        self.assertRegex(said(short, "--only", "heapwright"), r"its memory was (not looked at|looked at only \d times?) during the piece, which is too short")
        self.assertIn("this replay is off by", said(perl, "--only", "heapwright"))
        elsewhere = os.path.join(self.folder, "elsewhere.trace")
        self.assertEqual(heapwright("run", "--", HEAPWRIGHT, "record", "-o", elsewhere, "--", REPLAYED, "growing").returncode, 0)
        self.assertIn("not known: the program ran on heapwright, which was not replayed", said(elsewhere, "--only", "glibc"))

    def test_instructions_are_exact(self):
        first, second = (self.replayed("threads", "--memory", "--count") for _ in range(2))
        for name in first:
            self.assertGreater(first[name]["instructions"], 1000)
            self.assertAlmostEqual(first[name]["instructions"], second[name]["instructions"], delta=0.01 * first[name]["instructions"], msg=name)
        self.assertIsNone(self.replayed("growing", "--memory")["glibc"]["instructions"])
        shown = heapwright("replay", self.trace_of("growing"), "--only", "heapwright", "--memory", "--count").stdout
        self.assertRegex(shown, r"Instructions\n")
        self.assertRegex(shown, r"heapwright .* \d+\.\d each")
        result = subprocess.run([HEAPWRIGHT, "replay", self.trace_of("growing"), "--count"], capture_output=True, text=True, env={"PATH": self.folder})
        self.assertEqual(result.returncode, 125)
        self.assertIn("--count: valgrind", result.stderr)

    def test_memory_is_touched_as_the_program_has(self):
        self.assertAlmostEqual(self.replayed("reserving", "--memory")["glibc"]["peak_rss_bytes"], 8 * MIB, delta=MIB)
        self.assertAlmostEqual(self.replayed("reserving", "--memory", "--touch-all")["glibc"]["peak_rss_bytes"], 64 * MIB, delta=MIB)
        self.assertLess(self.replayed("buffers", "--memory")["glibc"]["peak_rss_bytes"], 6 * MIB)
        self.assertGreater(self.replayed("buffers", "--memory", "--touch-all")["glibc"]["peak_rss_bytes"], 15 * MIB)

    def test_each_replay_in_turns_is_the_same(self):
        first, second = (self.replayed("threads", "--memory") for _ in range(2))
        for name in first:
            self.assertEqual(first[name]["system_calls"], second[name]["system_calls"], name)
            # The thread that counts them touches a page or two of its stack when it comes to it.
            for figure, pages in (("peak_rss_bytes", 4 << 12), ("final_rss_bytes", 4 << 12), ("page_faults", 4)):
                self.assertAlmostEqual(first[name][figure], second[name][figure], delta=pages, msg=name)
            self.assertIsNone(first[name]["seconds"])

    def test_the_time_alone(self):
        for row in self.replayed("threads", "--time", "--rounds", "2").values():
            self.assertIsNone(row["peak_rss_bytes"])
            self.assertGreater(row["seconds"], 0)

    def test_the_malloc_sees_the_clock_of_the_recording(self):
        rows = self.replayed("pausing", "--memory", "--with", f"hoarding={HOARDING}")
        self.assertLess(rows["glibc"]["peak_rss_bytes"], MIB)
        self.assertAlmostEqual(rows["hoarding"]["peak_rss_bytes"], 64 * MIB, delta=MIB)

    def test_a_malloc_that_fails(self):
        rows = self.replayed("odd", "--rounds", "1", "--with", f"aborting={ABORTING}", code=1)
        self.assertIn("SIGABRT", rows["aborting"]["failure"])
        self.assertIn("no such block", rows["aborting"]["failure"])
        self.assertIsNone(rows["aborting"]["peak_rss_bytes"])
        self.assertIsNone(rows["heapwright"]["failure"])

    def test_a_malloc_that_has_no_memory(self):
        recipe = os.path.join(self.folder, "limited.hpp")
        with open(recipe, "w") as file:
            file.write("#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe limited{.pages = {.limit = 1 * heapwright::MiB}};\n")
        for how in ("--memory", "--time"):
            rows = self.replayed("growing", how, "--with", recipe, code=1)
            self.assertRegex(rows["limited"]["failure"], r"^had no memory for \d[\d,]* allocations? that the program was given; the first was of \d")
            self.assertIsNone(rows["limited"]["peak_rss_bytes"])
            self.assertIsNone(rows["limited"]["seconds"])
            self.assertIsNone(rows["heapwright"]["failure"])

    def test_no_room_for_temporary_files(self):
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True).returncode != 0:
            self.skipTest("may not mount")
        try:
            subprocess.run(["dd", "if=/dev/zero", f"of={small}/full"], capture_output=True)
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
            for words in (["replay", "--memory", self.trace_of("odd")], ["compare", "--", "true"], ["fit", "-o", f"{self.folder}/fitted", "--", "true"]):
                with self.subTest(words):
                    done = subprocess.run([HEAPWRIGHT, *words], capture_output=True, text=True, timeout=PATIENCE, env=environment | {"TMPDIR": small})
                    self.assertEqual((done.returncode, done.stderr), (125, f"heapwright: there is no room left in {small}, where temporary files go; set TMPDIR\n"))
        finally:
            subprocess.run(["umount", small], check=True)

    def test_a_recipe(self):
        recipe = os.path.join(self.folder, "recipe.hpp")
        with open(recipe, "w") as file:
            file.write("#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine{};\n")
        rows = self.replayed("odd", "--memory", "--with", recipe)
        self.assertIn("mine", rows)

    def test_the_table_and_the_page(self):
        page = os.path.join(self.folder, "page.html")
        result = heapwright("replay", self.trace_of("growing"), "--only", "heapwright", "--rounds", "2", "--html", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"the program itself had at most \d+(\.\d)? MiB on glibc, by \d+ looks: this replay is off by [+-]\d")
        self.assertRegex(result.stdout, r"(?m)^heapwright +\d\d\.\d MiB [+-]")
        with open(page) as file:
            self.assertIn('"moments"', file.read())
        figures = os.path.join(self.folder, "figures.json")
        self.assertEqual(heapwright("replay", self.trace_of("odd"), "--only", "glibc", "--memory", "--json", figures).returncode, 0)
        with open(figures) as file:
            self.assertEqual([row["allocator"] for row in json.load(file)], ["glibc"])
        self.assertIn("both go to", heapwright("replay", self.trace_of("odd"), "--json", "-", "--html", "-").stderr)

    def test_what_is_said_of_the_other_processes_of_a_trace(self):
        trace = os.path.join(self.folder, "two.trace")
        self.assertEqual(heapwright("record", "-o", trace, "--", "sh", "-c", f"{REPLAYED} odd; true").returncode, 0)
        for command, options in (("replay", ("--memory", "--only", "glibc")), ("advise", ("--rounds", "2"))):
            with self.subTest(command):
                note = "the trace has 1 other process; this is the one with most events; --process NUMBER takes another"
                self.assertIn(note, heapwright(command, *options, trace).stdout)
                self.assertNotIn("other process", heapwright(command, *options, "--process", "1", trace).stdout)
        # What a process has at its end is no more than it had at most, of a small one too.
        for process in ("0", "1"):
            rows = json.loads(heapwright("replay", "--memory", "--process", process, "--json", "-", trace).stdout)
            for row in rows:
                self.assertGreaterEqual(row["peak_rss_bytes"], row["final_rss_bytes"], row)

    def test_how_far_off_a_peak_is_is_known_of_the_recorded_malloc_alone(self):
        rows = self.replayed("growing", "--memory", only="heapwright")
        self.assertIsNotNone(rows["glibc"]["prediction_error"])
        self.assertIsNone(rows["heapwright"]["prediction_error"])

    def test_a_narrow_terminal(self):
        """A figure to a line, and no line that the terminal would break."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
        done = subprocess.run([HEAPWRIGHT, "replay", self.trace_of("odd"), "--only", "heapwright", "--rounds", "2"], stdout=slave,
                              stderr=subprocess.DEVNULL, timeout=PATIENCE)
        os.close(slave)
        self.assertEqual(done.returncode, 0)
        with open(master, "rb", closefd=True) as shown:
            text = b""
            try:
                while more := os.read(shown.fileno(), 65536):
                    text += more
            except OSError:  # all is read
                pass
        lines = re.sub("\x1b\\[[0-9;]*m", "", text.decode()).splitlines()
        self.assertRegex("\n".join(lines), r"(?m)^heapwright\n  Peak memory +\d\S* [KM]iB.*\n  Mean +\d")
        self.assertLess(max(len(line) for line in lines if not line.startswith("process")), 60)

    def test_interrupted_it_tells_what_it_knows(self):
        trace = self.trace_of("growing")
        process = subprocess.Popen([HEAPWRIGHT, "replay", trace, "--only", "heapwright", "--rounds", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(6)  # memory is done
        process.send_signal(signal.SIGINT)
        output, messages = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT, messages)
        self.assertRegex(output, r"interrupted by SIGINT after \d+ of 1000 rounds")
        self.assertRegex(output, r"(?m)^heapwright +\d\d\.\d MiB")

    def test_bad_input(self):
        trace = self.trace_of("odd")
        with open(trace, "rb") as file:
            whole = file.read()
        bad = os.path.join(self.folder, "bad")
        for data, complaint in ((b"no trace at all, but long", "is not a trace"), (whole[:12] + b"\x07" + whole[13:], "of version 7"), (whole[:16], "has no process")):
            with open(bad, "wb") as file:
                file.write(data)
            result = heapwright("replay", bad)
            self.assertEqual(result.returncode, 125, result.stdout)
            self.assertIn(complaint, result.stderr)
        for words, complaint in ((["/no/such/trace"], "No such file"), ([trace, "--process", "7"], "has no process 7; it has 1, numbered from 0"),
                                 ([trace, "--only", "nothing"], "no allocator named 'nothing'"), ([trace, "--memory", "--time"], "say one of them"), ([trace, "--memory", "--rounds", "3"], "--rounds and --memory: say one of them"),
                                 ([trace, "--json", trace], "--json"), ([trace, "--json", f"{trace}/x"], f"cannot write to {trace}/x: Not a directory"), ([trace, "--with", "/no/such/lib.so"], "/no/such/lib.so"), ([trace, "--rounds", "0"], "--rounds")):
            result = heapwright("replay", *words)
            self.assertEqual(result.returncode, 125, words)
            self.assertIn(complaint, result.stderr)

    def test_a_torn_trace_is_replayed_as_far_as_it_goes(self):
        torn = os.path.join(self.folder, "torn")
        with open(self.trace_of("growing"), "rb") as whole, open(torn, "wb") as file:
            file.write(whole.read()[:-1])
        result = heapwright("replay", torn, "--only", "heapwright", "--memory")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Note: the trace is torn: the file is cut off", result.stdout)
        piece = os.path.join(self.folder, "piece.torn")
        self.assertEqual(heapwright("trace", "slice", torn, "-o", piece).returncode, 1)
        shown = heapwright("replay", piece, "--only", "heapwright", "--memory").stdout
        self.assertIn(f"Note: the trace is a piece of {torn}, which is torn: the file is cut off", shown)
        self.assertEqual(heapwright("trace", "slice", torn, "-o", piece, "--from", "100").returncode, 1)
        self.assertIn(f"has no events: it is a piece of {torn} (from 100 s on), which is torn", heapwright("replay", piece).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
