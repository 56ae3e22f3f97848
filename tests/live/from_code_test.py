"""Programs that open their page, name their phases, and tell of memory that no malloc gave out.

usage: from_code_test.py HEAPWRIGHT PROBE LIBHEAPWRIGHT CPP_PROGRAM C_PROGRAM
"""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HEAPWRIGHT, PROBE, LIBRARY, CPP, C = sys.argv[1:6]
del sys.argv[1:6]


def get(url, path="api/state"):
    time.sleep(0.1)  # the server looks at most twenty times a second
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return json.loads(answer.read()) if path.startswith("api") else answer.read().decode()


def rows(answer, what):
    return [dict(zip(answer[what + "_columns"], row)) for row in answer[what + "s"]]


class Program:
    def __init__(self, preload=PROBE, program=CPP, sample="1", **environment):
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.environment = dict(os.environ, LD_PRELOAD=preload, HEAPWRIGHT=HEAPWRIGHT, HEAPWRIGHT_SEGMENT_DIR=self.folder.name,
                                HEAPWRIGHT_SAMPLE=sample, **environment)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=self.environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.folder.cleanup()

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def start(self, host="127.0.0.1", port=0):
        error, url = self.tell("start", host, port)
        assert error == "0"
        return url


def viewers(pid):
    """The processes that show this one."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"--ready-fd" in words and str(pid).encode() in words:
            found.append(int(name))
    return found


class FromCode(unittest.TestCase):
    def ends(self, pid):
        for _ in range(200):
            if not viewers(pid):
                return True
            time.sleep(0.1)
        return False

    def test_it_opens_its_page_which_ends_with_it(self):
        for preload in (PROBE, f"{PROBE}:{LIBRARY}", LIBRARY):
            for end in ("exits", "is killed"):
                with self.subTest(preload=preload, end=end), Program(preload) as program:
                    url = program.start()
                    self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/$")
                    state = get(url)
                    self.assertEqual(state["process"]["id"], program.process.pid)
                    self.assertEqual(state["process"]["has_probe"], preload != LIBRARY)
                    if LIBRARY in preload:
                        self.assertIsNotNone(get(url, "api/memory")["heap"])
                    self.assertEqual(program.tell("children"), ["none"])
                    [viewer] = viewers(program.process.pid)
                    # A reader of the program's output sees its end.
                    self.assertEqual(os.readlink(f"/proc/{viewer}/fd/1"), "/dev/null")
                    with open(f"/proc/{viewer}/environ", "rb") as file:
                        self.assertNotIn(b"LD_PRELOAD", file.read())
                    if end == "exits":
                        program.process.stdin.close()
                    else:
                        program.process.kill()
                    program.process.wait(10)
                    self.assertTrue(self.ends(program.process.pid))

    def test_it_opens_its_page_whatever_else_the_program_does(self):
        for what in ("timer", "quiet"):
            with self.subTest(what), Program() as program:
                self.assertEqual(program.tell(what), ["0"])
                self.assertEqual(get(program.start())["process"]["id"], program.process.pid)

    def test_the_peak_begins_again_at_once_whatever_the_interval(self):
        for sample in ("1", "524288", "0"):
            with self.subTest(sample), Program(sample=sample) as program:
                url = program.start()
                program.tell("malloc", 1, 50_000_000)
                self.assertGreaterEqual(get(url)["process"]["peak"], 50_000_000)
                self.assertEqual(program.tell("reset"), ["1"])
                self.assertLess(get(url)["process"]["peak"], 1_000_000)

    def test_a_viewer_that_cannot_begin(self):
        with Program() as program, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.assertNotEqual(program.tell("start", "127.0.0.1", taken.getsockname()[1])[0], "0")
            self.assertNotEqual(program.tell("start", "no.such.host.invalid", 0)[0], "0")
            self.assertEqual(program.tell("children"), ["none"])
            self.assertEqual(program.tell("mark", "on")[0], "1")
            program.process.stdin.close()
            self.assertRegex(program.process.stderr.read(), r"(?s)cannot listen|in use|127\.0\.0\.1")
        for environment in ({"HEAPWRIGHT": "/no/such/heapwright"}, {"HEAPWRIGHT": "", "PATH": "/nowhere"}):
            with self.subTest(environment):
                program = Program.__new__(Program)
                program.folder = tempfile.TemporaryDirectory()
                program.process = subprocess.Popen([CPP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                                   env=dict(os.environ, LD_PRELOAD=PROBE, HEAPWRIGHT_SEGMENT_DIR=program.folder.name, **environment))
                with program:
                    self.assertNotEqual(program.tell("start", "127.0.0.1", 0)[0], "0")
                    self.assertEqual(program.tell("children"), ["none"])

    def test_without_the_probe_nothing_is_told(self):
        for preload in ("", LIBRARY):
            with Program(preload) as program:
                self.assertEqual([program.tell(*words)[0] for words in (("mark", "a"), ("reset",), ("allocate", 3, 100), ("free", 3, 100), ("meter", "m"))],
                                 ["0", "0", "0", "0", "0"])
                self.assertEqual(program.tell("use", 2, 100), ["200"])
        with Program("") as program:
            self.assertNotEqual(program.tell("start", "127.0.0.1", 0)[0], "0")

    def test_memory_of_its_own_is_counted_like_mallocs(self):
        with Program() as program:
            url = program.start()
            before = get(url)
            self.assertEqual(program.tell("allocate", 1000, 5000), ["1000"])
            after = get(url)
            counted = {key: after["totals"][key] - before["totals"][key] for key in ("allocations", "allocated_bytes", "requested_bytes")}
            self.assertGreaterEqual(counted["allocations"], 1000)
            self.assertLess(counted["allocations"], 1050)  # its own malloc, for lines and words
            self.assertGreaterEqual(after["totals"]["live"] - before["totals"]["live"], 5_000_000)
            self.assertGreaterEqual(after["process"]["peak"], 5_000_000)
            sites = get(url, "api/sites")
            own = [s for s in sites["sites"] if s["live_bytes"] == 5_000_000]
            self.assertEqual(len(own), 1)
            self.assertTrue(any("remember_in_arena" in sites["places"][place][0] for place in own[0]["stack"]))
            program.tell("free", 1000, 5000)
            end = get(url)
            self.assertLess(end["totals"]["live"], before["totals"]["live"] + 100_000)
            self.assertFalse([s for s in get(url, "api/sites")["sites"] if s["live_bytes"] == 5_000_000])
            self.assertEqual(program.tell("reset"), ["1"])
            program.tell("allocate", 1, 5000)
            self.assertLess(get(url)["process"]["peak"], 1_000_000)

    def test_marks_are_those_of_the_page(self):
        with Program() as program:
            url = program.start()
            self.assertEqual(program.tell("mark", "warm-up"), ["1"])
            self.assertEqual([m["name"] for m in get(url)["marks"]], ["warm-up"])
            self.assertEqual([program.tell("mark", f"m{i}")[0] for i in range(70)], ["1"] * 63 + ["0"] * 7)
            self.assertEqual(len(get(url)["marks"]), 64)

    def test_meters_are_seen_also_after_the_end(self):
        with Program() as program:
            url = program.start()
            self.assertEqual(program.tell("meter", 'te"x\\tures'), ["1"])
            self.assertEqual(program.tell("use", 10, 100), ["1000"])
            [meter] = rows(get(url), "meter")
            self.assertEqual((meter["name"], meter["open"], meter["allocations"], meter["in_use"], meter["peak"]), ('te"x\\tures', True, 10, 1000, 1000))
            self.assertRegex(get(url, "metrics"), r'heapwright_meter_in_use_bytes{process="\d+",program="from_code_\w+",name="te\\"x\\\\tures",number="0"} 1000')
            self.assertEqual(program.tell("unuse", 100), ["0"])
            [meter] = rows(get(url), "meter")
            self.assertEqual((meter["deallocations"], meter["in_use"], meter["peak"]), (10, 0, 1000))
            self.assertEqual(program.tell("close"), ["0"])
            self.assertEqual([m["open"] for m in rows(get(url), "meter")], [False])
            # As many as there is room for; ended ones make room.
            self.assertEqual([program.tell("meter", f"m{i}")[0] for i in range(65)], ["1"] * 64 + ["0"])
            self.assertEqual(len(rows(get(url), "meter")), 64)
            self.assertEqual(program.tell("close"), ["64"])
            self.assertEqual(program.tell("use", 7, 10), ["70"])
            # The child's copy counts for the child.
            status, child = program.tell("fork")
            self.assertEqual(status, "0")
            by_name = {m["name"]: m for m in rows(get(url), "meter")}
            self.assertEqual((by_name["m63"]["allocations"], by_name["m63"]["in_use"]), (7, 70))
            self.assertNotIn("child", [m["name"] for m in get(url)["marks"]])
            processes = get(url, "api/processes")
            [name] = [row[0] for row in processes["rows"] if row[1] == int(child)]
            of_child = get(url, f"api/state?process={name}")
            self.assertEqual(get(url, f"api/state?process={child}")["process"]["id"], int(child))
            by_name = {m["name"]: m for m in rows(of_child, "meter")}
            self.assertEqual((by_name["m63"]["allocations"], by_name["m63"]["in_use"]), (8, 70))
            self.assertIn("child", [m["name"] for m in of_child["marks"]])
            program.process.kill()
            program.process.wait()
            [segment] = [name for name in os.listdir(program.folder.name) if name.startswith(f"{program.process.pid}-")]
            with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--file", os.path.join(program.folder.name, segment)], stderr=subprocess.PIPE,
                                  text=True) as server:
                url = re.search(r"http:\S+", server.stderr.readline())[0]
                self.assertEqual({m["name"]: m["in_use"] for m in rows(get(url), "meter")}["m63"], 70)
                server.terminate()

    def test_the_same_in_c(self):
        for preload in (PROBE, ""):
            with Program(preload, C) as program:
                error, mark, reset, counted, meter, *url = program.process.stdout.readline().split()
                self.assertEqual((mark, reset, counted, meter), ("1", "1", "1", "0") if preload else ("0", "0", "0", "-1"))
                if not preload:
                    self.assertNotEqual(error, "0")
                    continue
                state = get(url[0])
                self.assertEqual([m["name"] for m in state["marks"]], ["begin"])
                self.assertEqual(rows(state, "meter"), [dict(number=0, name="textures", open=True, allocations=3, deallocations=1, failures=1,
                                                             total_bytes=300, in_use=200, peak=300)])
                self.assertIn(12345, [s["live_bytes"] for s in get(url[0], "api/sites")["sites"]])
                program.process.communicate("\n", timeout=10)
                self.assertTrue(self.ends(program.process.pid))


if __name__ == "__main__":
    unittest.main()
