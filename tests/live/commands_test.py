"""`heapwright live` and `heapwright diff` on the command line.

usage: commands_test.py HEAPWRIGHT LIBHEAPWRIGHT
"""
import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HEAPWRIGHT = sys.argv.pop(1)
LIBRARY = sys.argv.pop(1)

# So many blocks of 100,000 bytes at once, from one function.
PROGRAM = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(int(sys.argv[1]))]
if len(sys.argv) > 2:
    for block in blocks: libc.free(block)
"""


def heapwright(*arguments, **environment):
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, arguments in {"few": ["100"], "many": ["300"], "freed": ["300", "all"]}.items():
            result = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", cls.path(name), "--",
                                "/usr/bin/python3", "-c", PROGRAM, *arguments)
            assert result.returncode == 0, result.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def diff(self, before, after, *conditions):
        return self.diff_of(self.path(before), self.path(after), *conditions)

    @staticmethod
    def diff_of(before, after, *conditions):
        return heapwright("diff", before, after, *(a for c in conditions for a in ("--fail-if", c)))

    def test_what_was_saved_is_as_sparse_as_it_was(self):
        self.assertLess(os.stat(self.path("many")).st_blocks * 512, 40 << 20)

    def test_where_samples_were_lost_nothing_is_called_exact(self):
        program = "import ctypes; malloc = ctypes.CDLL(None).malloc\nfor _ in range(200_000): malloc(1)"
        # A segment has room by the limit of address space.
        result = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", self.path("lost"), "--",
                            "/bin/sh", "-c", 'ulimit -v 100000; exec /usr/bin/python3 -c "$0"', program)
        self.assertEqual(result.returncode, 0, result.stderr)
        top = heapwright("top", "--once", self.path("lost")).stdout
        self.assertRegex(top, r"sites: every block is sampled\n[\d,]+ samples were lost for want of room: sites have less than there is")
        self.assertNotIn("exact", top)
        difference = self.diff("few", "lost").stdout
        self.assertRegex(difference, r"(?m)^after: [\d,]+ samples were lost for want of room")
        self.assertRegex(difference, r"(?m)^ +9\.5 MiB +0 B +-9\.5 MiB +-  ")
        self.assertNotIn("exact", difference)
        [leaks] = json.loads(heapwright("leaks", "--json", self.path("lost")).stdout)["processes"]
        self.assertGreater(leaks["blocks_without_record"], 0)
        self.assertGreaterEqual(leaks["not_judged"]["blocks"], 200_000, "what was counted")

    def test_an_estimate_has_one_error(self):
        heapwright("live", "--no-browser", "--exit-with-program", "--estimate", "--save", self.path("estimate"), "--",
                   "/usr/bin/python3", "-c", "import os; kept = [bytearray(3000) for _ in range(2000)]; os._exit(0)")
        figure = r"((?:up to )?[\d.,]+ [KM]?i?B(?: ±\d+ %)?)"
        [live] = re.findall(rf"(?m)^live {figure}   peak", heapwright("top", "--once", self.path("estimate")).stdout)
        [leaks] = re.findall(rf"(?m)^  {figure} .*not freed$", heapwright("leaks", self.path("estimate")).stdout.partition("\n\n")[0])
        self.assertEqual(live, leaks)

    def test_growth_is_told_and_judged(self):
        result = self.diff("few", "many", "peak>+5%")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"heapwright: peak>\+5%: peak was \d\S* MiB, is \d\S* MiB \(\+19\S* MiB\)")
        self.assertRegex(result.stderr, r"(?m)^ +9\.5 MiB +28\.6 MiB +\+19\.1 MiB +exact  ")  # the site that made it
        live = next(line for line in result.stdout.splitlines() if line.startswith("live"))
        self.assertRegex(live, r"\+(19|20)(\.\d+)? MiB|\+19\.\d MiB")

    def test_sites_are_named_by_the_programs_own_code(self):
        source = os.path.join(self.folder.name, "rows.cpp")
        with open(source, "w") as file:
            file.write("""#include <map>
#include <string>
std::map<int, std::string> table;
__attribute__((noinline)) void fill_table(int n) { for (int i = 0; i < n; ++i) table[i] = std::string(100, 'x'); }
int main(int count, char**) { fill_table(count * 1000); _Exit(0); }
""")
        program = os.path.join(self.folder.name, "rows")
        subprocess.run([os.environ.get("CXX", "c++"), "-g", "-O0", "-o", program, source], check=True, timeout=120)
        for name, arguments in {"short": [], "long": ["more"]}.items():
            heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", self.path(name), "--", program, *arguments)
        tables = self.diff("short", "long").stdout.split("\n\n")[1:]
        self.assertEqual([table.splitlines()[0] for table in tables],
                         ["live bytes at the end by call site", "live bytes at the peak by call site", "allocated bytes by call site"])
        for table in tables:
            sites = table.splitlines()[2:]
            self.assertRegex(sites[0], r"^ +\d+ KiB +\d+ KiB +\+\d+ KiB +exact  fill_table  rows.cpp:4  <  main$")
            self.assertEqual(len(sites), 1)  # nodes and texts are allocated in the same place
        # A wrapper of the user's own is no site.
        wrapped = heapwright("diff", "--wrapper", "fill_*", self.path("short"), self.path("long")).stdout
        self.assertRegex(wrapped, r"exact  main  rows.cpp:5\n")

    def test_of_a_function_the_line_that_has_most_is_told(self):
        source = os.path.join(self.folder.name, "grow.cpp")
        with open(source, "w") as file:
            file.write("""#include <cstdlib>
#include <new>
void *most[2000], *some[2000];
__attribute__((noinline)) void keep_session(int i) {
  most[i] = operator new(100);
  some[i] = operator new(10);
  operator delete(operator new(1000));
}
int main(int, char** words) {
  for (int i = 0; i < std::atoi(words[1]); ++i) keep_session(i);
  if (words[2]) for (int i = 0; i < 2000; ++i) operator delete(most[i]), operator delete(some[i]);
  _Exit(0);
}
""")
        program = os.path.join(self.folder.name, "grow")
        subprocess.run([os.environ.get("CXX", "c++"), "-g", "-O0", "-o", program, source], check=True, timeout=120)
        for name, arguments in {"one": ["1000"], "two": ["2000"], "none": ["2000", "freed"]}.items():
            heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", self.path(name), "--", program, *arguments)
        # In the tables of what is live at the end, live at the peak, and allocated.
        lines = lambda text: re.findall(r"keep_session  grow.cpp:(\d)  <  main", text)
        result = self.diff("one", "two", "live>+1%", "allocated>+1%")
        self.assertEqual(lines(result.stdout), ["5", "5", "7"])
        self.assertEqual(lines(result.stderr), ["5", "7"])
        # Where nothing is live in the second run, the line is that of the first.
        self.assertEqual(lines(self.diff("one", "none").stdout), ["5", "5", "7"])

    def test_all_conditions_that_hold_are_named(self):
        result = self.diff("few", "many", "peak>+5%", "live>+10MiB", "allocations>+1000%", "peak>1GiB")
        self.assertEqual(result.returncode, 1)
        self.assertIn("live>+10MiB", result.stderr)
        self.assertNotIn("allocations", result.stderr)
        self.assertNotIn("1GiB", result.stderr)

    def test_what_is_freed_is_no_growth_of_live_but_of_the_peak(self):
        self.assertEqual(self.diff("few", "freed", "live>+1%").returncode, 0)
        result = self.diff("few", "freed", "peak>+5%")
        self.assertEqual(result.returncode, 1)
        at_peak = result.stdout.partition("live bytes at the peak by call site")[2]
        self.assertRegex(at_peak, r" +9\.5 MiB +28\.6 MiB +\+19\.1 MiB +exact  ")

    def test_the_same_is_the_same(self):
        result = self.diff("many", "many", "peak>+0%", "live>+0B", "allocations>+0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("call site", result.stdout)

    def test_bad_conditions(self):
        for text in ("peak", "peak>", "peak>5%", "peak>+x", "peak>+5furlongs", "hair>+5%", "peak>-5", ">+5%", "peak>nan", "allocations>1KiB",
                     "allocations>+1B"):
            with self.subTest(text):
                result = self.diff("few", "many", text)
                self.assertEqual(result.returncode, 125)
                self.assertIn("FIGURE>LIMIT", result.stderr)

        self.assertIn("diff: --fail-if: it is empty", self.diff("few", "many", "").stderr)

    def test_limits_that_nothing_can_reach(self):
        for text in ("peak>+99999999999999999999999%", "live>1e400", "live>+1e400%", "peak>inf", "peak>1e-5000", "allocations>99999999999999999999999",
                     "allocated>99999999999GiB", "live>18446744073709551617", "live>18446744073709551616"):
            with self.subTest(text):
                result = self.diff("few", "many", text)
                self.assertEqual((result.returncode, result.stdout), (125, ""))
                self.assertIn(f"heapwright: {text}: the limit is beyond all figures that a run can have", result.stderr)
        self.assertEqual(self.diff("few", "many", "live>18446744073709551615", "peak>+1000000000%").returncode, 0)

    def test_an_address_that_cannot_be_told(self):
        """Nothing is started where nobody would know where the page is."""
        touched = self.path("touched")
        command = ("--", "touch", touched)
        quiet = ("live", "--exit-with-program")
        hidden = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}

        def live(*words, closed=False, environment=hidden, **more):
            if os.path.exists(touched):
                os.remove(touched)
            line = 'exec "$@" 2>&-' if closed else 'exec "$@" 2>/dev/full'
            return subprocess.run(["sh", "-c", line, "-", HEAPWRIGHT, *quiet, *words], env=environment, timeout=60, **more).returncode

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = str(taken.getsockname()[1])
        read_end, write_end = os.pipe()
        for closed in (False, True):
            for words in ((), ("--host", "0.0.0.0", "--port", port), ("--no-browser",)):
                with self.subTest(words, closed=closed):
                    self.assertEqual(live(*words, *command, closed=closed), 125)
                    self.assertFalse(os.path.exists(touched))
            for words in (("--port", port), ("--host", "0.0.0.0", "--port", port, "--token", "abcdefghijkl"), ("--save", self.path("kept")),
                          ("--ready-fd", str(write_end))):
                with self.subTest(words, closed=closed):
                    self.assertEqual(live(*words, *command, closed=closed, pass_fds=[write_end]), 0)
                    self.assertTrue(os.path.exists(touched))
        os.close(read_end)
        os.close(write_end)
        # A browser has it.
        with tempfile.TemporaryDirectory() as folder:
            browser = os.path.join(folder, "xdg-open")
            with open(browser, "w") as file:
                file.write("#!/bin/sh\n")
            os.chmod(browser, 0o755)
            seen = dict(hidden, DISPLAY=":0", PATH=f"{folder}:{hidden['PATH']}")
            self.assertEqual(live(*command, environment=seen), 0)
            self.assertEqual(live("--no-browser", *command, environment=seen), 125)
        # Of what was there before.
        self.assertEqual(live("--no-browser", "--file", self.path("few")), 125)

    def test_top_of_a_segment(self):
        result = heapwright("top", self.path("many"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ended", result.stdout)
        self.assertIn("every block is sampled", result.stdout)
        self.assertRegex(result.stdout, r"\n +28(\.6)? MiB +300 +28(\.6)? MiB  [^ ]")
        result = heapwright("top", "/no/such/segment")
        self.assertEqual(result.returncode, 125)
        self.assertIn("/no/such/segment", result.stderr)

    def test_estimates_have_an_error(self):
        heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1048576", "--save", self.path("coarse"), "--",
                   "/usr/bin/python3", "-c", PROGRAM, "300")
        self.assertRegex(heapwright("top", self.path("coarse")).stdout, r"(?s)a sample every 1\.0 MiB\n95 of 100 figures of sites are within ±.* MiB ±\d\d %")
        self.assertRegex(self.diff("coarse", "many").stdout, r" unknown +±\d\S* [MK]iB  ")

    def test_a_table_of_sites_has_the_errors_of_estimates(self):
        heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1048576", "--save", self.path("sampled"), "--",
                   "/usr/bin/python3", "-c", PROGRAM, "300")
        for name, is_exact in (("sampled", False), ("many", True)):
            with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--file", self.path(name)], stderr=subprocess.PIPE, text=True) as viewer:
                port = re.search(r":(\d+)/", viewer.stderr.readline())[1]
                with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/api/sites.csv") as answer:
                    rows = list(csv.DictReader(answer.read().decode().splitlines()))
                viewer.terminate()
            for figure in ("live_bytes", "allocated_bytes"):
                errors = [int(row[figure + "_error"]) for row in rows]
                self.assertEqual(max(errors) == 0, is_exact, errors)

    def test_no_samples(self):
        result = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "0", "--save", self.path("none"), "--", "/usr/bin/python3", "-c", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sites: none, no block is sampled", heapwright("top", self.path("none")).stdout)

    def test_sampling_that_is_asked_for(self):
        for sample in ("auto", "0", "1", "4096"):
            self.assertEqual(heapwright("live", "--no-browser", "--exit-with-program", "--sample", sample, "--", "true").returncode, 0)
        for sample in ("never", "-1", "1e30", "4k"):
            result = heapwright("live", "--no-browser", "--sample", sample, "--", "true")
            self.assertEqual(result.returncode, 125)
            self.assertIn(f"'{sample}' is not a whole number from 0 to 1099511627776, nor auto", result.stderr)

    def test_sampling_that_the_environment_asks_for(self):
        probe = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
        for sample, is_good in (("auto", True), ("0", True), ("1", True), ("4096", True), ("x", False), ("-5", False), ("4k", False), ("", True)):
            with self.subTest(sample), tempfile.TemporaryDirectory() as segments:
                environment = dict(os.environ, HEAPWRIGHT_SAMPLE=sample, HEAPWRIGHT_SEGMENT_DIR=segments)
                result = subprocess.run([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--", "true"], env=environment,
                                        capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0 if is_good else 125)
                self.assertEqual("HEAPWRIGHT_SAMPLE" in result.stderr, not is_good)
                result = subprocess.run(["true"], env=dict(environment, LD_PRELOAD=probe), capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0)
                self.assertEqual("HEAPWRIGHT_SAMPLE" in result.stderr, not is_good)

    def test_a_probe_that_the_environment_switches_off(self):
        probe = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
        with tempfile.TemporaryDirectory() as segments:
            environment = dict(os.environ, LD_PRELOAD=probe, HEAPWRIGHT_SEGMENT_DIR=segments)
            for value, is_good in (("off", True), ("on", True), ("estimate", True), ("", True), ("0", False), ("OFF", False)):
                with self.subTest(value):
                    result = subprocess.run(["true"], env=dict(environment, HEAPWRIGHT_PROBE=value), capture_output=True, text=True, timeout=60)
                    self.assertEqual((result.returncode, "HEAPWRIGHT_PROBE is none of off, on and estimate" in result.stderr), (0, not is_good))
            with subprocess.Popen(["/usr/bin/sleep", "60"], env=dict(environment, HEAPWRIGHT_PROBE="off")) as program:
                end = time.monotonic() + 30
                while (result := heapwright("top", str(program.pid))).returncode != 0 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertIn(f"heapwright live {program.pid}", result.stdout)
                program.kill()

    def test_estimates_from_samples_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "run.saved")
            # 80,000 blocks of 1000 bytes, of which half stay: some 20,000 samples.
            program = "keep = [bytearray(1000) for _ in range(80_000)]\ndel keep[::2]"
            result = heapwright("live", "--no-browser", "--exit-with-program", "--estimate", "--sample", "4096", "--save", saved, "--", "/usr/bin/python3", "-c", program)
            self.assertEqual(result.returncode, 0, result.stderr)
            top = heapwright("top", saved).stdout
            self.assertIn("(estimates from samples)", top)
            for figure, least, most in (("peak at least", 68, 80), ("allocated", 80, 92)):
                self.assertTrue(least <= float(re.search(rf"{figure} ([\d.]+) MiB", top)[1]) <= most, top)
            refused = self.diff_of(self.path("few"), saved, "peak>+5%")
            self.assertEqual((refused.returncode, "are estimates" in refused.stderr), (125, True))
            # 10 MB live, renewed 150 times: some 90,000 estimates.
            program = "keep = [bytearray(5000) for _ in range(2000)]\nfor i in range(300_000): keep[i % 2000] = bytearray(5000)"
            result = heapwright("live", "--no-browser", "--exit-with-program", "--estimate", "--sample", "16384", "--save", saved, "--", "/usr/bin/python3", "-c", program)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(4 <= float(re.search(r"peak at least ([\d.]+) MiB", heapwright("top", saved).stdout)[1]) <= 11.5)
            self.assertIn("\nafter: live --estimate counts samples alone", heapwright("diff", self.path("few"), saved).stdout)
            self.assertNotIn("--estimate", heapwright("diff", self.path("few"), self.path("few")).stdout)
        for arguments, reason in ((("--estimate", str(os.getpid())), "--estimate is for a COMMAND"),
                                  (("--estimate", "--sample", "0", "--", "true"), "--sample 0 takes none")):
            result = heapwright("live", "--no-browser", *arguments)
            self.assertEqual((result.returncode, reason in result.stderr), (125, True), result.stderr)

    def test_the_folder_for_segments_can_be_chosen(self):
        with tempfile.TemporaryDirectory() as folder:
            chosen = os.path.join(folder, "segments")
            environment = dict(os.environ, HEAPWRIGHT_SEGMENT_DIR=chosen)
            command = ("sh", "-c", f"ls {chosen}; echo $HEAPWRIGHT_SEGMENT_DIR")
            result = subprocess.run([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--", *command], env=environment,
                                    capture_output=True, text=True, timeout=60)
            self.assertRegex(result.stdout, f"^heapwright-live-\\w+\n{chosen}/heapwright-live-\\w+\n$")
            self.assertEqual(os.listdir(chosen), [])

    def test_options_behind_the_file_that_leaks_reads(self):
        result = heapwright("leaks", self.path("many"), "--json")
        self.assertEqual(result.returncode, 125)
        self.assertIn("--json stands behind the file; options come before it", result.stderr)

    def test_top(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
            probe = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
            environment = dict(os.environ, LD_PRELOAD=probe, HEAPWRIGHT_SEGMENT_DIR=segments, HEAPWRIGHT_SAMPLE="1")
            waits = PROGRAM + "print('ready', flush=True); sys.stdin.read()"
            with subprocess.Popen(["/usr/bin/python3", "-c", waits, "300"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
                program.stdout.readline()
                look = dict(os.environ, HEAPWRIGHT_SEGMENT_DIR=segments)
                result = subprocess.run([HEAPWRIGHT, "top", str(program.pid)], env=look, capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, r"live (29|3\d)(\.\d+)? MiB")
                self.assertIn("running", result.stdout)
                self.assertRegex(result.stdout, r"\n +28(\.6)? MiB +300 +28(\.6)? MiB  [^ ]")
                self.assertLess(result.stdout.count("\n"), 50)
                self.assertNotIn("\033", result.stdout)
                result = subprocess.run([HEAPWRIGHT, "live", "--list"], env=look, capture_output=True, text=True, timeout=60)
                self.assertRegex(result.stdout, rf"(?m)^ *{program.pid}  running +(29|3\d)(\.\d+)? MiB  /usr/bin/python3 -c '\\x0aimport .*\.\.\.$")
                # On a terminal: until q, and the terminal is as it was.
                seen = subprocess.run(["script", "-qec", f"{HEAPWRIGHT} top {program.pid}", "/dev/null"], env=look, input="q", capture_output=True,
                                      text=True, timeout=60)
                self.assertEqual(seen.returncode, 0)
                self.assertIn("\033[?1049h", seen.stdout)
                self.assertTrue(seen.stdout.rstrip().endswith("\033[?1049l"))
                program.stdin.close()
        self.assertEqual(heapwright("top", "1").returncode, 125)

    def top_of_waiting(self, does, **environment):
        """What top says, at one look, of a Python that has done this and waits."""
        with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
            probe = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
            waits = f"import sys; {does}; print('ready', flush=True); sys.stdin.read()"
            with subprocess.Popen(["/usr/bin/python3", "-c", waits], env=dict(os.environ, LD_PRELOAD=probe, HEAPWRIGHT_SEGMENT_DIR=segments, **environment),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
                program.stdout.readline()
                look = dict(os.environ, HEAPWRIGHT_SEGMENT_DIR=segments)
                result = subprocess.run([HEAPWRIGHT, "top", str(program.pid), "--once"], env=look, capture_output=True, text=True, timeout=60)
                program.stdin.close()
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_top_before_the_first_sample(self):
        told = self.top_of_waiting("pass", HEAPWRIGHT_SAMPLE=str(1 << 40))
        self.assertTrue(told.endswith("\n\nnothing was sampled yet\n"), told)

    def test_top_is_sorted_by_what_it_shows(self):
        """Figures first, then upper bounds; each the largest first."""
        units = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}
        told = self.top_of_waiting("import json, decimal, ast; keep = [bytes(600_000) for _ in range(3)]",
                                   HEAPWRIGHT_SAMPLE=str(1 << 15), PYTHONMALLOC="malloc")
        rows = re.findall(r"^ *(up to )?([\d.]+) (bytes|KiB|MiB)(?: ±\d+ %)? {2,}~?[\d,]+ ", told, re.MULTILINE)
        shown = [(not bound, float(number) * units[unit]) for bound, number, unit in rows]
        self.assertGreaterEqual(sum(not is_figure for is_figure, _ in shown), 2, told)
        self.assertEqual(shown, sorted(shown, reverse=True), told)

    def test_a_program_with_little_address_space(self):
        """The probe takes a small part of it."""
        script = f"ulimit -v 150000; exec /usr/bin/python3 -c '{PROGRAM}' 300"
        result = heapwright("live", "--no-browser", "--exit-with-program", "--save", self.path("little"), "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(heapwright("top", self.path("little")).stdout, r"live (29|3\d)(\.\d+)? MiB")

    def test_without_the_probe_the_heap_is_asked(self):
        waits = PROGRAM + "print('ready', flush=True); sys.stdin.read()"
        on_ours = dict(os.environ, LD_PRELOAD=LIBRARY)
        with subprocess.Popen(["/usr/bin/python3", "-c", waits, "300"], env=on_ours, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            result = heapwright("top", str(program.pid))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"no probe.*\n.*caches (29|3\d)(\.\d+)? MiB")
            self.assertIn("outside: blocks with the program, or kept by its threads", result.stdout)
            self.assertRegex(result.stdout, r"\n +\d+ +\d+ +\d")
            result = heapwright("live", "--list")
            self.assertRegex(result.stdout, rf"(?m)^ *{program.pid}  running +(29|3\d)(\.\d+)? MiB  /usr/bin/python3 -c .*  \(without the probe\)$")
            result = heapwright("live", "--no-browser", "--save", self.path("none"), str(program.pid))
            self.assertEqual(result.returncode, 125)
            self.assertIn("no segment", result.stderr)
            program.stdin.close()
        # Among all segments there may be that of another process which had the same id.
        result = heapwright("top", str(program.pid), HEAPWRIGHT_SEGMENT_DIR=self.folder.name)
        self.assertEqual(result.returncode, 125)
        self.assertIn("no such process", result.stderr)
        with subprocess.Popen(["/usr/bin/sleep", "60"]) as program:
            result = heapwright("live", "--no-browser", str(program.pid))
            self.assertEqual(result.returncode, 125)
            self.assertIn("does not run on libheapwright", result.stderr)
            program.kill()

    def test_what_live_has_started_is_found_from_elsewhere(self):
        with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--", "/usr/bin/python3", "-c",
                               PROGRAM + "import os; print(os.getpid(), flush=True); sys.stdin.read()", "300"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as viewer:
            pid = viewer.stdout.readline().strip()
            self.assertRegex(heapwright("live", "--list").stdout, rf"(?m)^ *{pid}  running +(29|3\d)(\.\d+)? MiB  /usr/bin/python3 -c '\\x0aimport .*\.\.\.$")
            self.assertRegex(heapwright("top", pid).stdout, r"live (29|3\d)(\.\d+)? MiB")
            viewer.stdin.close()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_other_peoples_processes_are_not_ours_to_see(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, subprocess.Popen(["/usr/bin/sleep", "60"]) as program:
            os.chmod(folder, 0o755)
            tool = shutil.copy(HEAPWRIGHT, folder)
            for arguments, code, said in ((["top", str(program.pid)], 125, "as root"), (["live", "--no-browser", str(program.pid)], 125, "as root"),
                                          (["live", "--list"], 0, "as far as you may look")):
                result = subprocess.run([tool, *arguments], user="nobody", capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(said, result.stderr)
            program.kill()

    def test_no_segment(self):
        for name in ("nothing", "."):
            result = self.diff("few", name)
            self.assertEqual(result.returncode, 125)
            self.assertIn(self.path(name), result.stderr)

    def test_what_to_watch(self):
        for arguments in ([], ["0"], ["99999999999"], ["--list", "1"], ["--file", "x", "--", "true"], ["--file", "/etc/passwd"],
                          ["--sample", "-1", "--", "true"], ["--port", "70000", "--", "true"], ["--token", "short", "--", "true"]):
            with self.subTest(arguments):
                self.assertEqual(heapwright("live", "--no-browser", *arguments).returncode, 125)

    def test_exit_codes_are_the_commands(self):
        options = ("live", "--no-browser", "--exit-with-program", "--")
        self.assertEqual(heapwright(*options, "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(heapwright(*options, "/no/such/program").returncode, 127)
        self.assertEqual(heapwright(*options, "/etc/passwd").returncode, 126)

    def test_a_folder_without_room_for_a_segment_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True).returncode != 0:
                self.skipTest("may not mount")
            try:
                for subcommand in (("live", "--no-browser", "--exit-with-program"), ("leaks",)):
                    result = subprocess.run([HEAPWRIGHT, *subcommand, "--", "/usr/bin/python3", "-c", "print('done')"], capture_output=True, text=True, timeout=60,
                                            env={**os.environ, "HEAPWRIGHT_SEGMENT_DIR": folder})
                    self.assertEqual(result.stdout, "done\n", "the program runs all the same")
                    self.assertRegex(result.stderr, rf"without room for a segment: in {folder} \([1-9]\d KiB free there\)")
                    self.assertEqual(os.listdir(folder), [], "nothing is left of it")
            finally:
                subprocess.run(["umount", folder], check=True)

    def test_a_segment_leaves_room_in_its_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder], capture_output=True).returncode != 0:
                self.skipTest("may not mount")
            try:
                # Samples of so many live blocks would take 32 MB.
                subprocess.run(["/usr/bin/python3", "-c", "kept = [bytearray(600) for _ in range(1_000_000)]; import os; os._exit(0)"], check=True, timeout=60,
                               env={**os.environ, "LD_PRELOAD": os.path.join(os.path.dirname(LIBRARY), "libheapwright-probe.so"), "HEAPWRIGHT_SEGMENT_DIR": folder, "HEAPWRIGHT_SAMPLE": "1"})
                taken = sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))
                self.assertGreater(taken, 4 << 20, "it was observed")
                self.assertLess(taken, (64 << 20) // 5 + (10 << 20))
            finally:
                subprocess.run(["umount", folder], check=True)

    def test_the_list_has_a_heading(self):
        with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--", "/usr/bin/python3", "-c",
                               "import sys; print(); sys.stdout.flush(); sys.stdin.read()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as viewer:
            viewer.stdout.readline()
            self.assertRegex(heapwright("live", "--list").stdout, r"\A *process +live +command\n *\d+ ")
            viewer.stdin.close()

    def test_the_list_has_arguments_as_they_are_now(self):
        with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--", "/usr/bin/perl", "-e",
                               "$0 = 'a title of now'; $| = 1; print \"$$\\n\"; <STDIN>"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as viewer:
            pid = viewer.stdout.readline().strip()
            self.assertRegex(heapwright("live", "--list").stdout, rf"(?m)^ *{pid}  running .* a title of now$")
            viewer.stdin.close()

    def test_a_segment_that_cannot_be_saved(self):
        result = heapwright("live", "--no-browser", "--exit-with-program", "--save", self.path("no/such/folder"), "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("cannot write to", result.stderr)


if __name__ == "__main__":
    unittest.main()
