"""heapwright.exe as a user meets it: what it says, and what it does with bad input.

usage: command_test.py UNDER_WINE HEAPWRIGHT.exe FOLDER   FOLDER has the programs of the tests
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WINE, HEAPWRIGHT, FOLDER = sys.argv[1:4]
# As under_wine has it.
WINEPREFIX = os.environ.get("WINEPREFIX", f"{os.environ.get('TMPDIR', '/tmp')}/heapwright-wine-{os.getuid()}")


def run(*words, env=None, cwd=FOLDER):
    # Programs may print in the code page of their Windows.
    return subprocess.run([WINE, HEAPWRIGHT, *words], capture_output=True, text=True, errors="backslashreplace", cwd=cwd, timeout=120,
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
                      ["info", "x"], ["info", "1", "2"], ["info", "-5"], ["info", "99999999999999999999"], ["info", ""], ["run", "--with"],
                      ["run", "--with", "nowhere.dll", "--", "arguments.exe"]):
            done = run(*words)
            self.assertIn("heapwright --help says how it is used", done.stderr, words)
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

    def test_a_program_that_has_the_malloc_within(self):
        alone = subprocess.run([WINE, FOLDER + "/within.exe"], capture_output=True, text=True, cwd=FOLDER, timeout=120,
                               env={**os.environ, "HEAPWRIGHT_STATS": "1", "HEAPWRIGHT_VERBOSE": "1"})
        started = run("run", "--stats", "--verbose", "--", "within.exe")
        for done in (alone, started):
            self.assertEqual((done.returncode, done.stdout), (0, "all hold\n"), done.stderr)
            self.assertEqual(done.stderr.count("mapped at the peak"), 1, done.stderr)
            self.assertEqual(len(re.findall(r"(?m)^  within.exe: redirected, ", done.stderr)), 1, done.stderr)

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

    def test_an_answer_that_is_lost(self):
        for words in (["--version"], ["--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([WINE, HEAPWRIGHT, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=FOLDER, timeout=120)
            self.assertIn("the answer was lost", done.stderr)
            self.assertEqual(done.returncode, 1)

    def test_what_is_for_linux(self):
        done = run("live", "--", "arguments.exe")
        self.assertIn("heapwright: live is for Linux alone; heapwright top PID shows the heap of a process", done.stderr)
        self.assertEqual(done.returncode, 2)

    def test_a_process_that_ends_with_threads_in_malloc(self):
        for _ in range(5):
            done = run("run", "--", "at_exit.exe")
            self.assertEqual((done.stdout, done.returncode), ("late blocks are freed\n", 0), done.stderr)

    def test_a_library_that_may_be_no_malloc(self):
        done = run("run", "--with", "windows_late.dll", "--", "arguments.exe")
        self.assertIn("run: windows_late.dll was not built by heapwright: whether a program takes its blocks from it is not known", done.stderr)
        self.assertEqual(done.returncode, 0)
        own = run("run", "--with", os.path.dirname(HEAPWRIGHT) + "/heapwright.dll", "--", "arguments.exe")
        self.assertEqual((own.returncode, own.stderr), (0, ""))


class Compare(unittest.TestCase):
    def test_a_row_for_each_malloc(self):
        done = run("compare", "--rounds", "3", "--with", "again=" + os.path.dirname(HEAPWRIGHT) + "/heapwright.dll", "--", "arguments.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ +wall time +CPU time +peak memory +page faults *$")
        for name in ("as it is", "heapwright", "again"):
            self.assertRegex(done.stdout, rf"(?m)^{name} +[\d.]+ m?s +[\d.]+ m?s +[\d.]+ (B|[KM]iB) +[\d,]+ *$")
        # wine has no figures of memory, and so no ratios. Of processor time neither, where a run takes less than a tick of its clock.
        self.assertGreaterEqual(len(re.findall(r"\(\d+(?:\.\d+)?-\d+(?:\.\d+)?\)", done.stdout)), 2, done.stdout)
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


RECIPE = "#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine = {.classes = {.exact = {%s}}};\n"


def as_in_wine(path):
    return "Z:" + path.replace("/", "\\")


class Build(unittest.TestCase):
    """The compiler is that of mingw-w64, which runs outside of wine."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.env = {"CXX": as_in_wine(FOLDER) + "\\outside_compiler.exe"}
        cls.write("mine.hpp", RECIPE % "48, 96")
        cls.made = cls.build("-o", "mine.dll", "mine.hpp")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, text):
        with open(f"{cls.folder.name}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    @classmethod
    def build(cls, *words, env=None):
        return run("build", *words, env=env or cls.env, cwd=cls.folder.name)

    def library(self):
        self.assertEqual(self.made.returncode, 0, self.made.stderr)
        return self.folder.name + "/mine.dll"

    def left_behind(self):
        return [name for name in os.listdir(self.folder.name) if "unfinished" in name]

    def test_a_malloc_from_a_recipe(self):
        library = self.library()
        self.assertRegex(self.made.stdout, r"mine.dll: a malloc from mine of mine.hpp, \d+ KiB, \d+ s\n +heapwright run --with mine.dll -- PROGRAM\n")
        self.assertEqual(self.left_behind(), [])
        done = run("run", "--verbose", "--with", library, "--", "arguments.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"heapwright \S+ \(recipe mine\): loaded into process \d+")
        self.assertRegex(done.stderr, r"(?m)^  arguments.exe: redirected, \d+ imports$")

    def test_names_in_other_letters_and_with_spaces(self):
        os.mkdir(self.folder.name + "/pr\u00fcf \u0434")
        self.write("pr\u00fcf \u0434/mine.hpp", RECIPE % "48, 96")
        done = self.build("-o", "pr\u00fcf \u0434/x y.dll", "pr\u00fcf \u0434/mine.hpp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('run --with "pr\u00fcf \u0434/x y.dll" -- PROGRAM', done.stdout)
        self.assertEqual(sorted(os.listdir(self.folder.name + "/pr\u00fcf \u0434")), ["mine.hpp", "x y.dll"])
        done = run("run", "--with", "pr\u00fcf \u0434/x y.dll", "--verbose", "--", FOLDER + "/arguments.exe", cwd=self.folder.name)
        self.assertIn("(recipe mine)", done.stderr)

    def test_info_knows_it_by_any_name(self):
        done = shown_of_a_sleeper([HEAPWRIGHT, "run", "--with", self.library(), "--", "sleeper.exe"])
        self.assertRegex(done.stdout, r"(?m)^sleeper.exe: redirected, \d+ imports$", done.stderr)

    def test_one_that_is_in_use(self):
        shutil.copy(self.library(), self.folder.name + "/used.dll")
        sleeper = subprocess.Popen([WINE, HEAPWRIGHT, "run", "--with", self.folder.name + "/used.dll", "--", "sleeper.exe"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, cwd=FOLDER)
        sleeper.stdout.readline()
        done = self.build("-o", "used.dll", "mine.hpp")
        sleeper.communicate("\n", timeout=60)
        self.assertRegex(done.stderr, "cannot write .*used.dll: .*; is it loaded into a process")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(self.left_behind(), [])

    def test_a_program_that_is_linked_with_another_one(self):
        done = run("run", "--with", self.library(), "--verbose", "--", "linked.exe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(release): loaded into", done.stderr)
        self.assertNotIn("(recipe mine)", done.stderr)

    def test_compare_takes_a_recipe(self):
        done = run("compare", "--rounds", "2", "--with", "built=" + self.library(), "--with", f"fresh={self.folder.name}/mine.hpp", "--", "arguments.exe", env=self.env)
        for name in ("built", "fresh"):
            self.assertRegex(done.stdout, rf"(?m)^{name} +[\d.]+ m?s ", done.stderr)

    def test_what_is_wrong_with_a_recipe(self):
        self.write("bad.hpp", RECIPE % "48, 40")
        self.write("none.hpp", "int x;\n")
        self.write("checks.hpp", "#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine = {.hardening = {.check_callers = true}};\n")
        self.write("broken.hpp", RECIPE % "48, 96" + "int x = ;\n")
        for words, sentence in (
                (["bad.hpp"], "bad.hpp: mine cannot be built:\n  recipe.classes.exact: at most 32 sizes, rising, multiples of 8, from 16 on\n"),
                (["checks.hpp"], "recipe.hardening.check_callers: not for a malloc on Windows"),
                (["none.hpp"], "none.hpp defines no recipe. It should say: inline constexpr heapwright::recipe NAME"),
                (["broken.hpp"], "broken.hpp:3:9: error: "), (["nowhere.hpp"], "nowhere.hpp cannot be read: "), (["."], ". is a folder, not a header"),
                (["--recipe", "other", "mine.hpp"], "mine.hpp defines no recipe named other; it defines mine")):
            done = self.build("-o", "bad.dll", *words)
            self.assertIn(sentence, done.stderr)
            self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertFalse(os.path.exists(self.folder.name + "/bad.dll"))
        self.assertEqual(self.left_behind(), [])

    def test_where_it_cannot_go(self):
        for output, sentence in (("nowhere/x.dll", "nowhere/x.dll: its folder does not exist"), (".", ". is there and is no file that could be replaced"),
                                 ("mine.hpp", "mine.hpp is the recipe itself")):
            done = self.build("-o", output, "mine.hpp")
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.returncode, 125)

    def test_no_compiler(self):
        done = self.build("-o", "x.dll", "mine.hpp", env={"CXX": "nowhere++"})
        self.assertIn("the C++ compiler cannot be run: nowhere++: ", done.stderr)
        self.assertEqual(done.returncode, 125)
        done = self.build("--compiler", as_in_wine(FOLDER) + "\\arguments.exe 0", "-o", "x.dll", "mine.hpp")
        self.assertIn("ended well, but has made no malloc: is it a C++ compiler?", done.stderr)
        self.assertEqual(done.returncode, 125)

    def test_interrupted(self):
        def folders():
            return glob.glob(WINEPREFIX + "/drive_c/users/*/Temp/heapwright-*")

        def compilers():
            lines = []
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    lines.append(file.read())
            return [line for line in lines if b"sleeper.exe\0forever" in line]

        def becomes(condition):
            limit = time.monotonic() + 60
            while not condition() and time.monotonic() < limit:
                time.sleep(0.05)
            return condition()

        before = folders()
        build = subprocess.Popen([WINE, HEAPWRIGHT, "build", "--compiler", as_in_wine(FOLDER) + "\\sleeper.exe forever", "-o", "slow.dll", "mine.hpp"],
                                 stderr=subprocess.PIPE, text=True, cwd=self.folder.name)
        self.assertTrue(becomes(compilers))
        build.send_signal(signal.SIGINT)
        self.assertIn("heapwright: interrupted: slow.dll is not made", build.communicate(timeout=60)[1])
        self.assertNotEqual(build.returncode, 0)
        self.assertTrue(becomes(lambda: not compilers()))
        self.assertEqual(folders(), before)
        self.assertEqual(self.left_behind(), [])

    def test_an_answer_that_is_lost(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([WINE, HEAPWRIGHT, "build", "-o", "lost.dll", "mine.hpp"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  cwd=self.folder.name, timeout=120, env={**os.environ, **self.env})
        self.assertIn("the answer was lost", done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(os.path.exists(self.folder.name + "/lost.dll"))

    def test_words_that_it_does_not_know(self):
        for words in ([], ["mine.hpp"], ["-o", "x.dll"], ["-o"], ["-o", "", "mine.hpp"], ["--check", "-o", "x.dll", "mine.hpp"], ["-o", "x.dll", "mine.hpp", "mine.hpp"]):
            done = self.build(*words)
            self.assertIn("heapwright: build: ", done.stderr, words)
            self.assertEqual(done.returncode, 2, words)


def shown_of_a_sleeper(words, *command):
    """What `info`, or another command, says of a process that sleeps, started as `words` say."""
    sleeper = subprocess.Popen([WINE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER)
    try:
        return run(*(command or ("info",)), sleeper.stdout.readline().strip())
    finally:
        sleeper.communicate("\n", timeout=60)


class Info(unittest.TestCase):
    def test_of_a_process_that_is_redirected(self):
        done = shown_of_a_sleeper([HEAPWRIGHT, "run", "--", "sleeper.exe"])
        self.assertRegex(done.stdout, r"(?m)^sleeper.exe: redirected, \d+ imports$", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^msvcrt.dll: a C library; what others import from it is redirected$")
        self.assertRegex(done.stdout, r"(?m)^kernel32.dll: no import of malloc and the like: ")
        self.assertEqual(done.returncode, 0)

    def test_of_modules_that_are_loaded_later(self):
        done = shown_of_a_sleeper([HEAPWRIGHT, "run", "--", "sleeper.exe", "windows_later.dll"])
        self.assertRegex(done.stdout, r"(?m)^windows_later.dll: redirected, \d+ imports?$", done.stderr)

    def test_of_one_that_is_not(self):
        done = shown_of_a_sleeper(["sleeper.exe"])
        self.assertIn("neither heapwright.dll nor a malloc of heapwright build is in it: it runs on the malloc of its C library", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_of_none(self):
        done = run("info", "999999")
        self.assertIn("process 999999: ", done.stderr)
        self.assertEqual(done.returncode, 1)


class Top(unittest.TestCase):
    def test_of_a_process_that_is_redirected(self):
        done = shown_of_a_sleeper([HEAPWRIGHT, "run", "--", "sleeper.exe", "blocks"], "top", "--looks", "2", "--every", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        looks = done.stdout.split("\n\nprocess ")
        self.assertEqual(len(looks), 2, done.stdout)
        for look in looks:
            self.assertRegex(look, r"^(process )?\d+, sleeper.exe  heapwright \d+\.\d+\.\d+ \(release\)\n")
            blocks = re.search(r"(?m)^ +1024 +(1,0\d\d) +[\d.]+ [KM]iB +[\d.]+ [KM]iB$", look)
            self.assertTrue(blocks, look)
            self.assertRegex(look, r"(?m)^blocks and thread caches 11\.\d MiB.*   large blocks 10\.\d MiB   ")

    def test_until_the_process_ends(self):
        sleeper = subprocess.Popen([WINE, HEAPWRIGHT, "run", "--", "sleeper.exe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=FOLDER)
        number = sleeper.stdout.readline().strip()
        top = subprocess.Popen([WINE, HEAPWRIGHT, "top", number], stdout=subprocess.PIPE, text=True, cwd=FOLDER)
        self.assertRegex(top.stdout.readline(), "^process " + number)
        sleeper.communicate("\n", timeout=60)
        self.assertRegex(top.communicate(timeout=60)[0], r"process " + number + r", sleeper.exe has ended\n$")
        self.assertEqual(top.returncode, 0)

    def test_of_one_that_is_not_redirected_and_of_none(self):
        done = shown_of_a_sleeper(["sleeper.exe"], "top")
        self.assertIn("neither heapwright.dll nor a malloc of heapwright build is in it", done.stderr)
        self.assertEqual(done.returncode, 1)
        done = run("top", "999999")
        self.assertIn("process 999999: there is no such process", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_words_that_it_does_not_know(self):
        for words in ([], ["x"], ["--looks", "0", "1"], ["--every", "soon", "1"], ["--every"], ["1", "2"], ["--fast", "1"]):
            done = run("top", *words)
            self.assertIn("heapwright: top: ", done.stderr, words)
            self.assertEqual(done.returncode, 2, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
