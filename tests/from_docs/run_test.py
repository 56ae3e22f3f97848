#!/usr/bin/env python3
"""`heapwright run` and what all subcommands have in common, as docs/commands.md and docs/memory-return.md say it."""
import os
import shutil
import signal
import subprocess
import unittest

from documented import Case, ENDINGS, HEAPWRIGHT, IS_ROOT, LIBRARY, PROGRAMS, as_nobody, environment, heapwright, main, program, run

SUBCOMMANDS = ("run", "compare", "build", "live", "top", "diff", "leaks", "info")
OF_A_COMMAND = (["run"], ["compare", "--rounds", "2", "--only", "heapwright"], ["live", "--no-browser", "--exit-with-program"], ["leaks"])


class InCommon(Case):
    # "`heapwright SUBCOMMAND --help` lists the options of each." "The answer goes to stdout"
    def test_help(self):
        for name in ((), *((name,) for name in SUBCOMMANDS)):
            result = heapwright(*name, "--help")
            self.ended(result, 0)
            self.assertIn("Usage", result.stdout)
            self.assertEqual(result.stderr, "")
        for name in SUBCOMMANDS:
            self.assertIn(name, heapwright("--help").stdout)

    def test_version(self):
        result = heapwright("--version")
        self.assertEqual(heapwright("-V").stdout, result.stdout)
        self.ended(result, 0)
        # "which version and revision this is, and how it was built"
        self.assertRegex(result.stdout, r"^heapwright \d+\.\d+\.\d+ \(revision \S+\)\nbuilt for .* by .*\n$")

    # "125 for bad input", "A message ... names what is wrong."
    def test_unknown_options_are_named(self):
        words = {"top": ["1"], "info": ["1"], "diff": ["a", "b"], "build": ["a.hpp", "-o", "a.so"]}
        for name in SUBCOMMANDS:
            code = 2 if name == "info" else 125
            self.refused(heapwright(name, "--no-such-option", *words.get(name, ["true"])), code, "--no-such-option")

    # "`heapwright` alone lists the subcommands"
    def test_no_subcommand(self):
        result = heapwright()
        self.ended(result, 0)
        for name in SUBCOMMANDS:
            self.assertIn(name, result.stdout)

    # "`heapwright help SUBCOMMAND` or `heapwright SUBCOMMAND --help` lists the options of one."
    def test_help_of_a_subcommand(self):
        for name in SUBCOMMANDS:
            self.assertEqual(heapwright("help", name).stdout, heapwright(name, "--help").stdout)

    def test_an_unknown_subcommand_is_named(self):
        self.refused(heapwright("frobnicate"), 125, "frobnicate")

    def test_no_command(self):
        for words in OF_A_COMMAND:
            self.refused(heapwright(*words), 125, "COMMAND")

    # "127 if it is not found"
    def test_commands_that_are_not_found(self):
        script = self.file("script", "#!/no/such/interpreter\n", 0o755)
        for words in OF_A_COMMAND:
            for missing in ("no-such-command", "./no-such-command", "/no/such/command"):
                self.refused(heapwright(*words, "--", missing, env=environment(PATH="/usr/bin:/bin")), 127, missing)
            if words[0] != "live":
                self.refused(heapwright(*words, "--", ""), 127)
            self.refused(heapwright(*words, "--", script), 127, "/no/such/interpreter")

    def test_live_without_a_name(self):
        self.refused(heapwright("live", "--no-browser", "--exit-with-program", "--", ""), 127)

    # "126 if the command cannot be executed"
    def test_commands_that_cannot_be_executed(self):
        plain = self.file("plain", "no program")
        nonsense = self.file("nonsense", "no program", 0o755)
        empty = self.file("empty", "", 0o755)
        for words in OF_A_COMMAND:
            for path in (plain, nonsense, empty, str(self.folder)):
                self.refused(heapwright(*words, "--", path), 126, path)

    # "A command is refused with 125 ...: it is linked statically"; "For a script its interpreter counts"
    def test_static_programs(self):
        static = program("static_endings")
        script = self.file("script", f"#!{static}\n", 0o755)
        for words in OF_A_COMMAND:
            self.refused(heapwright(*words, "--", static), 125, static, "static")
            self.refused(heapwright(*words, "--", script), 125, static, "static")

    # "or defines malloc itself"
    def test_programs_with_a_malloc_of_their_own(self):
        self.assertEqual(run(program("own_malloc")).stdout, "ran\n")
        for words in OF_A_COMMAND:
            if words[0] != "compare":
                self.refused(heapwright(*words, "--", program("own_malloc")), 125, program("own_malloc"), "malloc")

    # "is setuid or setgid or has file capabilities (unless the user has those rights anyway)"
    @unittest.skipUnless(IS_ROOT, "only root can make a file that is setuid to another user")
    def test_setuid_programs(self):
        copy = self.folder / "setuid"
        shutil.copy(ENDINGS, copy)
        os.chown(copy, 65534, -1)
        copy.chmod(0o4755)
        for words in OF_A_COMMAND:
            self.refused(heapwright(*words, "--", str(copy)), 125, str(copy), "setuid")

    # A program that may be executed and not read is an ELF program nevertheless.
    @unittest.skipUnless(IS_ROOT, "root alone can try as somebody else")
    def test_programs_that_cannot_be_read(self):
        copy = self.folder / "unreadable"
        shutil.copy("/bin/true", copy)
        copy.chmod(0o111)
        tool = shutil.copy(HEAPWRIGHT, self.folder / "heapwright")
        result = run(tool, "info", "1", **as_nobody())
        self.assertNotEqual(result.returncode, 127, "the tool itself can be run")
        result = run(HEAPWRIGHT, "run", "--", copy, **as_nobody())
        self.assertNotIn("neither an ELF program", result.stderr)

    # A message that nobody can take changes no exit code.
    def test_stderr_that_takes_nothing(self):
        for words, code in ((["run", "--", "no-such-command"], 127), (["info", "4194305"], 2), (["leaks", "--", "no-such-command"], 127)):
            with open("/dev/full", "w") as full:
                self.ended(heapwright(*words, stderr=full), code)
            self.ended(run("sh", "-c", 'exec "$0" "$@" 2>&-', HEAPWRIGHT, *words), code)

    # "The answer goes to stdout": where it cannot be written, the exit code is not that of success.
    def test_stdout_that_takes_nothing(self):
        for words in (["--help"], ["--version"], ["info"]):
            with open("/dev/full", "w") as full:
                self.assertNotEqual(heapwright(*words, stdout=full).returncode, 0, words)


class Run(Case):
    # "ends as the command does, also by a signal"
    def test_exit_codes(self):
        for code in (0, 1, 42, 125, 255):
            self.ended(heapwright("run", "--", "sh", "-c", f"exit {code}"), code)

    def test_signals(self):
        self.ended(heapwright("run", "--", ENDINGS, "term"), -signal.SIGTERM)
        self.ended(heapwright("run", "--", ENDINGS, "kill"), -signal.SIGKILL)
        self.ended(heapwright("run", "--", ENDINGS, "abort"), -signal.SIGABRT)

    # "replaces itself by the command: it has the same process id"
    def test_it_is_the_command(self):
        process = self.starts(HEAPWRIGHT, "run", "sh", "-c", "echo $$", stdout=subprocess.PIPE)
        self.assertEqual(process.communicate()[0], f"{process.pid}\n")

    def test_signals_reach_the_command(self):
        process = self.starts(HEAPWRIGHT, "run", ENDINGS, "wait", stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), -signal.SIGTERM)

    # "the same ... stdin, stdout and stderr"
    def test_streams(self):
        result = heapwright("run", "--", "sh", "-c", "cat; echo problem >&2", stdin=None, input="text\n")
        self.assertEqual((result.stdout, result.stderr), ("text\n", "problem\n"))

    # "All that follows belongs to the command, byte for byte."
    def test_arguments(self):
        odd = ["--help", "-x", "", "a b", "--", "--stats", "ü", "*"]
        result = heapwright("run", "printf", "<%s>", *odd)
        self.assertEqual(result.stdout, "".join(f"<{word}>" for word in odd))
        result = heapwright("run", "--", "printf", "<%s>", b"\xff\xfe")
        self.assertEqual(result.stdout.encode(errors="surrogateescape"), b"<\xff\xfe>")

    def test_names_that_are_not_utf8(self):
        path = os.fsencode(self.folder) + b"/\xff name"
        shutil.copy(ENDINGS, path)
        self.assertEqual(heapwright("run", "--", path).stdout, "ran\n")

    # "The command is looked for in PATH if it has no slash."
    def test_path(self):
        shutil.copy(ENDINGS, self.folder / "only-here")
        result = heapwright("run", "only-here", env=environment(PATH=self.folder))
        self.assertEqual(result.stdout, "ran\n")

    # "The program keeps its environment. LD_PRELOAD gets one more library, at its front."
    def test_environment(self):
        before = environment(SOME_NAME="some value")
        after = dict(line.split("=", 1) for line in heapwright("run", "env", "-0", env=before).stdout.split("\0") if line)
        preload = after.pop("LD_PRELOAD")
        self.assertEqual(os.path.realpath(preload), os.path.realpath(LIBRARY))
        self.assertEqual(after, before)

    def test_what_was_preloaded_stays(self):
        result = heapwright("run", "sh", "-c", "echo $LD_PRELOAD", env=environment(LD_PRELOAD="libm.so.6"))
        first, *others = result.stdout.strip().split(":")
        self.assertEqual((os.path.realpath(first), others), (os.path.realpath(LIBRARY), ["libm.so.6"]))

    # The loader warns of a preloaded library that is missing and goes on; so does `run`.
    def test_a_missing_preloaded_library_is_not_ours(self):
        result = heapwright("run", ENDINGS, env=environment(LD_PRELOAD="/no/such/library.so"))
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))

    # "any dynamically linked program, on our malloc" (README)
    def test_the_malloc_is_ours(self):
        result = heapwright("run", ENDINGS, env=environment(HEAPWRIGHT_VERBOSE=1))
        self.assertIn("loaded into process", result.stderr)

    # "`--with` preloads another malloc instead; the library must define malloc, and its path must hold no space and no colon."
    def test_with(self):
        self.refused(heapwright("run", "--with", "/no/such.so", "--", "true"), 125, "/no/such.so")
        self.refused(heapwright("run", "--with", self.file("text.so", "no library"), "--", "true"), 125, "text.so")
        libm = next(line.split()[2] for line in run("ldd", shutil.which("python3")).stdout.splitlines() if "libm.so" in line)
        self.refused(heapwright("run", "--with", libm, "--", "true"), 125, libm, "malloc")
        for folder in ("with space", "with:colon"):
            (self.folder / folder).mkdir()
            copy = shutil.copy(LIBRARY, self.folder / folder)
            self.refused(heapwright("run", "--with", copy, "--", "true"), 125, folder)
        copy = shutil.copy(LIBRARY, self.folder / "other.so")
        self.assertEqual(heapwright("run", "--with", copy, "sh", "-c", "echo $LD_PRELOAD").stdout, f"{copy}\n")


class Statistics(Case):
    # memory-return.md: "`heapwright run --stats` prints the page of the command's own process after all output of the command, and ends with
    # the command's exit code, or by its signal."
    def test_the_page_comes_last(self):
        result = heapwright("run", "--stats", "--", "sh", "-c", "echo out; echo first >&2; exit 3")
        self.ended(result, 3)
        self.assertEqual(result.stdout, "out\n")
        first, page = result.stderr.split("\n", 1)
        self.assertEqual(first, "first")
        self.assertTrue(page.startswith("heapwright "), page)
        self.assertEqual(page.count("blocks in use"), 1)
        self.assertIn("sh -c", page.splitlines()[0])

    # "The processes report by themselves when they end, also through `_exit`."
    def test_every_way_to_end(self):
        for how, code in (("exit", 5), ("_exit", 6), ("fork", 4), ("print", 0)):
            result = heapwright("run", "--stats", "--", ENDINGS, how)
            self.ended(result, code)
            self.assertEqual(result.stderr.count("blocks in use"), 1, result.stderr)
            self.assertIn(f"endings {how}", result.stderr)

    def test_quick_exit(self):
        result = heapwright("run", "--stats", "--", ENDINGS, "quick_exit")
        self.ended(result, 7)
        self.assertEqual(result.stderr.count("blocks in use"), 1, result.stderr)

    # "One that is killed by a signal, executes a static program ... does not." "Where there is nothing to print ... stderr says so."
    def test_processes_without_a_page(self):
        for how, code in (("kill", -signal.SIGKILL), ("abort", -signal.SIGABRT), ("term", -signal.SIGTERM)):
            result = heapwright("run", "--stats", "--", ENDINGS, how)
            self.ended(result, code)
            self.assertNotIn("blocks in use", result.stderr)
            self.assertIn("no statistics", result.stderr)
        result = heapwright("run", "--stats", "--", ENDINGS, "exec", program("static_endings"))
        self.ended(result, 0)
        self.assertEqual(result.stdout, "ran\n")
        self.assertIn("no statistics", result.stderr)

    # "A process that executes another program is the process of the last one."
    def test_exec(self):
        result = heapwright("run", "--stats", "--", ENDINGS, "exec", ENDINGS, "exit")
        self.ended(result, 5)
        self.assertEqual(result.stderr.count("blocks in use"), 1)
        self.assertIn("endings exit", result.stderr.splitlines()[0])

    # "With `--stats=all` a table follows: each process that has ended by then, ... and the highest and the sum of each column"
    def test_the_table(self):
        result = heapwright("run", "--stats=all", "--", "sh", "-c", "./endings fork; ./endings exit; exit 3", cwd=PROGRAMS)
        self.ended(result, 3)
        self.assertEqual(result.stderr.count("blocks in use"), 1)
        table = result.stderr[result.stderr.index("peak RSS"):]
        self.assertEqual(table.count("  ./endings fork"), 2, "the program and its child: " + table)
        self.assertEqual(table.count("  ./endings exit"), 1, table)
        self.assertIn("highest", table)
        self.assertIn("sum", table)
        self.assertIn("4 processes", table)

    # "when the command has ended": a process that it leaves behind is not waited for
    def test_processes_in_the_background(self):
        for option in ("--stats", "--stats=all"):
            result = heapwright("run", option, "--", "sh", "-c", "sleep 50 >&- 2>&- & echo $!; exit 3", timeout=20)
            os.kill(int(result.stdout), signal.SIGKILL)
            self.ended(result, 3)
            self.assertEqual(result.stderr.count("blocks in use"), 1)

    def test_an_unknown_kind(self):
        self.refused(heapwright("run", "--stats=some", "--", "true"), 125, "some")

    # The page is an extra: the exit code is the command's own.
    def test_stderr_that_takes_nothing(self):
        with open("/dev/full", "w") as full:
            self.ended(heapwright("run", "--stats", "--", ENDINGS, "exit", stderr=full), 5)

    # "ends with the command's exit code, or by its signal": a signal to the tool reaches the command
    def test_signals_reach_the_command(self):
        process = self.starts(HEAPWRIGHT, "run", "--stats", ENDINGS, "wait", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), -signal.SIGTERM)


if __name__ == "__main__":
    main()
