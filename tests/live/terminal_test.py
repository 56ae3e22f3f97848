"""top and live as people meet them in a terminal: the terminal is given back as it was found, signals go where they belong.

Usage: terminal_test.py path/to/heapwright path/to/libheapwright-probe.so [unittest options]
"""
import fcntl
import glob
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.request

HEAPWRIGHT, PROBE = sys.argv[1:3]
ALTERNATE_SCREEN, MAIN_SCREEN, CURSOR = b"\033[?1049h", b"\033[?1049l", b"\033[?25h"
BUSY = ["/usr/bin/python3", "-c", "import time\nwhile True: x = bytearray(1 << 20); time.sleep(0.01)"]


def until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def runs(process):
    """Also false of one whose parent has not asked for its status."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Terminal:
    """A terminal of its own, with one command in its foreground."""

    def __init__(self, *command, columns=100, **environment):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.seen = b""
        environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment}

        def take_terminal():
            os.setsid()
            os.close(os.open(os.ttyname(theirs), os.O_RDWR))  # the first that a session leader opens becomes its own

        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, preexec_fn=take_terminal)
        self.theirs = theirs

    def read(self):
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 1 << 16)
        return self.seen

    def screen(self):
        """The lines that were drawn last, once they are whole."""
        drawn = self.read().rpartition(b"\033[J")[0].rpartition(b"\033[H")[2]
        return [line.decode() for line in drawn.replace(b"\r", b"").split(b"\033[K\n")[:-1]]

    def press(self, keys):
        os.write(self.ours, keys)

    def settings(self):
        return termios.tcgetattr(self.theirs)

    def wait(self):
        until(lambda: self.read() is None or self.process.poll() is not None, "the end")
        self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


class Case(unittest.TestCase):
    def terminal(self, *command, **environment):
        result = Terminal(*command, **environment)
        self.addCleanup(result.close)
        return result

    def observed(self):
        process = subprocess.Popen(BUSY, env={**os.environ, "LD_PRELOAD": PROBE}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        listed = lambda: f"{process.pid} " in subprocess.run([HEAPWRIGHT, "live", "--list"], capture_output=True, text=True).stdout
        until(listed, "the probe's segment")
        return process


class Top(Case):
    def started(self, **environment):
        terminal = self.terminal(HEAPWRIGHT, "top", str(self.observed().pid), "--every", "0.2", **environment)
        return terminal

    def drawn(self):
        terminal = self.started()
        until(lambda: terminal.read().count(b"\033[H") >= 2, "two screens")
        self.assertNotEqual(terminal.settings(), terminal.before)
        return terminal

    def given_back(self, terminal):
        self.assertEqual(terminal.settings(), terminal.before)
        self.assertGreater(terminal.seen.rfind(MAIN_SCREEN), terminal.seen.rfind(ALTERNATE_SCREEN))
        self.assertIn(CURSOR, terminal.seen)

    def test_keys_end_it(self):
        for key in (b"q", b"Q", b"\x03"):
            with self.subTest(key):
                terminal = self.drawn()
                terminal.press(key)
                self.assertEqual(terminal.wait(), 0)
                self.given_back(terminal)

    def test_signals_end_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(number):
                terminal = self.drawn()
                terminal.process.send_signal(number)
                self.assertEqual(terminal.wait(), 0 if number == signal.SIGINT else -number)
                self.given_back(terminal)

    def test_it_can_be_stopped_and_goes_on(self):
        terminal = self.drawn()
        terminal.process.send_signal(signal.SIGTSTP)
        stopped = lambda: pathlib.Path(f"/proc/{terminal.process.pid}/stat").read_text().rsplit(")")[1].split()[0] == "T"
        until(stopped, "the stop")
        terminal.read()
        self.given_back(terminal)
        terminal.process.send_signal(signal.SIGCONT)
        seen = len(terminal.seen)
        until(lambda: ALTERNATE_SCREEN in terminal.read()[seen:] and b"\033[H" in terminal.seen[seen:], "the screen again")
        self.assertNotEqual(terminal.settings(), terminal.before)
        terminal.press(b"q")
        self.assertEqual(terminal.wait(), 0)
        self.given_back(terminal)

    def test_a_terminal_that_cannot_draw_gets_text(self):
        terminal = self.started(TERM="dumb")
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn(b"\033", terminal.seen)
        self.assertIn(b"live ", terminal.seen)

    TOTALS = re.compile(r"^allocations [\d.,]+( [kM])?   allocated [\d.]+ [KMG]iB   frees [\d.,]+( [kM])?$")

    def shows(self, terminal, number, expression):
        def is_shown():
            screen = terminal.screen()
            return len(screen) > number and re.search(expression, screen[number])
        until(is_shown, f"{expression} in line {number}")

    def test_totals_of_a_process_that_ends(self):
        process = self.observed()
        terminal = self.terminal(HEAPWRIGHT, "top", str(process.pid), "--every", "0.2")
        self.shows(terminal, 2, "^allocations .*/s ")
        process.kill()
        process.wait()
        self.shows(terminal, 0, r"gone \(killed, or ended without exit\)")
        self.shows(terminal, 2, self.TOTALS)

    def saved(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "run")
        subprocess.run([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--sample", "65536", "--save", path, "--", "/usr/bin/python3", "-c",
                        "x = [bytes(1000 + i % 50) for i in range(50_000)]"], check=True, stderr=subprocess.DEVNULL)
        return path

    def test_totals_of_a_saved_run(self):
        terminal = self.terminal(HEAPWRIGHT, "top", self.saved(), "--every", "0.2")
        until(lambda: terminal.read().count(b"\033[J") >= 3, "three screens")
        self.assertRegex(terminal.screen()[2], self.TOTALS)

    def test_a_narrow_terminal_shows_live_bytes_and_where(self):
        path = self.saved()
        for columns, titles in ((40, ["live", "where"]), (80, ["live", "blocks", "where"]), (120, ["live", "blocks", "allocated", "where"])):
            with self.subTest(columns):
                terminal = self.terminal(HEAPWRIGHT, "top", path, columns=columns)
                until(terminal.screen, "a screen")
                screen = terminal.screen()
                head = next(i for i, line in enumerate(screen) if line.lstrip().startswith("live  ") or "where" in line)
                self.assertEqual(re.findall(r"live|blocks|allocated|where", screen[head]), titles)
                self.assertRegex(screen[head + 1], r"^ *[\d.]+ [KM]iB ±\d+ %.*  [A-Za-z_]")
                for line in screen:
                    self.assertLessEqual(len(line), columns)
                if columns == 40:
                    above = " ".join(" ".join(screen[1:head]).split())
                    self.assertRegex(above, r"^live \S+ \S+ peak \S+ \S+ RSS .*threads? allocations .* frees ")
                    self.assertIn('95 of 100 figures of sites are within ±, or below what they are "up to"', above)

    def test_a_narrow_terminal_shows_the_lines_of_sites(self):
        """The caller gives way to the line, then the function, then the file."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, program, path = (os.path.join(folder.name, name) for name in ("growing_sessions.cpp", "grow", "run"))
        with open(source, "w") as file:
            file.write("""#include <cstdlib>
#include <new>
void* kept[3];
__attribute__((noinline)) void keep_session(int i) {
  kept[0] = operator new(30000);
  kept[1] = operator new(20000);
# 1234 "grow.cpp"
  kept[2] = operator new(10000);
}
__attribute__((noinline)) void serve() { keep_session(0); }
int main() { serve(); _Exit(0); }
""")
        subprocess.run([os.environ.get("CXX", "c++"), "-g", "-O0", "-o", program, source], check=True, timeout=120)
        subprocess.run([HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", path, "--", program],
                       check=True, stderr=subprocess.DEVNULL)
        for columns, shown in ((40, ["growing_sessions.cpp:5", "growing_sessions.cpp:6", "keep_se…  grow.cpp:1234"]),
                               (30, ["growing_se…:5", "growing_se…:6", "grow.cpp:1234"]),
                               (47, ["keep_…  growing_sessions.cpp:5", "keep_…  growing_sessions.cpp:6", "keep_session  grow.cpp:1234"]),
                               (52, [*(f"keep_sessi…  growing_sessions.cpp:{line}" for line in (5, 6)), "keep_session  grow.cpp:1234  <  se…"]),
                               (75, [*(f"keep_session  growing_sessions.cpp:{line}  <  se…" for line in (5, 6)), "keep_session  grow.cpp:1234  <  serve"])):
            with self.subTest(columns):
                terminal = self.terminal(HEAPWRIGHT, "top", path, columns=columns)
                until(terminal.screen, "a screen")
                rows = re.findall(r"(?m)^ *[\d.]+ KiB(?: +\d+)?  (.*grow.*)$", "\n".join(terminal.screen()))
                self.assertEqual(rows, shown)


class Compare(Case):
    def compared(self, **options):
        terminal = self.terminal(HEAPWRIGHT, "compare", "--rounds", "2", "--only", "heapwright", "--", "/bin/true", **options)
        self.assertEqual(terminal.wait(), 0)
        return terminal.seen

    def test_colours_and_progress(self):
        seen = self.compared()
        self.assertIn(b"\033[1m", seen)
        self.assertIn(b"\r\033[K", seen)

    def test_none_where_they_are_not_wanted(self):
        self.assertNotIn(b"\033[1m", self.compared(NO_COLOR="1"))
        self.assertIn(b"\033[1m", self.compared(NO_COLOR=""))
        self.assertNotIn(b"\033", self.compared(TERM="dumb"))
        self.assertNotIn(b"\033", self.compared(TERM="dumb", NO_COLOR="1"))

    def test_a_narrow_terminal_has_one_figure_to_a_line(self):
        for columns in (60, 160):
            with self.subTest(columns):
                lines = self.compared(columns=columns, TERM="dumb").decode().replace("\r", "").split("\n")
                figures = [line for line in lines if "wall time" in line or "peak RSS" in line]
                self.assertEqual(len(figures), 4 if columns == 60 else 1, lines)
                for line in figures:
                    self.assertLessEqual(len(line), columns)


def folders():
    return set(glob.glob("/dev/shm/heapwright-live-*"))


class Live(Case):
    """`live` with a program of its own."""

    def started(self, *command, **options):
        before = folders()
        process = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True, **options)
        self.addCleanup(lambda: (process.terminate(), process.wait(), process.stderr.close()))
        self.assertIn("live at http", process.stderr.readline())
        (folder,) = folders() - before
        return process, folder

    def child_of(self, process):
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        child = int(children[0])
        self.addCleanup(lambda: os.path.exists(f"/proc/{child}") and os.kill(child, signal.SIGKILL))
        return child

    def test_an_interrupt_to_live_alone_reaches_the_program(self):
        process, folder = self.started("/bin/sh", "-c", "while :; do sleep 0.1; done")
        child = self.child_of(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 128 + signal.SIGINT)

    def test_a_program_that_goes_on_is_left_at_the_second_signal(self):
        process, _ = self.started("/bin/sh", "-c", "trap '' INT; exec sleep 60")
        child = self.child_of(process)
        process.send_signal(signal.SIGINT)
        self.assertIn(f"process {child} (sleep) has had the signal and goes on", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn(f"process {child} (sleep) goes on without this page", process.stderr.readline())
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(os.path.exists(f"/proc/{child}"))

    # Says its id, and a word when it has had SIGTERM or SIGHUP, which it takes a while to obey. The
    # handler does not print: Python refuses that while the signal interrupts another print.
    SERVER = ("import os, signal, sys, time\n"
              "def end(number, _): os.write(1, b'had %d\\n' % number); time.sleep(1.5); sys.exit(0)\n"
              "signal.signal(signal.SIGTERM, end); signal.signal(signal.SIGHUP, end)\n"
              "os.close(2)  # whose end is that of live\n"
              "print(os.getpid(), flush=True); time.sleep(1000)")

    def wrapped(self, script, *options, server=SERVER):
        """`live` on a shell that starts a server as $PYTHON -c "$SERVER"."""
        process = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", *options, "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env={**os.environ, "PYTHON": "/usr/bin/python3", "SERVER": server})
        id = int(process.stdout.readline())
        self.addCleanup(lambda: (process.terminate(), process.wait(), process.stdout.close(), process.stderr.close()))
        self.addCleanup(lambda: os.path.exists(f"/proc/{id}") and os.kill(id, signal.SIGKILL))
        self.assertIn("live at http", process.stderr.readline())
        return process, id

    def test_a_signal_reaches_a_server_behind_a_shell(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            for script in ('$PYTHON -c "$SERVER"; true', '( $PYTHON -c "$SERVER"; true ) & wait', "trap : TERM HUP; $PYTHON -c \"$SERVER\"; exit 7"):
                process, id = self.wrapped(script)
                process.send_signal(number)
                self.assertEqual(process.wait(20), 7 if "trap" in script else 128 + number, script)
                self.assertFalse(runs(id), "it was waited for")
                self.assertEqual(process.stdout.read(), f"had {int(number)}\n", "once")
                self.assertNotIn("goes on without", process.stderr.read())

    def test_what_goes_on_is_named(self):
        stubborn = self.SERVER.replace("end)", "signal.SIG_IGN)")
        with self.subTest("ignores the signal"):
            process, id = self.wrapped('$PYTHON -c "$SERVER"; true', server=stubborn)
            process.send_signal(signal.SIGTERM)
            self.assertRegex(process.stderr.readline(), rf"process {id} \(python3\S*\) has had the signal and goes on; another one ends this page alone")
            process.send_signal(signal.SIGTERM)
            self.assertRegex(process.stderr.readline(), rf"process {id} \(python3\S*\) goes on without this page")
            self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
            self.assertTrue(runs(id))
        with self.subTest("was left by its shell"):
            process, id = self.wrapped('$PYTHON -c "$SERVER" & sleep 0.5; exit 3', "--exit-with-program")
            self.assertRegex(process.stderr.readline(), rf"process {id} \(python3\S*\) goes on without this page")
            self.assertEqual(process.wait(20), 3)
            self.assertTrue(runs(id))
        with self.subTest("has not called malloc since it was forked"):
            process, id = self.wrapped("perl -e 'if ($child = fork) { print \"$child\\n\"; exit 0 } sleep 60'; exit 3", "--exit-with-program")
            self.assertRegex(process.stderr.readline(), rf"process {id} \(perl\) goes on without this page")
            self.assertEqual(process.wait(20), 3)
        with self.subTest("is in a session of its own"):
            process, id = self.wrapped('setsid $PYTHON -c "$SERVER"; true')
            process.send_signal(signal.SIGTERM)
            self.assertRegex(process.stderr.readline(), rf"process {id} \(python3\S*\) goes on without this page")
            self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
            os.kill(id, signal.SIGKILL)
            self.assertEqual(process.stdout.read(), "", "it has had no signal")

    def test_a_process_without_the_probe_is_named_once(self):
        process, _ = self.started("/bin/sh", "-c", "(sleep 60) & for n in 1 2; do env -u LD_PRELOAD tail -f /dev/null & done; wait")
        self.assertRegex(process.stderr.readline(), r"process \d+ \(tail\) is not observed: it is statically linked or setuid, or runs without LD_PRELOAD")
        time.sleep(2.5)
        process.terminate()
        self.assertEqual(process.stderr.read(), "")
        process.wait(20)

    def test_a_process_that_becomes_a_program_without_the_probe_is_named(self):
        process, _ = self.started("/bin/sh", "-c", "sleep 3; exec env -u LD_PRELOAD tail -f /dev/null")
        self.assertRegex(process.stderr.readline(), r"process \d+ \(tail\) is not observed")
        process.terminate()
        process.wait(20)

    def test_a_child_that_becomes_a_program_without_the_probe_is_no_member(self):
        # The children have segments: they allocate before they become another program.
        before = folders()
        process = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "/bin/sh", "-c",
                                    "for n in 1 2; do (x=$(echo $n $n); exec env -u LD_PRELOAD tail -f /dev/null) & done; sleep 60 & wait"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(lambda: (process.terminate(), process.wait(), process.stderr.close()))
        url = re.search(r"http\S+/", process.stderr.readline())[0]
        time.sleep(1.5)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url + "api/processes") as answer:
            table = json.load(answer)
        column = table["columns"].index("arguments")
        names = [row[column][0] for row in table["rows"]]
        self.assertIn("sleep", names)
        self.assertNotIn("tail", names)

    def test_a_killed_program_is_shown_while_its_page_is_there(self):
        process, _ = self.started("/bin/sh", "-c", "x=$(echo 1); while :; do sleep 0.1; done")
        child = self.child_of(process)
        time.sleep(1)  # it has allocated
        os.kill(child, signal.SIGKILL)
        process.stderr.readline()  # live has seen that
        shown = subprocess.run([HEAPWRIGHT, "top", "--once", str(child)], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("gone (killed, or ended without exit)", shown.stdout)
        listed = subprocess.run([HEAPWRIGHT, "live", "--list"], capture_output=True, text=True).stdout
        self.assertRegex(listed, rf"(?m)^ *{child}  gone ")

    def test_how_the_program_has_ended_is_told(self):
        for end, told in (("exit 3", "exit code 3"), ("kill -9 $$", "killed by SIGKILL"), ("kill -SEGV $$", "killed by SIGSEGV")):
            process, _ = self.started("/bin/sh", "-c", f"sleep 0.5; {end}")
            self.assertIn(f"the program has ended ({told})", process.stderr.readline())

    def test_what_a_killed_live_left_is_swept(self):
        process, folder = self.started(*BUSY)
        child = self.child_of(process)
        until(lambda: os.listdir(folder), "the program's segment")
        process.kill()
        process.wait()
        # The program goes on, and with it what it writes to.
        other, others_folder = self.started(*BUSY)
        self.assertTrue(os.path.exists(folder), "its program runs")
        os.kill(child, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{child}"), "the program's end")
        third, _ = self.started(*BUSY)
        self.assertFalse(os.path.exists(folder))
        self.assertTrue(os.path.exists(others_folder), "its live runs")


if __name__ == "__main__":
    del sys.argv[1:3]
    unittest.main()
