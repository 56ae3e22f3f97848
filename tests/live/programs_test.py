"""`heapwright live` on real programs, on their own malloc and on libheapwright, and real viewers of its figures: Prometheus, `go tool pprof`.

usage: programs_test.py HEAPWRIGHT LIBHEAPWRIGHT PROBE_STRESS GO_CACHE

What is compared to the byte is read while the program is stopped. GO_CACHE is a folder where Go keeps its pprof, which recent versions compile first.
"""
import json
import math
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HEAPWRIGHT, LIBRARY, STRESS, GO_CACHE = (os.path.abspath(path) for path in sys.argv[1:5])
PYTHON = "/usr/bin/python3"
PATIENCE = 60  # seconds, for what comes soon
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def clean_environment(**more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))} | more


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, ready):
    """What `ready` returns, once it is true."""
    end = time.monotonic() + PATIENCE
    while not (result := ready()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.02)
    return result


class Watched:
    """A program that `heapwright live` has started, and the page's answers."""

    def __init__(self, *command, preload=None, sample="1", token=None, folder=None, rests=True):
        environment = clean_environment(PYTHONDONTWRITEBYTECODE="1", **({"LD_PRELOAD": preload} if preload else {}))
        more = ("--token", token) if token else ()
        self.token, self.rests, self.id = token, rests, None
        self.tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--sample", sample, *more, "--", *command], env=environment, cwd=folder,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = None
        try:
            for line in self.tool.stderr:
                if found := re.search(r"live at http://127\.0\.0\.1:(\d+)/", line):
                    self.port = int(found[1])
                    break
            self.id = self.state()["process"]["id"]
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.id and self.state()["process"]["state"] == "running":
            os.kill(self.id, signal.SIGKILL)
        self.tool.terminate()  # passes it on to a program that still runs
        try:
            self.tool.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.tool.kill()
            self.tool.wait()
        for end in (self.tool.stdin, self.tool.stdout, self.tool.stderr):
            end.close()

    def text(self, path, order=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", None if order is None else json.dumps(order).encode())
        if order is not None:
            request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with LOCAL.open(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def get(self, path):
        return json.loads(self.text(path))

    def control(self, **order):
        return self.text("/api/control", order)

    def state(self):
        return self.get("/api/state")

    def new_state(self):
        """Read after this was asked for: a reading is kept for a moment."""
        first = self.state()["at"]
        return wait_for("another reading", lambda: (s := self.state())["at"] != first and s)

    def tell(self, line):
        """To a program that answers a line with a line."""
        self.tool.stdin.write(line + "\n")
        self.tool.stdin.flush()
        return self.hear()

    def hear(self):
        return self.tool.stdout.readline().strip()

    def stop(self):
        """Stops the program where its figures are whole, between calls where it ever rests, and returns its state."""
        while True:
            if self.rests:
                wait_for("all threads asleep", lambda: all(state == "S" for state in thread_states(self.id)))
            os.kill(self.id, signal.SIGSTOP)
            wait_for("all threads stopped", lambda: all(state == "T" for state in thread_states(self.id)))
            state = self.new_state()
            if not state["process"]["is_torn"]:
                return state
            self.go_on()

    def go_on(self):
        os.kill(self.id, signal.SIGCONT)

    def functions(self, value="allocated"):
        return {row[0] for row in self.get(f"/api/stacks?value={value}")["places"]}

    def sites(self, question):
        """Their call stacks as names, the innermost first, with what is told of them."""
        answer = self.get("/api/sites?" + question)
        return [([answer["places"][place][0] for place in site["stack"]], site) for site in answer["sites"]]

    def mark(self, name):
        """Its number, once growth since it can be told."""
        self.control(mark=name)
        return wait_for("the mark", lambda: next((m for m in self.state()["marks"] if m["name"] == name and m["can_compare"]), None))["number"]


def thread_states(process):
    for thread in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{thread}/stat") as file:
                yield file.read().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            pass


def sums(rows, columns, names):
    return [sum(row[columns.index(name)] for row in rows) for name in names]


def without_stack(state):
    """What is counted for no thread in particular: blocks from before the probe's start, and by threads on their way out. Of a program with few threads."""
    rows = [row for row in state["threads"] if row[state["thread_columns"].index("state")] == "others"]
    early = dict(zip(FIGURES, sums(rows, state["thread_columns"], FIGURES)))
    return early | {"live": early["allocated_bytes"] - early["freed_bytes"], "live_blocks": early["allocations"] - early["frees"]}


FIGURES = ("allocations", "allocated_bytes", "frees", "freed_bytes")

# Lines tell it what to do. A block is of 100,000 bytes, from a thread with a name.
PYTHON_PROGRAM = """
import ctypes, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.pthread_self.restype, libc.pthread_setname_np.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

goes_on = threading.Event()

def keep(n, size=100_000):
    for _ in range(n): libc.malloc(size)

def named(n):
    libc.pthread_setname_np(libc.pthread_self(), b"keeps blocks")
    keep(n)

def forever():
    while goes_on.is_set():
        keep(5, 10_000)
        time.sleep(0.005)

print("ready", flush=True)
for line in sys.stdin:
    what, *number = line.split()
    if what == "keep": keep(int(number[0]))
    if what == "thread":
        t = threading.Thread(target=named, args=(int(number[0]),))
        t.start(); t.join()
    if what == "go":
        goes_on.set()
        threading.Thread(target=forever).start()
    if what == "enough": goes_on.clear()
    print("done", flush=True)
"""

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

        memory = wait_for("a new picture", lambda: (m := watched.get("/api/memory"))["at"] >= state["at"] and m)
        parts = dict(memory["parts"])
        self.assertEqual(sum(parts.values()) - memory["not_resident"], memory["rss"])
        self.assertTrue(all(part >= 0 for part in parts.values()))
        self.assertEqual(parts["requested"] + parts["rounding"], totals["live"])
        if self.preload is None:
            self.assertIsNone(memory["heap"])
        else:
            self.assertEqual(parts["requested"] + parts["rounding"] + parts["stocks"], memory["heap"]["outside"])
            self.assertGreater(len(memory["classes"]), 4)
            for block_bytes, outside, span_bytes in memory["classes"]:
                self.assertLessEqual(block_bytes * outside, span_bytes)
        watched.go_on()

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
        self.assertIn("heapwright_process_up 0\n", watched.text("/metrics"))

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
        self.check_functions(watched, "_PyEval_EvalFrameDefault", "ffi_call", "Py_BytesMain", "_PyObject_GC_New")
        self.assertIn("keeps blocks", self.thread_names(watched))
        # All that is live has a stack, except blocks from before the probe's start.
        state = watched.stop()
        early = without_stack(state)
        self.assertLess(early["allocations"], 10)
        self.assertEqual(watched.get("/api/stacks?value=live")["total"][0], state["totals"]["live"] - early["live"])
        self.assertEqual(watched.get("/api/stacks?value=count")["total"][0], state["totals"]["allocations"] - early["allocations"])
        watched.go_on()
        self.check_growth(watched, lambda: watched.tell("keep 100"), "_PyEval_EvalFrameDefault", 90 * 100_000)
        self.check_kill(watched)

    def test_node(self):
        self.need("node")
        # So that node says in a map where the code of each function is, and interpreted ones have some too.
        watched = self.watch("node", "--perf-basic-prof", "--interpreted-frames-native-stack", self.path("program.js", NODE_PROGRAM))
        self.addCleanup(self.remove, f"/tmp/perf-{watched.id}.map")
        self.assertEqual(watched.hear(), "ready")
        self.check(watched)
        functions = watched.functions()
        for name in ("node::Start", "node::worker::Worker", "v8::internal::"):
            self.assertTrue(any(f.startswith(name) for f in functions), name)
        # V8's own functions are in node's file, but no table describes their frames: what called them must be seen all the same.
        self.check_growth(watched, lambda: watched.tell("more"), "node::Start", 900 * 50_000)
        # As JS, or LazyCompile and Function in older versions; interpreted (~), compiled (^) or optimized (*). Their maps do not tell of all code: half is enough.
        named = [(names, site) for names, site in watched.sites("value=live&most=5000") if any(re.match(r"\w+:\W?keepSomeBuffers ", f) for f in names)]
        self.assertGreaterEqual(sum(site["live_bytes"] for _, site in named), (1000 + 2 * 200) * 50_000 / 2)
        for outermost in ("_start", "clone3"):
            self.assertIn(outermost, {names[-1] for names, _ in named})
        self.check_kill(watched)

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
        self.assertIn("_PyEval_EvalFrameDefault", names, "the stack goes on behind it")
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


class OnTheirOwnMalloc(Programs, unittest.TestCase):
    pass


class OnHeapwright(Programs, unittest.TestCase):
    preload = LIBRARY


class Prometheus(unittest.TestCase):
    TOKEN = "0123456789abcdef"

    @classmethod
    def setUpClass(cls):
        if shutil.which("prometheus") is None:
            raise unittest.SkipTest("prometheus is not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.open, cls.closed = cls.watch(), cls.watch(token=cls.TOKEN)
        jobs = {"open": cls.open, "closed": cls.closed, "refused": cls.closed}
        config = {"global": {"scrape_interval": "1s"},
                  "scrape_configs": [{"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{watched.port}"]}]} for name, watched in jobs.items()]}
        config["scrape_configs"][1]["authorization"] = {"credentials": cls.TOKEN}
        with open(os.path.join(cls.folder, "prometheus.yml"), "w") as file:
            json.dump(config, file)  # which is YAML
        cls.port = free_port()
        log = open(os.path.join(cls.folder, "log"), "w")
        cls.addClassCleanup(log.close)
        cls.server = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{cls.port}",
                                       f"--storage.tsdb.path={cls.folder}/data"], cwd=cls.folder, env=clean_environment(HOME=cls.folder),
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cls.addClassCleanup(cls.end_server)

    @classmethod
    def watch(cls, **options):
        watched = Watched(PYTHON, "-c", PYTHON_PROGRAM, preload=LIBRARY, **options)
        cls.addClassCleanup(watched.end)
        assert watched.hear() == "ready"
        return watched

    @classmethod
    def end_server(cls):
        cls.server.terminate()
        try:
            cls.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            cls.server.kill()
            cls.server.wait()

    def ask(self, path, **parameters):
        """None: it does not answer yet."""
        self.assertIsNone(self.server.poll(), "prometheus has ended")
        try:
            with LOCAL.open(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=PATIENCE) as answer:
                result = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 503:
                return None
            raise
        except urllib.error.URLError:
            return None
        self.assertEqual(result["status"], "success")
        return result["data"]

    def values(self, query):
        data = self.ask("query", query=query)
        return [float(r["value"][1]) for r in data["result"]] if data else []

    def test_it_scrapes_what_the_server_says(self):
        for job, watched in (("open", self.open), ("closed", self.closed)):
            wait_for("three scrapes", lambda: self.values(f'count_over_time(up{{job="{job}"}}[1m])') >= [3])
            self.assertEqual(self.values(f'up{{job="{job}"}}'), [1])
            for line in watched.text("/metrics").splitlines():
                name, _, value = line.rpartition(" ")
                # It waits for a line and allocates nothing.
                if re.fullmatch(r"heapwright_(live|peak|heap_mapped|heap_outside)_b\w+|heapwright_(allocations|allocated_bytes|frees)_total", name):
                    with self.subTest(name):
                        self.assertEqual(self.values(f'{name}{{job="{job}"}}'), [float(value)])
                self.assertTrue(line.startswith("#") or self.values(name), f"{name} is not stored")
        before = self.open.state()["totals"]["live"]
        self.assertEqual(self.open.tell("keep 100"), "done")
        after = self.open.new_state()["totals"]["live"]
        self.assertGreaterEqual(after - before, 100 * 100_000)
        wait_for("the next scrape", lambda: self.values('heapwright_live_bytes{job="open"}') == [after])

    def test_its_targets_are_up(self):
        wait_for("scrapes", lambda: self.values("count_over_time(up[1m])") and min(self.values("count_over_time(up[1m])")) >= 3)
        targets = {t["labels"]["job"]: t for t in self.ask("targets")["activeTargets"]}
        for job in ("open", "closed"):
            self.assertEqual((targets[job]["health"], targets[job]["lastError"]), ("up", ""))
        self.assertEqual(targets["refused"]["health"], "down")
        self.assertIn("401", targets["refused"]["lastError"])

    def test_the_dashboards_questions_have_answers(self):
        dashboard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/grafana-dashboard.json")
        with open(dashboard) as file:
            questions = [t["expr"] for p in json.load(file)["panels"] for t in p["targets"]]
        wait_for("three scrapes", lambda: self.values('count_over_time(up{job="open"}[1m])') >= [3])
        for question in questions:
            with self.subTest(question):
                self.assertGreater(len(self.values(question.replace("$instance", f"127.0.0.1:{self.open.port}"))), 0)


class GoToolPprof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("go") is None:
            raise unittest.SkipTest("go is not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = folder.name
        os.makedirs(GO_CACHE, exist_ok=True)
        # Nothing is fetched: whatever is not loopback would have to go through a proxy that does not exist.
        cls.environment = {"PATH": os.environ["PATH"], "HOME": cls.home, "PPROF_TMPDIR": os.path.join(cls.home, "profiles"), "GOCACHE": GO_CACHE,
                           "GOPATH": os.path.join(cls.home, "go"), "GOTMPDIR": cls.home, "TMPDIR": cls.home, "GOENV": "off", "GOFLAGS": "", "GOPROXY": "off",
                           "GOTOOLCHAIN": "local", "GOTELEMETRY": "off", "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
        cls.call("-help")

    @classmethod
    def call(cls, *arguments):
        result = subprocess.run(["go", "tool", "pprof", *arguments], env=cls.environment, cwd=cls.home, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=600)
        if result.returncode != 0 and arguments != ("-help",):
            raise AssertionError(result.stderr)
        return result.stdout

    def watch(self, **options):
        watched = Watched(PYTHON, "-c", PYTHON_PROGRAM, **options)
        self.addCleanup(watched.end)
        self.assertEqual(watched.hear(), "ready")
        return watched

    def top(self, watched, index, path):
        """The total, and what functions have with all that they call."""
        text = self.call("-top", "-unit=B", "-nodefraction=0", "-nodecount=100000", f"-sample_index={index}",
                         f"http://127.0.0.1:{watched.port}/debug/pprof/{path}")
        total = int(re.search(r"(?m)^Showing nodes accounting for .* of (\d+)B? total$", text)[1])
        rows = re.findall(r"(?m)^ *-?\d+B? +-?[\d.]+% +-?[\d.]+% +(-?\d+)B? +-?[\d.]+%  (.*)$", text)
        return total, {name: int(cumulated) for cumulated, name in rows}

    def test_all_blocks_to_the_byte(self):
        watched = self.watch()
        self.assertEqual(watched.tell("keep 200"), "done")
        state = watched.stop()
        totals = state["totals"]
        early = without_stack(state)
        for index, path, name in (("inuse_space", "heap", "live"), ("inuse_objects", "heap", "live_blocks"),
                                  ("alloc_objects", "allocs", "allocations"), ("alloc_space", "allocs", "allocated_bytes")):
            with self.subTest(index):
                total, functions = self.top(watched, index, path)
                self.assertEqual(total, totals[name] - early[name])
                self.assertGreaterEqual(functions["_PyEval_EvalFrameDefault"], 200 * (100_000 if index.endswith("space") else 1))
                self.assertGreaterEqual(functions["ffi_call"], 200 * (100_000 if index.endswith("space") else 1))
        # The profiles it has fetched are where it was told to put them, and nothing else is in the home.
        self.assertGreater(len(os.listdir(os.path.join(self.home, "profiles"))), 0)
        self.assertLessEqual(set(os.listdir(self.home)), {"profiles", "go", ".config"})

    def test_samples_are_within_their_error(self):
        interval = 65_536
        watched = self.watch(sample=str(interval))
        self.assertEqual(watched.tell("keep 2000"), "done")
        totals = watched.stop()["totals"]
        for index, path, true_total in (("inuse_space", "heap", totals["live"]), ("alloc_space", "allocs", totals["allocated_bytes"])):
            total, functions = self.top(watched, index, path)
            # The variance of the estimate, a sum of s^2 (1 - p) / p, is less than that of s * interval. Seven standard deviations: 3e-12.
            self.assertLess(abs(total - true_total), 7 * math.sqrt(true_total * interval))
            self.assertIn("_PyEval_EvalFrameDefault", functions)

    def test_a_difference(self):
        watched = self.watch()
        self.assertEqual(watched.tell("keep 200"), "done")
        self.assertEqual(watched.tell("go"), "done")
        before = watched.new_state()["totals"]
        total, functions = self.top(watched, "inuse_space", "heap?seconds=2")
        objects, _ = self.top(watched, "alloc_objects", "allocs?seconds=1")
        after = watched.new_state()["totals"]
        self.assertEqual(watched.tell("enough"), "done")
        self.assertGreater(total, 10_000)
        self.assertLess(total, after["live"] - before["live"] + 1_000_000)
        self.assertGreater(functions["ffi_call"], 0)
        self.assertGreater(objects, 0)
        self.assertLess(objects, after["allocations"] - before["allocations"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
