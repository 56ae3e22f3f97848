"""heapwright.exe as a user meets it: what it says, and what it does with bad input.

usage: command_test.py UNDER_WINE HEAPWRIGHT.exe FOLDER   FOLDER has the programs of the tests
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WINE, HEAPWRIGHT, FOLDER = sys.argv[1:4]


def run(*words, env=None, cwd=FOLDER):
    return subprocess.run([WINE, HEAPWRIGHT, *words], capture_output=True, text=True, cwd=cwd, timeout=120,
                          env={**os.environ, **(env or {})})


class Run(unittest.TestCase):
    def test_arguments_and_exit_code_are_the_programs(self):
        words = ["7", "a b", "", 'with "quotes"', "back\\slash\\", 'end\\"', "--stats", "tab\there"]
        done = run("run", "--", "arguments.exe", *words)
        self.assertEqual(done.stdout.splitlines(), [f"[{w}]" for w in words])
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stderr, "")

    def test_stats(self):
        done = run("run", "--stats", "--", "arguments.exe")
        self.assertIn("mapped at the peak", done.stderr)
        self.assertIn("arguments.exe", done.stderr)

    def test_verbose_says_per_module_what_is_redirected(self):
        done = run("run", "--verbose", "--", "arguments.exe")
        self.assertRegex(done.stderr, r"loaded into process \d+")
        self.assertRegex(done.stderr, r"arguments.exe: redirected, \d+ imports")
        self.assertRegex(done.stderr, r"msvcrt.dll: a C library; what others import from it is redirected")

    def test_processes_that_it_starts(self):
        started = ["begin", "CreateProcessW", "CreateProcessA", "_spawnl"]
        done = run("run", "--", "starts.exe")
        self.assertEqual(done.stdout.splitlines(), [f"{s}: redirected" for s in started])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Theirs too.
        done = run("run", "--", "starts.exe", "grandparent")
        self.assertEqual(done.stdout.splitlines(), ["grandparent: redirected"] + [f"{s}: redirected" for s in started])
        done = run("run", "--no-children", "--", "starts.exe")
        self.assertEqual(done.stdout.splitlines(), ["begin: redirected"] + [f"{s}: not redirected" for s in started[1:]])

    def test_stats_are_of_the_program_alone(self):
        done = run("run", "--stats", "--", "starts.exe")
        self.assertEqual(done.stderr.count("mapped at the peak"), 1, done.stderr)
        done = run("run", "--", "starts.exe", env={"HEAPWRIGHT_STATS": "1"})
        self.assertEqual(done.stderr.count("mapped at the peak"), 4, done.stderr)

    def test_options_from_the_environment(self):
        done = run("run", "--", "arguments.exe", env={"HEAPWRIGHT_STATS": "often"})
        self.assertIn("HEAPWRIGHT_STATS=often is not a number from 0 to 1; using 0", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_no_such_program(self):
        done = run("run", "--", "nowhere.exe")
        self.assertIn("nowhere.exe: ", done.stderr)
        self.assertEqual(done.returncode, 127)

    def test_an_empty_name(self):
        done = run("run", "--", "")
        self.assertIn("the name of the program is empty", done.stderr)
        self.assertEqual(done.returncode, 127)

    def test_no_program(self):
        done = run("run", "--", "command_test.py", cwd=os.path.dirname(os.path.abspath(__file__)))
        self.assertIn("command_test.py: ", done.stderr)
        self.assertEqual(done.returncode, 125)

    def test_words_that_it_does_not_know(self):
        for words in ([], ["walk"], ["run"], ["run", "--"], ["run", "--fast", "--", "arguments.exe"], ["info"],
                      ["info", "x"], ["info", "1", "2"], ["info", "-5"], ["info", "99999999999999999999"], ["info", ""]):
            done = run(*words)
            self.assertIn("usage: heapwright run", done.stderr, words)
            self.assertEqual(done.returncode, 2, words)

    def test_without_the_dll(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HEAPWRIGHT, folder)
            done = subprocess.run([WINE, folder + "/heapwright.exe", "run", "--", "arguments.exe"], capture_output=True,
                                  text=True, cwd=FOLDER, timeout=120)
        self.assertIn("heapwright.dll is not in the folder of heapwright.exe", done.stderr)
        self.assertEqual(done.returncode, 125)

    def test_another_library_in_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HEAPWRIGHT, folder)
            shutil.copy(FOLDER + "/windows_late.dll", folder + "/heapwright.dll")
            for words in (["run"], ["compare", "--rounds", "2"]):
                done = subprocess.run([WINE, folder + "/heapwright.exe", *words, "--", "arguments.exe"], capture_output=True, text=True, cwd=FOLDER,
                                      timeout=120)
                self.assertIn("heapwright.dll in the folder of heapwright.exe is another library", done.stderr)
                self.assertEqual((done.returncode, done.stdout), (125, ""))

    def test_a_program_that_is_linked_with_a_copy(self):
        done = run("run", "--stats", "--verbose", "--", "linked.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("mapped at the peak"), 1, done.stderr)
        self.assertEqual(len(re.findall(r"(?m)^linked.exe: redirected, |^  linked.exe: redirected, ", done.stderr)), 1, done.stderr)

    def test_names_in_other_letters_and_with_dots(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(FOLDER + "/arguments.exe", folder + "/pr\u00fcf \u0434.ted.exe")
            done = run("run", "--stats", "--verbose", "--", folder + "/pr\u00fcf \u0434.ted", "0", "\u00e4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  pr\u00fcf \u0434.ted.exe: redirected, ", done.stderr)
        self.assertRegex(done.stderr, "process [0-9]+: .*pr\u00fcf \u0434.ted.* 0 \u00e4")

    def test_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^heapwright \d+\.\d+\.\d+\n$")
        for words in (["--help"], ["help"], ["run", "--help"], ["compare", "-h"]):
            done = run(*words)
            self.assertIn("usage:", done.stdout)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_is_for_linux(self):
        done = run("live", "--", "arguments.exe")
        self.assertIn("heapwright: live is for Linux alone", done.stderr)
        self.assertEqual(done.returncode, 2)

    def test_a_process_that_ends_with_threads_in_malloc(self):
        for _ in range(5):
            done = run("run", "--", "at_exit.exe")
            self.assertEqual((done.stdout, done.returncode), ("late blocks are freed\n", 0), done.stderr)


class Compare(unittest.TestCase):
    def test_a_row_for_each_malloc(self):
        done = run("compare", "--rounds", "3", "--with", "again=" + os.path.dirname(HEAPWRIGHT) + "/heapwright.dll", "--", "threads.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ +wall time +CPU time +peak memory +page faults *$")
        for name in ("as it is", "heapwright", "again"):
            self.assertRegex(done.stdout, rf"(?m)^{name} +[\d.]+ m?s +[\d.]+ m?s +[\d.]+ [KM]iB +[\d,]+ *$")
        self.assertEqual(len(re.findall(r"\(\d+(?:\.\d+)?-\d+(?:\.\d+)?\)", done.stdout)), 8, done.stdout)
        self.assertIn("Medians of 3 rounds", done.stdout)

    def test_what_is_no_library(self):
        done = run("compare", "--rounds", "2", "--with", "text=" + os.path.abspath(__file__), "--", "arguments.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^text +.*cannot be loaded into it: ")
        self.assertRegex(done.stdout, r"(?m)^heapwright +[\d.]+ m?s ")

    def test_a_program_that_fails(self):
        done = run("compare", "--", "arguments.exe", "3")
        self.assertIn("arguments.exe exited with status 3, without any library", done.stderr)
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_a_program_that_prints_something_else_each_time(self):
        done = run("compare", "--", "sleeper.exe")
        self.assertIn("sleeper.exe, without any library: printed something else", done.stderr)
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_words_that_it_does_not_know(self):
        for words in ([], ["--"], ["--rounds", "1", "--", "a"], ["--rounds", "many", "--", "a"], ["--with", "a", "--", "b"],
                      ["--with", "a=nowhere.dll", "--", "b"], ["--fast", "--", "a"], ["--with", "heapwright=windows_late.dll", "--", "b"]):
            done = run("compare", *words)
            self.assertIn("heapwright: compare: ", done.stderr, words)
            self.assertEqual(done.returncode, 2, words)


class Info(unittest.TestCase):
    def shown(self, words):
        """What `info` says of a process that sleeps, started as `words` say."""
        sleeper = subprocess.Popen([WINE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER)
        try:
            return run("info", sleeper.stdout.readline().strip())
        finally:
            sleeper.communicate("\n", timeout=60)

    def test_of_a_process_that_is_redirected(self):
        done = self.shown([HEAPWRIGHT, "run", "--", "sleeper.exe"])
        self.assertRegex(done.stdout, r"(?m)^sleeper.exe: redirected, \d+ imports$", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^msvcrt.dll: a C library; what others import from it is redirected$")
        self.assertRegex(done.stdout, r"(?m)^kernel32.dll: no import of malloc and the like: ")
        self.assertEqual(done.returncode, 0)

    def test_of_modules_that_are_loaded_later(self):
        done = self.shown([HEAPWRIGHT, "run", "--", "sleeper.exe", "windows_later.dll"])
        self.assertRegex(done.stdout, r"(?m)^windows_later.dll: redirected, \d+ imports?$", done.stderr)

    def test_of_one_that_is_not(self):
        done = self.shown(["sleeper.exe"])
        self.assertIn("heapwright.dll is not in it: it runs on the malloc of its C library", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_of_none(self):
        done = run("info", "999999")
        self.assertIn("process 999999: ", done.stderr)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
