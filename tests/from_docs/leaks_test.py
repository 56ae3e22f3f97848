#!/usr/bin/env python3
"""`heapwright leaks`, as docs/leaks.md says it."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from documented import Case, ENDINGS, HEAPWRIGHT, LEAKING, environment, heapwright, main, program

AMOUNT = {"bytes", "blocks"}


class Leaks(Case):
    def leaks(self, *what, options=(), **others):
        return heapwright("leaks", *options, "--", LEAKING, *what, **others)

    def judged(self, *what, options=()):
        """The JSON report of the command's own process, and of the others."""
        file = self.folder / "report.json"
        result = self.leaks(*what, options=["--json", "-o", file, *options])
        report = json.loads(file.read_text())
        self.assertEqual(report["exit_code"], result.returncode)
        return report["processes"]

    def amounts(self, *what):
        process = self.judged(*what)[0]
        return tuple((process[kind]["bytes"], process[kind]["blocks"]) for kind in ("lost", "indirectly_lost", "reachable"))

    def assert_lost(self, *what):
        self.assertEqual(self.amounts(*what)[0][1], 1, what)

    def assert_reachable(self, *what):
        lost, indirectly, reachable = self.amounts(*what)
        self.assertEqual((lost, indirectly), ((0, 0), (0, 0)), what)
        self.assertGreaterEqual(reachable[1], 1, what)


class Words(Leaks):
    # "definitely lost: Nothing refers to the block"
    def test_lost(self):
        (size, blocks), indirectly, reachable = self.amounts("lose")
        self.assertEqual((blocks, indirectly, reachable), (1, (0, 0), (0, 0)))
        # "A block's bytes are what `malloc_usable_size` says of it: up to a few more than were asked for."
        self.assertIn(size, range(1000, 1100))

    # "indirectly lost: Only lost blocks refer to the block. ... listed with them."
    def test_indirectly_lost(self):
        (_, lost), (_, indirectly), (_, reachable) = self.amounts("lose-chain")
        self.assertEqual((lost, indirectly, reachable), (1, 2, 0))
        (site,) = self.judged("lose-chain")[0]["sites"]
        self.assertEqual((site["lost"]["blocks"], site["lost_with_these"]["blocks"]), (1, 2))

    # "still reachable: Something refers to the block."
    def test_reachable(self):
        self.assert_reachable("global")

    # "Of blocks that refer to each other, and to which nothing else refers, the oldest counts as definitely lost."
    def test_cycles(self):
        (_, lost), (_, indirectly), (_, reachable) = self.amounts("lose-cycle")
        self.assertEqual((lost, indirectly, reachable), (1, 1, 0))

    def test_nothing(self):
        self.assertEqual(self.amounts(), ((0, 0), (0, 0), (0, 0)))


class References(Leaks):
    # "Any aligned word whose value is an address within the block, in data ..., thread-local storage, ..."
    def test_what_counts(self):
        for what in ("global", "inner", "thread-local"):
            self.assert_reachable(what)

    # "stacks of the threads that are left"
    def test_stacks_of_threads(self):
        self.assert_reachable("thread")

    # "memory that the program has mapped itself, or shares with its children", "blocks that are reachable themselves"
    def test_memory(self):
        for what in ("mapped", "shared", "block"):
            self.assert_reachable(what)

    # "The upper 16 bits are ignored: pointers may have tags there."
    def test_tags(self):
        self.assert_reachable("tagged")

    # "Freed memory ... [is] no reference"; "a pointer that is kept elsewhere (encoded ...) makes a block look lost"
    def test_what_does_not_count(self):
        for what in ("freed", "encoded"):
            self.assert_lost(what)


class Ends(Leaks):
    # "However a process ends, by return, `exit`, `_exit`, `quick_exit` or by a signal, it is held and judged"
    def test_every_way_to_end(self):
        for end in ("", "exit", "_exit", "quick_exit", "abort", "term"):
            self.assert_lost("lose", end)

    # "after `exit` its exit handlers and destructors have run"
    def test_exit_handlers_have_run(self):
        self.assertEqual(self.amounts("global", "free-at-exit"), ((0, 0), (0, 0), (0, 0)))

    # "Only SIGKILL leaves no time: then all blocks that were not freed are listed, not told apart."
    def test_sigkill(self):
        (process,) = self.judged("lose", "global", "kill")
        self.assertEqual((process["not_judged"]["blocks"], process["signal"]), (2, signal.SIGKILL))
        self.assertIsNotNone(process["not_judged_because"])

    # "1 if something is definitely lost in any process of the command."
    def test_exit_code_1(self):
        for what in (["lose"], ["lose", "exit"], ["lose", "abort"], ["fork", "lose"], ["lose", "fork"]):
            self.ended(self.leaks(*what), 1)

    # "Otherwise the command's own exit code (128 + N where signal N killed it)"
    def test_the_exit_code_of_the_command(self):
        for what, code in ((["global"], 0), (["global", "exit"], 9), (["abort"], 134), (["term"], 143), (["lose", "kill"], 137)):
            self.ended(self.leaks(*what), code)

    # "the report's first line says how the command ended"
    def test_the_first_line(self):
        for what, words in ((["exit"], "exit code 9"), (["abort"], "signal 6"), ([], "exit code 0")):
            self.assertIn(words, self.leaks(*what).stderr.splitlines()[0])


class Processes(Leaks):
    # "All processes of the command are judged ...; the command's own comes first, others are listed if they lost something."
    def test_children(self):
        own, child = self.judged("fork", "lose")
        self.assertEqual((own["lost"]["blocks"], child["lost"]["blocks"]), (0, 1))
        self.assertEqual(len(self.judged("fork")), 1)
        result = heapwright("leaks", "--", "sh", "-c", f"'{LEAKING}' lose; true")
        self.ended(result, 1)
        self.assertIn("lose_one", result.stderr)

    # "all that was there before the fork counts as referred to"
    def test_before_the_fork(self):
        self.assertEqual(len(self.judged("lose", "fork")), 1, "the parent alone has lost it")

    # "A program that another replaces (exec) is not judged."
    def test_exec(self):
        (process,) = self.judged("lose", "exec")
        self.assertEqual((process["lost"]["blocks"], process["arguments"]), (0, ["true"]))

    # "It waits until the last of them has ended, and says so"
    def test_it_waits_for_all(self):
        result = heapwright("leaks", "--", "sh", "-c", f"(sleep 0.5; exec '{LEAKING}' lose) & exit 3")
        self.ended(result, 1)
        self.assertRegex(result.stderr, "still runs?;")
        self.assertIn("lose_one", result.stderr)

    # "Signals that the tool gets are passed on."
    def test_signals(self):
        tool = self.starts(HEAPWRIGHT, "leaks", "--", ENDINGS, "wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(tool.stdout.readline(), "ready\n")
        tool.send_signal(signal.SIGTERM)
        self.assertEqual(tool.wait(20), 128 + signal.SIGTERM)
        self.assertIn("signal 15", tool.stderr.read())

    # "Where the tool is killed the command goes on."
    def test_the_tool_is_killed(self):
        tool = self.starts(HEAPWRIGHT, "leaks", "--", "sh", "-c", "echo $$; read line; echo goes on", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(tool.stdin.close)
        self.assertGreater(int(tool.stdout.readline()), 0)
        tool.kill()
        tool.wait(20)
        tool.stdin.write("\n")
        tool.stdin.flush()
        self.assertEqual(tool.stdout.readline(), "goes on\n")


class Report(Leaks):
    # "The report goes to stderr, after the program's own output"
    def test_goes_to_stderr(self):
        result = heapwright("leaks", "--", "sh", "-c", "echo out; echo first >&2")
        self.ended(result, 0)
        self.assertEqual(result.stdout, "out\n")
        self.assertTrue(result.stderr.startswith("first\nheapwright leaks: "), result.stderr)

    # The shape of the example: call stack with functions, file and line
    def test_call_stacks(self):
        report = self.leaks("lose").stderr
        self.assertRegex(report, r"make +leaking\.c:\d+\n +lose_one +leaking\.c:\d+\n +main +leaking\.c:\d+\n")
        self.assertIn("definitely lost", report)
        self.assertRegex(report.splitlines()[-1], "lost from 1 place$")

    # "`-o FILE` writes it to a file (`-`: stdout)"
    def test_output(self):
        file = self.folder / "report"
        result = self.leaks("lose", options=["-o", file])
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", ""))
        self.assertIn("definitely lost", file.read_text())
        result = self.leaks("lose", options=["-o", "-"])
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("definitely lost", result.stdout)

    # "125 for bad input": nothing is run
    def test_output_that_cannot_be_written(self):
        touched = self.folder / "touched"
        for file in ("/no/such/folder/report", str(self.folder)):
            self.refused(heapwright("leaks", "-o", file, "--", "touch", touched), 125, file)
            self.assertFalse(touched.exists())
        self.refused(self.leaks("lose", options=["-o", "/dev/full"]), 125, "/dev/full")

    def test_stdout_that_takes_nothing(self):
        with open("/dev/full", "w") as full:
            self.ended(self.leaks("lose", options=["-o", "-"], stdout=full), 125)

    def test_stderr_that_takes_nothing(self):
        with open("/dev/full", "w") as full:
            self.ended(self.leaks("lose", stderr=full), 125)

    # "`--limit N` lists at most N call stacks (50 by default)"
    def test_limit(self):
        report = self.leaks("lose", "lose-another", options=["--limit", "1"]).stderr
        self.assertEqual((report.count("lose_one"), report.count("lose_another")), (0, 1), report)
        self.assertRegex(report, "4,0.. bytes in 2 blocks definitely lost")
        self.refused(self.leaks(options=["--limit", "many"]), 125, "--limit")

    def test_a_negative_limit(self):
        self.refused(self.leaks(options=["--limit", "-1"]), 125, "--limit")

    # "`--all`: also what is not freed but still reachable"
    def test_all(self):
        self.assertNotIn("keep_by_global", self.leaks("global").stderr)
        self.assertIn("keep_by_global", self.leaks("global", options=["--all"]).stderr)

    # The fields of "JSON"
    def test_json(self):
        (process,) = self.judged("lose", "exit")
        self.assertEqual(set(process), {"process", "program", "arguments", "exit_code", "signal", "not_judged_because", "is_estimate",
                                        "blocks_without_record", "lost", "indirectly_lost", "reachable", "not_judged", "suppressed", "sites"})
        self.assertTrue(os.path.samefile(process["program"], LEAKING))
        self.assertEqual(process["arguments"], [LEAKING, "lose", "exit"])
        self.assertEqual((process["exit_code"], process["signal"], process["is_estimate"]), (9, None, False))
        (site,) = process["sites"]
        self.assertEqual(set(site), {"lost", "lost_with_these", "indirectly_lost", "reachable", "not_judged", "suppressed_by", "is_cut", "stack"})
        for amount in (process["lost"], site["lost"], site["reachable"]):
            self.assertEqual(set(amount), AMOUNT)
        self.assertEqual([frame["function"] for frame in site["stack"]][:3], ["make", "lose_one", "main"])
        for frame in site["stack"]:
            self.assertEqual(set(frame), {"function", "file", "line", "module", "is_inlined"})
        report = json.loads(self.leaks("lose", options=["--json", "-o", "-"]).stdout)
        self.assertEqual((set(report), report["format"]), ({"format", "exit_code", "processes", "processes_without_probe", "idle_suppressions"}, "heapwright leaks 1"))

    # "without `--all` sites are those where something is lost or not judged"
    def test_sites_in_json(self):
        self.assertEqual(self.judged("global")[0]["sites"], [])
        self.assertEqual(len(self.judged("global", options=["--all"])[0]["sites"]), 1)

    def test_arguments_that_are_not_utf8(self):
        file = self.folder / "report.json"
        self.ended(heapwright("leaks", "--json", "-o", file, "--", LEAKING, b"\xff\xfe"), 0)
        json.loads(file.read_bytes().decode("utf-8"))


class Suppressions(Leaks):
    def suppressed(self, *options, command=(LEAKING, "lose", "lose-another")):
        file = self.folder / "report.json"
        result = heapwright("leaks", "--json", "-o", file, *options, "--", *command)
        process = json.loads(file.read_text())["processes"][0]
        return result.returncode, process["suppressed"]["blocks"], process["lost"]["blocks"]

    # "A call stack is suppressed if any of its functions has such a name"
    def test_names(self):
        self.assertEqual(self.suppressed("--suppress", "lose_one"), (1, 1, 1))
        self.assertEqual(self.suppressed("--suppress", "lose_one", "--suppress", "lose_another"), (0, 2, 0))
        self.assertEqual(self.suppressed("--suppress", "main"), (0, 2, 0))
        for part in ("lose", "ose_one", "LOSE_ONE"):
            self.assertEqual(self.suppressed("--suppress", part), (1, 0, 2), part)

    # "`*` stands for anything, `?` for one character."
    def test_patterns(self):
        self.assertEqual(self.suppressed("--suppress", "lose_*"), (0, 2, 0))
        self.assertEqual(self.suppressed("--suppress", "*one"), (1, 1, 1))
        self.assertEqual(self.suppressed("--suppress", "lose_o?e"), (1, 1, 1))
        self.assertEqual(self.suppressed("--suppress", "lose_one?"), (1, 0, 2))
        self.assertEqual(self.suppressed("--suppress", "lose_one*"), (1, 1, 1))

    # "The name is that of the report, in full, with or without parameters."
    def test_namespaces(self):
        command = [program("leaking_cxx")]
        self.assertEqual(self.suppressed(command=command), (1, 0, 1))
        for name in ("legacy::*", "legacy::make_cache"):
            self.assertEqual(self.suppressed("--suppress", name, command=command), (0, 1, 0), name)

    def test_parameters(self):
        name = "legacy::make_cache(int)"
        self.assertEqual(self.suppressed("--suppress", name, command=[program("leaking_cxx")]), (0, 1, 0))

    # "--suppressions known-leaks.txt  # a name a line; lines that begin with # are comments"
    def test_files(self):
        one = self.file("one.txt", "# known\n\nlose_one\n")
        both = self.file("both.txt", "lose_one\r\nlose_another")
        self.assertEqual(self.suppressed("--suppressions", one), (1, 1, 1))
        self.assertEqual(self.suppressed("--suppressions", both), (0, 2, 0))
        self.assertEqual(self.suppressed("--suppressions", one, "--suppress", "lose_another"), (0, 2, 0))
        self.refused(heapwright("leaks", "--suppressions", "/no/such/file", "--", "true"), 125, "/no/such/file")

    # "The report says how much was suppressed."
    def test_the_report(self):
        report = self.leaks("lose", options=["--suppress", "lose_one"]).stderr
        self.assertRegex(report, r"1,0.. bytes in 1 block suppressed")


class Segments(Leaks):
    def segment(self, *what):
        file = self.folder / "run.segment"
        result = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", file, "--", LEAKING, *what)
        self.ended(result, 0)
        return file

    # "`heapwright leaks SEGMENT` lists what was not freed, by call stack, but ...: lost is not told from reachable."
    # "For a segment 0."; --help: "by default ... to stdout for a segment"
    def test_a_segment(self):
        result = heapwright("leaks", self.segment("lose", "global"))
        self.ended(result, 0)
        self.assertEqual(result.stderr, "")
        for word in ("lose_one", "keep_by_global", "not freed"):
            self.assertIn(word, result.stdout)

    # "With `--sample 1` the figures are of all blocks"
    def test_a_segment_as_json(self):
        result = heapwright("leaks", "--json", self.segment("lose", "global"))
        (process,) = json.loads(result.stdout)["processes"]
        self.assertEqual((process["not_judged"]["blocks"], process["is_estimate"]), (2, False))

    def test_what_is_no_segment(self):
        self.refused(heapwright("leaks", self.file("text", "no segment")), 125, "text")


if __name__ == "__main__":
    main()
