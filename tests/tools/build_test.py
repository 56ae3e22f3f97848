#!/usr/bin/env python3
"""`heapwright build`: a malloc from a recipe, and what is wrong with a recipe.

Usage: build_test.py path/to/heapwright path/to/fixtures [unittest options]
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import Case, HEAPWRIGHT, PLAIN, fixture, heapwright


class Build(Case):
    RECIPE = "#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe mine = {%s};\n"

    def header(self, content, name="recipe.hpp"):
        path = self.folder / name
        path.write_text(content if "recipe" in content else self.RECIPE % content)
        return str(path)

    def build(self, header, *options, **variables):
        self.library = self.folder / "libmine.so"
        return heapwright("build", header, "-o", str(self.library), *options,
                          env={**os.environ, "TMPDIR": str(self.folder), **variables})

    def not_built(self, result, *words):
        self.refused(result, 125, *words)
        self.assertNotIn("template", result.stderr, "nobody wants to read that")
        left = {p.name for p in self.folder.iterdir()} - {"recipe.hpp", "other.hpp"}
        self.assertEqual(left, set(), "nothing is left behind")

    def test_a_limit_is_tried(self):
        """What needs more memory than the limit is tried without it; the limit by itself."""
        result = self.build(self.header(".pages = {.limit = 3 * heapwright::MiB}"), "--check")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tried and good", result.stdout)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.suffix == ".so"], ["libmine.so"])
        trial = os.path.join(os.path.dirname(HEAPWRIGHT), "malloc_limit")
        for told, words in ((1 << 20, "malloc gives more than there may be"), (30 << 20, "not a quarter of the limit can be had")):
            tried = heapwright("run", "--with", str(self.library), trial, str(told))
            self.assertEqual(tried.returncode, 1)
            self.assertIn(words, tried.stderr)

    def test_what_the_rules_advise_is_a_recipe(self):
        """Each piece of code in the table of rules in docs/recipes.md, as a heap of its own."""
        root = pathlib.Path(__file__).resolve().parents[2]
        table = (root / "docs/recipes.md").read_text().partition("## What live and compare point to")[2].partition("\n## ")[0]
        advised = re.findall(r"`(\.[^`]*=[^`]*)`", table)
        self.assertGreaterEqual(len(advised), 7)
        code = "#include <heapwright/heap.hpp>\n" + "".join(
            f"inline constexpr heapwright::recipe r{i}{{{text}}};\nheapwright::heap<r{i}>& use(heapwright::heap<r{i}>& h) "
            f"{{ h.deallocate(h.allocate(1)); return h; }}\n" for i, text in enumerate(advised))
        source = self.folder / "advised.cpp"
        source.write_text(code)
        result = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", f"-I{root / 'include'}", str(source)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_huge_pages_that_are_not_there_are_no_error(self):
        result = self.build(self.header(".pages = {.growth = 2 * heapwright::MiB, .huge = heapwright::huge_page_use::reserved}"), "--check")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tried and good", result.stdout)

    def test_a_path_that_cannot_be_preloaded_is_tried(self):
        for name, recipe in (("lib of mine.so", ""), ("lib:mine.so", ".pages = {.limit = 3 * heapwright::MiB}")):
            library = self.folder / name
            result = heapwright("build", self.header(recipe), "-o", str(library), "--check", env={**os.environ, "TMPDIR": str(self.folder)})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("tried and good", result.stdout)
            self.assertIn("LD_PRELOAD cannot express this path", result.stdout)
        odd = self.folder / "a folder"
        odd.mkdir()
        result = heapwright("build", self.header(""), "-o", str(odd / "libmine.so"), "--check", env={**os.environ, "TMPDIR": str(odd)})
        self.refused(result, 125, "name another folder in TMPDIR")

    def test_a_limit_without_room_is_refused(self):
        for limit in ("0", "1", "65535"):
            self.refused(self.build(self.header(".pages = {.limit = %s}" % limit)), 125, "recipe.pages.limit: at least 64 KiB")

    def test_a_trial_that_fails_is_named(self):
        """A compiler that makes another malloc than it is asked for."""
        other = self.folder / "other.sh"
        other.write_text('#!/bin/bash\nfor word; do [ "$before" = -o ] && out=$word; before=$word; done\n'
                         '"c++" "$@" && case $out in *.unfinished) cp %s "$out" ;; esac\n' % PLAIN)
        other.chmod(0o755)
        result = self.build(self.header(""), "--check", "--compiler", str(other))
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stderr, r"was built, but its trial malloc_conformance \w.*: ")
        self.assertNotIn(" | ", result.stderr.split("malloc_conformance")[1].split(":")[0])
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)

    def test_a_malloc_to_run_programs_with(self):
        result = self.build(self.header(".classes = {.exact = {24, 40, 96}}, .spans = {.last = {4 * heapwright::KiB, 4, 8}}, "
                                        ".pages = {.purge_window_ms = 123}"), "--check")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("tried and good", result.stdout)
        self.assertIn("heapwright run --with", result.stdout)
        needed = subprocess.run(["objdump", "-p", self.library], capture_output=True, text=True, check=True).stdout
        self.assertEqual([w.split()[1] for w in needed.splitlines() if "NEEDED" in w], ["libc.so.6"])
        says = heapwright("run", "--with", str(self.library), "--stats", "--", "python3", "-c", "print(6 * 7)")
        self.assertEqual(says.stdout, "42\n")
        self.assertIn("(recipe mine)", says.stderr)
        compared = heapwright("compare", "--rounds", "2", "--only", "glibc", "--with", f"mine={self.library}", "--json", "-", "--",
                              fixture("scattered"), "300000", "0", "3")
        mine = next(row for row in json.loads(compared.stdout)["rows"] if row["name"] == "mine")
        advice = {f["rule"]: f["advice"] for f in mine["findings"]}["free_in_spans_of_one_class"]
        self.assertTrue(advice.startswith("Spans of the recipe are short already"), advice)
        table = heapwright("compare", "--rounds", "2", "--only", "glibc", "--with", f"mine={self.library}", "--", fixture("scattered"), "300000", "0", "3")
        self.assertIn("Spans of the recipe are short already", table.stdout)

    def test_operator_new_keeps_its_alignment_where_sizes_are_odd_multiples_of_8(self):
        """Clang clears an object of 24 bytes by an instruction that needs 16."""
        self.assertEqual(self.build(self.header(".classes = {.exact = {24, 40, 96}}")).returncode, 0)
        source, program = self.folder / "new.cpp", self.folder / "new"
        source.write_text("#include <cstdint>\n#include <cstdlib>\n#include <new>\n"
                          "int main() {\n  int odd = 0, odd_of_malloc = 0;\n"
                          "  for (int i = 0; i < 1000; ++i) {\n"
                          "    void* const all[] = {operator new(24), operator new[](40), operator new(24, std::nothrow)};\n"
                          "    for (void* p : all) odd += reinterpret_cast<std::uintptr_t>(p) % 16 != 0;\n"
                          "    odd_of_malloc += reinterpret_cast<std::uintptr_t>(std::malloc(24)) % 16 != 0;\n"
                          "    operator delete(all[0], std::size_t{24});\n  }\n"
                          "  return odd > 0 ? 1 : odd_of_malloc > 0 ? 0 : 2;\n}\n")
        subprocess.run(["c++", "-O0", str(source), "-o", str(program)], check=True)
        self.assertEqual(heapwright("run", "--with", str(self.library), "--", str(program)).returncode, 0)

    def test_sizes_up_to_the_longest_that_are_cut_from_spans(self):
        sizes = [16 * i * i for i in range(1, 32)] + [32768]
        self.assertEqual(self.build(self.header(f".classes = {{.exact = {{{', '.join(map(str, sizes))}}}}}")).returncode, 0)
        says = heapwright("run", "--with", str(self.library), "--", "python3", "-c", "print(sum(len('x' * i) for i in range(40000)))")
        self.assertEqual(says.stdout, "799980000\n")

    def test_a_compiler_that_makes_nothing(self):
        result = self.build(self.header(""), "--compiler", "true")
        self.refused(result, 125, "mine cannot be built", "true ended well, but has made no malloc: is it a C++ compiler?")
        self.assertFalse(self.library.exists())

    def test_the_examples(self):
        recipes = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples/recipes").glob("*.hpp"))
        self.assertGreaterEqual(len(recipes), 4)
        for recipe in recipes:
            self.assertEqual(self.build(str(recipe)).returncode, 0, recipe)
            says = heapwright("run", "--with", str(self.library), "--", "python3", "-c", "print(sum(len(str(i)) for i in range(100000)))")
            self.assertEqual(says.stdout, "488890\n", recipe)

    def test_what_was_had_of_the_system_is_told(self):
        transparent = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
        if not transparent.exists() or "[never]" in transparent.read_text():
            self.skipTest("no transparent huge pages")
        self.assertEqual(self.build(self.header(".pages = {.huge = heapwright::huge_page_use::transparent}")).returncode, 0)
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": str(self.library)})
        self.addCleanup(child.communicate)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        told = json.loads(heapwright("info", "--json", str(child.pid)).stdout)
        self.assertEqual(told["build"], "recipe mine")
        self.assertEqual(told["bytes"]["huge_transparent_total"], told["bytes"]["mapped"])
        self.assertRegex(heapwright("info", str(child.pid)).stdout, "had so far advised to be in huge pages: 2.0 MiB")

    def test_the_other_compiler(self):
        if shutil.which("clang++-16") is None:
            self.skipTest("no clang++-16")
        self.assertEqual(self.build(self.header(""), "--compiler", "clang++-16").returncode, 0)
        self.assertEqual(heapwright("run", "--with", str(self.library), "--", "true").returncode, 0)
        self.not_built(self.build_again(".classes = {.steps_per_doubling = 3}", "clang++-16"),
                       "recipe.classes: steps_per_doubling and largest must be powers of two")

    def build_again(self, content, compiler):
        self.library.unlink()
        return self.build(self.header(content), "--compiler", compiler)

    def test_what_is_wrong_with_a_recipe_is_said_in_a_sentence(self):
        for content, sentence in [
            (".classes = {.steps_per_doubling = 3}", "recipe.classes: steps_per_doubling and largest must be powers of two"),
            (".classes = {.exact = {16, 16}}", "recipe.classes.exact: at most 32 sizes, rising"),
            (".classes = {.exact = {16, 1040}}", "recipe.classes.exact: the last size must be one that the steps"),
            (".thread_cache = {.max_batch = 0}", "recipe.thread_cache.max_batch: from 1 to 256"),
            (".pages = {.prefault = true}", "give_back must be at_once or when_asked"),
            (".concurrency = heapwright::concurrency_mode::central", "a malloc is thread_caching"),
        ]:
            result = self.build(self.header(content))
            self.not_built(result, "recipe.hpp: mine cannot be built:\n  ", sentence)
            self.assertLessEqual(len(result.stderr.splitlines()), 3, result.stderr)

    def test_what_the_compiler_says_of_a_header_has_file_and_line(self):
        self.not_built(self.build(self.header(".no_such_field = 1")), "recipe.hpp:2:", "no_such_field")

    def test_the_recipe_is_not_replaced_by_the_library(self):
        header = self.header("")
        before = pathlib.Path(header).read_text()
        other = self.folder / "other.hpp"
        os.link(header, other)
        for output in (header, str(self.folder / "." / "recipe.hpp"), str(other)):
            result = heapwright("build", header, "-o", output, env={**os.environ, "TMPDIR": str(self.folder)})
            self.not_built(result, "is the recipe itself", "give -o another name")
            self.assertEqual(pathlib.Path(header).read_text(), before)

    def test_recipes_for_heaps_of_ones_own_alone(self):
        for content in (".notes_requests = true",):
            self.not_built(self.build(self.header(content)), "recipe.hpp: mine cannot be built:", "for heaps of one's own")

    def test_a_recipe_that_is_not_constexpr(self):
        for words in ("inline", "inline const", "static", ""):
            result = self.build(self.header("#include <heapwright/heap/recipe.hpp>\nnamespace n { %s heapwright::recipe a{}; }\n" % words))
            self.not_built(result, "recipe.hpp: n::a cannot be built:\n  n::a is not constexpr: write inline constexpr heapwright::recipe a{...};\n")
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)

    def test_a_missing_semicolon_is_the_headers(self):
        for more in ([], ["--compiler", "clang++-16"] if shutil.which("clang++-16") else []):
            result = self.build(self.header(self.RECIPE.rstrip(";\n") % ""), *more)
            self.not_built(result, "recipe.hpp:2:", ";")
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)

    def test_which_recipe(self):
        self.not_built(self.build(self.header("// recipe x = {}\n")), "defines no recipe", "--recipe NAME")
        two = "#include <heapwright/heap/recipe.hpp>\nconstexpr heapwright::recipe a{}, b{};\nconstexpr heapwright::recipe c = {};\n"
        self.not_built(self.build(self.header(two)), "several recipes: a, b, c", "--recipe NAME")
        self.assertEqual(self.build(self.header(two), "--recipe", "b").returncode, 0)
        self.library.unlink()
        self.not_built(self.build(self.header(two), "--recipe", "d"), "defines no recipe named d")

    def test_a_name_that_is_no_recipe(self):
        text = ("#include <heapwright/heap/recipe.hpp>\nnamespace n { inline constexpr heapwright::recipe a{}; }\ninline int number = 1;\n"
                "template <class T> inline constexpr heapwright::recipe many{};\n")
        for name in ("n::a;", "n::a, x = n::a", "n::a{}", "number", "many", "a", "n", ":n::a", "-n::a", "x\ny", "1", "n::", "n::b"):
            self.not_built(self.build(self.header(text), "--recipe", name), f"recipe.hpp defines no recipe named {name}; it defines n::a\n")
        self.assertEqual(self.build(self.header(text), "--recipe", "many<int>").returncode, 0)

    def test_what_is_not_inline_in_the_header_is_named(self):
        for more, names, pronoun in (('const char* title = "x";', "title", "it"), ("int helper(int i) { return i; }", "helper(int)", "it"),
                                     ("int one = 1; namespace n { void two() {} }", "(n::two\\(\\), one|one, n::two\\(\\))", "them")):
            result = self.build(self.header(self.RECIPE % "" + more + "\n"))
            self.not_built(result, "recipe.hpp: mine cannot be built:\n  the header defines ")
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)
            names = names if pronoun == "them" else re.escape(names)
            self.assertRegex(result.stderr, f"the header defines {names} without inline, and so once in each file that includes it: make {pronoun} inline\n")

    def test_a_recipe_may_be_auto(self):
        one = "#include <heapwright/heap/recipe.hpp>\n#if 0\ninline constexpr heapwright::recipe old{};\n#endif\ninline constexpr auto a = heapwright::recipe{};\n"
        result = self.build(self.header(one))
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("a malloc from a of", result.stdout)

    def test_a_member_is_named(self):
        one = "#include <heapwright/heap/recipe.hpp>\nstruct config { static constexpr heapwright::recipe mine = {}%s; };\n"
        self.not_built(self.build(self.header(one % "")), "recipe.hpp defines no recipe at namespace scope, but a member of a class: config::mine; ",
                       "heapwright build --recipe config::mine\n")
        self.not_built(self.build(self.header(one % ", other = {}")), "but members of a class: config::mine, config::other; ", "build --recipe NAME\n")
        result = self.build(self.header(one % ""), "--recipe", "config::mine")
        self.assertEqual(result.returncode, 0, result)

    def test_locals_are_no_recipes(self):
        """A recipe that is derived by a lambda, as docs/recipes.md has it, in a namespace."""
        one = ("#include <heapwright/heap/recipe.hpp>\nnamespace app {\ninline constexpr heapwright::recipe for_index = [] {\n"
               "  heapwright::recipe r = {};\n  r.pages.purge_window_ms = 321;\n  return r;\n}();\n}\n")
        for options in ([], ["--recipe", "app::for_index"], ["--recipe", "::app::for_index"]):
            result = self.build(self.header(one), *options)
            self.assertEqual(result.returncode, 0, result)
            self.assertIn("a malloc from app::for_index of", result.stdout)
        says = heapwright("run", "--with", str(self.library), "--stats", "--", "true")
        self.assertIn("(recipe app::for_index)", says.stderr)

    def test_bad_input(self):
        good = self.header("")
        self.not_built(self.build("/no/such/header.hpp"), "cannot be read: No such file")
        self.not_built(self.build(str(self.folder)), "is a folder")
        self.not_built(self.build(good, "--compiler", "no-such-compiler"), "no-such-compiler cannot be run", "--compiler")
        self.not_built(self.build(good, CXX="no-such-compiler"), "no-such-compiler cannot be run")
        self.refused(heapwright("build", good, "-o", "/no/such/folder/lib.so"), 125, "its folder does not exist")
        self.refused(heapwright("build", good), 125, "--output is missing")
        self.refused(heapwright("build", good, "-o", ""), 125, "build: --output: it is empty")
        self.refused(heapwright("build", "", "-o", "lib.so"), 125, "build: HEADER: it is empty")
        self.refused(self.build(good, TMPDIR="/no/such/folder"), 125, "cannot make a folder /no/such/folder")
        locked = self.folder / "locked"
        locked.mkdir(mode=0o555)
        if os.getuid() != 0:
            self.refused(heapwright("build", good, "-o", str(locked / "lib.so")), 125, "cannot be written to: Permission denied")
        spaced = heapwright("build", good, "-o", str(locked.rename(self.folder / "a folder") / "lib.so"))
        self.assertEqual(spaced.returncode, 0 if os.getuid() == 0 else 125)

    def test_a_command_without_the_sources_says_what_to_install(self):
        alone = self.folder / "away" / "bin" / "heapwright"
        alone.parent.mkdir(parents=True)
        shutil.copy(HEAPWRIGHT, alone)
        done = subprocess.run([alone, "build", self.header(".pages = {}"), "-o", str(self.folder / "libmine.so")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 125)
        self.assertRegex(done.stderr, r"^heapwright: the sources of the malloc are not in .*/share/heapwright/malloc; install heapwright as a whole, with cmake --install\n$")

    def test_interruption_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([HEAPWRIGHT, "build", self.header(""), "-o", str(self.folder / "lib.so")],
                                       env={**os.environ, "TMPDIR": str(self.folder)}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not any(self.folder.glob("heapwright-*/check.cpp")):
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)
            self.assertEqual([p.name for p in self.folder.iterdir()], ["recipe.hpp"])

    def test_interrupted_while_compare_builds(self):
        process = subprocess.Popen([HEAPWRIGHT, "compare", "--with", self.header(""), "--", "true"],
                                   env={**os.environ, "TMPDIR": str(self.folder)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        while not any(self.folder.glob("heapwright-*/check.cpp")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        messages = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, -signal.SIGINT, messages)
        self.assertIn("heapwright: interrupted while mine was built: nothing has run\n", messages)

    def test_interrupted_while_it_is_tried_the_old_library_stays(self):
        library = self.folder / "lib.so"
        for before, told in ((None, "is not made"), (b"an old one", "is as it was")):
            if before is not None:
                library.write_bytes(before)
            process = subprocess.Popen([HEAPWRIGHT, "build", self.header(""), "-o", str(library), "--check"],
                                       env={**os.environ, "TMPDIR": str(self.folder)}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

            def tries():
                with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
                    for child in children.read().split():
                        try:
                            with open(f"/proc/{child}/comm") as name:
                                if name.read().startswith(("malloc_conf", "stress")):
                                    return True
                        except (FileNotFoundError, ProcessLookupError):
                            pass
                return False
            while not tries() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=30)
            self.assertEqual(process.returncode, -signal.SIGINT, messages)
            self.assertRegex(messages, rf"interrupted: \S+lib\.so {told}\n")
            self.assertEqual(library.read_bytes() if library.exists() else None, before)
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["lib.so", "recipe.hpp"] if before else ["recipe.hpp"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
