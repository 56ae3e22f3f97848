#!/usr/bin/env python3
"""docs/malloc.md and docs/options.md, on programs that are linked with libheapwright.so, with libheapwright.a, or have it preloaded."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from documented import BUILD, Case, IS_ROOT, LIBRARY, as_nobody, environment, main, program, run

NAMES = run(program("malloc_entries")).stdout.split()
NEW_WITHOUT_MEMORY = {"new_without_memory", "the_program_survives_a_limit"}


class Entries(unittest.TestCase):
    """Each promise is a function of programs/malloc_entries.cpp, with the sentence that it tests."""

    def holds(self, kind, names):
        for name in names:
            with self.subTest(name):
                result = run(program(kind), name)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_there_are_promises(self):
        self.assertGreater(len(NAMES), 20)
        self.assertLessEqual(NEW_WITHOUT_MEMORY, set(NAMES))

    def test_in_a_program_linked_with_the_shared_library(self):
        self.holds("malloc_entries", NAMES)

    # README: "static glibc and musl programs work too"
    def test_in_a_static_program(self):
        self.holds("static_malloc_entries", sorted(set(NAMES) - NEW_WITHOUT_MEMORY))

    # "Without memory [operator new calls] the new handler ..., then throw std::bad_alloc"
    def test_new_throws_in_a_static_program(self):
        self.assertEqual(run(program("static_malloc_entries"), "new_without_memory").returncode, 0)

    # "malloc_stats(): The same, as text, to stderr."
    def test_malloc_stats_goes_to_stderr(self):
        result = run(program("malloc_entries"), "malloc_stats_prints")
        self.assertIn("blocks in use", result.stderr)
        self.assertEqual(result.stdout, "")

    # "A program that replaces operator new and delete alone ...": all forms that it does not replace must reach its own two, since the
    # blocks come back to its own operator delete.
    def test_a_program_with_a_new_of_its_own(self):
        self.assertEqual(run(program("own_new")).stdout, "made 3, taken back 3\n")
        result = run(program("own_new"), env=environment(LD_PRELOAD=LIBRARY))
        self.assertEqual(result.stdout, "made 3, taken back 3\n")


def sizes_of(page):
    unit = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
    return {name.strip(): float(number) * unit[of] for name, number, of in
            re.findall(r"^ +([a-z',A-Z ]+?)  +([0-9.]+) (B|KiB|MiB|GiB)$", page, re.M)}


class Options(Case):
    def preloaded(self, *command, **options):
        return run(*(command or [program("endings")]), env=environment(LD_PRELOAD=LIBRARY, **options))

    # "1 prints a line to stderr when the library has been loaded."
    def test_verbose(self):
        result = self.preloaded(HEAPWRIGHT_VERBOSE=1)
        self.assertEqual(result.stdout, "ran\n")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("heapwright", result.stderr)
        self.assertEqual(self.preloaded(HEAPWRIGHT_VERBOSE=0).stderr, "")

    # "A value that is not a number in the option's range is reported on stderr, and the default is used."
    def test_values_out_of_range(self):
        bad = {"HEAPWRIGHT_VERBOSE": ["2", "-1", "yes", "", "1x", " 1", "0x1", "99999999999999999999999"],
               "HEAPWRIGHT_STATS": ["2", "on"],
               "HEAPWRIGHT_PURGE_DELAY_MS": ["3600001", "-1", "1.5", "18446744073709551616", "18446744073709551617"]}
        default = {"HEAPWRIGHT_VERBOSE": "0", "HEAPWRIGHT_STATS": "0", "HEAPWRIGHT_PURGE_DELAY_MS": "400"}
        for name, values in bad.items():
            for value in values:
                with self.subTest(f"{name}={value}"):
                    result = self.preloaded(**{name: value})
                    self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))
                    self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                    self.assertIn(f"{name}={value}", result.stderr)
                    self.assertIn(default[name], result.stderr)

    # The column "up to"
    def test_values_at_the_ends_of_the_range(self):
        for value in ("0", "1", "400", "3600000"):
            self.assertEqual(self.preloaded(HEAPWRIGHT_PURGE_DELAY_MS=value).stderr, "")

    # "1 prints statistics to stderr when the process exits."
    # docs/memory-return.md: "every process prints its page to stderr, with its command line, when it exits"
    def test_statistics_at_exit(self):
        result = self.preloaded(program("endings"), "exit", HEAPWRIGHT_STATS=1)
        self.assertEqual((result.returncode, result.stdout), (5, ""))
        self.assertIn("endings exit", result.stderr.splitlines()[0])

    # "Statistics are written by exit, and with the shared library by _exit."
    def test_statistics_at_underscore_exit(self):
        result = self.preloaded(program("endings"), "_exit", HEAPWRIGHT_STATS=1)
        self.assertEqual(result.returncode, 6)
        self.assertIn("blocks in use", result.stderr)

    # "A process that is killed by a signal writes none."
    def test_no_statistics_when_killed(self):
        for how in ("abort", "kill", "term"):
            self.assertNotIn("blocks in use", self.preloaded(program("endings"), how, HEAPWRIGHT_STATS=1).stderr)

    # "every process prints its page": of the child of a fork, too
    def test_statistics_of_each_process(self):
        result = self.preloaded(program("endings"), "fork", HEAPWRIGHT_STATS=1)
        self.assertEqual(result.stderr.count("blocks in use"), 2)

    # docs/memory-return.md: "The figures add up: mapped = in use + cache + free in spans + free, not given back + free, given back or new"
    def test_statistics_add_up(self):
        sizes = sizes_of(self.preloaded(program("endings"), "exit", HEAPWRIGHT_STATS=1).stderr)
        parts = ("blocks in use", "thread caches", "free within spans", "free, not given back", "free, given back or new")
        self.assertGreaterEqual(sizes["blocks in use"], 970 * 1024)
        self.assertAlmostEqual(sizes["mapped"], sum(sizes[part] for part in parts), delta=0.1 * 1024**2)

    # Statistics are an extra: a program whose stderr cannot take them ends as ever.
    def test_statistics_that_nobody_can_take(self):
        with open("/dev/full", "w") as full:
            result = run(program("endings"), "exit", stderr=full, env=environment(LD_PRELOAD=LIBRARY, HEAPWRIGHT_STATS=1))
        self.assertEqual(result.returncode, 5)
        result = run("sh", "-c", 'exec "$0" exit 2>&-', program("endings"), env=environment(LD_PRELOAD=LIBRARY, HEAPWRIGHT_STATS=1))
        self.assertEqual(result.returncode, 5)

    # "`HEAPWRIGHT_STATS_FILE=FILE` appends the statistics to a file that exists instead"
    def test_statistics_into_a_file(self):
        file = pathlib.Path(self.file("statistics", "before"))
        result = self.preloaded(program("endings"), "exit", HEAPWRIGHT_STATS_FILE=file)
        self.assertEqual((result.returncode, result.stderr), (5, ""))
        once = file.read_bytes()
        self.assertTrue(once.startswith(b"before"))
        self.assertGreater(len(once), len(b"before"))
        self.preloaded(program("endings"), "exit", HEAPWRIGHT_STATS_FILE=file)
        self.assertEqual(len(file.read_bytes()) - len(once), len(once) - len(b"before"))

    # Statistics that were asked for are somewhere, or stderr says why not.
    def test_statistics_into_a_file_that_cannot_be_opened(self):
        result = self.preloaded(HEAPWRIGHT_STATS=1, HEAPWRIGHT_STATS_FILE=self.folder / "no" / "such")
        self.assertNotEqual(result.stderr, "")

    # An option that there is not is nobody's mistake: it may be another version's.
    def test_unknown_options(self):
        self.assertEqual(self.preloaded(HEAPWRIGHT_NO_SUCH_OPTION=1).stderr, "")

    # "Programs that run with raised privileges (setuid, setgid, file capabilities) ignore them."
    @unittest.skipUnless(IS_ROOT, "only root can make a file that is setuid to another user")
    def test_setuid_programs_ignore_options(self):
        self.folder.chmod(0o755)
        copy = self.folder / "setuid"
        shutil.copy(program("static_linked_endings"), copy)
        options = environment(HEAPWRIGHT_VERBOSE=1, HEAPWRIGHT_STATS=1, HEAPWRIGHT_PURGE_DELAY_MS="bad")
        self.assertIn("HEAPWRIGHT_PURGE_DELAY_MS", run(copy, env=options).stderr)
        os.chown(copy, 65534, -1)
        copy.chmod(0o4755)
        result = run(copy, env=options)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "ran\n", ""))

    # CHANGELOG: "A statically linked program gets all of malloc and start-up (options, statistics ...)"
    def test_static_programs_have_options(self):
        result = run(program("static_linked_endings"), "exit", env=environment(HEAPWRIGHT_VERBOSE=1, HEAPWRIGHT_STATS=1))
        self.assertEqual(result.returncode, 5)
        self.assertIn("loaded", result.stderr)
        self.assertIn("blocks in use", result.stderr)


class Linking(Case):
    """README: "To link it instead, install it: ..." """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(__import__("tempfile").TemporaryDirectory())
        cls.prefix = pathlib.Path(folder) / "prefix"
        result = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        assert result.returncode == 0, result.stderr

    def loads_heapwright(self, executable, **variables):
        result = run(executable, env=environment(HEAPWRIGHT_VERBOSE=1, **variables))
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"), result.stderr)
        self.assertIn("heapwright", result.stderr)

    def source(self):
        return self.file("main.c", '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(10)); puts("ran"); return 0; }\n')

    # "find_package(heapwright REQUIRED)", "target_link_libraries(app PRIVATE heapwright::malloc)  # or heapwright::malloc_static"
    def test_cmake(self):
        self.source()
        self.file("CMakeLists.txt", """cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(heapwright REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE heapwright::malloc)
add_executable(archive main.c)
target_link_libraries(archive PRIVATE heapwright::malloc_static)
""")
        result = run("cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run("cmake", "--build", self.folder / "build")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.loads_heapwright(self.folder / "build" / "shared")
        self.loads_heapwright(self.folder / "build" / "archive")

    # "or `pkg-config --libs heapwright`"
    def test_pkg_config(self):
        with_path = environment(PKG_CONFIG_PATH=self.prefix / "lib" / "pkgconfig")
        words = run("pkg-config", "--libs", "heapwright", env=with_path).stdout.split()
        folders = [os.path.normpath(word[2:]) for word in words if word.startswith("-L")]
        self.assertEqual(folders, [f"{self.prefix}/lib"])
        app = self.folder / "app"
        result = run("cc", self.source(), "-o", app, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.loads_heapwright(app, LD_LIBRARY_PATH=self.prefix / "lib")

    # "A program needs libc alone for it, no C++ runtime"
    def test_no_cxx_runtime(self):
        app = self.folder / "app"
        self.assertEqual(run("cc", self.source(), "-o", app, f"-L{self.prefix}/lib", "-lheapwright").returncode, 0)
        listed = run("ldd", app, env=environment(LD_LIBRARY_PATH=self.prefix / "lib")).stdout
        self.assertIn("libheapwright", listed)
        self.assertNotIn("libstdc++", listed)

    # "static glibc and musl programs work too"
    def test_static_programs(self):
        app = self.folder / "app"
        compilers = ["cc"] + (["musl-gcc"] if shutil.which("musl-gcc") else [])
        for compiler in compilers:
            with self.subTest(compiler):
                result = run(compiler, "-static", self.source(), "-o", app, self.prefix / "lib" / "libheapwright.a")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.loads_heapwright(app)


if __name__ == "__main__":
    main()
