"""`heapwright live` on a program in Go that calls C, as executables of several kinds.

usage: go_test.py HEAPWRIGHT LIBHEAPWRIGHT GO_CACHE

GO_CACHE is a folder where Go keeps what it has compiled.
"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

from watched import HEAPWRIGHT, Watched, clean_environment, go_environment, wait_for

GO_CACHE = os.path.abspath(sys.argv[3])

NOT_OWN = ("runtime.", "_cgo", "main._Cfunc_")

# Says "ready" when 50 goroutines have kept their blocks, some of them from stacks that had to grow.
PROGRAM = """
package main

/*
#include <stdlib.h>
#include <string.h>
extern void calledBack(int rounds);
static void *keep_pages(size_t bytes) { void *p = malloc(bytes); memset(p, 1, bytes); return p; }
static void call_back(int rounds) { calledBack(rounds); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

var lock sync.Mutex
var kept []unsafe.Pointer

func keep(p unsafe.Pointer) {
	lock.Lock()
	kept = append(kept, p)
	lock.Unlock()
}

//go:noinline
func rememberPage() { keep(C.keep_pages(20000)) }

//go:noinline
func rememberName() { keep(unsafe.Pointer(C.CString(fmt.Sprintf("%9000d", len(kept))))) }

//go:noinline
func loseName() { C.CString(fmt.Sprintf("%7000d", 1)) }

//export calledBack
func calledBack(rounds C.int) {
	keep(C.keep_pages(30000))
	if rounds > 0 {
		C.call_back(rounds - 1)
	}
}

//go:noinline
func descend(calls int) byte {
	var room [1024]byte
	room[calls] = 1
	if calls == 0 {
		rememberPage()
		return room[1]
	}
	return descend(calls-1) + room[calls]
}

func main() {
	var all sync.WaitGroup
	for i := 0; i < 50; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for round := 0; round < 20; round++ {
				descend(i)
				rememberName()
				loseName()
				if round == 10 {
					runtime.GC()
				}
			}
			C.call_back(2)
		}(i)
	}
	all.Wait()
	fmt.Println("ready")
	fmt.Scanln()
}
"""


class CallsInGo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("go") is None:
            raise unittest.SkipTest("go is not installed")
        if platform.machine() != "x86_64":
            raise unittest.SkipTest("calls in Go are told on x86-64")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with open(os.path.join(cls.folder, "main.go"), "w") as file:
            file.write(PROGRAM)

    def build(self, *options):
        program = os.path.join(self.folder, "program")
        subprocess.run(["go", "build", *options, "-o", program, "main.go"], cwd=self.folder, check=True, timeout=300,
                       env=go_environment(self.folder, GO_CACHE) | {"GO111MODULE": "off", "CGO_ENABLED": "1"})
        return program

    def watch(self, program, **options):
        watched = Watched(program, **options)
        self.addCleanup(watched.end)
        self.assertEqual(watched.hear(), "ready")
        return watched

    def check(self, program):
        sites = self.watch(program).sites("value=live&most=100")
        of_name = {names[site["site"]]: (names, site) for names, site in sites}
        names, site = of_name["main.rememberName"]
        self.assertEqual(site["live_blocks"], 50 * 20)
        self.assertEqual(names[-1].removesuffix(".abi0"), "runtime.goexit")
        # Two callers: the largest is told with its stack.
        by_caller = {names[site["caller"]]: (names, site) for names, site in sites if names[site["site"]] == "keep_pages"}
        self.assertEqual({name: site["live_blocks"] for name, (_, site) in by_caller.items()}, {"main.rememberPage": 50 * 20, "main.calledBack": 50 * 3})
        names, _ = by_caller["main.rememberPage"]
        self.assertIn("main.descend", names)
        self.assertIn("main.main.func1", names)
        self.assertEqual(names[-1].removesuffix(".abi0"), "runtime.goexit")

    def test_an_executable(self):
        self.check(self.build())

    def test_a_position_independent_executable(self):
        self.check(self.build("-buildmode=pie"))

    def test_an_executable_without_the_paths_of_its_source(self):
        program = self.build("-trimpath")
        self.check(program)
        own = {place[0] for place in self.watch(program).get("/api/stacks?value=live&libraries=folded")["places"]}
        self.assertFalse({name for name in own if name.startswith(NOT_OWN)})

    def test_lines(self):
        answer = self.watch(self.build()).get("/api/sites?value=live&most=100")
        places = [answer["places"][site["stack"][site["site"]]] for site in answer["sites"]]
        line = 1 + next(i for i, text in enumerate(PROGRAM.splitlines()) if "C.CString" in text)
        self.assertIn(["main.rememberName", os.path.join(self.folder, "main.go"), line], [place[:3] for place in places])

    def test_packages_and_only_the_programs_own_code(self):
        watched = self.watch(self.build())
        packages = watched.get("/api/stacks?value=live&by=package")["places"]
        self.assertLessEqual({"go", "program"}, {place[0] for place in packages})
        own = {place[0] for place in watched.get("/api/stacks?value=live&libraries=folded")["places"]}
        self.assertLessEqual({"main.rememberName", "main.rememberPage", "keep_pages", "main.main.func1"}, own)
        self.assertFalse({name for name in own if name.startswith(NOT_OWN)})

    def test_leaks_names_calls_in_go(self):
        program = self.build()
        report = subprocess.run([HEAPWRIGHT, "leaks", "--", program], input="\n", capture_output=True, text=True, timeout=120, env=clean_environment())
        self.assertRegex(report.stderr, r"(?s)definitely lost.* main\.loseName .*main\.go:\d+.* main\.main\.func1 ")

    def test_goroutines_while_the_garbage_collector_moves_stacks(self):
        watched = self.watch(self.build(), sample="4096")
        wait_for("samples", lambda: watched.get("/api/sites?value=live&most=100")["sites"])
        self.assertIn("main.descend", watched.functions("live"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
