"""`heapwright live` on real programs, on their own malloc and on libheapwright.

usage: programs_test.py HEAPWRIGHT LIBHEAPWRIGHT PROBE_STRESS SCATTERED [unittest options]
"""
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error

from watched import FIGURES, HEAPWRIGHT, LIBRARY, PATIENCE, PYTHON, PYTHON_PROGRAM, Watched, clean_environment, free_port, sums, wait_for, without_stack

STRESS, SCATTERED = (os.path.abspath(path) for path in sys.argv[3:5])

NODE_PROGRAM = """
const { Worker, isMainThread } = require('worker_threads');
const crypto = require('crypto');
const kept = [];
function keepSomeBuffers(n) {
  for (let i = 0; i < n; ++i) kept.push(Buffer.allocUnsafeSlow(50000));
  return crypto.createHash('sha256').update(kept[0]).digest('hex');
}
if (isMainThread) {
  let ready = 0;
  for (let i = 0; i < 2; ++i) new Worker(__filename).on('message', () => { if (++ready === 2) console.log('ready'); });
  require('readline').createInterface({ input: process.stdin }).on('line', () => {
    for (let i = 0; i < 20; ++i) keepSomeBuffers(50);
    console.log('done');
  });
} else {
  for (let i = 0; i < 20; ++i) keepSomeBuffers(10);
  require('worker_threads').parentPort.postMessage('ready');
  setInterval(() => {}, 1000);
}
"""

WITH_NAMES_AND_WITHOUT = """
#include <stdio.h>
#include <stdlib.h>
void* kept[1000];
static __attribute__((noinline)) void inner(int i) { kept[i] = malloc(5000); }
static __attribute__((noinline)) void outer(int i) { inner(i); }
__attribute__((noinline)) void has_a_name(void) { for (int i = 0; i < 1000; ++i) outer(i); }
int main(void) { has_a_name(); puts("ready"); fflush(stdout); return getchar(); }
"""

# push rbp; mov rbp, rsp; mov edi, 70000; mov rax, malloc; call rax; pop rbp; ret
CODE_MAKER = """
import ctypes, mmap, os, struct, sys
malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code = bytes.fromhex("55 48 89 e5 bf") + struct.pack("<I", 70_000) + bytes.fromhex("48 b8") + struct.pack("<Q", malloc) + bytes.fromhex("ff d0 5d c3")
address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + 256
memory[256:256 + len(code)] = code
made = ctypes.CFUNCTYPE(ctypes.c_void_p)(address)
for _ in range(100): made()
print("ready", flush=True)
for _ in sys.stdin:
    with open(f"/tmp/perf-{os.getpid()}.map", "w") as names: names.write(f"{address:x} {len(code):x} made just in time(int, void*)\\n")
    for _ in range(100): made()
    print("done", flush=True)
"""


# Says "ready", keeps blocks of native memory for each line that it reads, and answers it.
JAVA_PROGRAM = """
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.zip.Inflater;

public class Program {
  static final ArrayList<Object> kept = new ArrayList<>();

  static void keepBuffers(int n) {
    for (int i = 0; i < n; ++i) kept.add(ByteBuffer.allocateDirect(5_000));
  }

  static void keepInflaters(int n) {
    for (int i = 0; i < n; ++i) kept.add(new Inflater());
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 500; ++i) {  // until both are compiled
      keepBuffers(1);
      keepInflaters(1);
    }
    System.out.println("ready");
    for (int c; (c = System.in.read()) >= 0;) {
      if (c != '\\n') continue;
      keepBuffers(100);
      keepInflaters(100);
      System.out.println("done");
    }
  }
}
"""


class Programs:
    """All that should hold on any malloc; `preload` is that malloc, or None for the program's own."""
    preload = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def need(self, *commands):
        for command in commands:
            if shutil.which(command) is None:
                self.skipTest(f"{command} is not installed")

    def watch(self, *command, **options):
        watched = Watched(*command, preload=self.preload, folder=self.folder, **options)
        self.addCleanup(watched.end)
        return watched

    def check(self, watched):
        """The figures of a moment, at which it stands still, fit together."""
        state = watched.stop()
        process, totals = state["process"], state["totals"]
        self.assertEqual(process["state"], "running")
        self.assertTrue(process["has_probe"] and process["is_counting"] and process["counts_from_start"])
        self.assertEqual((process["interval"], process["lost_samples"]), (1, 0))
        self.assertEqual(process["allocator"] == os.path.realpath(LIBRARY) or process["allocator"] == LIBRARY, self.preload is not None)
        self.assertEqual(totals["live"], totals["allocated_bytes"] - totals["freed_bytes"])
        self.assertEqual(totals["live_blocks"], totals["allocations"] - totals["frees"])
        self.assertGreater(totals["live"], 0)
        self.assertGreater(totals["live_blocks"], 0)
        self.assertGreaterEqual(process["peak"], totals["live"])
        self.assertGreater(state["memory"]["rss"], 0)
        self.check_sums(state)
        cells = watched.get("/api/cells")
        self.assertEqual(sums(cells["rows"], cells["columns"], FIGURES), [totals[name] for name in FIGURES])

        memory = self.memory_since(watched, state["at"])
        parts = dict(memory["parts"])
        self.assertEqual(sum(parts.values()) - memory["not_resident"], memory["rss"])
        self.assertTrue(all(part >= 0 for part in parts.values()))
        self.assertEqual(parts["requested"] + parts["rounding"], totals["live"])
        if self.preload is None:
            self.assertIsNone(memory["heap"])
        else:
            self.assertEqual(parts["requested"] + parts["rounding"] + parts["thread_caches"], memory["heap"]["outside"])
            self.assertGreater(len(memory["classes"]), 4)
            for block_bytes, outside, span_bytes in memory["classes"]:
                self.assertLessEqual(block_bytes * outside, span_bytes)
        watched.go_on()

    def memory_since(self, watched, at):
        return wait_for("a new picture", lambda: ((m := watched.get("/api/memory"))["at"] or 0) >= at and m)

    def check_functions(self, watched, *names):
        self.assertEqual(set(names) - watched.functions(), set())

    def check_sums(self, state):
        totals = [state["totals"][name] for name in FIGURES]
        self.assertEqual(sums(state["classes"], state["class_columns"], FIGURES), totals)
        self.assertEqual(sums(state["threads"], state["thread_columns"], FIGURES), totals)
        self.assertEqual(sums(state["threads"], state["thread_columns"], ["requested_bytes"]), [state["totals"]["requested_bytes"]])

    def check_growth(self, watched, grow, function, least):
        """What is live now and was not at a mark, to the byte; more than `least` bytes from `function`."""
        before = watched.stop()
        mark = watched.mark("before it grows")
        watched.go_on()
        grow()
        after = watched.stop()
        growth = (after["totals"]["live"] - without_stack(after)["live"]) - (before["totals"]["live"] - without_stack(before)["live"])
        stacks = watched.get(f"/api/stacks?value=live&since={mark}")
        self.assertTrue(stacks["is_growth"])
        self.assertEqual(stacks["grown"][0], growth)
        self.assertGreater(growth, least)
        grown = sum(site["grown"] for names, site in watched.sites(f"value=live&since={mark}&most=5000") if function in names)
        self.assertGreater(grown, least)
        watched.go_on()

    def check_kill(self, watched):
        """The killed leave their last figures."""
        before = watched.stop()
        stacks = watched.get("/api/stacks?value=live")
        os.kill(watched.id, signal.SIGKILL)
        after = wait_for("its end", lambda: (s := watched.state())["process"]["state"] != "running" and s)
        self.assertEqual(after["process"]["state"], "killed")
        for key in ("totals", "classes", "threads", "marks"):
            self.assertEqual(after[key], before[key])
        self.assertEqual(after["process"]["peak"], before["process"]["peak"])
        later = watched.get("/api/stacks?value=live")
        for key in ("total", "places"):
            self.assertEqual(later[key], stacks[key])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            watched.control(counting=False)
        self.assertEqual(refused.exception.code, 409)
        refused.exception.close()
        self.assertRegex(watched.text("/metrics"), r"heapwright_process_up{[^}]*} 0\n")

    def thread_names(self, watched):
        state = watched.new_state()
        return {row[state["thread_columns"].index("name")] for row in state["threads"]}

    def test_redis(self):
        self.need("redis-server", "redis-benchmark")
        port = free_port()
        watched = self.watch("redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no",
                             "--logfile", self.path("redis.log"))

        def ask(*commands):
            """Of each the first line of the answer."""
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s, s.makefile("rw", newline="\r\n") as stream:
                stream.write("".join(c + "\r\n" for c in commands))
                stream.flush()
                return [stream.readline().strip() for _ in commands]

        def answers():
            try:
                return ask("PING") == ["+PONG"]
            except ConnectionError:
                return False

        wait_for("redis-server", answers)
        subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-n", "5000", "-c", "20", "-r", "2000", "-d", "200", "-q",
                        "-t", "set,lpush,hset,zadd"], check=True, capture_output=True, timeout=PATIENCE, env=clean_environment())
        self.check(watched)
        self.check_functions(watched, "main", "aeMain", "readQueryFromClient", "processCommand", "call", "setCommand", "hsetCommand",
                             "pushGenericCommand", "zaddGenericCommand", "zmalloc", "createObject", "dictAdd", "createClient")
        # What makes its strings is no site, and its file has the name by which it was started, though that be a link.
        sites = watched.sites("value=allocated")
        self.assertFalse({names[site["site"]] for names, site in sites if names} & {"_sdsnewlen", "sdsnewlen", "_sdsMakeRoomFor"})
        self.assertIn("/redis-server", "".join(place[3] for place in watched.get("/api/sites?value=allocated")["places"]))
        self.assertRegex(watched.text("/metrics"), r'program="redis-server"')
        keys = 500

        def grow():
            self.assertEqual(ask(*(f"SET mine:{i} {'v' * 1000}" for i in range(keys))), ["+OK"] * keys)

        self.check_growth(watched, grow, "readQueryFromClient", keys * 1000)
        # A thread of its own frees what another one has allocated.
        self.assertEqual(ask("FLUSHALL ASYNC"), ["+OK"])
        lazy = wait_for("bio_lazy_free", lambda: [row for row in watched.state()["threads"] if row[3] == "bio_lazy_free" and row[9] >= keys])[0]
        self.assertLess(lazy[8], lazy[10])
        self.check(watched)
        self.check_kill(watched)

    def test_threads_by_the_dozen(self):
        watched = self.watch(STRESS, "600", rests=False)
        wait_for("threads", lambda: watched.state()["process"]["threads_folded"] > 500)
        for _ in range(20):
            self.check_sums(watched.new_state())
        self.check(watched)
        self.check_functions(watched, "main", *("(anonymous namespace)::" + name for name in ("live_long", "work", "many_short_lives")))
        self.assertIn("probe_stress", self.thread_names(watched))
        self.check_kill(watched)

    def test_python(self):
        watched = self.watch(PYTHON, "-c", PYTHON_PROGRAM)
        self.assertEqual(watched.hear(), "ready")
        self.assertEqual(watched.tell("thread 100"), "done")
        self.check(watched)
        self.check_functions(watched, "<module>", "keep", "ffi_call", "Py_BytesMain", "_PyObject_GC_New")
        self.assertIn("keeps blocks", self.thread_names(watched))
        # All that is live has a stack, except blocks from before the probe's start.
        state = watched.stop()
        early = without_stack(state)
        self.assertLess(early["allocations"], 10)
        self.assertEqual(watched.get("/api/stacks?value=live")["total"][0], state["totals"]["live"] - early["live"])
        self.assertEqual(watched.get("/api/stacks?value=count")["total"][0], state["totals"]["allocations"] - early["allocations"])
        watched.go_on()
        self.check_growth(watched, lambda: watched.tell("keep 100"), "keep", 90 * 100_000)
        self.check_kill(watched)

    def test_node(self):
        self.need("node")
        # live asks node to say in a map where the code of each function is.
        watched = self.watch("node", self.path("program.js", NODE_PROGRAM))
        self.addCleanup(self.remove, f"/tmp/perf-{watched.id}.map")
        self.assertEqual(watched.hear(), "ready")
        self.check(watched)
        functions = watched.functions()
        for name in ("node::Start", "node::worker::Worker", "v8::internal::"):
            self.assertTrue(any(f.startswith(name) for f in functions), name)
        # V8's own functions are in node's file, but no table describes their frames: what called them must be seen all the same.
        self.check_growth(watched, lambda: watched.tell("more"), "node::Start", 900 * 50_000)
        sites = watched.sites("value=live&most=5000")
        # The maps do not tell of all code: half is enough.
        named = [(names, site) for names, site in sites if "keepSomeBuffers" in names]
        self.assertIn("keepSomeBuffers", {names[site["site"]] for names, site in named})
        answer = watched.get("/api/sites?value=live&most=5000")
        self.assertIn(["keepSomeBuffers", self.path("program.js", NODE_PROGRAM)], [place[:2] for place in answer["places"]])
        self.assertGreaterEqual(sum(site["live_bytes"] for _, site in named), (1000 + 2 * 200) * 50_000 / 2)
        self.assertIn("_start", {names[-1] for names, _ in named})
        # The map may have no name for what a worker runs.
        self.assertIn("clone3", {names[-1] for names, _ in sites if any(f.startswith("node::worker::Worker") for f in names)})
        self.check_kill(watched)
        watched.end()
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("isolate-")], [], "V8's log is not left behind")

    def test_node_that_a_shell_has_started(self):
        self.need("node")
        watched = self.watch("sh", "-c", f"node {self.path('program.js', NODE_PROGRAM)}; true")
        self.assertEqual(watched.hear(), "ready")
        answer = watched.get("/api/processes")
        processes = [dict(zip(answer["columns"], row)) for row in answer["rows"]]
        node = next(p["id"] for p in processes if p["program"].endswith("node"))
        self.addCleanup(self.remove, f"/tmp/perf-{node}.map")
        # V8 tells of code some time after it runs.
        watched.tell("more")
        wait_for("the name of a function of the program", lambda: any(row[1].endswith("/program.js") for row in watched.get(f"/api/stacks?value=allocated&process={node}")["places"]))
        watched.end()
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("isolate-")], [], "V8's log is not left behind")

    def test_java(self):
        """As docs/java-and-python.md says: nothing but `live` is needed."""
        self.need("java", "javac")
        subprocess.run(["javac", self.path("Program.java", JAVA_PROGRAM)], check=True, timeout=PATIENCE, env=clean_environment())
        # Each method has a frame of its own, and is compiled by the compiler that leaves frame pointers out.
        watched = self.watch("java", "-XX:-TieredCompilation", "-XX:CompileThreshold=100", "-Xbatch", "-XX:-Inline",
                             "-XX:NativeMemoryTracking=summary", "-cp", self.folder, "Program")
        self.addCleanup(self.remove, f"/tmp/perf-{watched.id}.map")
        self.assertEqual(watched.hear(), "ready")
        self.assertEqual(watched.tell("keep"), "done")
        memory = watched.get("/api/memory")
        own = {part["name"]: part for part in (dict(zip(memory["jvm_columns"], row)) for row in memory["jvm"])}
        self.assertGreaterEqual(own["Other"]["by_malloc"], 600 * 5_000, "direct buffers")
        self.assertGreater(own["Java Heap"]["committed"], 1 << 20)
        self.assertEqual(own["Java Heap"]["by_malloc"], 0)
        watched.new_state()
        self.check_functions(watched, "Java_java_util_zip_Inflater_init", "Unsafe_AllocateMemory0", "JavaMain")
        for method, native, bytes_of_one in (("keepBuffers", "Unsafe_AllocateMemory0", 5_000), ("keepInflaters", "Java_java_util_zip_Inflater_init", 7_000)):
            kept = [(names, site) for names, site in watched.sites("value=live&most=5000") if f"void Program.{method}(int)" in names and native in names]
            self.assertGreaterEqual(sum(site["live_bytes"] for _, site in kept), 100 * bytes_of_one, method)
            for names, _ in kept:
                self.assertIn("JavaMain", names, "the stack goes on behind Java's frames")
                self.assertEqual(names[-1], "clone3")
        self.check_kill(watched)

    def test_a_jvm_that_refuses_attachment_is_left_alone(self):
        self.need("java", "javac")
        subprocess.run(["javac", self.path("Program.java", JAVA_PROGRAM)], check=True, timeout=PATIENCE, env=clean_environment())
        watched = self.watch("java", "-XX:+DisableAttachMechanism", "-cp", self.folder, "Program")
        self.addCleanup(self.remove, f"/tmp/perf-{watched.id}.map")
        self.assertEqual(watched.hear(), "ready")
        self.assertIn("JavaMain", watched.functions(), "somebody has looked")
        self.assertIsNone(watched.get("/api/memory")["jvm"])
        self.assertEqual(watched.tell("keep"), "done", "nothing else is on its standard output")

    def test_a_jvm_without_an_account_of_its_memory(self):
        self.need("java", "javac")
        subprocess.run(["javac", self.path("Program.java", JAVA_PROGRAM)], check=True, timeout=PATIENCE, env=clean_environment())
        watched = self.watch("java", "-cp", self.folder, "Program")
        self.assertEqual(watched.hear(), "ready")
        self.assertEqual(watched.get("/api/memory")["jvm"], [])

    @unittest.skipIf(platform.machine() != "x86_64", "the code is for x86-64")
    def test_code_made_at_run_time_has_its_name_from_a_map(self):
        watched = self.watch(PYTHON, "-c", CODE_MAKER)
        map_file, name = f"/tmp/perf-{watched.id}.map", "made just in time(int, void*)"
        self.addCleanup(self.remove, map_file)
        self.assertEqual(watched.hear(), "ready")
        names, site = watched.sites("value=live&most=1")[0]
        self.assertRegex(names[0], "^0x[0-9a-f]+$", "as long as there is no map")
        self.assertEqual(watched.tell("name it"), "done")
        watched.new_state()
        names, site = watched.sites("value=live&most=1")[0]
        self.assertEqual((names[0], site["allocations"]), (name, 200))
        self.assertIn("ffi_call", names)
        self.assertIn("<module>", names, "the stack goes on behind it")
        self.assertIn(name, watched.functions("live"))
        # What an ended program's map says is not forgotten.
        os.kill(watched.id, signal.SIGKILL)
        wait_for("its end", lambda: watched.state()["process"]["state"] == "killed")
        os.remove(map_file)
        self.assertIn(name, watched.functions("live"))

    @staticmethod
    def remove(path):
        if os.path.exists(path):
            os.remove(path)


    def python_with_objects(self, **environment):
        """A Python that keeps 400,000 objects of 48 bytes and more."""
        program = "kept = [object() for _ in range(200_000)], [(i, i) for i in range(200_000)]; print('ready', flush=True); input()"
        watched = self.watch("env", *(f"{name}={value}" for name, value in environment.items()), PYTHON, "-c", program)
        self.assertEqual(watched.hear(), "ready")
        return watched

    def test_arenas_of_python_are_told(self):
        watched = self.python_with_objects()
        # 16 bytes of an object, 56 of a tuple, some of the 200,000 numbers.
        wait_for("the arenas", lambda: 14 << 20 < watched.get("/api/memory")["python_arenas"] < 32 << 20)

    def test_arenas_of_python_are_told_where_one_looks_for_a_leak(self):
        watched = self.watch(PYTHON, "-c", "kept = [object() for _ in range(2_000_000)]; print('ready', flush=True); input()")
        self.assertEqual(watched.hear(), "ready")
        wait_for("the arenas", lambda: watched.state()["memory"]["python_arenas"] > 30 << 20)
        top = subprocess.run([HEAPWRIGHT, "top", "--once", str(watched.id)], capture_output=True, text=True, timeout=60, env=clean_environment()).stdout
        self.assertRegex(top, r"(?m)^arenas of Python, about (3\d|4\d)(\.\d+)? MiB: no site has them without live --python-objects$")

    def test_a_python_without_arenas(self):
        memory = self.python_with_objects(PYTHONMALLOC="malloc").get("/api/memory")
        self.assertEqual(memory["python_arenas"], 0)
        self.assertGreater(dict(memory["parts"])["requested"], 14 << 20)

    def test_functions_of_python_have_names(self):
        """As docs/java-and-python.md says, from Python 3.12 on."""
        named = (shutil.which(f"python3.{minor}") for minor in (14, 13, 12))
        python = next((p for p in named if p and subprocess.run([p, "-X", "perf", "-c", ""], capture_output=True, env=clean_environment()).returncode == 0), None)
        if not python:
            self.skipTest("no Python of 3.12 or later, which has -X perf")
        program = "def keep_some(): return [bytes(2000) for _ in range(2000)]\nkept = keep_some()\nprint('ready', flush=True)\ninput()"
        watched = self.watch(python, "-X", "perf", "-c", program)
        self.addCleanup(self.remove, f"/tmp/perf-{watched.id}.map")
        self.assertEqual(watched.hear(), "ready")
        kept = sum(site["live_bytes"] for names, site in watched.sites("value=live&most=5000") if "py::keep_some:<string>" in names)
        self.assertGreater(kept, 2000 * 2000)

    def largest_site_of(self, *options):
        """Of a C program that is compiled so: the names of the site and its caller, the hint, and what top says."""
        program = os.path.join(self.folder, "app")
        subprocess.run(["cc", "-O1", "-fno-optimize-sibling-calls", "-rdynamic", *options, "-o", program, "-x", "c", "-"], input=WITH_NAMES_AND_WITHOUT, text=True, check=True)
        watched = self.watch(program)
        self.assertEqual(watched.hear(), "ready")
        answer = watched.get("/api/sites?value=live&most=1")
        site, places = answer["sites"][0], answer["places"]
        top = subprocess.run([HEAPWRIGHT, "top", str(watched.id)], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment())
        return *(places[site["stack"][site[which]]][0] for which in ("site", "caller")), answer["hint"], top.stdout

    def test_a_site_without_a_name_is_told_by_a_caller_that_has_one(self):
        site, caller, hint, top = self.largest_site_of("-s")
        self.assertRegex(site, r"^app\+0x")
        self.assertEqual(caller, "has_a_name")
        self.assertEqual(hint, "function names are missing in app: install its debugging symbols, or debuginfod and set DEBUGINFOD_URLS")
        self.assertIn(hint, top)
        self.assertRegex(top, r"app\+0x[0-9a-f]+  <  has_a_name\n")

    def test_where_names_are_known_there_is_no_hint(self):
        site, caller, hint, top = self.largest_site_of()
        self.assertEqual((site, caller, hint), ("inner", "outer", ""))
        self.assertNotIn("function names are missing", top)

    def test_names_come_from_a_file_of_debugging_information_beside_a_stripped_program(self):
        program = os.path.join(self.folder, "app")
        subprocess.run(["cc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", program, "-x", "c", "-"], input=WITH_NAMES_AND_WITHOUT, text=True, check=True)
        subprocess.run(["objcopy", "--only-keep-debug", program, program + ".debug"], check=True)
        subprocess.run(["strip", program], check=True)
        watched = self.watch(program)
        self.assertEqual(watched.hear(), "ready")
        answer = watched.get("/api/sites?value=live&most=1")
        site = answer["sites"][0]
        self.assertEqual((answer["places"][site["stack"][site["site"]]][0], answer["hint"]), ("inner", ""))

    def test_the_labels_of_metrics_stay_when_a_title_changes(self):
        with Watched("bash", "-c", "exec -a 'a title' sleep 60") as w:
            text = wait_for("the program", lambda: (t := w.text("/metrics")) and 'program="sleep",title="a title 60"' in t and t)
            self.assertRegex(text, r'(?m)^heapwright_allocations_total{process="\d+",program="sleep"} \d+$')
            self.assertRegex(text, r'(?m)^heapwright_process_info{process="\d+",program="sleep",title="a title 60"} 1$')

    def test_a_program_without_the_probe_is_not_taken_for_the_one_before(self):
        with Watched("sh", "-c", "read line; LD_PRELOAD= exec sleep 60") as w:
            self.assertEqual(w.state()["process"]["state"], "running")
            w.tool.stdin.write("go\n")
            w.tool.stdin.flush()
            state = wait_for("the other program", lambda: (s := w.state())["process"]["state"] != "running" and s)
            self.assertEqual(state["process"]["state"], "replaced")
            self.assertIn("read line", " ".join(state["process"]["arguments"]))
            os.kill(w.id, signal.SIGKILL)

    def test_another_program_has_no_arenas(self):
        watched = self.watch(SCATTERED, "1000")
        self.assertEqual(watched.hear(), "ready")
        self.assertIsNone(watched.get("/api/memory")["python_arenas"])

    def findings(self, *command):
        watched = self.watch(*command)
        self.assertEqual(watched.hear(), "ready")
        return self.memory_since(watched, watched.new_state()["at"])["findings"]


class OnTheirOwnMalloc(Programs, unittest.TestCase):
    def test_another_malloc_has_no_recipe(self):
        self.assertEqual(self.findings(SCATTERED, "200000"), [])


class OnHeapwright(Programs, unittest.TestCase):
    preload = LIBRARY

    def test_memory_points_to_fields_of_a_recipe(self):
        found = self.findings(SCATTERED, "200000")
        self.assertEqual((found[0]["rule"], found[0]["fields"]), ("free_in_spans_of_one_class", ["spans"]))
        self.assertRegex(found[0]["text"], r"^\d\d % of RSS, 4\d\.\d MiB, is free in spans, .* of blocks of 240 bytes$")
        self.assertIn("shorter spans", found[0]["advice"])
        self.assertEqual(found[0]["page"], "docs/recipes.md#what-live-and-compare-point-to")
        self.assertLessEqual(len(found), 3)

    def test_a_small_program_is_pointed_nowhere(self):
        self.assertEqual(self.findings(SCATTERED, "20000"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
