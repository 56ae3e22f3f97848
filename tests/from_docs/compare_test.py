#!/usr/bin/env python3
"""`heapwright compare`, as docs/compare.md says it. What is measured is never compared with a time."""
import json
import pathlib
import shutil
import unittest

from documented import Case, ENDINGS, HEAPWRIGHT, LIBRARY, heapwright, main, run

METRICS = {"wall_seconds", "cpu_seconds", "peak_rss_bytes", "end_rss_bytes", "page_faults"}


class Compare(Case):
    def compare(self, *command, options=(), only="heapwright", **others):
        return heapwright("compare", "--rounds", "2", "--only", only, *options, "--", *command, **others)

    def report(self, *command, options=(), **others):
        file = self.folder / "report.json"
        result = self.compare(*command, options=["--json", file, *options], **others)
        report = json.loads(file.read_text())
        return result, report, {row["name"]: row for row in report["rows"]}

    def fails_on_ours(self, how):
        return ("sh", "-c", f'case "$LD_PRELOAD" in *libheapwright*) {how};; esac')


class Table(Compare):
    # The table "What is measured"; "Under each figure stands its ratio to glibc"; --help of --only: "glibc is always there"
    def test_columns_and_rows(self):
        result = self.compare(ENDINGS, "print")
        self.ended(result, 0)
        for column in ("wall time", "CPU time", "peak RSS", "RSS at end", "page faults"):
            self.assertIn(column, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^glibc .*\n^heapwright .*\n +(same|unclear|[0-9.]+) \([0-9.]+-[0-9.e+]+\)")
        # The output of the command is compared, not shown.
        self.assertNotIn("printed by the program", result.stdout + result.stderr)

    # "runs the command under glibc's malloc, Heapwright's, and ... any library given by `--with`"; --help: "a library, or NAME=library"
    def test_with(self):
        copy = str(shutil.copy(LIBRARY, self.folder / "libcopy.so"))
        _, _, rows = self.report("true", options=["--with", f"mine={copy}"], only="heapwright,mine")
        self.assertEqual(list(rows), ["glibc", "heapwright", "mine"])
        self.assertEqual(rows["mine"]["library"], copy)

    # "Once each to warm up, then N rounds (7 unless said otherwise) in which every allocator has one run"
    def test_rounds(self):
        log = self.folder / "log"
        _, report, rows = self.report("sh", "-c", 'echo "$LD_PRELOAD" >> "$0"', log)
        self.assertEqual(report["rounds"], 2)
        for row in rows.values():
            self.assertEqual(len(row["samples"]), 2)
        lines = log.read_text().splitlines()
        self.assertEqual((len(lines), lines.count("")), (6, 3))

    # "peak RSS: the most memory that all processes of the command had resident together. For a single process it is the kernel's own exact figure"
    # "RSS at end: what all of them had resident when the command itself came to its end"
    # memory-return.md: what is free is "never more than 64 MiB or as much as it has in use ...: the rest is given back at once"
    def test_memory(self):
        _, _, rows = self.report("python3", "-c", "block = b'x' * 100000000; del block")
        for name, row in rows.items():
            for sample in row["samples"]:
                self.assertGreaterEqual(sample["peak_rss_bytes"], 100000000, name)
                self.assertLess(sample["end_rss_bytes"], 100000000, name)
                self.assertGreaterEqual(sample["peak_rss_bytes"], sample["end_rss_bytes"])

    # "peak RSS: the most memory that all processes of the command had resident together": not less than at the end
    def test_memory_of_a_process_in_the_background(self):
        _, _, rows = self.report("sh", "-c", "sleep 1 & exit 0")
        for row in rows.values():
            for sample in row["samples"]:
                self.assertGreaterEqual(sample["peak_rss_bytes"], sample["end_rss_bytes"])


class Json(Compare):
    # The format in docs/compare.md
    def test_fields(self):
        result, report, rows = self.report(ENDINGS, "print")
        self.ended(result, 0)
        self.assertEqual(set(report), {"format", "heapwright", "command", "started", "machine", "rounds", "interrupted_by", "tolerance", "baseline",
                                       "notes", "rows"})
        self.assertEqual((report["format"], report["command"]), ("heapwright compare 2", [ENDINGS, "print"]))
        for name, row in rows.items():
            self.assertEqual(set(row), {"name", "library", "remark", "failure", "output_difference", "verdict", "metrics", "findings", "samples"})
            self.assertEqual(set(row["metrics"]), METRICS)
            for metric in row["metrics"].values():
                self.assertEqual(set(metric), {"median", "ratio"})
                if name == "glibc":
                    self.assertIsNone(metric["ratio"])
                else:
                    ratio = metric["ratio"]
                    self.assertLessEqual(ratio["low"], ratio["estimate"])
                    self.assertLessEqual(ratio["estimate"], ratio["high"])
                    # "**same** ... within 3 % of 1 (1/1.03 to 1.03)" "**unclear** holds 1 and reaches further"
                    low, high = round(ratio["low"], 2), round(ratio["high"], 2)  # as they are shown
                    said = ("same" if low >= 0.97 and high <= 1.03 else "less" if high < 1 else "more" if low > 1 else "unclear")
                    self.assertEqual(ratio["verdict"], said)
                    self.assertEqual("rounds_to_decide" in ratio, said == "unclear")

    # --help: "- for standard output"
    def test_standard_output(self):
        result = self.compare("true", options=["--json", "-"])
        self.assertEqual(json.loads(result.stdout)["command"], ["true"])

    def test_arguments_that_are_not_utf8(self):
        _, report, _ = self.report("echo", b"\xff\xfe")
        self.assertEqual(report["command"][0], "echo")

    # "A file that cannot be opened is refused before anything runs (125)."
    def test_files_that_cannot_be_opened(self):
        touched = self.folder / "touched"
        for option in ("--json", "--html"):
            self.refused(self.compare("touch", touched, options=[option, "/no/such/folder/file"]), 125, "/no/such/folder/file")
        self.assertFalse(touched.exists())

    # "1: ... or a report could not be written in full"
    def test_files_that_are_full(self):
        for option in ("--json", "--html"):
            result = self.compare("true", options=[option, "/dev/full"])
            self.ended(result, 1)
            self.assertIn("/dev/full", result.stderr)

    def test_stdout_that_takes_nothing(self):
        with open("/dev/full", "w") as full:
            self.ended(self.compare("true", stdout=full), 1)

    # --help: "Write a page with plots". A page by itself: it loads nothing from elsewhere, and the arguments in it are text.
    def test_html(self):
        file = self.folder / "report.html"
        self.ended(self.compare("echo", "</script><script>alert(1)</script>", options=["--html", file]), 0)
        page = file.read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertNotIn("<script>alert(1)", page)
        self.assertNotRegex(page, r'(src|href)="?(https?:)?//')


class Checks(Compare):
    # "That the allocator was really there"
    def test_the_allocator_was_there(self):
        result, _, rows = self.report("env", "-u", "LD_PRELOAD", ENDINGS, "print")
        self.ended(result, 1)
        self.assertIsNotNone(rows["heapwright"]["failure"])

    # "That every run printed the same on stdout as under glibc."
    def test_outputs_that_differ(self):
        result, _, rows = self.report(*self.fails_on_ours("echo other"))
        self.ended(result, 1)
        self.assertIsNotNone(rows["heapwright"]["output_difference"])
        result, _, rows = self.report(*self.fails_on_ours("echo other"), options=["--ignore-output"])
        self.ended(result, 0)
        self.assertIsNone(rows["heapwright"]["output_difference"])

    # "Where two runs under glibc differ already, outputs are not compared, and a note says so."
    def test_outputs_that_differ_under_glibc(self):
        result, report, _ = self.report("sh", "-c", "echo $$")
        self.ended(result, 0)
        self.assertEqual(len(report["notes"]), 1)
        _, report, _ = self.report("sh", "-c", "echo $$", options=["--ignore-output"])
        self.assertEqual(report["notes"], [])

    def test_a_closed_stdin(self):
        result = run("sh", "-c", 'exec "$0" compare --rounds 2 --only heapwright -- "$1" print <&-', HEAPWRIGHT, ENDINGS)
        self.ended(result, 0)
        self.assertNotIn("Note", result.stdout)

    # "That the command succeeded. If it fails under glibc nothing can be compared"; "1: ... the command fails under glibc"
    def test_commands_that_fail(self):
        for command, words in ((["sh", "-c", "exit 3"], "3"), ([ENDINGS, "abort"], "SIGABRT")):
            result = self.compare(*command)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(words, result.stderr)

    # "if under another allocator, that row says how": exit code 1
    def test_commands_that_fail_under_an_allocator(self):
        for how, words in (("exit 9", "9"), ("kill -SEGV $$", "SIGSEGV")):
            result, _, rows = self.report(*self.fails_on_ours(how))
            self.ended(result, 1)
            self.assertIn(words, rows["heapwright"]["failure"])
            self.assertIn(words, result.stdout)
            self.assertIsNone(rows["glibc"]["failure"])

    # --help: "End a run that takes longer"
    def test_timeout(self):
        result = self.compare("sleep", "20", options=["--timeout", "0.2"])
        self.ended(result, 1)
        self.assertIn("timed out", result.stderr)
        result, _, rows = self.report(*self.fails_on_ours("sleep 20"), options=["--timeout", "0.5"])
        self.ended(result, 1)
        self.assertIn("timed out", rows["heapwright"]["failure"])

    # "Before anything runs: that the command exists, is dynamically linked ..., and that each library can be preloaded."
    def test_libraries(self):
        touched = self.folder / "touched"
        for library in ("/no/such.so", "x=/no/such.so", self.file("text.so", "no library"), "libm.so.6"):
            result = self.compare("touch", touched, options=["--with", library])
            self.refused(result, 125, library.split("=")[-1])
        self.assertFalse(touched.exists())

    # "A program that brings an allocator of its own ... is measured as it is too, in a row **as built**"
    @unittest.skipUnless(shutil.which("redis-server"), "needs redis-server")
    def test_as_built(self):
        _, _, rows = self.report("redis-server", "--version", only="heapwright")
        self.assertEqual(set(rows), {"as built", "glibc", "heapwright"})

    def test_bad_input(self):
        for option, values in (("--rounds", ("1", "1001", "x", "-2")), ("--timeout", ("0", "-1", "x"))):
            for value in values:
                result = self.compare("true", options=[option, value])
                self.assertEqual((result.returncode, result.stdout), (125, ""))
                self.assertIn(option, result.stderr)
        self.refused(self.compare("true", only="no-such-malloc"), 125, "no-such-malloc")
        self.refused(self.compare("true", only="glibc"), 125)
        self.refused(self.compare("true", options=["--with", "heapwright=hardened"]), 125, "two allocators named heapwright")

    def test_an_empty_name(self):
        self.refused(self.compare("true", options=["--with", f"={LIBRARY}"]), 125)


if __name__ == "__main__":
    main()
