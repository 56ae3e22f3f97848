#!/usr/bin/env python3
"""`heapwright info`: what it says of an installation and of a process, and what is said of Go's programs.

Usage: info_test.py path/to/heapwright path/to/fixtures [unittest options]
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

from support import Case, HEAPWRIGHT, PLAIN, compare, fixture, heapwright


class Go(Case):
    """Go allocates without malloc: what heapwright can and cannot do for such a program is said."""

    PURE = 'package main\nimport "fmt"\nimport "os"\nfunc main() { fmt.Println("hello"); if len(os.Args) > 1 { os.Stdin.Read(make([]byte, 1)) } }\n'
    WITH_C = ('package main\n// #include <stdlib.h>\nimport "C"\nimport "fmt"\n'
              'import "os"\nfunc main() { C.free(C.malloc(100)); fmt.Println("hello"); if len(os.Args) > 1 { os.Stdin.Read(make([]byte, 1)) } }\n')

    def has_no_malloc(self, program):
        for words in (["run"], ["run", "--stats"], ["compare"], ["live", "--no-browser"], ["leaks"]):
            result = heapwright(*words, "--", program)
            self.refused(result, 125, "is a Go program", "does not call malloc", "GOGC", "GOMEMLIMIT", "GODEBUG", "go tool pprof")
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

        # The same is said of one that runs: advice to start it with the probe would be refused.
        child = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate)
        for words in (["top", "--once"], ["live", "--no-browser"]):
            result = heapwright(*words, str(child.pid))
            self.refused(result, 125, "cannot be observed", "is a Go program", "does not call malloc", "GOGC", "go tool pprof")
            self.assertNotIn("live -- COMMAND", result.stderr)
        return result.stderr

    def has_some_malloc(self, program, printed):
        for words in (["run"], ["run", "--with", PLAIN], ["live", "--no-browser", "--exit-with-program", "--port", "0"], ["leaks"]):
            result = heapwright(*words, "--", program)
            self.assertIn(result.returncode, (0, 1), result)
            self.assertEqual(result.stdout, printed)
            self.assertEqual(result.stderr.count("is a Go program"), 1, result.stderr)
            self.assertIn("only what its C code allocates", result.stderr)
        result = compare("--", program)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("only what its C code allocates", result.stderr)

    def info_of(self, *command):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(child.communicate)
        child.stdout.readline()  # it has printed: it is well past its start
        return heapwright("info", str(child.pid)).stdout

    def is_static_with_c(self, program):
        said = self.has_no_malloc(program)
        self.assertNotIn("without C code", said)
        self.assertIn("its C code (cgo)", said)
        child = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.assertIn("that of its C code is linked into it", heapwright("info", str(child.pid)).stdout)

    def test_by_its_section(self):
        self.is_static_with_c(fixture("like_go_static"))
        self.assertIn("without C code", self.has_no_malloc(fixture("like_go_pure")))
        self.has_some_malloc(fixture("like_go"), "")
        script = self.folder / "script"
        script.write_text(f"#!{fixture('like_go_static')}\n")
        script.chmod(0o755)
        self.has_no_malloc(str(script))

    def has_no_statistics(self, code, *command):
        result = heapwright("run", "--stats=all", "--", *command)
        self.assertEqual(result.returncode, code, result)
        self.assertRegex(result.stderr, r"process \d+ left no statistics: it is a Go program, and Go ends without the C library's exit, which writes them; while it runs, `heapwright info PID` has them\n")
        self.assertNotIn("not loaded", result.stderr)
        self.assertNotIn("peak held", result.stderr, "no empty table")
        self.assertEqual(result.stderr.count("left"), 1, "told once")

    def test_statistics(self):
        self.has_no_statistics(3, fixture("like_go"), "leave")
        result = heapwright("run", "--stats", "--", "sh", "-c", f"exec {fixture('like_go')} leave")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("or without the C library's exit (as Go's programs do)", result.stderr)
        self.assertRegex(heapwright("run", "--stats", "--", fixture("like_go")).stderr, "mapped at the peak")

    def test_info(self):
        child = subprocess.Popen([fixture("like_go_static")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate)
        result = heapwright("info", str(child.pid))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("is a Go program", result.stdout)

    @unittest.skipIf(shutil.which("go") is None, "Go is not installed")
    def test_of_the_compiler(self):
        def made(text, with_c, *flags):
            (self.folder / "main.go").write_text(text)
            program = str(self.folder / f"program{with_c}")
            subprocess.run(["go", "build", "-ldflags=-s -w " + " ".join(flags), "-o", program, "main.go"], cwd=self.folder, check=True,
                           env={**os.environ, "CGO_ENABLED": with_c, "GOFLAGS": "-mod=mod", "GOCACHE": str(self.folder / "cache"),
                                "GO111MODULE": "off", "GOTOOLCHAIN": "local"})
            return program

        self.assertIn("without C code", self.has_no_malloc(made(self.PURE, "0")))
        self.is_static_with_c(made(self.WITH_C, "1", "-linkmode external -extldflags -static"))
        with_c = made(self.WITH_C, "1")
        self.has_some_malloc(with_c, "hello\n")
        self.has_no_statistics(0, with_c)
        self.assertIn(": loaded\n", self.info_of(HEAPWRIGHT, "run", with_c, "wait"))


class Info(Case):
    def process(self, *command, **variables):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                                 env={**os.environ, **variables})
        self.addCleanup(child.communicate)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.read(1)  # cat has echoed: it is well past its start.
        return str(child.pid)

    def test_the_installation(self):
        result = heapwright("info")
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"heapwright \d+\.\d+\.\d+\nlibrary +/.*/libheapwright\.so")
        options = json.loads(heapwright("info", "--json").stdout)["options"]
        self.assertIn("HEAPWRIGHT_STATS", [o["name"] for o in options])

    def test_loaded(self):
        pid = self.process(HEAPWRIGHT, "run", "cat")
        result = heapwright("info", pid)
        self.assertEqual(result.returncode, 0, result)
        for word in ("loaded", "version", "recipe", "options", "RSS", "spans", "given back"):
            self.assertIn(word, result.stdout)
        self.assertRegex(result.stdout, r"\n +free, not given back +[\d.]+ ")
        self.assertIn("what is free and not given back need not all be in memory", result.stdout)
        found = json.loads(heapwright("info", "--json", pid).stdout)
        self.assertTrue(found["loaded"])
        self.assertEqual(found["malloc"], found["library"], "one file has one path, though it was loaded by a link to it")
        b = found["bytes"]
        self.assertGreater(b["mapped"], 0)
        self.assertLess(b["metadata_resident"], 512 << 10)
        self.assertLess(b["metadata_resident"], b["metadata"])
        self.assertRegex(result.stdout, r"reserved for the heap's records +6\.\d MiB.*\n +of these in memory, about +\d+ KiB")
        self.assertEqual(b["mapped"], b["spans"] + b["large"] + b["free_resident"] + b["free_decommitted"])

    def test_not_loaded(self):
        result = heapwright("info", self.process("cat"))
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, "not loaded; its malloc is glibc")
        result = heapwright("info", self.process("cat", LD_PRELOAD=PLAIN))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("libplain_allocator.so", result.stdout)

    def test_loaded_but_not_in_effect(self):
        library = os.path.realpath(os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright.so"))
        pid = self.process("cat", LD_PRELOAD=f"{PLAIN} {library}")
        result = heapwright("info", pid)
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, rf"process {pid}: {library} is loaded, but not in effect; its malloc is "
                                        rf"libplain_allocator.so \({PLAIN}\), RSS ")
        # cat has its buffer of aligned_alloc.
        self.assertRegex(result.stdout, r"(?s)^[^\n]*\n(  It has mapped [^\n]* for functions that this malloc does not define [^\n]*\n)?$")
        result = heapwright("info", "--json", pid)
        found = json.loads(result.stdout)
        self.assertEqual((result.returncode, found["loaded"], found["in_effect"], found["malloc"]), (1, True, False, PLAIN))
        pid = self.process("cat", LD_PRELOAD=f"{os.path.relpath(PLAIN)} {library}")
        self.assertEqual(json.loads(heapwright("info", "--json", pid).stdout)["malloc"], PLAIN)
        # One that is first, and one behind the probe, which hands each call on.
        pid = self.process("cat", LD_PRELOAD=f"{library} {PLAIN}")
        self.assertTrue(json.loads(heapwright("info", "--json", pid).stdout)["in_effect"])
        probe = os.path.join(os.path.dirname(library), "libheapwright-probe.so")
        pid = self.process("cat", LD_PRELOAD=f"{probe} {library}", HEAPWRIGHT_SEGMENT_DIR=str(self.folder))
        result = heapwright("info", pid)
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, rf"process {pid}: loaded\n  library  {library}\n  malloc   calls reach {probe} first\n")

    def test_linked_into_a_static_program(self):
        result = heapwright("info", self.process(fixture("static_echo")))
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("static_echo", result.stdout)
        stripped = self.folder / "stripped"
        subprocess.run(["strip", "-o", stripped, fixture("static_echo")], check=True)
        result = heapwright("info", self.process(stripped))
        self.assertEqual(result.returncode, 0, result)
        self.assertIn(f"library  {stripped}", result.stdout)

    def test_a_program_that_is_static(self):
        result = heapwright("info", self.process(fixture("static_cat")))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn(f"its malloc is within {fixture('static_cat')}", result.stdout)

    def test_a_library_that_build_made(self):
        """Under any name, and when its file is gone or another one."""
        header = self.folder / "recipe.hpp"
        name = "a_recipe_whose_name_is_" + "very_" * 20 + "long"
        header.write_text(f"#include <heapwright/heap/recipe.hpp>\ninline constexpr heapwright::recipe {name} = {{}};\n")
        library = self.folder / "another name.so"
        self.assertEqual(heapwright("build", str(header), "-o", str(library)).returncode, 0)
        linked = self.folder / "libgood.so"
        library.rename(linked)
        inode = linked.stat().st_ino
        by_run = self.process(HEAPWRIGHT, "run", "--with", str(linked), "cat")
        by_hand = self.process("cat", LD_PRELOAD=linked)
        for change in (lambda: None, lambda: shutil.copy(PLAIN, self.folder / "other.so").rename(linked), linked.unlink):
            change()
            for pid in (by_run, by_hand):
                result = heapwright("info", pid)
                self.assertEqual(result.returncode, 0, result)
                gone = "" if linked.exists() and linked.stat().st_ino == inode else " (deleted)"
                self.assertIn(f"library  {linked}{gone}\n", result.stdout)
                self.assertIn(f"recipe   {name[:60]}", result.stdout)
                self.assertIn("in spans of small blocks", result.stdout)
                found = json.loads(heapwright("info", "--json", pid).stdout)
                self.assertEqual((found["loaded"], found["malloc"]), (True, str(linked)))
                self.assertTrue(name.startswith(found["recipe"]), found)

    def test_the_recipe_of_the_library_itself(self):
        pid = self.process(HEAPWRIGHT, "run", "cat")
        self.assertIn("recipe   default_recipe\n", heapwright("info", pid).stdout)

    def test_the_command_itself(self):
        """`heapwright run --stats PROGRAM & heapwright info $!` asks for the wrong process."""
        result = heapwright("info", self.process(HEAPWRIGHT, "run", "--stats", "cat"))
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"is heapwright itself; its command is process \d+: heapwright info \d+")

    def test_the_probe_is_not_the_malloc(self):
        probe = os.path.join(os.path.dirname(os.path.dirname(HEAPWRIGHT)), "lib", "libheapwright-probe.so")
        for libraries, malloc in ((probe, "glibc"), (f"{probe}:{PLAIN}", os.path.basename(PLAIN))):
            result = heapwright("info", self.process("cat", LD_PRELOAD=libraries))
            self.assertEqual(result.returncode, 1, result)
            self.assertIn(f"not loaded; its malloc is {malloc}", result.stdout)

    def test_unreadable(self):
        self.refused(heapwright("info", "2147483647"), 2, "no such process")
        pid = self.process("cat", LD_PRELOAD=fixture("libforeign_record.so"))
        self.refused(heapwright("info", pid), 2, "layout 99")

    @unittest.skipIf(os.getuid() != 0, "needs another user's process")
    def test_not_permitted(self):
        pid = self.process("cat")
        result = heapwright("info", pid, user=65534, group=65534, extra_groups=[])
        self.refused(result, 2, "as the same user or as root")
        if shutil.which("setpriv") is None:
            self.skipTest("no setpriv")
        for command in (["info", pid], ["top", "--once", pid]):
            result = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-perfmon", HEAPWRIGHT, *command],
                                    capture_output=True, text=True)
            self.assertNotIn("as root", result.stderr, "it is root")
            self.assertRegex(result.stderr, "root needs CAP_SYS_PTRACE, which is missing")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
