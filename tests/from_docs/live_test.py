#!/usr/bin/env python3
"""`heapwright live`, `top` and `diff`, the probe and heapwright/live.h, as docs/live.md says it."""
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from documented import (BUILD, Case, ENDINGS, HEAPWRIGHT, IS_ROOT, LEAKING, LIBRARY, NO_SUCH_PROCESS, PROBE, as_nobody, environment, heapwright, main, program,
                        run)

QUIET = ("--no-browser", "--exit-with-program")
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


class Live(Case):
    def setUp(self):
        super().setUp()
        self.segments = self.folder / "segments"

    def here(self, **more):
        """The environment of this test: segments have a folder of their own."""
        return environment(HEAPWRIGHT_SEGMENT_DIR=self.segments, **more)

    def live(self, *arguments, **options):
        return heapwright("live", *QUIET, *arguments, **{"env": self.here(), **options})

    def with_probe(self, *command, **more):
        process = self.starts(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.here(LD_PRELOAD=PROBE, **more))
        self.addCleanup(process.stdin.close)
        return process, process.stdout.readline()

    def page(self, *arguments):
        """Starts the server; the address of its page, and the process."""
        process = self.starts(HEAPWRIGHT, "live", "--no-browser", *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.here())
        line = process.stderr.readline()
        self.assertIn("live at http://", line)
        return re.search(r"http://\S+", line).group(), process

    def state_at_the_end(self, address):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            state = json.loads(get(address + "api/state"))["process"]["state"]
            if state != "running":
                break
            time.sleep(0.02)
        return state

    def saved(self, *command, options=("--sample", "1")):
        file = self.folder / f"{len(list(self.folder.iterdir()))}.segment"
        self.assertNotIn(self.live(*options, "--save", file, "--", *command).returncode, (125, 126, 127))
        return file


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as answer:
        return answer.read()


class Command(Live):
    # --help: "Exit code: the command's own where one was started"
    def test_exit_codes(self):
        for how, code in (("exit", 5), ("print", 0), ("term", 143), ("abort", 134), ("kill", 137)):
            self.ended(self.live("--", ENDINGS, how), code)

    # "starts it with the probe, prints the page's address": on stderr, stdout is the program's
    def test_output(self):
        result = self.live("--", ENDINGS, "print")
        self.assertEqual(result.stdout, "printed by the program\n")
        self.assertRegex(result.stderr, r"http://127\.0\.0\.1:\d+/")

    # "the page stays until ctrl-C" without --exit-with-program; then the command's exit code
    def test_the_page_stays(self):
        address, tool = self.page("--", ENDINGS, "late")
        self.assertIn("has ended (exit code 5)", tool.stderr.readline())
        self.assertTrue(get(address).startswith(b"<!doctype html>"))
        self.assertEqual(json.loads(get(address + "api/state"))["process"]["state"], "exited")
        tool.send_signal(signal.SIGINT)
        self.assertEqual(tool.wait(20), 5)

    # A program that ends through _exit has exited, as one that ends through exit.
    def test_a_program_that_ends_through_underscore_exit(self):
        address, _ = self.page("--", ENDINGS, "_exit")
        self.assertEqual(self.state_at_the_end(address), "exited")

    # "SIGINT, SIGTERM and SIGHUP go on to the command"
    def test_sigterm(self):
        _, tool = self.page("--exit-with-program", "--", ENDINGS, "wait")
        tool.send_signal(signal.SIGTERM)
        self.assertEqual(tool.wait(20), 128 + signal.SIGTERM)

    def test_bad_input(self):
        self.refused(heapwright("live"), 125, "COMMAND", "--list", "--file")
        self.refused(heapwright("live", "--list", "--file", "x"), 125, "--list")
        for option, values in (("--port", ("-1", "65536", "x")), ("--sample", ("-1", "1099511627777", "x")), ("--ready-fd", ("2", "x"))):
            for value in values:
                self.refused(self.live(option, value, "--", "true"), 125, option)
        self.refused(heapwright("live", NO_SUCH_PROCESS), 125, NO_SUCH_PROCESS)
        self.refused(self.live("--host", "no.such.host.invalid", "--", "true"), 125, "no.such.host.invalid")

    def test_a_port_that_is_taken(self):
        address, _ = self.page("--exit-with-program", "--", ENDINGS, "wait")
        port = address.rstrip("/").rsplit(":", 1)[1]
        self.refused(self.live("--port", port, "--", "true"), 125, port)

    # --help: "Write the address and this process's id to this file descriptor when the page can be seen"
    def test_ready_fd(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        tool = self.starts(HEAPWRIGHT, "live", *QUIET, "--ready-fd", write, "--", "true", stderr=subprocess.DEVNULL, pass_fds=[write], env=self.here())
        os.close(write)
        self.assertRegex(os.read(read, 1000).decode(), rf"^http://127\.0\.0\.1:\d+/ {tool.pid}\n$")

    def test_a_ready_fd_that_is_closed(self):
        self.refused(self.live("--ready-fd", "999", "--", "true"), 125, "999")

    # "heapwright live 1234": "a process that has the probe, or runs on libheapwright"
    def test_a_process(self):
        process, _ = self.with_probe(ENDINGS, "wait")
        address, _ = self.page(process.pid)
        state = json.loads(get(address + "api/state"))
        self.assertEqual((state["process"]["id"], state["process"]["has_probe"]), (process.pid, True))
        self.assertGreaterEqual(state["totals"]["live"], 1000000)

    def test_a_process_without_the_probe(self):
        process = self.starts(ENDINGS, "wait", stdout=subprocess.PIPE, env=self.here(LD_PRELOAD=LIBRARY))
        process.stdout.readline()
        address, _ = self.page(process.pid)
        self.assertEqual(json.loads(get(address + "api/state"))["process"]["has_probe"], False)

    def test_a_process_that_cannot_be_watched(self):
        process = self.starts(ENDINGS, "wait", stdout=subprocess.PIPE, env=self.here())
        process.stdout.readline()
        for name in ("live", "top"):
            result = heapwright(name, process.pid, env=self.here())
            self.assertEqual((result.returncode, result.stdout), (125, ""))
            self.assertIn(str(process.pid), result.stderr)

    # "which processes can be watched, and of the ended ones the newest 20"
    def test_list(self):
        running, _ = self.with_probe(ENDINGS, "wait")
        ended = self.starts(ENDINGS, "exit", env=self.here(LD_PRELOAD=PROBE))
        ended.wait(20)
        result = heapwright("live", "--list", env=self.here())
        self.ended(result, 0)
        self.assertRegex(result.stdout, rf"(?m)^ *{running.pid} +running .*endings wait$")
        self.assertRegex(result.stdout, rf"(?m)^ *{ended.pid} +ended .*endings exit$")

    def test_a_long_list(self):
        for _ in range(22):
            self.starts(ENDINGS, "exit", env=self.here(LD_PRELOAD=PROBE)).wait(20)
        running, _ = self.with_probe(ENDINGS, "wait")
        result = heapwright("live", "--list", env=self.here())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(" ended "), 20, result.stdout)
        # Other processes of this machine may run on libheapwright.
        self.assertRegex(result.stdout, rf"(?m)^ *{running.pid} +running ")
        self.assertEqual(result.stderr, f"heapwright: 2 more ended before; their segments lie in {self.segments}\n")


class Files(Live):
    # "`heapwright live --file SEGMENT`: what a program has left, however it ended"
    def test_a_segment_of_a_killed_program(self):
        process = self.starts(ENDINGS, "kill", env=self.here(LD_PRELOAD=PROBE, HEAPWRIGHT_SAMPLE=1))
        process.wait(20)
        (segment,) = self.segments.iterdir()
        # "`PID-START-N.segment`"
        self.assertRegex(segment.name, rf"^{process.pid}-\d+-\d+\.segment$")
        address, tool = self.page("--file", segment)
        self.assertGreaterEqual(json.loads(get(address + "api/state"))["totals"]["live"], 1000000)
        tool.send_signal(signal.SIGINT)
        self.assertEqual(tool.wait(20), 0)

    def test_what_is_no_segment(self):
        truncated = self.saved(ENDINGS, "exit")
        os.truncate(truncated, 1000)
        for file in (self.file("text", "no segment"), self.file("empty", ""), str(truncated), str(self.folder), "/no/such/file"):
            for words in (["live", "--file", file], ["diff", file, file], ["leaks", file]):
                if words[0] != "leaks" or os.path.isfile(file):
                    result = heapwright(*words)
                    self.assertEqual((result.returncode, result.stdout), (125, ""), result)
                    self.assertIn(file, result.stderr)

    # "keeps its figures"
    def test_save(self):
        file = self.saved(ENDINGS, "exit")
        self.assertEqual(heapwright("diff", file, file).returncode, 0)

    # "what cannot be saved: 125"
    def test_a_file_that_cannot_be_saved(self):
        touched = self.folder / "touched"
        self.refused(self.live("--save", "/no/such/folder/a.segment", "--", "touch", touched), 125, "/no/such/folder/a.segment")
        self.assertFalse(touched.exists())

    # "The child of a fork has its own"; "for each process and each program that it executes"
    def test_a_segment_for_each_process_and_program(self):
        for words, count in ((["fork"], 2), (["exec", ENDINGS, "exit"], 2), (["exit"], 1)):
            for old in self.segments.glob("*"):
                old.unlink()
            run(ENDINGS, *words, env=self.here(LD_PRELOAD=PROBE))
            self.assertEqual(len(list(self.segments.iterdir())), count, words)

    # "when there are more than 64, those of processes that are gone make room"
    def test_old_segments_make_room(self):
        for _ in range(70):
            run(ENDINGS, "exit", env=self.here(LD_PRELOAD=PROBE))
        self.assertIn(len(list(self.segments.iterdir())), range(60, 66))

    # "Where no segment can be made (no room, files may not be so long) the program runs unobserved."
    def test_no_segment(self):
        for folder in ("/no/such/folder", "/proc", self.file("file", "")):
            result = run(ENDINGS, "print", env=environment(LD_PRELOAD=PROBE, HEAPWRIGHT_SEGMENT_DIR=folder))
            self.assertEqual((result.returncode, result.stdout), (0, "printed by the program\n"))
        result = run("sh", "-c", 'ulimit -f 10; exec env LD_PRELOAD="$1" "$0" exit', ENDINGS, PROBE, env=self.here())
        self.assertEqual(result.returncode, 5)

    # "`HEAPWRIGHT_PROBE=off`: does not count until it is told to"; "`HEAPWRIGHT_SAMPLE=BYTES`"
    def test_environment(self):
        for more, counting, adapts, interval in (({}, True, True, None), ({"HEAPWRIGHT_PROBE": "off"}, False, True, None),
                                                 ({"HEAPWRIGHT_SAMPLE": "auto"}, True, True, None), ({"HEAPWRIGHT_SAMPLE": "4096"}, True, False, 4096)):
            process, _ = self.with_probe(ENDINGS, "wait", **more)
            address, _ = self.page(process.pid)
            state = json.loads(get(address + "api/state"))
            self.assertEqual((state["process"]["is_counting"], state["process"]["interval_adapts"]), (counting, adapts), more)
            if interval is not None:
                self.assertEqual(state["process"]["interval"], interval)
            self.assertEqual(state["totals"]["live"] >= 1000000, counting)


class Server(Live):
    # The table "For other tools"
    def test_addresses(self):
        address, _ = self.page("--sample", "1", "--", LEAKING, "lose", "global")
        for path in ("api/state", "api/sites", "api/stacks", "api/leaks", "api/memory", "api/history", "api/processes"):
            json.loads(get(address + path))
        for path in ("debug/pprof/heap", "debug/pprof/allocs", "debug/pprof/heap?seconds=1"):
            self.assertIn(b"inuse_space" if "?" not in path else b"", gzip.decompress(get(address + path)))
        # "collapsed stacks": frames with semicolons between, a space, a number
        lines = get(address + "api/collapsed").decode().splitlines()
        for line in lines:
            self.assertRegex(line, r"^[^;].* \d+$")
        self.assertTrue(any(";main;lose_one;make " in line for line in lines), lines)

    # "[grafana-dashboard.json] is a dashboard to import": what it shows is in /metrics
    def test_metrics(self):
        address, _ = self.page("--", ENDINGS, "wait")
        text = get(address + "metrics").decode()
        values = dict(re.findall(r"(?m)^(heapwright_\w+){[^}]*} ([0-9.]+)$", text))
        for name in set(re.findall(r"heapwright_\w+", (DOCS / "grafana-dashboard.json").read_text())):
            self.assertIn(f"# TYPE {name} ", text)
        self.assertGreaterEqual(float(values["heapwright_live_bytes"]), 1000000)
        self.assertGreaterEqual(float(values["heapwright_peak_bytes"]), float(values["heapwright_live_bytes"]))

    # "`?process=NAME` at every other address asks for one of them"
    def test_processes(self):
        address, _ = self.page("--", ENDINGS, "wait")
        answer = json.loads(get(address + "api/processes"))
        name = answer["rows"][0][answer["columns"].index("name")]
        self.assertEqual(json.loads(get(f"{address}api/state?process={name}"))["process"]["state"], "running")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            get(f"{address}api/state?process=none")
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()

    # "these add up to RSS"
    def test_memory_adds_up(self):
        address, _ = self.page("--", ENDINGS, "wait")
        memory = json.loads(get(address + "api/memory"))
        self.assertAlmostEqual(sum(size for _, size in memory["parts"]), memory["rss"], delta=4096)

    def needs_token(self, address, token):
        plain = address.split("?")[0]
        for path in ("", "metrics", "api/state"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                get(plain + path)
            self.assertIn(refused.exception.code, (401, 403))
            refused.exception.close()
        self.assertIn(b"heapwright_live_bytes", get(f"{plain}metrics?token={token}"))
        self.assertIn(b"heapwright_live_bytes", get(plain + "metrics", Authorization=f"Bearer {token}"))

    # "`--token` asks for one on loopback too"
    def test_a_token(self):
        address, _ = self.page("--token", "only-for-this-test", "--", ENDINGS, "wait")
        self.assertTrue(address.endswith("?token=only-for-this-test"), address)
        self.needs_token(address, "only-for-this-test")

    # "a token has 12 to 256 letters, digits and -._~"
    def test_bad_tokens(self):
        for token in ("short", "with a space in it", "a" * 257, "ümlaut-ümlaut"):
            self.refused(self.live("--token", token, "--", "true"), 125, "token")

    def test_an_empty_token(self):
        self.refused(self.live("--token", "", "--", "true"), 125, "token")


class Figures(Live):
    # "Counts and live bytes are exact."
    def test_counts(self):
        address, _ = self.page("--", LEAKING, "lose", "lose", "lose-another", "freed")
        self.assertEqual(self.state_at_the_end(address), "exited")
        totals = json.loads(get(address + "api/state"))["totals"]
        self.assertEqual((totals["allocations"], totals["frees"], totals["live_blocks"]), (5, 1, 4))
        self.assertEqual(totals["allocated_bytes"] - totals["freed_bytes"], totals["live"])
        self.assertIn(totals["live"], range(6000, 6100))

    # "Any program, on whatever malloc": ours, and others that are installed
    def test_mallocs_below(self):
        for library in (LIBRARY, *pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("lib[jm][ei]*malloc.so.2")):
            file = self.folder / "run.segment"
            result = self.live("--sample", "1", "--save", file, "--", LEAKING, "lose", env=self.here(LD_PRELOAD=library))
            self.ended(result, 0)
            self.assertIn("lose_one", heapwright("leaks", file).stdout, library)


class Top(Live):
    # "piped into something else it looks once"; "shows totals and the sites with most live bytes"
    def test_one_look(self):
        process, _ = self.with_probe(ENDINGS, "wait", HEAPWRIGHT_SAMPLE=1)
        for words in ([], ["--once"]):
            result = heapwright("top", *words, process.pid, env=self.here())
            self.ended(result, 0)
            for word in ("live", "peak", "RSS", "main"):
                self.assertIn(word, result.stdout)
            self.assertEqual(result.stderr, "")

    def test_bad_input(self):
        self.refused(heapwright("top"), 125, "PID")
        self.refused(heapwright("top", NO_SUCH_PROCESS), 125, NO_SUCH_PROCESS)
        for seconds in ("0", "0.09", "3601", "x"):
            self.refused(heapwright("top", "--every", seconds, "1"), 125, "--every")

    def test_stdout_that_takes_nothing(self):
        process, _ = self.with_probe(ENDINGS, "wait")
        with open("/dev/full", "w") as full:
            self.assertNotEqual(heapwright("top", process.pid, stdout=full, env=self.here()).returncode, 0)


class Diff(Live):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.enterClassContext(__import__("tempfile").TemporaryDirectory()))
        cls.before, cls.after = folder / "before.segment", folder / "after.segment"
        for file, what in ((cls.before, ["lose"]), (cls.after, ["lose"] * 3 + ["lose-another", "freed"])):
            heapwright("live", *QUIET, "--sample", "1", "--save", file, "--", LEAKING, *what)

    def diff(self, *conditions, swapped=False):
        files = (self.after, self.before) if swapped else (self.before, self.after)
        return heapwright("diff", *files, *(word for c in conditions for word in ("--fail-if", c)))

    # "peak, what was live at the end, what was allocated, and the call sites that differ most: the program's own function with its line"
    def test_the_table(self):
        result = self.diff()
        self.ended(result, 0)
        for word in ("before", "after", "peak", "live", "allocated", "allocations"):
            self.assertIn(word, result.stdout)
        self.assertRegex(result.stdout, r"\+\d.*make +leaking\.c:\d+ .*lose_another")
        self.assertRegex(result.stdout, r"allocations +1 +6 ")

    # "The same run twice differs in nothing."
    def test_the_same(self):
        result = heapwright("diff", self.before, self.before, "--fail-if", "peak>+0%", "--fail-if", "allocations>+0")
        self.ended(result, 0)
        self.assertNotIn("lose_one", result.stdout)

    # "exit code 1 if one of them is so": with + the growth, without it the figure of the second run
    def test_conditions(self):
        for condition, code in (("peak>+5%", 1), ("peak>+10000%", 0), ("live>+10MiB", 0), ("live>+1KiB", 1), ("live>5KiB", 1), ("live>50KiB", 0),
                                ("allocated>+0", 1), ("allocations>5", 1), ("allocations>6", 0), ("allocations>+4", 1), ("allocations>+5", 0),
                                ("live>1GiB", 0), ("live>5000", 1)):
            result = self.diff(condition)
            self.ended(result, code)
            self.assertEqual(condition in result.stderr, code == 1, result.stderr)
        for condition in ("peak>+5%", "live>+0", "allocations>+0"):
            self.ended(self.diff(condition, swapped=True), 0)
        result = self.diff("peak>1GiB", "allocations>1")
        self.ended(result, 1)
        self.assertNotIn("peak", result.stderr)

    # "125 for bad input"
    def test_bad_conditions(self):
        for condition in ("", "peak", "peak>", "peak<5", "peak>5%", "peak>-5%", "rss>5", "live>5kB", "live>x", "peak >5", "peak>+5%x"):
            self.refused(self.diff(condition), 125, condition)

    # --help: "List at most so many call sites"
    def test_sites(self):
        for count in (0, 1, 2):
            result = heapwright("diff", "--sites", count, self.before, self.after)
            self.ended(result, 0)
            tables = result.stdout.split("\n\n")[1:]
            self.assertEqual(len(tables), 3 if count else 0)
            for table in tables:
                self.assertEqual(len(re.findall("lose_one|lose_another|keep_in", table)), min(count, 2), result.stdout)
        self.refused(heapwright("diff", "--sites", "x", self.before, self.after), 125, "--sites")

    def test_stdout_that_takes_nothing(self):
        with open("/dev/full", "w") as full:
            self.assertNotEqual(heapwright("diff", self.before, self.after, stdout=full).returncode, 0)


class FromCode(Live):
    PROGRAM = program("live_from_code")

    # "In a process without the probe these do nothing and say so"
    def test_without_the_probe(self):
        self.assertEqual(run(self.PROGRAM).stdout, "0 0 0 0\n")
        self.assertEqual(run(self.PROGRAM, env=environment(LD_PRELOAD=LIBRARY)).stdout, "0 0 0 0\n")

    # live.h: "1: it was kept", "1: it has", "1: it was counted"
    def test_with_the_probe(self):
        self.assertEqual(run(self.PROGRAM, env=self.here(LD_PRELOAD=PROBE)).stdout, "1 1 1 1\n")

    # live.h: "64 at a time"
    def test_meters(self):
        self.assertEqual(run(self.PROGRAM, "meters", env=self.here(LD_PRELOAD=PROBE)).stdout, "1 1 1 1\n64\n")

    # "a moment with a name"; "memory that no malloc gave out"; "an allocator of your own, by its own counts, under *Meters*"
    def test_what_the_page_knows(self):
        process, line = self.with_probe(self.PROGRAM, "wait")
        self.assertEqual(line, "1 1 1 1\n")
        address, _ = self.page(process.pid)
        state = json.loads(get(address + "api/state"))
        self.assertIn("loaded", json.dumps(state["marks"]))
        self.assertGreaterEqual(state["totals"]["live"], 5000000)
        (meter,) = [dict(zip(state["meter_columns"], row)) for row in state["meters"]]
        self.assertEqual((meter["name"], meter["allocations"], meter["deallocations"], meter["failures"], meter["total_bytes"], meter["in_use"], meter["peak"]),
                         ("textures", 1, 2, 3, 4, 5, 6))

    # live.h, record_free: what is told to be gone is live no more
    def test_record_free(self):
        freed, kept = self.saved(self.PROGRAM, "free"), self.saved(self.PROGRAM)
        self.ended(heapwright("diff", kept, freed, "--fail-if", "live>1MiB"), 0)
        self.ended(heapwright("diff", freed, kept, "--fail-if", "live>+4999999"), 1)

    # "Starts `heapwright live` for this process, which must have the probe or run on libheapwright ... until the process ends."
    # "no child to be waited for, and ends with the program"; "The program is that in the environment variable HEAPWRIGHT"
    def test_start(self):
        for library in (PROBE, LIBRARY):
            process = self.starts(self.PROGRAM, "start", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.here(LD_PRELOAD=library, HEAPWRIGHT=HEAPWRIGHT))
            process.stdout.readline()
            error, address = process.stdout.readline().split()
            self.assertEqual(error, "0")
            self.assertEqual(json.loads(get(address + "api/state"))["process"]["id"], process.pid)
            process.stdin.close()
            self.assertEqual(process.wait(20), 0)
            deadline = time.monotonic() + 20
            with self.assertRaises(OSError):
                while time.monotonic() < deadline:
                    get(address)
                    time.sleep(0.05)

    # "ECHILD where the viewer could not begin; what is wrong is on stderr"
    def test_start_that_fails(self):
        for more in ({"HEAPWRIGHT": "/no/such/tool", "LD_PRELOAD": LIBRARY}, {"HEAPWRIGHT": HEAPWRIGHT}):
            result = run(self.PROGRAM, "start", env=self.here(**more))
            self.assertRegex(result.stdout, r"\n10 \n$")
            self.assertNotEqual(result.stderr, "")

    def test_start_without_the_command(self):
        result = run(self.PROGRAM, "start", env=self.here(HEAPWRIGHT="/no/such/tool", LD_PRELOAD=LIBRARY))
        self.assertEqual(result.stderr, "heapwright: no program /no/such/tool; set HEAPWRIGHT to where heapwright is\n")


if __name__ == "__main__":
    main()
