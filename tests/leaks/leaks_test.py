"""`heapwright leaks` on programs that lose blocks in a known way (leaking.c).

usage: leaks_test.py HEAPWRIGHT LIBHEAPWRIGHT LEAKING
"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEAPWRIGHT, LIBRARY, LEAKING = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]

NODE = 104  # what glibc makes of a node's 100 bytes
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaking.c")


def line_of(text):
    """The number of the line of leaking.c that has this text."""
    with open(SOURCE) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def heapwright(*arguments, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))} | more.pop("environment", {})
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=60, env=environment, **more)


def report_of(*words, options=(), **more):
    """Result and report as JSON of a run of `leaking`."""
    with tempfile.NamedTemporaryFile() as file:
        result = heapwright("leaks", "--json", "-o", file.name, *options, "--", LEAKING, *words, **more)
        return result, json.load(file)


class Started(subprocess.Popen):
    """Ends with its block: a test that fails must not wait for it."""

    def __exit__(self, *what):
        if what[0] is not None and self.poll() is None:
            for process in descendants_of(self.pid):
                os.kill(process, signal.SIGKILL)
            self.kill()
        super().__exit__(*what)


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def descendants_of(process):
    return [d for child in children_of(process) for d in (child, *descendants_of(child))]


def blocks(process):
    return {kind: process[kind]["blocks"] for kind in ("lost", "indirectly_lost", "reachable")}


class WhatIsLost(unittest.TestCase):
    """Each case on glibc and on libheapwright: the blocks are the same."""

    def check(self, how, lost, indirectly=0, reachable=None, exit_code=None, words=()):
        for malloc in ("", LIBRARY):
            with self.subTest(how, malloc=os.path.basename(malloc) or "glibc"):
                result, report = report_of(how, *words, environment={"LD_PRELOAD": malloc} if malloc else {})
                self.assertEqual(result.returncode, exit_code if exit_code is not None else 1 if lost else 0, result.stderr)
                own = report["processes"][0]
                self.assertIsNone(own["not_judged_because"])
                found = blocks(own)
                self.assertEqual((found["lost"], found["indirectly_lost"]), (lost, indirectly), json.dumps(own, indent=1))
                if reachable is not None:
                    self.assertEqual(found["reachable"], reachable)

    def test_blocks_that_nothing_refers_to(self):
        self.check("most", lost=499, reachable=1)

    def test_long_blocks(self):
        self.check("long", lost=3, reachable=0)

    def test_a_global_list_is_reachable(self):
        self.check("list", lost=0, reachable=100)

    def test_a_chain_is_lost_with_its_first(self):
        self.check("chain", lost=1, indirectly=9)

    def test_a_circle_is_lost(self):
        self.check("circle", lost=1, indirectly=9)

    def test_freed_memory_refers_to_nothing(self):
        self.check("freed", lost=7, reachable=1)

    def test_an_address_within_a_block_is_a_reference(self):
        self.check("inside", lost=0, reachable=1)

    def test_what_a_call_of_exit_leaves_in_registers_is_no_reference(self):
        self.check("in-exit", lost=1, reachable=0)

    def test_tags_of_pointers_are_ignored(self):
        self.check("tagged", lost=0, reachable=1)

    def test_memory_that_the_program_maps_refers_to_blocks(self):
        self.check("mapping", lost=0, reachable=1)

    def test_thread_local_storage_refers_to_blocks(self):
        self.check("thread-local", lost=0, reachable=1)

    def test_stack_and_storage_of_another_thread_refer_to_blocks(self):
        self.check("running-thread", lost=0)

    def test_stacks_of_threads_that_have_ended_refer_to_nothing(self):
        self.check("remembering-thread", lost=64)
        self.check("losing-thread", lost=3)

    def test_exit_from_another_thread(self):
        self.check("exiting-thread", lost=1)

    def test_a_process_that_goes_on_without_its_first_thread(self):
        self.check("main-thread-first", lost=3)

    def test_what_exit_handlers_free_is_not_lost(self):
        self.check("atexit", lost=0, reachable=0)

    def test_every_way_to_end(self):
        for end in ("return", "exit", "_exit", "quick_exit", "abort", "segv", "term"):
            self.check("most", lost=499, reachable=1, words=(end,))


class Processes(unittest.TestCase):
    def test_a_process_that_is_killed_is_not_judged(self):
        result, report = report_of("most", "kill")
        self.assertEqual(result.returncode, 128 + signal.SIGKILL)
        own = report["processes"][0]
        self.assertIn("SIGKILL", own["not_judged_because"])
        self.assertEqual((own["lost"]["blocks"], own["not_judged"]["blocks"], own["signal"]), (0, 500, signal.SIGKILL))

    def test_the_commands_exit_code_where_nothing_is_lost(self):
        for end, code in (("return", 0), ("exit", 3), ("_exit", 3), ("term", 128 + signal.SIGTERM)):
            result, report = report_of("list", end)
            self.assertEqual((result.returncode, report["exit_code"]), (code, code))

    def test_a_forked_child_tells_its_own(self):
        result, report = report_of("fork")
        self.assertEqual(result.returncode, 1)
        parent, child = report["processes"]
        self.assertEqual(blocks(parent), {"lost": 2, "indirectly_lost": 0, "reachable": 1})
        self.assertEqual(blocks(child), {"lost": 1, "indirectly_lost": 3, "reachable": 0})
        self.assertIn("lose_chain", [f["function"] for f in child["sites"][0]["stack"]])

    def test_a_forked_child_names_functions_that_its_parent_has_called_before(self):
        result, report = report_of("fork-library")
        self.assertEqual(result.returncode, 1)
        child = report["processes"][1]
        self.assertIn("getcwd", child["sites"][0]["stack"][0]["function"])

    def test_processes_without_the_probe_are_told(self):
        script = f"env -i {LEAKING} most; env LD_PRELOAD= {LEAKING} most; true"
        result = heapwright("leaks", "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, rf"2 processes ran without the probe and are not judged: {LEAKING} \(2 processes\)\.\n")
        self.assertIn("nothing lost where that can be told", result.stderr)
        result = heapwright("leaks", "--json", "--", "sh", "-c", script)
        self.assertEqual([p["program"] for p in json.loads(result.stderr)["processes_without_probe"]], [LEAKING, LEAKING])

    def test_what_a_report_of_a_mistake_starts_is_not_the_programs(self):
        hardened = str(pathlib.Path(HEAPWRIGHT).resolve().parent.parent / "lib/libheapwright-hardened.so")
        program = ("import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p]\n"
                   "p = libc.malloc(40); libc.free(p); libc.free(p)")
        result = heapwright("leaks", "--", sys.executable, "-c", program, environment={"LD_PRELOAD": hardened})
        self.assertIn("heapwright: double free", result.stderr)
        self.assertNotIn("addr2line", result.stderr)

    def test_a_program_that_run_puts_on_another_malloc(self):
        result = heapwright("leaks", "--json", "--", HEAPWRIGHT, "run", "--", LEAKING, "most")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual([p["lost"]["blocks"] for p in json.loads(result.stderr)["processes"]], [499])

    def test_exec_goes_on_as_the_other_program(self):
        for end in ("exec", "busy-exec"):  # with one thread, with two
            result, report = report_of("most", end)
            self.assertEqual(result.returncode, 1)
            self.assertEqual([blocks(p) for p in report["processes"]], [{"lost": 1, "indirectly_lost": 9, "reachable": 0}])

    def test_what_a_shell_starts(self):
        for script in (f"exec {LEAKING} most", f"{LEAKING} most; true", f"{LEAKING} most & wait"):
            result = heapwright("leaks", "--json", "--", "sh", "-c", script)
            self.assertEqual(result.returncode, 1, result.stderr)
            lost = [p["lost"]["blocks"] for p in json.loads(result.stderr)["processes"] if p["program"] == LEAKING]
            self.assertEqual(lost, [499])

    def test_a_signal_reaches_the_command(self):
        with Started([HEAPWRIGHT, "leaks", "--", LEAKING, "most", "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            self.assertEqual(tool.stdout.readline(), "ready\n")
            tool.send_signal(signal.SIGTERM)
            report = tool.communicate(timeout=30)[1]
            self.assertEqual(tool.returncode, 1)
            self.assertIn("killed by signal 15", report)
            self.assertIn("499 blocks definitely lost", report)

    def test_a_signal_reaches_what_a_shell_has_started(self):
        with Started([HEAPWRIGHT, "leaks", "--", "sh", "-c", f"{LEAKING} most wait; true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            self.assertEqual(tool.stdout.readline(), "ready\n")
            tool.send_signal(signal.SIGTERM)
            report = tool.communicate(timeout=30)[1]
            self.assertEqual(tool.returncode, 1)
            self.assertIn("499 blocks definitely lost", report)

    def test_a_command_outlives_this_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            done = os.path.join(folder, "done")
            with Started([HEAPWRIGHT, "leaks", "--", "sh", "-c", f"echo ready; sleep 0.5; echo > {done}"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True) as tool:
                self.assertEqual(tool.stdout.readline(), "ready\n")
                tool.kill()
            end = time.monotonic() + 30
            while not os.path.exists(done):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)

    def test_stopped_and_continued(self):
        script = f"kill -STOP $$; echo on; exec {LEAKING} list"
        with Started([HEAPWRIGHT, "leaks", "--", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            end = time.monotonic() + 30
            while not (stopped := [pid for pid in children_of(tool.pid) if state_of(pid) in "tT"]):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            time.sleep(0.1)
            os.kill(stopped[0], signal.SIGCONT)
            output, _ = tool.communicate(timeout=30)
            self.assertEqual((output, tool.returncode), ("on\n", 0))


def state_of(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(") ")[2][0]


class Report(unittest.TestCase):
    def test_the_place_is_named(self):
        result = heapwright("leaks", "--", LEAKING, "most")
        line, caller = line_of("malloc(sizeof *n)"), line_of("/* lost here */")
        self.assertRegex(result.stderr, rf"(?m)^  {499 * NODE:,} bytes in 499 blocks definitely lost$\n    make_node +leaking.c:{line}\n    lose_nodes +leaking.c:{caller}\n")
        self.assertRegex(result.stderr, r"    main +leaking.c:\d+\n\n")
        self.assertNotIn("\033", result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr.splitlines()[-1], r"499 blocks lost from 1 place$")

    def test_what_only_lost_blocks_lead_to_is_told_with_them(self):
        result = heapwright("leaks", "--", LEAKING, "chain")
        self.assertRegex(result.stderr, rf"\n  {NODE} bytes in 1 block definitely lost\n  and {9 * NODE} bytes in 9 blocks that only these lead to\n")

    def test_the_programs_output_stays_its_own(self):
        result = heapwright("leaks", "--", "sh", "-c", f"echo out; {LEAKING} most")
        self.assertEqual(result.stdout, "out\n")

    def test_all_and_limit(self):
        self.assertNotIn("still reachable\n    make_node", heapwright("leaks", "--", LEAKING, "list").stderr)
        self.assertIn("still reachable\n    make_node", heapwright("leaks", "--all", "--", LEAKING, "list").stderr)
        result = heapwright("leaks", "--limit", "1", "--", LEAKING, "freed")
        self.assertRegex(result.stderr, rf"\n  {NODE} bytes in 1 block definitely lost at 1 more places? \(--limit\)")

    def test_standard_output(self):
        result = heapwright("leaks", "-o", "-", "--", LEAKING, "most")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("499 blocks definitely lost", result.stdout)

    def test_a_report_for_which_there_is_no_room(self):
        for options in ((), ("--json",)):
            result = heapwright("leaks", *options, "-o", "/dev/full", "--", LEAKING, "most")
            self.assertEqual((result.returncode, result.stdout), (125, ""))
            self.assertIn("/dev/full: No space left on device", result.stderr)
            if options:
                report, _ = json.JSONDecoder().raw_decode(result.stderr)
                self.assertEqual(blocks(report["processes"][0])["lost"], 499)
            else:
                self.assertIn("499 blocks definitely lost", result.stderr)

    def test_many_children_cost_the_tool_little_memory_each(self):
        children = 20
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        result = heapwright("leaks", "--", "/usr/bin/perl", "-e", f"use POSIX; for (1..{children}) {{ if (fork() == 0) {{ POSIX::_exit(0) }} wait }} POSIX::_exit(0)")
        self.assertEqual(result.returncode, 0, result.stderr)
        faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
        self.assertLess(faults, children * 2000, "pages that the tool and its children have touched")

    def test_a_child_of_fork_without_a_call_of_malloc_is_not_one_without_the_probe(self):
        result = heapwright("leaks", "--", "/usr/bin/perl", "-e", "use POSIX; if (fork() == 0) { POSIX::_exit(0) } wait; POSIX::_exit(0)")
        self.assertNotIn("without the probe", result.stderr)

    def test_json_of_all(self):
        _, report = report_of("list")
        self.assertEqual(report["processes"][0]["sites"], [])
        _, report = report_of("list", options=("--all",))
        site = report["processes"][0]["sites"][0]
        self.assertEqual(site["reachable"], {"bytes": 100 * NODE, "blocks": 100})
        self.assertEqual((site["stack"][0]["function"], site["stack"][0]["line"]), ("make_node", line_of("malloc(sizeof *n)")))

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report")
            result = heapwright("leaks", "-o", path, "--", LEAKING, "most")
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            with open(path) as file:
                self.assertIn("499 blocks definitely lost", file.read())
            result = heapwright("leaks", "-o", os.path.join(folder, "no/such"), "--", LEAKING, "most")
            self.assertEqual(result.returncode, 125)
            self.assertIn("cannot write to", result.stderr)

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not here")
    def test_valgrind_finds_the_same(self):
        for how in ("most", "chain", "circle", "freed", "remembering-thread"):
            with self.subTest(how):
                says = subprocess.run(["valgrind", "--leak-check=full", LEAKING, how], capture_output=True, text=True, timeout=60).stderr
                expected = [int(re.search(rf"{kind} lost: [\d,]+ bytes in ([\d,]+) blocks", says).group(1)) for kind in ("definitely", "indirectly")]
                found = blocks(report_of(how)[1]["processes"][0])
                self.assertEqual([found["lost"], found["indirectly_lost"]], expected)


class Suppressions(unittest.TestCase):
    def test_by_option(self):
        for pattern in ("make_node", "lose_nodes", "lose_*"):
            result, report = report_of("most", options=("--suppress", pattern))
            self.assertEqual(result.returncode, 0)
            own = report["processes"][0]
            self.assertEqual((own["lost"]["blocks"], own["suppressed"]["blocks"]), (0, 499))
        result = heapwright("leaks", "--suppress", "lose", "--suppress", "lose_nodes", "--suppress", "no_such*", "--", LEAKING, "most")
        self.assertEqual(re.findall(r"--suppress '(.*)' suppressed nothing", result.stderr), ["lose", "no_such*"])
        result, report = report_of("most", options=("--suppress", "lose"))
        self.assertEqual((result.returncode, report["idle_suppressions"]), (1, ["lose"]))

    def test_what_only_suppressed_blocks_lead_to(self):
        result, report = report_of("chain", options=("--suppress", "lose_chain"))
        self.assertEqual((result.returncode, report["processes"][0]["suppressed"]["blocks"]), (0, 10))

    def test_by_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# known\nno_such\n  lose_nodes\n")
            file.flush()
            result = heapwright("leaks", "--suppressions", file.name, "--", LEAKING, "most")
            self.assertEqual(result.returncode, 0)
            self.assertIn("499 blocks suppressed", result.stderr)
        result = heapwright("leaks", "--suppressions", "/no/such/file", "--", LEAKING, "most")
        self.assertEqual(result.returncode, 125)
        self.assertIn("/no/such/file", result.stderr)


class Segments(unittest.TestCase):
    def test_what_a_segment_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept")
            saved = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", path, "--", LEAKING, "most")
            self.assertEqual(saved.returncode, 0, saved.stderr)
            result = heapwright("leaks", path)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertRegex(result.stdout, rf"(?m)^  {500 * NODE:,} bytes in 500 blocks not freed$\n    make_node +leaking.c")
            self.assertIn("Lost is not told from reachable", result.stdout)
            with open(path, "r+b") as file:
                file.truncate(1000)
            result = heapwright("leaks", path)
            self.assertEqual((result.returncode, result.stdout), (125, ""))
            self.assertIn(path, result.stderr)

    def test_a_segment_with_estimates_tells_their_errors_and_what_was_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept")
            saved = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1024", "--save", path, "--", LEAKING, "most")
            self.assertEqual(saved.returncode, 0, saved.stderr)
            exact = float(re.search(r"live ([\d.]+) KiB", heapwright("top", "--once", path).stdout)[1])
            result = heapwright("leaks", path)
            total = re.search(r"(?m)^  ([\d,]+) bytes in ([\d,]+) blocks not freed$", result.stdout)
            self.assertAlmostEqual(int(total[1].replace(",", "")) / 1024, exact, delta=0.5)
            self.assertGreaterEqual(int(total[2].replace(",", "")), 500)
            self.assertRegex(result.stdout, r"(?m)^  [\d.]+ KiB ±\d+ % in about \d+ blocks? not freed\n    make_node")
            [process] = json.loads(heapwright("leaks", "--json", path).stdout)["processes"]
            self.assertEqual({**process["not_judged"], "bytes_error": 0}, process["not_judged"])
            self.assertEqual([f"{process['not_judged'][key]:,}" for key in ("bytes", "blocks")], [total[1], total[2]])
            self.assertGreater(process["sites"][0]["not_judged"]["bytes_error"], 0)

    def test_no_segment(self):
        for path in ("/etc/passwd", "/no/such/run.segment", "/"):
            result = heapwright("leaks", path)
            self.assertIn(result.returncode, (125, 126), path)
            self.assertIn(path, result.stderr)


PYTHON_SESSION = """
import json, sqlite3, threading
numbers = {i: str(i) * 10 for i in range(5000)}
json.loads(json.dumps(numbers))
database = sqlite3.connect(":memory:")
database.execute("create table t(a, b)")
database.executemany("insert into t values(?, ?)", numbers.items())
threads = [threading.Thread(target=lambda: [bytearray(100000) for _ in range(50)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
kept = [bytearray(3000) for _ in range(1000)]
"""


class NoFalseAlarms(unittest.TestCase):
    """Programs that lose nothing by memcheck's judgement, with memory of their own beside malloc's."""

    def check(self, *command):
        for malloc in ("", LIBRARY):
            with self.subTest(command[0], malloc=os.path.basename(malloc) or "glibc"):
                result = heapwright("leaks", "--", *command, environment={"LD_PRELOAD": malloc} if malloc else {})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("\n  0 bytes in 0 blocks definitely lost\n", result.stderr)
                self.assertRegex(result.stderr, r"in [1-9][\d,]* blocks? still reachable")

    def test_python(self):
        self.check("/usr/bin/python3", "-c", PYTHON_SESSION)

    @unittest.skipUnless(shutil.which("sqlite3"), "sqlite3 is not here")
    def test_sqlite(self):
        self.check("sqlite3", ":memory:", "create table t(a); insert into t values (1), (2); create index i on t(a); select * from t;")

    @unittest.skipUnless(shutil.which("git"), "git is not here")
    def test_git(self):
        self.check("git", "--version")


class Misuse(unittest.TestCase):
    def test_commands_that_cannot_run(self):
        self.assertEqual(heapwright("leaks", "--", "/no/such/program").returncode, 127)
        self.assertEqual(heapwright("leaks", "--", "/etc/passwd").returncode, 126)

    def test_wrong_options(self):
        for arguments in ([], ["--"], ["--limit", "x", "--", "true"], ["--no-such-option", "--", "true"], ["--suppress"]):
            with self.subTest(arguments):
                self.assertEqual(heapwright("leaks", *arguments).returncode, 125)


if __name__ == "__main__":
    unittest.main()
