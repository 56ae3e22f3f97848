"""A program under `heapwright live`, asked over HTTP and told what to do by lines; for tests whose first arguments are HEAPWRIGHT and LIBHEAPWRIGHT.

What is compared to the byte is read while the program is stopped.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HEAPWRIGHT, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:3])
PYTHON = "/usr/bin/python3"
PATIENCE = 60  # seconds, for what comes soon
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def clean_environment(**more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))} | more


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def go_environment(home, cache):
    """For Go's commands, which write to `home` and `cache` alone. Nothing is fetched: what is not loopback would have to go through a proxy that does not exist."""
    return {"PATH": os.environ["PATH"], "HOME": home, "GOCACHE": cache, "GOPATH": os.path.join(home, "go"), "GOTMPDIR": home, "TMPDIR": home, "GOENV": "off",
            "GOFLAGS": "", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off", "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}


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

    def __init__(self, *command, preload=None, sample="1", token=None, folder=None, rests=True, environment=None, options=()):
        environment = clean_environment(PYTHONDONTWRITEBYTECODE="1", **({"LD_PRELOAD": preload} if preload else {}), **(environment or {}))
        more = ("--token", token) if token else ()
        self.token, self.rests, self.id = token, rests, None
        self.tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--sample", sample, *more, *options, "--", *command], env=environment, cwd=folder,
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
        if self.tool.returncode is not None:
            return
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


class Viewer:
    """`heapwright live` of what it has not started, a process id or `--file FILE`, asked over HTTP."""
    text, get, state = Watched.text, Watched.get, Watched.state
    token = None

    def __init__(self, *arguments, environment=None):
        self.tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", *arguments], env=clean_environment(**(environment or {})), stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/", self.tool.stderr.readline())[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.terminate()
        self.tool.wait(PATIENCE)
        self.tool.stderr.close()

    def processes(self):
        answer = self.get("/api/processes")
        return [dict(zip(answer["columns"], row)) for row in answer["rows"]]
