"""`heapwright advise`, as a user meets it: programs of which it is known what should be advised, and bad input.

usage: advise_test.py HEAPWRIGHT PLANTED
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEAPWRIGHT, PLANTED = (os.path.abspath(path) for path in sys.argv[1:3])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "planted.cpp")
PATIENCE = 200


def lines_of_sites():
    """The lines that end with `// the site`, by the program that they are in."""
    found, program = {}, None
    with open(SOURCE) as file:
        for number, line in enumerate(file, 1):
            if title := re.match(r"// --- (\w+)$", line):
                program = title[1]
            if "// the site" in line:
                found[program] = number
    return found


def heapwright(*arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment, stdin=subprocess.DEVNULL)


class Advise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = os.path.join(folder.name, "app.trace")

    def recorded(self, *command, code=0, options=()):
        done = heapwright("record", "-o", self.trace, *options, "--", *command)
        self.assertEqual(done.returncode, code, done.stderr)

    def advised(self, *options, code=0):
        done = heapwright("advise", "--rounds", "2", *options, self.trace)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def advice(self, program):
        self.recorded(PLANTED, program)
        return json.loads(self.advised("--json", "-").stdout)

    def test_what_is_planted_is_found(self):
        lines = lines_of_sites()
        for program, kind in (("tree", "arena"), ("pool", "pool"), ("text", "small buffer"), ("nested", "stack arena"), ("growing", "reserve"), ("handing", "hand-over")):
            with self.subTest(program):
                found = self.advice(program)
                at_site = [a for a in found["advice"] if a["site"]["line"] == lines[program] and a["site"]["file"].endswith("planted.cpp")]
                self.assertEqual([a["kind"] for a in at_site], [kind], found["advice"])
                one = at_site[0]
                self.assertGreater(one["allocations"], found["allocations"] * .3)
                self.assertIn(f"planted.cpp:{lines[program]}", "\n".join(one["code"]) + one["site"]["name"])
                if kind == "hand-over":
                    self.assertIsNone(one["saves"], "what it saves is not predicted")
                else:
                    self.assertIsNotNone(one["saves"])
                    self.assertIsNone(one["failure"])

    def test_containers_that_allocate_at_one_line_are_told_apart(self):
        found = self.advice("names")
        at_line = [a for a in found["advice"] if a["site"]["line"] == lines_of_sites()["names"]]
        self.assertEqual({a["site"]["container"]: a["kind"] for a in at_line}, {"std::map or set": "arena", "std::string": "arena"}, found["advice"])
        for one in at_line:
            kept = {"std::map or set": "std::set<", "std::string": "std::basic_string<"}[one["site"]["container"]]
            self.assertIn(kept, "\n".join(one["code"]))
            self.assertAlmostEqual(one["allocations"], 200_000, delta=2000)
        self.assertIn("for a std::string, through std::", self.advised().stdout)

    def test_vectors_of_two_types_at_one_line_are_told_apart(self):
        found = self.advice("rows")
        at_line = [a for a in found["advice"] if a["site"]["line"] == lines_of_sites()["rows"]]
        self.assertEqual(sorted((a["site"]["through"].partition(",")[0], a["allocations"]) for a in at_line),
                         [("std::vector<double", 200_000), ("std::vector<int", 200_000)], found["advice"])

    def test_programs_as_advised_have_no_such_site(self):
        lines = lines_of_sites()
        for program in ("tree", "pool", "text", "nested"):
            with self.subTest(program):
                self.recorded(PLANTED, program, "advised")
                found = json.loads(self.advised("--json", "-").stdout)
                self.assertEqual([a for a in found["advice"] if a["site"]["line"] == lines[program] and a["allocations"] > 1000], [])

    def test_the_text_and_the_page(self):
        self.recorded(PLANTED, "handing")
        page = os.path.join(os.path.dirname(self.trace), "page.html")
        text = self.advised("--html", page).stdout
        self.assertRegex(text, r"(?m)^process 0 of .*: .*planted handing$")
        self.assertRegex(text, r"(?m)^\d  hand-over  at handing\S*  planted\.cpp:\d+$")
        self.assertIn("What it saves is not predicted.", text)
        self.assertRegex(text, r"(?m)^       #include <heapwright/")
        with open(page) as file:
            self.assertIn('"kind":"hand-over"', file.read())

    def test_a_wrapper_of_the_program_s_own(self):
        self.recorded(PLANTED, "tree")
        found = json.loads(self.advised("--wrapper", "plant*", "--json", "-").stdout)
        self.assertIn("grow_tree<", found["advice"][0]["site"]["function"])
        self.assertIn("plant<", found["advice"][0]["site"]["through"])
        self.assertEqual([note for note in found["notes"] if "--wrapper" in note], [])
        self.assertIn("Note: --wrapper no_such: no function that allocates", self.advised("--wrapper", "no_such").stdout)

    def test_a_command_is_told_as_a_shell_has_it(self):
        self.recorded("sh", "-c", "true 'a b'", "", "x")
        told = r"sh -c 'true '\''a b'\''' '' x"
        self.assertIn(f": {told}\n", self.advised().stdout)
        self.assertIn(f": {told}\n", heapwright("trace", "info", self.trace).stdout)
        self.assertIn(f": {told}\n", heapwright("replay", "--memory", "--only", "glibc", self.trace).stdout)

    def test_programs_that_end_badly(self):
        self.recorded("sh", "-c", "exit 3", code=3)
        self.advised()
        # One that never ends is recorded for as long as asked.
        self.recorded("timeout", "3", PLANTED, "handing", "100000", options=("--seconds", "0.5"), code=124)
        self.assertIn("hand-over", self.advised().stdout)

    def test_interrupted_it_says_what_it_has_found_and_not_measured(self):
        self.recorded(PLANTED, "tree")
        process = subprocess.Popen([HEAPWRIGHT, "advise", "--rounds", "1000", self.trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))})
        def has_child():
            return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text() != ""
        while not has_child():  # the first replay: the trace has been read
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, messages = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT, messages)
        self.assertRegex(output, r"\d (site fits|sites fit)\s+a rule,\s+and\s+what\s+that\s+would\s+save\s+was\s+not\s+measured")
        self.assertNotIn("median of", output)

    def test_interrupted_it_tells_the_rounds_that_are_complete(self):
        self.recorded(PLANTED, "tree")
        answer = self.trace + ".json"
        process = subprocess.Popen([HEAPWRIGHT, "advise", "--rounds", "1000", "--json", answer, self.trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))})
        replays = set()
        while len(replays) < 20:  # memory twice, and some rounds of two replays
            self.assertIsNone(process.poll())
            replays.update(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        output, messages = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT, messages)
        found = json.loads(pathlib.Path(answer).read_text())
        self.assertGreaterEqual(found["rounds"], 2)
        self.assertLess(found["rounds"], 1000)
        self.assertTrue(any(one["saves"] is not None for one in found["advice"]), found["advice"])
        self.assertRegex(output, fr"median\s+of\s+{found['rounds']}\s+interleaved\s+rounds")

    def test_interrupted_while_it_reads_it_says_so(self):
        self.recorded(PLANTED, "tree")
        def interrupt():  # the signal waits until the command looks for signals
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            os.kill(os.getpid(), signal.SIGINT)
        for command in ("advise", "replay"):
            with self.subTest(command):
                done = subprocess.run([HEAPWRIGHT, command, self.trace], capture_output=True, text=True, timeout=PATIENCE, preexec_fn=interrupt)
                self.assertEqual((done.returncode, done.stdout), (-signal.SIGINT, ""))
                self.assertRegex(done.stderr, r"^heapwright: interrupted by SIGINT while reading the trace, after \d+ % of it\n$")

    def test_of_half_a_trace_nothing_is_said_of_debugging_information(self):
        self.recorded(PLANTED, "tree")
        os.truncate(self.trace, os.path.getsize(self.trace) // 2)
        done = self.advised()
        self.assertIn("Note: the trace is torn", done.stdout)
        self.assertNotIn("debugging information", done.stdout)

    def test_that_a_trace_is_torn_stands_before_the_advice(self):
        self.recorded(PLANTED, "pool")
        os.truncate(self.trace, os.path.getsize(self.trace) - 1)
        told = self.advised().stdout
        self.assertLess(told.index("Note: the trace is torn"), told.index("\n1  "), told)
        self.assertEqual(told.count("the trace is torn"), 1)
        self.assertIn("the trace is torn", json.loads(self.advised("--json", "-").stdout)["notes"][0])

    def test_bad_input(self):
        done = heapwright("advise", "/no/such/trace")
        self.assertEqual(done.returncode, 125)
        self.assertIn("No such file", done.stderr)
        self.recorded(PLANTED, "handing")
        with open(self.trace, "rb") as file:
            whole = file.read()

        def advised_of(data):
            with open(self.trace, "wb") as file:
                file.write(data)
            return heapwright("advise", "--rounds", "2", self.trace)
        for data, said in ((b"", "is not a trace"), (whole[:12] + b"\x07" + whole[13:], "of version 7"), (whole[:16], "has no process")):
            done = advised_of(data)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn(said, done.stderr)
        torn = advised_of(whole[:-1])
        self.assertEqual(torn.returncode, 0, torn.stderr)
        self.assertIn("Note: the trace is torn: the file is cut off", torn.stdout)
        done = heapwright("advise", "--process", "9", self.trace)
        self.assertEqual(done.returncode, 125)
        self.assertIn("has no process 9", done.stderr)
        for words, said in ((["--rounds", "1"], "from 2 to"), (["--json", self.trace], "--json"), (["--json", "-", "--html", "-"], "both go to")):
            done = heapwright("advise", *words, self.trace)
            self.assertEqual(done.returncode, 125)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
