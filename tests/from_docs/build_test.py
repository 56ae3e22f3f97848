#!/usr/bin/env python3
"""`heapwright build`, as docs/recipes.md and its help say it. A library takes some seconds to build: one is built for all tests."""
import os
import pathlib
import shutil
import tempfile
import unittest

from documented import Case, ENDINGS, IS_ROOT, environment, heapwright, main, program

INCLUDE = "#include <heapwright/heap/recipe.hpp>\n"
# The example of docs/recipes.md
EXAMPLE = INCLUDE + "inline constexpr heapwright::recipe app{.thread_cache = {.share_bytes = 8 * heapwright::MiB}};\n"
CHECKED = INCLUDE + """inline constexpr heapwright::recipe other{.thread_cache = {.share_bytes = 4 * heapwright::MiB}};
inline constexpr heapwright::recipe careful{.hardening = {.check_callers = true}};
"""


class Build(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.common = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (cls.common / "two.hpp").write_text(CHECKED)
        cls.library = cls.common / "libcareful.so"
        cls.built = heapwright("build", cls.common / "two.hpp", "--recipe", "careful", "-o", cls.library, timeout=100)

    # "Exit code: 0 if the library was made"
    def test_it_is_made(self):
        self.ended(self.built, 0)
        self.assertIn(str(self.library), self.built.stdout)
        self.assertTrue(self.library.is_file())

    # "heapwright run --with ./libapp.so -- program"; "Options from the environment (docs/options.md) hold for it too."
    def test_it_runs_programs(self):
        result = heapwright("run", "--with", self.library, "--", ENDINGS, env=environment(HEAPWRIGHT_VERBOSE=1))
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))
        self.assertIn("careful", result.stderr)
        self.assertIn("blocks in use", heapwright("run", "--stats", "--with", self.library, "--", ENDINGS).stderr)

    # "`hardening.check_callers`: double free, foreign pointers and pointers into blocks end the program with a message, in every build"
    def test_check_callers(self):
        python = ("import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; c.free.argtypes = [ctypes.c_void_p]; "
                  "p = c.malloc(100); print('before', flush=True); ")
        for mistake in ("c.free(p); c.free(p)", "c.free(p + 16)", "c.free(id(p) - 1000)"):
            result = heapwright("run", "--with", self.library, "--", "python3", "-c", python + mistake + "; print('after')")
            self.assertNotEqual(result.returncode, 0, mistake)
            self.assertEqual(result.stdout, "before\n", mistake)
            self.assertNotEqual(result.stderr, "", mistake)

    # "What is wrong with a recipe is said in a sentence."
    def test_wrong_recipes(self):
        wrong = self.file("wrong.hpp", INCLUDE + "inline constexpr heapwright::recipe app{.classes = {.steps_per_doubling = 3}};\n")
        output = self.folder / "lib.so"
        result = heapwright("build", wrong, "-o", output)
        self.refused(result, 125, wrong, "steps_per_doubling")
        self.assertLessEqual(len(result.stderr.splitlines()), 3)
        self.assertFalse(output.exists(), "nothing is left behind")

    # "125 if it could not be made"
    def test_bad_input(self):
        header = self.file("app.hpp", EXAMPLE)
        output = self.folder / "lib.so"
        self.refused(heapwright("build"), 125, "HEADER")
        self.refused(heapwright("build", header), 125, "--output")
        self.refused(heapwright("build", "/no/such.hpp", "-o", output), 125, "/no/such.hpp")
        self.refused(heapwright("build", header, "-o", "/no/such/folder/lib.so"), 125, "/no/such/folder")
        none = self.file("none.hpp", "int x;\n")
        self.refused(heapwright("build", none, "-o", output), 125, none)
        # "Which recipe, if the header has several"
        two = self.file("two.hpp", CHECKED)
        self.refused(heapwright("build", two, "-o", output), 125, "other", "careful", "--recipe")
        self.refused(heapwright("build", two, "-o", output, "--recipe", "third"), 125, "third")
        self.assertFalse(output.exists())

    # "Instead of $CXX, or else c++"
    def test_compilers(self):
        header = self.file("app.hpp", EXAMPLE)
        output = self.folder / "lib.so"
        self.refused(heapwright("build", header, "-o", output, "--compiler", "no-such-compiler"), 125, "no-such-compiler")
        self.refused(heapwright("build", header, "-o", output, env=environment(CXX="no-such-compiler")), 125, "no-such-compiler")
        self.refused(heapwright("build", header, "-o", output, env=environment(PATH="/no/such/folder")), 125, "c++")

    # A compiler that fails is named, and its words are shown.
    def test_a_compiler_that_says_nothing(self):
        result = heapwright("build", self.file("app.hpp", EXAMPLE), "-o", self.folder / "lib.so", "--compiler", "false")
        self.refused(result, 125, "false")

    def quick_compiler(self, library=None):
        """A compiler that makes each library in no time: it copies one that is there."""
        return self.file("compiler", f"""#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then cp '{library or self.library}' "$2"; fi
  shift
done
""", 0o755)

    # "`--check` runs the conformance and stress tests on the new library."; --help: "1 if a test failed (nothing is written then)"
    def test_check(self):
        compiler = self.quick_compiler(program("libbad_malloc.so"))
        result = heapwright("build", self.file("app.hpp", EXAMPLE), "-o", self.folder / "lib.so", "--check", "--compiler", compiler)
        self.ended(result, 1)
        self.assertFalse((self.folder / "lib.so").exists())

    # The output is a library, a regular file: a device stays what it is.
    def test_an_output_that_is_no_regular_file(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        result = heapwright("build", self.file("app.hpp", EXAMPLE), "-o", fifo, "--compiler", self.quick_compiler())
        self.assertTrue(fifo.is_fifo())
        self.refused(result, 125, str(fifo))

    def test_an_output_that_is_a_folder(self):
        result = heapwright("build", self.file("app.hpp", EXAMPLE), "-o", self.folder, "--compiler", self.quick_compiler())
        self.refused(result, 125, str(self.folder))

    # An older library makes room for the new one.
    def test_an_output_that_is_there(self):
        output = self.file("lib.so", "old")
        self.ended(heapwright("build", self.file("app.hpp", EXAMPLE), "-o", output, "--compiler", self.quick_compiler()), 0)
        self.assertGreater(os.path.getsize(output), 10000)


if __name__ == "__main__":
    main()
