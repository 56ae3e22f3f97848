#!/usr/bin/env python3
"""Every promise of the heapwright command on bad input.

Usage: bad_input_test.py path/to/heapwright path/to/fixtures [unittest options].
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest

from support import Case, HEAPWRIGHT, PLAIN, TRUE, compare, fixture, heapwright


class BadInput(Case):
    """The same refusals from run and compare, before anything is started."""

    def both(self, command, code, *words):
        self.refused(heapwright("run", "--with", PLAIN, "--", *command), code, *words)
        self.refused(compare("--", *command), code, *words)

    def test_no_such_command(self):
        self.both(["no-such-command-anywhere"], 127, "no such command: no-such-command-anywhere")
        self.both(["./no/such/file"], 127, "no such command")

    def test_not_executable(self):
        self.both([str(self.folder)], 126, "Is a directory")
        plain = self.folder / "plain"
        plain.write_text("no program")
        self.both([str(plain)], 126, "Permission denied")
        plain.chmod(0o755)
        self.both([str(plain)], 126, "neither an ELF program nor a script")

    def test_static(self):
        self.both([fixture("static")], 125, "statically linked")

    def test_our_malloc_is_linked_in(self):
        for name in ("linked_echo", "static_echo"):
            self.both([fixture(name)], 125, f"{fixture(name)} has heapwright's malloc linked in already", "does not take its place")
        self.both([fixture("defines_malloc")], 125, "defines malloc itself")

    def test_script_of_a_missing_or_static_interpreter(self):
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.both([str(script)], 127, f"{script} names its interpreter with #!: no such command: /no/such/interpreter")
        script.write_text(f"#!/usr/bin/env -S {fixture('static')}\n")
        self.both([str(script)], 125, "statically linked")

    def test_setuid(self):
        if os.getuid() == 0:
            program = self.copy_of_true("setuid")
            os.chown(program, 65534, 0)
            program.chmod(0o4755)
        else:
            program = shutil.which("su")
        self.both([str(program)], 125, "setuid")

    def test_setgid(self):
        program = self.copy_of_true("setgid")
        other = 65534 if os.getuid() == 0 else next((g for g in os.getgroups() if g != os.getgid()), None)
        if other is None:
            self.skipTest("needs a second group")
        os.chown(program, -1, other)
        program.chmod(0o2755)
        self.both([str(program)], 125, "setgid")

    @unittest.skipIf(os.getuid() != 0, "only root can give a file capabilities")
    def test_file_capabilities(self):
        program = self.copy_of_true("capable")
        if subprocess.run(["setcap", "cap_net_raw+ep", program], capture_output=True).returncode != 0:
            self.skipTest("no file capabilities on this file system")
        self.folder.chmod(0o755)
        another = {"user": 65534, "group": 65534, "extra_groups": []}
        if heapwright("--version", **another).returncode != 0:
            self.skipTest("heapwright lies where another user cannot reach it")
        self.refused(heapwright("run", "--with", PLAIN, "--", str(program), **another), 125, "file capabilities")

    @unittest.skipIf(shutil.which("musl-gcc") is None, "needs musl's compiler")
    def test_a_malloc_for_glibc_and_a_program_on_musl(self):
        program, library = self.folder / "musl", self.folder / "glibc_alone.so"
        subprocess.run(["musl-gcc", "-x", "c", "-", "-o", program], input=b"int main(void) { return 0; }", check=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True,
                       input=b"const char* gnu_get_libc_version(void);\nvoid* malloc(unsigned long n) { return (char*)gnu_get_libc_version() + n; }")
        self.refused(heapwright("run", "--with", str(library), "--", str(program)), 125, "The program uses musl, and the library another libc")

    def test_other_machine(self):
        other = self.copy_of_true("other", lambda elf: elf[:18] + bytes([8, 0]) + elf[20:])  # MIPS
        self.both([str(other)], 125, "another kind of machine")

    def test_program_that_defines_malloc(self):
        self.both([fixture("defines_malloc")], 125, "defines malloc itself", "build it without a malloc of its own")

    def test_libraries(self):
        text = self.folder / "libtext.so"
        text.write_text("no library")
        for library, word in [("/no/such/lib.so", "no such library"), (str(text), "not a shared library"),
                              ("libno-such-thing.so.9", "there is no such file, neither here nor where ld.so looks"),
                              ("bogus", "no malloc named 'bogus'; there are glibc"), (fixture("libno_allocator.so"), "no malloc")]:
            with self.subTest(library):
                self.refused(heapwright("run", "--with", library, "--", TRUE), 125, word)
                self.refused(compare("--with", library, "--", TRUE), 125, word)

    def test_an_installation_with_a_space_in_its_path(self):
        """LD_PRELOAD cannot express it, and a link does not help."""
        for name in ("a b", "a:b"):
            bin, lib = self.folder / name / "bin", self.folder / name / "lib"
            bin.mkdir(parents=True)
            lib.mkdir()
            shutil.copy(HEAPWRIGHT, bin)
            for library in (pathlib.Path(HEAPWRIGHT).resolve().parent.parent / "lib").glob("libheapwright*.so"):
                shutil.copy(library, lib)
            link = self.folder / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(bin.parent)
            for command in (bin / "heapwright", link / "bin/heapwright"):
                def run(*words):
                    return subprocess.run([command, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
                for words in (["run"], ["compare", "--only", "heapwright"], ["leaks"], ["live", "--no-browser"]):
                    self.refused(run(*words, "--", TRUE), 125, "heapwright lies in a folder whose path has a space or a colon", "install it in another folder")
                info = run("info")
                self.assertEqual(info.returncode, 0, info)
                self.assertIn(f"library  {lib}/libheapwright.so", info.stdout)

    def test_a_header_is_to_be_built_first(self):
        header = self.folder / "recipe.hpp"
        header.write_text("inline constexpr heapwright::recipe mine = {};\n")
        self.refused(heapwright("run", "--with", str(header), "--", TRUE), 125, "is a header", f"heapwright build {header} -o libmine.so")
        self.refused(heapwright("run", "--with", "no-such-recipe.hpp", "--", TRUE), 125, "no such file: no-such-recipe.hpp")

    def test_what_cannot_go_to_standard_output(self):
        for words in (["record", "-o", "-", "--", TRUE], ["live", "--no-browser", "--save", "-", "--", TRUE]):
            self.refused(heapwright(*words, cwd=self.folder), 125, "not to standard output")
        self.assertFalse((self.folder / "-").exists())

    def test_usage(self):
        self.assertEqual(heapwright("run").returncode, 125)
        self.assertEqual(heapwright("compare", "--rounds", "1", "--", TRUE).returncode, 125)
        self.refused(heapwright("compare", "--rounds", "1", "--", TRUE), 125, "compare: --rounds: '1' is not a whole number from 2 to 1000")
        self.refused(compare("--timeout", "-1", "--", TRUE), 125, "compare: --timeout: '-1' is not a number from 0.001 to")
        self.refused(compare("--timeout", "nan", "--", TRUE), 125, "'nan' is not a number")
        self.refused(heapwright("top", "--every", "x", "1"), 125, "top: --every: 'x' is not a number from 0.1 to 3600")
        self.assertEqual(heapwright("info", "word").returncode, 2)
        self.refused(compare("--only", "nomalloc", "--", TRUE), 125, "no allocator named 'nomalloc'")
        self.refused(compare("--with", "name=", "--", TRUE), 125, "--with name=: there is no path behind the =")
        for words in (["run", "--with", ""], ["run", "--with="], ["compare", "--with", ""], ["compare", "--only", ""], ["compare", "--baseline", ""],
                      ["compare", "--json", ""], ["compare", "--html", ""], ["compare", "--driver", ""], ["leaks", "--output", ""],
                      ["leaks", "--suppressions", ""], ["live", "--save", ""], ["live", "--wrapper", ""]):
            self.refused(heapwright(*words, "--", TRUE), 125, f"{words[0]}: {words[1].rstrip('=')}: it is empty")
        self.refused(compare("--with", "plain=heapwright", "--", TRUE), 125, "two allocators named plain")
        self.refused(compare("--with", "glibc=heapwright", "--", TRUE), 125, "two allocators named glibc")
        self.assertEqual(compare("--only", " heapwright , glibc", "--", TRUE).returncode, 0)
        for words in (["build", "", "-o", "x.so"], ["build", "x.hpp", "-o", ""]):
            self.refused(heapwright(*words), 125, f"heapwright: {words[0]}: ", "it is empty")
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.refused(heapwright("run", "--", str(script)), 127, f"{script} names its interpreter with #!", "no such command: /no/such/interpreter")
        self.refused(compare("--json", "/no/such/folder/x.json", "--", TRUE), 125, "cannot write")
        for subcommand in ([], ["run"], ["compare"], ["info"]):
            self.assertEqual(heapwright(*subcommand, "--help").returncode, 0)
            self.assertEqual(heapwright("help", *subcommand).stdout, heapwright(*subcommand, "--help").stdout)
        for word in ("Usage: heapwright run ", "--stats[=command|all] "):
            self.assertIn(word, heapwright("run", "--help").stdout)
        overview = heapwright()
        self.assertEqual((overview.returncode, overview.stdout), (0, heapwright("--help").stdout))
        for words in (["help", "live", "top"], ["help", "--port"], ["help", "frob"]):
            self.assertEqual(heapwright(*words).returncode, 125, words)
        self.refused(heapwright("comapre", "--", TRUE), 125, "no subcommand comapre; did you mean compare?")
        self.refused(heapwright("frobnicate"), 125, "no subcommand frobnicate; heapwright --help lists all")
        self.refused(compare("--same-with", "3", "--", TRUE), 125, "compare: no option --same-with; did you mean --same-within?")
        self.refused(heapwright("run", "-hardened", "--", TRUE), 125, "run: no option -hardened; did you mean --hardened?")
        self.refused(heapwright("version"), 125, "no subcommand version; did you mean --version?")
        self.refused(heapwright("--version", "extra"), 125, "--version: 'extra' is one word too many")
        self.assertEqual(heapwright("--help", "live").stdout, heapwright("help", "live").stdout)
        self.refused(heapwright("live", "-5"), 125, "live: no option -5")
        self.refused(heapwright("--versoin"), 125, "no option --versoin; did you mean --version? heapwright --help lists all")
        version = heapwright("--version").stdout
        self.assertRegex(version, r"^heapwright \d+\.\d+\.\d+ \(revision (unknown|[0-9a-f]{12}(\+changes)?)\)\n"
                                  r"built for \S+ by (GCC|Clang) .*, checks \d, sanitizers: \S+\n$")


class Words(Case):
    """Words that cannot be meant. Each error is one sentence of ours: what is wrong, and what to do."""

    def options(self):
        """(subcommand, option, whether it takes a value) of all, as their help names them."""
        for subcommand in ("run", "compare", "build", "live", "top", "diff", "leaks", "info"):
            text = heapwright(subcommand, "--help").stdout
            for short, name, rest in re.findall(r"^  (?:(-\w), )?(--[a-z-]+)(.*)$", text, re.MULTILINE):
                if name != "--help":
                    yield subcommand, name, re.match(r" [A-Z]", rest) is not None
                    if short:
                        yield subcommand, short, True

    def sentence(self, words, *said):
        result = heapwright(*words)
        self.assertEqual((result.returncode, result.stdout), (2 if words[0] == "info" else 125, ""), words)
        self.assertEqual(result.stderr.count("\n"), 1, words)
        for text in said:
            self.assertIn(text, result.stderr, words)
        return result.stderr

    def test_every_option(self):
        tried = 0
        for subcommand, name, has_value in self.options():
            with self.subTest(subcommand, option=name):
                tried += 1
                long = "--output" if name == "-o" else name
                if not has_value:
                    self.sentence([subcommand, name, name, TRUE], f"heapwright: {subcommand}: {name}: it is given twice")
                    if name != "--stats":
                        self.sentence([subcommand, f"{name}=x", TRUE], f"heapwright: {subcommand}: {name}: it takes no value")
                    continue
                for words in ([name, ""], [f"{name}="]):
                    self.sentence([subcommand, *words, TRUE], f"heapwright: {subcommand}: {long}: it is empty")
                self.sentence([subcommand, name], f"heapwright: {subcommand}: {long}: its value is missing")
                self.sentence([subcommand, name, "--", TRUE], f"{subcommand}: {long}: its value is missing")
                self.sentence([subcommand, name, "--help", TRUE], f"{subcommand}: {long}: its value is missing")
                if name not in ("--with", "--only", "--figure", "--wrapper", "--fail-if", "--suppress", "--suppressions", "--push-header", "--push-label"):
                    self.sentence([subcommand, name, "7", name, "7", TRUE], f"heapwright: {subcommand}: {long}: it is given twice")
        self.assertGreater(tried, 40)

    def test_the_help_fits_the_terminal(self):
        for columns in (44, 80, 200):
            screen = subprocess.run(["script", "-qec", f"stty cols {columns}; {HEAPWRIGHT} help compare", "/dev/null"],
                                    capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
            widest = max(len(line) for line in screen.splitlines())
            self.assertLess(widest, columns)
            self.assertLessEqual(widest, 110)
            self.assertEqual(screen.split(), heapwright("help", "compare").stdout.split())

    def test_words_too_many_too_few_and_empty(self):
        for words, said in [
                ([""], "the subcommand is empty; heapwright --help lists all"),
                (["", TRUE], "the subcommand is empty"),
                (["helpp"], "no subcommand helpp; did you mean help?"),
                (["help", ""], "the subcommand is empty"),
                (["help", "live", "top"], "help: 'top' is one word too many; say one subcommand: heapwright help live"),
                (["run"], "run: COMMAND is missing; what it takes is: heapwright run [OPTIONS] COMMAND [ARGUMENTS]"),
                (["run", "--"], "run: COMMAND is missing"),
                (["compare", "--rounds", "3"], "compare: COMMAND is missing"),
                (["compare", "--only", " , ", TRUE], "compare: --only: a name in the list is empty"),
                (["compare", "--only", "heapwright,", TRUE], "compare: --only: a name in the list is empty"),
                (["replay", "--only", "glibc,,heapwright", TRUE], "replay: --only: a name in the list is empty"),
                (["diff"], "diff: BEFORE is missing; what it takes is: heapwright diff [OPTIONS] BEFORE AFTER"),
                (["diff", "a"], "diff: AFTER is missing"),
                (["diff", "a", "b", "c"], "diff: 'c' is one word too many; what it takes is: heapwright diff [OPTIONS] BEFORE AFTER"),
                (["diff", "", "b"], "diff: BEFORE: it is empty"),
                (["diff", "a", ""], "diff: AFTER: it is empty"),
                (["info", "1", "2"], "info: '2' is one word too many; what it takes is: heapwright info [OPTIONS] [PID]"),
                (["info", ""], "info: PID: it is empty"),
                (["top", ""], "top: PID: it is empty"),
                (["top", "abc"], "top: abc is neither the id of a process nor a file"),
                (["top", "1", "2"], "top: '2' is one word too many"),
                (["build"], "build: HEADER is missing; what it takes is: heapwright build [OPTIONS] --output LIB HEADER"),
                (["build", "a.hpp"], "build: --output is missing"),
                (["build", "a.hpp", "b.hpp", "-o", "c.so"], "build: 'b.hpp' is one word too many")]:
            with self.subTest(words):
                self.sentence(words, "heapwright: " + said)
        self.assertEqual(heapwright("help", "help").stdout, heapwright("--help").stdout)

    def test_values(self):
        for words, said in [
                (["compare", "--rounds", "2.5", TRUE], "compare: --rounds: '2.5' is not a whole number from 2 to 1000"),
                (["compare", "--rounds", "0x10", TRUE], "compare: --rounds: '0x10' is not a whole number"),
                (["compare", "--ready-port", "80.5", "--driver", "x", TRUE], "--ready-port: '80.5' is not a whole number from 1 to 65535"),
                (["compare", "--ready-port", "80", TRUE], "compare: --ready-port requires --driver"),
                (["compare", "--driver", "x", "--ready-port", "80", "--ready-line", "x", TRUE], "--ready-port and --ready-line: say one of them"),
                (["live", "--port", "x"], "live: --port: 'x' is not a whole number from 0 to 65535"),
                (["live", "--port", "99999999999999999999", "--list"], "live: --port: '99999999999999999999' is not a whole number"),
                (["live", "--ready-fd", "3.5", "--list"], "live: --ready-fd: '3.5' is not a whole number from 3 to"),
                (["live", "--sample", "2.5", TRUE], "live: --sample: '2.5' is not a whole number from 0 to 1099511627776, nor auto"),
                (["diff", "--sites", "1.5", "a", "b"], "diff: --sites: '1.5' is not a whole number from 0 to 1000000"),
                (["leaks", "--limit", "1e3", TRUE], "leaks: --limit: '1e3' is not a whole number from 0 to 1000000"),
                (["run", "--stats=some", TRUE], "run: --stats: 'some' is not one of its values, command and all"),
                (["run", "--stats=", TRUE], "run: --stats: it is empty")]:
            with self.subTest(words):
                self.sentence(words, said)

    def test_a_number_that_begins_with_0_is_decimal(self):
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            port = chosen.getsockname()[1]
        result = heapwright("live", "--no-browser", "--exit-with-program", "--port", f"0{port}", "--", TRUE)
        self.assertIn(f"live at http://127.0.0.1:{port}/", result.stderr)
        self.assertEqual(heapwright("leaks", "--limit=09", "--", TRUE).returncode, 0)
        for words, said in [
                (["live", "--port", "080000", "--list"], "live: --port: '080000' is not a whole number from 0 to 65535"),
                (["diff", "--sites=09", "/no/a", "/no/b"], "/no/a"),
                (["top", "--process", "08", "--file", "/no/a"], "/no/a"),
                (["replay", "--process", "1.5", "/no/a"], "replay: --process: '1.5' is not a whole number from 0 to 1000000000"),
                (["compare", "--rounds", "08", "/no/a"], "no such command: /no/a"),
                (["record", "--max-bytes", "08KiB", "-o", str(self.folder / "a"), "/no/a"], "no such command: /no/a")]:
            with self.subTest(words):
                self.assertIn(said, heapwright(*words).stderr)

    def test_what_is_meant_as_it_stands(self):
        """A value may look like an option behind a `=`; the words of a command are its own."""
        self.assertEqual(heapwright("run", "--", "echo", "", "--with", "").stdout, " --with \n")
        self.assertEqual(heapwright("run", f"--with={PLAIN}", "echo", "--with=").stdout, "--with=\n")
        for words in (["--output=--json"], ["-o", "text"], ["-otext"], ["-o=text"]):
            result = heapwright("leaks", *words, "--limit", "010", "--", TRUE, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual(len(list(self.folder.iterdir())), 1)
            for file in self.folder.iterdir():
                file.unlink()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
