"""Real viewers of what `heapwright live` serves: Prometheus, `go tool pprof`.

usage: viewers_test.py HEAPWRIGHT LIBHEAPWRIGHT GO_CACHE

GO_CACHE is a folder where Go keeps its pprof, which recent versions compile first.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from watched import LIBRARY, LOCAL, PATIENCE, PYTHON, PYTHON_PROGRAM, Watched, clean_environment, free_port, go_environment, wait_for, without_stack

GO_CACHE = os.path.abspath(sys.argv[3])


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
                metric, _, labels = name.rstrip("}").partition("{")
                if re.fullmatch(r"heapwright_(live|peak|heap_mapped|heap_outside)_b\w+|heapwright_(allocations|allocated_bytes|frees)_total", metric):
                    with self.subTest(name):
                        self.assertEqual(self.values(f'{metric}{{job="{job}",{labels}}}'), [float(value)])
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
        cls.environment = go_environment(cls.home, GO_CACHE) | {"PPROF_TMPDIR": os.path.join(cls.home, "profiles")}
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
                self.assertGreaterEqual(functions["keep"], 200 * (100_000 if index.endswith("space") else 1))
                self.assertGreaterEqual(functions["ffi_call"], 200 * (100_000 if index.endswith("space") else 1))
        # The profiles it has fetched are where it was told to put them, and nothing else is in the home.
        self.assertGreater(len(os.listdir(os.path.join(self.home, "profiles"))), 0)
        self.assertLessEqual(set(os.listdir(self.home)), {"profiles", "go", ".config"})

    def test_blocks_of_threads_of_one_name(self):
        watched = self.watch()
        self.assertEqual(watched.tell("keep 10"), "done")
        self.assertEqual(watched.tell("thread 20"), "done")
        watched.stop()
        address = f"http://127.0.0.1:{watched.port}/debug/pprof/heap"
        tags = self.call("-tags", "-unit=B", "-sample_index=inuse_space", address)
        bytes = int(re.search(r"(?m)^ *(\d+)(?:\.0)?B? \([\d.% ]+\): keeps blocks$", tags)[1])
        self.assertEqual(bytes, watched.get("/api/stacks?threads=keeps%20blocks")["total"][0])
        self.assertGreaterEqual(bytes, 20 * 100_000)

    def test_samples_are_within_their_error(self):
        interval = 65_536
        watched = self.watch(sample=str(interval))
        self.assertEqual(watched.tell("keep 2000"), "done")
        totals = watched.stop()["totals"]
        for index, path, true_total in (("inuse_space", "heap", totals["live"]), ("alloc_space", "allocs", totals["allocated_bytes"])):
            total, functions = self.top(watched, index, path)
            # The variance of the estimate, a sum of s^2 (1 - p) / p, is less than that of s * interval. Seven standard deviations: 3e-12.
            self.assertLess(abs(total - true_total), 7 * math.sqrt(true_total * interval))
            self.assertIn("keep", functions)

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


class ReverseProxy(unittest.TestCase):
    TOKEN = "0123456789abcdef"

    def test_nginx_as_documented_but_for_tls(self):
        if shutil.which("nginx") is None:
            self.skipTest("nginx is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        watched = Watched(PYTHON, "-c", PYTHON_PROGRAM, preload=LIBRARY, token=self.TOKEN, options=("--read-only",))
        self.addCleanup(watched.end)
        self.assertEqual(watched.hear(), "ready")
        with open(os.path.join(os.path.dirname(__file__), "../../docs/live.md")) as page:
            server = re.search(r"^    server \{\n.*?^    \}\n", page.read(), re.MULTILINE | re.DOTALL)[0]
        port = free_port()
        server = server.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace(":8080;", f":{watched.port};")
        server = re.sub(r"^ *ssl_.*\n", "", server, flags=re.MULTILINE)
        config = os.path.join(folder.name, "nginx.conf")
        with open(config, "w") as file:
            file.write(f"daemon off; pid {folder.name}/pid; error_log {folder.name}/log; events {{}}\nhttp {{ access_log off;\n")
            file.write("".join(f"{kind}_temp_path {folder.name}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + server + "}\n")
        nginx = subprocess.Popen(["nginx", "-c", config, "-e", f"{folder.name}/log"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(nginx.wait)
        self.addCleanup(nginx.terminate)

        def ask(path, order=None, **headers):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", None if order is None else json.dumps(order).encode())
            for name, value in {"Host": "heap.example.com", "Content-Type": "application/json", **headers}.items():
                request.add_header(name, value)
            return LOCAL.open(request, timeout=PATIENCE)

        def refused(*arguments, **headers):
            with self.assertRaises(urllib.error.HTTPError) as answer:
                ask(*arguments, **headers)
            return answer.exception.code

        def is_there():
            try:
                return ask("/api/state").close()
            except urllib.error.HTTPError as answer:
                return answer.code == 401
            except urllib.error.URLError:
                return False

        wait_for("nginx", is_there)
        with_token = {"Authorization": f"Bearer {self.TOKEN}"}
        with ask("/api/events?interval=100", **with_token) as events:
            states = [line for line in (events.readline() for _ in range(12)) if line.startswith(b"data: ")]
        self.assertGreater(len(states), 2, "figures come as they are sent")
        self.assertFalse(json.loads(states[0][6:])["may_control"])
        self.assertEqual(refused("/api/control", {"mark": "x"}, **with_token, Origin="http://heap.example.com"), 403)
        self.assertEqual(watched.state()["marks"], [])
        self.assertEqual(refused("/api/state", **with_token, Origin="http://elsewhere.example.com"), 403)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
