#!/usr/bin/env python3
"""`heapwright compare --driver`: servers, good and bad, and the drivers that make them work.

Usage: compare_servers_test.py path/to/heapwright path/to/fixtures [unittest options]. Upper bounds of times are never asserted.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HEAPWRIGHT, FIXTURES = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN = str(FIXTURES / "libplain_allocator.so")
PYTHON = "/usr/bin/python3"
SERVER = str(pathlib.Path(__file__).resolve().parent / "fixtures/server.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        self.log, self.scratch = self.folder / "log", self.folder / "scratch"
        self.scratch.mkdir()
        self.port = free_port()
        self.environment = {**os.environ, "TMPDIR": str(self.scratch)}

    def words(self, driver, *manners, options=(), ready=None):
        ready = ready or ["--ready-port", str(self.port)]
        return [HEAPWRIGHT, "compare", "--rounds", "2", "--only", "glibc", "--with", "plain=" + PLAIN, "--driver", driver, *ready, *options,
                "--", PYTHON, SERVER, str(self.port), *manners]

    def compare(self, driver, *manners, **others):
        result = subprocess.run(self.words(driver, *manners, **others), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                                env=self.environment)
        self.assertEqual(list(self.scratch.iterdir()), [], "nothing is left behind")
        self.assertFalse(is_running(PYTHON, SERVER, str(self.port), *manners), "no server is left behind")
        return result

    def rows(self, driver, *manners, code=0, options=(), **others):
        """The rows of a comparison by name, and all of it."""
        result = self.compare(driver, *manners, options=["--json", "-", *options], **others)
        self.assertEqual(result.returncode, code, result)
        found = json.loads(result.stdout)
        return {row["name"]: row for row in found["rows"]}, found

    def refused(self, result, code, *words):
        self.assertEqual((result.returncode, result.stdout), (code, ""), result)
        for word in words:
            self.assertIn(word, result.stderr)

    def said(self, *requests):
        """A driver that sends these, each over a connection of its own, and prints what comes back."""
        return "; ".join(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port} && echo {request} >&3 && cat <&3'" for request in requests)


class Figures(Case):
    def test_json_has_the_documented_shape(self):
        rows, found = self.rows("echo rate 5.5; echo delay 3", options=["--figure", r"rate:higher=rate ([0-9.]+)", "--figure", r"delay=delay (\d+)"])
        self.assertEqual(found["format"], "heapwright compare 2")
        self.assertEqual(found["server"], {"driver": "echo rate 5.5; echo delay 3", "ready_port": self.port, "ready_line": None,
                                           "figures": [{"name": "rate", "better": "higher"}, {"name": "delay", "better": "lower"}]})
        self.assertEqual(list(rows), ["glibc", "plain"])
        for row in rows.values():
            self.assertEqual(list(row["metrics"]), ["wall_seconds", "cpu_seconds", "peak_rss_bytes", "steady_rss_bytes", "page_faults"])
            self.assertEqual({name: one["median"] for name, one in row["figures"].items()}, {"rate": 5.5, "delay": 3})
            self.assertEqual(len(row["samples"]), 2)
            for sample in row["samples"]:
                self.assertEqual(sample["figures"], {"rate": 5.5, "delay": 3})
                for figure in ("wall_seconds", "peak_rss_bytes", "steady_rss_bytes", "minor_faults"):
                    self.assertGreater(sample[figure], 0, figure)
                self.assertGreater(sample["user_seconds"] + sample["system_seconds"], 0)
        self.assertEqual(rows["plain"]["figures"]["rate"]["ratio"]["verdict"], "same")
        self.assertIsNone(rows["glibc"]["figures"]["rate"]["ratio"])

    def test_a_command_has_no_server(self):
        result = subprocess.run([HEAPWRIGHT, "compare", "--rounds", "2", "--only", "glibc", "--with", "plain=" + PLAIN, "--json", "-", "--", "true"],
                                capture_output=True, text=True, timeout=60)
        found = json.loads(result.stdout)
        self.assertNotIn("server", found)
        for row in found["rows"]:
            self.assertNotIn("figures", row)
            self.assertIn("end_rss_bytes", row["metrics"])

    def test_figures_are_judged(self):
        options = ["--figure", r"speed:higher=speed: (\d+)", "--figure", r"load=speed: (\d+)"]
        rows, _ = self.rows(self.said("speed"), options=options)
        for name in ("speed", "load"):
            ratio = rows["plain"]["figures"][name]["ratio"]
            self.assertEqual((ratio["estimate"], ratio["verdict"]), (2, "more"))
        # Whether memory and time of two rounds are clear, and so come first, is by chance.
        self.assertRegex(rows["plain"]["verdict"], "(plain's|its) speed is 2.0 times as high")
        page = self.folder / "page.html"
        result = self.compare(self.said("speed"), options=[*options, "--html", str(page)])
        self.assertRegex(result.stdout, r"(?s)driver time .*steady RSS .*\n\n +speed +load\nglibc +100 +100\nplain +200 +200\n")
        self.assertRegex(result.stdout, "(plain's|its) speed is 2.0 times as high; its load is")
        self.assertIn('"better": "higher"', page.read_text())

    def test_a_figure_of_a_json_document(self):
        driver = """echo '{"results": [{"rate/s": 12.5}]}'"""
        rows, _ = self.rows(driver, options=["--figure", "rate:higher=json:/results/0/rate~1s"])
        self.assertEqual(rows["glibc"]["figures"]["rate"]["median"], 12.5)
        for pointer, word in [("/results/1/rate~1s", "nothing at /results/1/rate~1s"), ("/results/0", "no number at /results/0")]:
            self.refused(self.compare(driver, options=["--figure", "rate=json:" + pointer]), 1, "under glibc", "the figure rate", word)
        self.refused(self.compare("echo text", options=["--figure", "rate=json:/a"]), 1, "not JSON", "stdout: text")

    def test_a_line_that_a_terminal_would_rewrite(self):
        rows, _ = self.rows(r"printf 'at 0.5\rrate 7\rrate 9\n'", options=["--figure", r"rate=^rate (\d+)$"])
        self.assertEqual(rows["glibc"]["figures"]["rate"]["median"], 7, "the first match counts")

    def test_a_figure_that_is_not_there(self):
        result = self.compare("echo one; echo the end", options=["--figure", r"rate=rate (\d+)"])
        self.refused(result, 1, "under glibc", "the figure rate", r"matches rate (\d+)", "stdout: one | the end")
        result = self.compare("echo rate fast", options=["--figure", "rate=rate (.*)"])
        self.refused(result, 1, 'found "fast", which is no number')

    def test_a_figure_that_is_not_there_under_one_allocator(self):
        rows, _ = self.rows(self.said("speed"), code=1, options=["--figure", "speed=speed: (1..)"])
        self.assertIn("the figure speed", rows["plain"]["failure"])
        self.assertIn("speed: 200", rows["plain"]["failure"])
        self.assertEqual(len(rows["glibc"]["samples"]), 2)

    def test_time_is_that_of_the_driver(self):
        rows, _ = self.rows("sleep 0.2", "slow=3")
        for sample in rows["glibc"]["samples"]:
            self.assertGreaterEqual(sample["wall_seconds"], 0.2)
            self.assertLess(sample["wall_seconds"], 3, "that the server takes to be ready")

    def test_the_driver_is_not_measured_and_not_on_the_allocator(self):
        """Neither its own processes nor those that leave it count."""
        busy = "import os, time; hold = bytearray(200 << 20)\nwhile time.process_time() < 1: pass"
        driver = f'test -z "$LD_PRELOAD" && setsid {PYTHON} -c "{busy}; time.sleep(1000)" & {PYTHON} -c "{busy}"'
        rows, _ = self.rows(driver, options=["--ready-timeout", "30"])
        for row in rows.values():
            for sample in row["samples"]:
                self.assertLess(sample["peak_rss_bytes"], 150 << 20)
                self.assertLess(sample["user_seconds"] + sample["system_seconds"], 1)
        self.assertFalse(is_running(PYTHON, "-c", busy + "; time.sleep(1000)"))
        self.rows('test -z "$LD_PRELOAD"')

    def test_steady_memory_is_what_the_server_has_when_the_driver_has_ended(self):
        rows, _ = self.rows(self.said("hold 100", "drop"))
        self.assertGreater(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 100 << 20)
        self.assertLess(rows["glibc"]["metrics"]["steady_rss_bytes"]["median"], 60 << 20)
        rows, _ = self.rows(self.said("hold 100"))
        self.assertGreater(rows["glibc"]["metrics"]["steady_rss_bytes"]["median"], 100 << 20)

    def test_steady_memory_is_measured_when_the_server_has_settled(self):
        """Ten processes that serve the driver's client end after it, one by one."""
        driver = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port} && echo fork 10 >&3 && read -u 3 && sleep 0.3'"
        rows, _ = self.rows(driver)
        for sample in rows["glibc"]["samples"]:
            self.assertGreater(sample["peak_rss_bytes"], 100 << 20)
            self.assertLess(sample["steady_rss_bytes"], 30 << 20)

    def test_the_last_look_counts_at_a_server_that_the_driver_has_ended(self):
        rows, _ = self.rows(self.said("hold 100") + f"; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port} && echo leave >&3'")
        for sample in rows["glibc"]["samples"]:
            self.assertGreater(sample["steady_rss_bytes"], 100 << 20)

    def test_memory_is_that_of_all_processes(self):
        rows, _ = self.rows("sleep 0.3", "workers=2")
        self.assertGreater(rows["glibc"]["metrics"]["steady_rss_bytes"]["median"], 120 << 20)


class Endings(Case):
    def test_findings_are_of_when_the_driver_has_ended(self):
        result = subprocess.run([HEAPWRIGHT, "compare", "--rounds", "2", "--only", "heapwright", "--driver", "sleep 0.2", "--ready-line", "ready",
                                 "--", "sh", "-c", f"sleep 1000 | {FIXTURES / 'scattered'} 200000"],
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env=self.environment)
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?m)^heapwright, when the driver has ended: \d\d % of RSS, .* of blocks of 240 bytes; see spans of the recipe")

    def test_ready_by_a_line(self):
        for manner in ((), ("stderr",)):
            rows, found = self.rows(self.said("speed"), "slow=0.2", *manner, ready=["--ready-line", "^listen"])
            self.assertEqual((found["server"]["ready_port"], found["server"]["ready_line"]), (None, "^listen"))
            self.assertEqual(len(rows["plain"]["samples"]), 2)

    def test_a_server_that_ends_before_it_is_ready(self):
        self.refused(self.compare("true", "die"), 1, "under glibc, the server exited with status 3 before it was ready", "stderr: cannot find my files")
        rows, _ = self.rows("true", "die", "only-on-plain", code=1)
        self.assertIn("the server exited with status 3 before it was ready", rows["plain"]["failure"])
        self.assertEqual(len(rows["glibc"]["samples"]), 2)

    def test_a_server_that_is_never_ready(self):
        result = self.compare("true", "never", options=["--ready-timeout", "0.5"])
        self.refused(result, 1, f"not ready within 0.5 s: nothing answers on port {self.port}", "stderr: still thinking")
        result = self.compare("true", options=["--ready-timeout", "0.5"], ready=["--ready-line", "never said"])
        self.refused(result, 1, "it printed no line that matches never said", "stdout: listening")

    def test_a_port_that_is_in_use(self):
        """A server of another's would be measured in place of this one."""
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as other:
                try:
                    other.bind((address, self.port))
                except OSError:
                    self.skipTest("no IPv6 loopback")
                other.listen(16)
                self.refused(self.compare("true", f"log={self.log}"), 125, f"a process answers on port {self.port}", "choose another port")
            self.assertFalse(self.log.exists(), "it was not started")

    def test_a_driver_that_fails(self):
        self.refused(self.compare("echo half; echo reason >&2; exit 4"), 1,
                     "under glibc, the driver exited with status 4", "stderr: reason", "stdout: half")
        rows, _ = self.rows(self.said("speed") + " | tee /dev/stderr | grep 100", code=1)
        self.assertIn("the driver exited with status 1", rows["plain"]["failure"])
        self.assertIn("speed: 200", rows["plain"]["failure"])
        self.assertEqual(len(rows["glibc"]["samples"]), 2, "the others go on")
        self.refused(self.compare("kill -9 $$"), 1, "the driver was killed by SIGKILL")

    def test_a_driver_that_takes_too_long(self):
        sleeper = ["sleep", "98767.25"]
        result = self.compare(f"echo begun; setsid {' '.join(sleeper)} & {' '.join(sleeper)}", options=["--timeout", "0.5"])
        self.refused(result, 1, "the driver had not ended after 0.5 s", "stdout: begun")
        self.assertFalse(is_running(*sleeper))

    def test_a_server_that_ends_while_it_is_driven(self):
        for request, word in (("die", "exited with status 5"), ("abort", "was killed by SIGABRT"), ("fade", "exited with status 5")):
            for driver in (self.said(request) + "; exit 1", self.said(request) + "; sleep 98767.5"):
                result = self.compare(driver)
                self.refused(result, 1, f"the server {word} while the driver ran")
        self.assertFalse(is_running("sleep", "98767.5"))

    def test_a_server_that_goes_into_the_background(self):
        for ready in (None, ["--ready-line", "listening"]):
            result = self.compare("sleep 10", "background", ready=ready)
            self.refused(result, 1, "the server went into the background", "stays in the foreground")

    def test_a_server_that_does_not_end(self):
        rows, found = self.rows("true", "stubborn", options=["--end-timeout", "0.3"])
        self.assertEqual(sorted(found["notes"]), [f"under {name}, the server did not end within 0.3 s of SIGTERM and was killed" for name in ("glibc", "plain")])
        self.assertEqual(len(rows["plain"]["samples"]), 2)
        self.refused(self.compare("exit 3", "stubborn", options=["--end-timeout", "0.3"]), 1, "the driver exited with status 3", "it did not end within 0.3 s")

    def test_a_server_ends_by_sigterm_as_it_likes(self):
        for manner in ("code=7", "code=143", "default-end"):
            rows, found = self.rows("true", manner)
            self.assertEqual((len(rows["plain"]["samples"]), found["notes"]), (2, []), manner)

    def test_a_server_that_crashes_at_its_end(self):
        rows, _ = self.rows("true", "crash-at-end", "only-on-plain", code=1)
        self.assertIn("the server was killed by SIGABRT as the driver ended, or when SIGTERM asked it to end", rows["plain"]["failure"])
        self.assertEqual(len(rows["glibc"]["samples"]), 2)

    def test_a_server_that_is_killed_as_the_driver_ends(self):
        """Whether this is seen before SIGTERM or not."""
        pid = self.folder / "pid"
        words = [HEAPWRIGHT, "compare", "--rounds", "2", "--only", "glibc", "--with", PLAIN, "--driver", f"kill -SEGV $(cat {pid})",
                 "--ready-line", "ready", "--", "sh", "-c", f"echo $$ > {pid}; echo ready; while :; do sleep 0.1; done"]
        result = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "the server was killed by SIGSEGV (while the driver ran|as the driver ended)")

    def test_a_server_is_asked_to_end_each_time(self):
        self.rows("true", f"log={self.log}")
        self.assertEqual(self.log.read_text(), "started\nasked to end\n" * 6)
        self.compare("exit 1", f"log={self.log}")
        self.assertEqual(self.log.read_text(), "started\nasked to end\n" * 7)

    def test_what_outlives_server_and_driver_is_ended(self):
        left, driven = ["sleep", "98768.25"], ["sleep", "98768.5"]
        self.rows(f"setsid {' '.join(driven)} >/dev/null 2>&1 & true", f"leave={left[1]}")
        self.assertFalse(is_running(*left))
        self.assertFalse(is_running(*driven))

    def test_interruption_ends_server_and_driver(self):
        """In the second round: the first is kept; the server is asked to end; nothing is left."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self.log.unlink(missing_ok=True)
            count, report, sleeper = self.folder / "count", self.folder / "report.json", ["sleep", f"98769.{number}"]
            count.unlink(missing_ok=True)
            driver = f"echo >> {count}; test $(wc -l < {count}) -lt 6 || {' '.join(sleeper)}"
            process = subprocess.Popen(self.words(driver, f"log={self.log}", options=["--json", str(report)]), env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not is_running(*sleeper):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(number)
            table, _ = process.communicate(timeout=30)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(json.loads(report.read_text())["rounds"], 1)
            self.assertIn("after 1 of 2 rounds", table)
            self.assertFalse(is_running(*sleeper))
            self.assertTrue(self.log.read_text().endswith("started\nasked to end\n"))
            self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_second_interruption_does_not_wait(self):
        process = subprocess.Popen(self.words("sleep 98770.25", "stubborn", options=["--end-timeout", "1000"]), env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not is_running("sleep", "98770.25"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        while is_running("sleep", "98770.25"):
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it waits for the server")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), -signal.SIGINT)
        self.assertFalse(is_running(PYTHON, SERVER, str(self.port), "stubborn"))

    def test_no_process_outlives_a_tool_that_is_killed(self):
        process = subprocess.Popen(self.words("sleep 98771.25"), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        while not is_running("sleep", "98771.25"):
            time.sleep(0.01)
        process.kill()
        process.wait()
        end = time.monotonic() + 30
        while is_running("sleep", "98771.25") or is_running(PYTHON, SERVER, str(self.port)):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class BadInput(Case):
    def test_usage(self):
        for options, word in [
            (["--figure", "rate"], "say NAME=REGEX"), (["--figure", "=x"], "say NAME=REGEX"), (["--figure", "a="], "say NAME=REGEX"),
            (["--figure", "a:best=(x)"], "higher or lower, not best"), (["--figure", "a=x"], "needs a group"),
            (["--figure", "a=(x"], "no regular expression"), (["--figure", "a=json:b"], "a JSON pointer"),
            (["--figure", "a=(x)", "--figure", "a:higher=(y)"], "two figures are named a"), (["--figure", "peak_rss=(x)"], "peak_rss is measured anyway"), (["--figure", ":higher=(x)"], "a name has"),
            (["--ready-line", "x"], "--ready-line"), (["--end-timeout", "0"], "--end-timeout"),
        ]:
            self.refused(self.compare("true", f"log={self.log}", options=options), 125, word)
        self.refused(self.compare("true", f"log={self.log}", ready=["--ready-line", "(x"]), 125, "--ready-line: (x is no regular expression")
        self.refused(self.compare("true", f"log={self.log}", ready=["--ready-port", "70000"]), 125, "--ready-port: '70000' is not a whole number from 1 to 65535")
        self.refused(self.compare("true", f"log={self.log}", ready=["--same-within", "5"]), 125, "--ready-port PORT or --ready-line REGEX")
        words = [HEAPWRIGHT, "compare", "--figure", "a=(x)", "--", "touch", str(self.log)]
        self.refused(subprocess.run(words, capture_output=True, text=True, timeout=60), 125, "--driver")
        self.assertFalse(self.log.exists())

    def test_a_server_that_cannot_be_run(self):
        words = [HEAPWRIGHT, "compare", "--driver", "true", "--ready-port", str(self.port), "--", "no-such-server"]
        self.refused(subprocess.run(words, capture_output=True, text=True, timeout=60), 127, "no such command: no-such-server")


class Recipes(Case):
    RECIPE = "#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe small = {%s};\n"

    def recipe(self, content=""):
        path = self.folder / "recipe.hpp"
        path.write_text(self.RECIPE % content)
        return str(path)

    def heapwright(self, *given, code=0):
        result = subprocess.run([HEAPWRIGHT, "compare", "--rounds", "2", "--only", "glibc", "--json", "-", *given, "--", "sh", "-c", "echo $0"],
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, env=self.environment)
        self.assertEqual(result.returncode, code, result)
        self.assertEqual(list(self.scratch.iterdir()), [], "nothing is left behind")
        return result

    def test_a_recipe_is_a_row(self):
        recipe = self.recipe()
        found = json.loads(self.heapwright("--with", recipe, "--with", "plain=" + PLAIN).stdout)
        self.assertEqual([row["name"] for row in found["rows"]], ["glibc", "small", "plain"])
        row = found["rows"][1]
        self.assertEqual((row["failure"], row["library"], row["remark"]), (None, None, f"made from the recipe small of {recipe}"))
        self.assertEqual(len(row["samples"]), 2)
        found = json.loads(self.heapwright("--with", "mine=" + recipe).stdout)
        self.assertEqual([row["name"] for row in found["rows"]], ["glibc", "mine"])

    def test_a_recipe_in_a_namespace(self):
        path = self.folder / "recipe.hpp"
        path.write_text("#include <heapwright/heap/recipe.hpp>\nnamespace app {\n" + self.RECIPE.splitlines()[1] % "" + "\n}\n")
        found = json.loads(self.heapwright("--with", str(path)).stdout)
        self.assertEqual([(row["name"], row["failure"]) for row in found["rows"]], [("glibc", None), ("app::small", None)])

    def test_several_recipes(self):
        path = self.folder / "recipe.hpp"
        path.write_text(self.RECIPE % "" + "inline constexpr heapwright::recipe other = small;\n")
        self.refused(self.heapwright("--with", str(path), code=125), 125, "several recipes: small, other",
                     f"heapwright build {path} --recipe NAME -o libmine.so, and compare --with ./libmine.so")

    def test_a_recipe_that_is_wrong(self):
        self.refused(self.heapwright("--with", self.recipe(".classes = {.steps_per_doubling = 3}"), code=125), 125,
                     "recipe.classes: steps_per_doubling and largest must be powers of two")
        self.refused(self.heapwright("--with", "/no/such/recipe.hpp", code=125), 125, "/no/such/recipe.hpp cannot be read")

    def test_interruption_while_it_is_built(self):
        process = subprocess.Popen([HEAPWRIGHT, "compare", "--with", self.recipe(), "--", "true"], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not any(self.scratch.glob("heapwright-*/check.cpp")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), -signal.SIGINT)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_interruption_while_it_is_compared(self):
        process = subprocess.Popen([HEAPWRIGHT, "compare", "--with", self.recipe(), "--only", "glibc", "--", "sleep", "98772.25"],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not is_running("sleep", "98772.25"):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), -signal.SIGINT)
        self.assertEqual(list(self.scratch.iterdir()), [])


class Examples(Case):
    """The scripts of examples/servers, for two rounds."""

    def example(self, name, **variables):
        report = self.folder / "report.json"
        result = subprocess.run([ROOT / "examples/servers" / name, "--rounds", "2", "--only", "heapwright", "--json", report],
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                                env={**self.environment, "HEAPWRIGHT": HEAPWRIGHT, **variables})
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(list(self.scratch.iterdir()), [], "nothing is left behind")
        rows = {row["name"]: row for row in json.loads(report.read_text())["rows"]}
        self.assertIn("heapwright", rows)
        for row in rows.values():
            for sample in row["samples"]:
                for value in [sample["steady_rss_bytes"], *sample["figures"].values()]:
                    self.assertGreater(value, 0, row["name"])
        return rows

    @unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-benchmark"), "needs redis-server and redis-benchmark")
    def test_redis(self):
        rows = self.example("redis", PORT=str(self.port), REQUESTS="5000")
        self.assertEqual(list(rows["glibc"]["figures"]), ["SET/s", "GET/s", "SET p99 ms", "GET p99 ms"])

    @unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-benchmark"), "needs redis-server and redis-benchmark")
    def test_the_command_in_the_documentation(self):
        """docs/compare.md, with fewer requests on a free port."""
        page = (ROOT / "docs/compare.md").read_text()
        command = re.search(r"(?m)^    heapwright compare --ready-port 6379 \\\n(?:    .*\n)+", page)[0]
        for old, new in (("6379", str(self.port)), ("-n 100000", "-n 2000"), ("heapwright compare", f"{HEAPWRIGHT} compare --rounds 2 --only heapwright")):
            self.assertIn(old, command)
            command = command.replace(old, new)
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env=self.environment)
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?s)driver time .*\n +GET/s\nglibc +\d")

    @unittest.skipUnless(list(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pgbench")), "needs PostgreSQL")
    def test_postgresql(self):
        if os.getuid() == 0:
            library = pathlib.Path(HEAPWRIGHT).parents[1] / "lib/libheapwright.so"
            if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-r", library]).returncode != 0:
                self.skipTest("PostgreSQL does not run as root, and the library lies where another user cannot read it")
            self.folder.chmod(0o755)
            self.scratch.chmod(0o755)
        rows = self.example("postgresql", TRANSACTIONS="100")
        self.assertEqual(list(rows["glibc"]["figures"]), ["tps", "latency ms"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
