#!/usr/bin/env python3
"""Bad requests over raw sockets, each refused with a 4xx, after all of which the server answers as before and has grown by nothing.

    requests_test.py LIVE_SERVER MAKE_SEGMENT
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SERVER, MAKE_SEGMENT = sys.argv[1:3]
TOKEN = "0123456789abcdef"


class Served:
    """A program with a segment, and a server that shows it."""

    def __init__(self, *more, mode="", seconds="60"):
        self.folder = tempfile.mkdtemp()
        segment = os.path.join(self.folder, "segment")
        self.program = subprocess.Popen([MAKE_SEGMENT, segment, seconds, "20", "200", mode], stdout=subprocess.PIPE, text=True)
        assert self.program.stdout.readline() == "ready\n"
        self.server = subprocess.Popen([SERVER, segment, *more], stderr=subprocess.PIPE, text=True)
        self.line = self.server.stderr.readline()
        self.port = int(re.search(r":(\d+)/", self.line)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.server, self.program):
            process.terminate()
        said = self.server.communicate(timeout=30)[1]
        self.program.communicate(timeout=30)
        shutil.rmtree(self.folder)
        # A sanitizer writes what it finds, and some let the server go on.
        assert "Sanitizer" not in said and "runtime error" not in said, said

    def raw(self, data, wait=5):
        """All that comes back until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            try:
                s.sendall(data)
            except ConnectionError:
                pass
            received = b""
            try:
                while part := s.recv(65536):
                    received += part
            except (TimeoutError, ConnectionError):
                pass
            return received

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text, answer.headers

    def control(self, **order):
        return self.ask("/api/control", "POST", json.dumps(order), Content_Type="application/json")[0]

    def state(self):
        return json.loads(self.ask("/api/state")[1])

    def resident(self):
        with open(f"/proc/{self.server.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    def times_woken(self):
        """How often its threads have slept and gone on."""
        total = 0
        for thread in os.listdir(f"/proc/{self.server.pid}/task"):
            with open(f"/proc/{self.server.pid}/task/{thread}/status") as file:
                total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))
        return total

    def has_thread_sanitizer(self):
        with open(f"/proc/{self.server.pid}/maps") as file:
            return "/libtsan" in file.read()

    def becomes(self, state):
        """The server looks at the process now and then."""
        for _ in range(100):
            seen = self.state()["process"]["state"]
            if seen == state:
                break
            time.sleep(0.1)
        return seen


HOST = b"Host: localhost\r\n"
BAD = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    "words": (b"hello there server\r\n\r\n", 400),
    "unknown method": (b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "delete": (b"DELETE /api/control HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "post to a view": (b"POST /api/state HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\nConnection: close\r\n\r\n", 405),
    "get of control": (b"GET /api/control HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 405),
    "another version": (b"GET / HTTP/3\r\n" + HOST + b"\r\n", 400),
    "bare newlines": (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "another host": (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
    "long target": (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "endless line": (b"GET /" + b"a" * 1_000_000, 414),
    "endless header": (b"GET / HTTP/1.1\r\nA: " + b"a" * 1_000_000, 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + HOST + b"\r\n", 431),
    "header without colon": (b"GET / HTTP/1.1\r\nabc\r\n" + HOST + b"\r\n", 400),
    "folded header": (b"GET / HTTP/1.1\r\n" + HOST + b" more\r\n\r\n", 400),
    "chunked": (b"POST /api/control HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", 411),
    "huge body": (b"POST /api/control HTTP/1.1\r\n" + HOST + b"Content-Length: 9999999999\r\n\r\n", 413),
    "two lengths": (b"POST /api/control HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "no length": (b"POST /api/control HTTP/1.1\r\n" + HOST + b"\r\n", 411),
    "broken escape": (b"GET /%g0 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "null": (b"GET /%00 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "upwards": (b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 404),
    "upgrade": (b"GET / HTTP/1.1\r\n" + HOST + b"Upgrade: h2c\r\n\r\n", 417),
}

BAD_QUERIES = [
    "/api/events?interval=99", "/api/events?interval=60001", "/api/events?interval=1s", "/api/events?intervall=100",
    "/api/stacks?value=lives", "/api/stacks?most=0", "/api/stacks?most=1000000000", "/api/stacks?most=-1", "/api/stacks?most=1e9",
    "/api/stacks?value=live&value=live", "/api/stacks?x=1", "/api/history?since=now", "/api/history?since=nan", "/api/history?most=1",
    "/debug/pprof/heap?seconds=61", "/api/state?x", "/?x=1", "/api/processes?process=1", "/api/processes?ended=1", "/api/memory?since=0",
    "/api/stacks?by=packages", "/api/stacks?libraries=hidden", "/api/stacks?from=main", "/api/sites?by=package", "/api/leaks?threads=a",
    "/api/source", "/api/source?file=/etc/passwd", "/api/source?line=1", "/api/source?file=a&line=0", "/api/source?file=a&line=x",
    "/api/source?file=a&line=4294967297", "/api/snapshot?x=1",
]


class Requests(unittest.TestCase):
    def test_bad_ones_get_a_4xx_and_nothing_else_happens(self):
        with Served() as served:
            before, memory = served.state()["process"], served.resident()
            for name, (data, status) in BAD.items():
                with self.subTest(name):
                    answer = served.raw(data)
                    self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), answer[:80])
                    self.assertIn(b"X-Content-Type-Options: nosniff", answer)
            for path in BAD_QUERIES:
                with self.subTest(path):
                    self.assertEqual(served.ask(path)[0], 400)
            after = served.state()["process"]
            for key in ("is_counting", "interval", "state"):
                self.assertEqual(before[key], after[key])
            self.assertLess(served.resident() - memory, 32 << 20)

    def test_files_have_the_process_id_in_their_names(self):
        with Served() as served:
            for path, what in (("/debug/pprof/heap", "heap.pb.gz"), ("/api/sites.csv", "sites.csv")):
                name = f'filename="heapwright-{served.program.pid}-{what}"'
                self.assertIn(name, served.ask(path)[2]["Content-Disposition"])

    def test_a_process_is_one_of_those_told(self):
        with Served() as served:
            processes = json.loads(served.ask("/api/processes")[1])
            rows = [dict(zip(processes["columns"], row)) for row in processes["rows"]]
            self.assertEqual([(row["id"], row["running"]) for row in rows], [(served.program.pid, True)])
            self.assertEqual(processes["file"], "segment")
            self.assertEqual(served.ask("/api/state?process=" + rows[0]["name"])[0], 200)
            self.assertEqual(served.ask(f"/api/state?process={rows[0]['id']}")[0], 200)
            for path in ("/api/state", "/api/events", "/api/advice", "/metrics", "/api/snapshot", "/debug/pprof/heap"):
                for process in ("999999999", "abc"):
                    with self.subTest(path, process=process):
                        status, text, _ = served.ask(f"{path}?process={process}")
                        self.assertEqual((status, b"process=ID takes one that /api/processes lists" in text), (404, True))
            for name in ("1-2-3", "../segment", "%2e%2e%2fsegment", "segment%00", "x" * 4000):
                for path in ("/api/state", "/api/events", "/api/memory", "/api/stacks"):
                    with self.subTest(path=path, name=name):
                        self.assertIn(served.ask(f"{path}?process={name}")[0], (400, 404))

    def test_memory_is_told_in_parts(self):
        with Served() as served:
            memory = json.loads(served.ask("/api/memory")[1])
            parts = dict(memory["parts"])
            self.assertEqual(sum(parts.values()) - memory["not_resident"], memory["rss"])
            mapped = {row[1] for row in memory["mappings"]}
            self.assertIn(os.path.realpath(MAKE_SEGMENT), mapped)
            self.assertIn(os.path.join(served.folder, "segment"), mapped)

    def test_control_is_done_whole_or_not_at_all(self):
        with Served() as served:
            for body in (b"", b"{", b"[]", b"{}", b"null", b'{"counting": 1}', b'{"interval": -1}', b'{"interval": 1.5}', b'{"mark": ""}',
                         b'{"mark": "' + b"x" * 60 + b'"}', b'{"counting": false, "interval": 1}', b'{"reset_peak": false}', b'{"stop": true}', b"[" * 10_000):
                with self.subTest(body[:30]):
                    self.assertEqual(served.ask("/api/control", "POST", body, Content_Type="application/json")[0], 400)
            self.assertEqual(served.ask("/api/control", "POST", b'{"counting": false}', Content_Type="text/plain")[0], 415)
            evil = {"Content_Type": "application/json", "Origin": "http://evil.example"}
            self.assertEqual(served.ask("/api/control", "POST", b'{"counting": false}', **evil)[0], 403)
            self.assertTrue(served.state()["process"]["is_counting"])

            self.assertEqual(served.control(interval=4096), 200)
            self.assertEqual(served.control(mark="after the start"), 200)
            self.assertEqual(served.control(counting=False), 200)
            time.sleep(0.2)
            state = served.state()
            self.assertEqual(state["process"]["interval"], 4096)
            self.assertFalse(state["process"]["is_counting"])
            self.assertEqual(state["marks"][-1]["name"], "after the start")
            self.assertTrue(state["marks"][-1]["can_compare"])
            self.assertFalse(state["marks"][0]["can_compare"], "made before the server looked")
            self.assertEqual(served.ask(f"/api/stacks?since={state['marks'][-1]['number']}")[0], 200)
            self.assertEqual(served.ask("/api/stacks?since=0")[0], 404)

    def test_slow_senders_and_many_connections_do_not_keep_others_out(self):
        with Served() as served:
            held = []
            try:
                for _ in range(200):
                    s = socket.create_connection(("127.0.0.1", served.port), timeout=5)
                    held.append(s)
                # Those that have sent nothing give way to who asks.
                self.assertEqual(served.ask("/api/state")[0], 200)
                s = socket.create_connection(("127.0.0.1", served.port), timeout=15)
                held.append(s)
                begin, answer = time.monotonic(), b""
                s.settimeout(1)
                while time.monotonic() - begin < 14 and not answer:
                    try:
                        s.send(b"G")
                        answer = s.recv(1000)
                    except TimeoutError:
                        pass
                self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
            finally:
                for s in held:
                    s.close()

    def test_a_token_is_needed_where_others_can_reach_it(self):
        with Served("0.0.0.0", TOKEN) as served:
            self.assertEqual(served.ask("/api/state")[0], 401)
            self.assertEqual(served.ask("/")[0], 401)
            self.assertEqual(served.ask("/api/state", Authorization="Bearer " + TOKEN)[0], 200)
            self.assertEqual(served.ask("/api/state", Authorization="Bearer wrong")[0], 401)
            status, _, headers = served.ask("/?token=" + TOKEN)
            self.assertEqual((status, headers["Location"]), (303, "/"))
            self.assertEqual(served.ask("/", Cookie=headers["Set-Cookie"].split(";")[0])[0], 200)
            self.assertEqual(served.ask("/api/state", Authorization="Bearer " + TOKEN, Host="another-name.example")[0], 200)
            self.assertIn(f"http://{socket.gethostname()}:", served.line, "an address for other machines")
        with Served("0.0.0.0") as served:
            self.assertRegex(served.line, r"\?token=[0-9a-f]{40}")
            self.assertEqual(served.ask("/api/state")[0], 401)

    def test_events_come_at_the_interval_and_end_with_the_viewer(self):
        with Served() as served:
            with socket.create_connection(("127.0.0.1", served.port), timeout=5) as s:
                s.sendall(b"GET /api/events?interval=100 HTTP/1.1\r\n" + HOST + b"\r\n")
                received = b""
                while received.count(b"event: state\n") < 4:
                    received += s.recv(65536)
            head, events = received.split(b"\r\n\r\n", 1)
            self.assertIn(b"Content-Type: text/event-stream", head)
            line = next(line for line in events.split(b"\n") if line.startswith(b"data: "))
            self.assertEqual(json.loads(line[6:])["format"], "heapwright live 1")

    def test_viewers_at_the_same_time_each_get_their_answers(self):
        """Each view asked for by several viewers at once, while others follow events, go away in the middle, and give orders."""
        paths = ["/api/state", "/api/cells", "/api/history", "/api/stacks", "/api/sites", "/api/leaks", "/api/memory", "/api/processes",
                 "/metrics", "/debug/pprof/heap", "/api/collapsed", "/api/threads.csv", "/"]
        wrong = []

        def ask(begin):
            for i in range(len(paths)):
                path = paths[(begin + i) % len(paths)]
                status = served.ask(path)[0]
                if status != 200:
                    wrong.append((path, status))

        def follow(events):
            with socket.create_connection(("127.0.0.1", served.port), timeout=20) as s:
                s.sendall(b"GET /api/events?interval=100 HTTP/1.1\r\n" + HOST + b"\r\n")
                received = b""
                while received.count(b"event: state\n") < events:
                    received += s.recv(65536)

        def leave():
            for path in paths:
                with socket.create_connection(("127.0.0.1", served.port), timeout=20) as s:
                    s.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")

        def order(number):
            for i in range(5):
                status = served.control(mark=f"mark {number} {i}")
                if status != 200:
                    wrong.append(("mark", status))

        with Served() as served:
            work = [(ask, i) for i in range(0, 12, 2)] + [(follow, 3), (follow, 8), (leave,), (leave,), (order, 1), (order, 2)]
            threads = [threading.Thread(target=f, args=a) for f, *a in work]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertEqual(sum(m["name"].startswith("mark ") for m in served.state()["marks"]), 10)

    def test_the_end_of_the_program_is_told(self):
        for mode, expected in (("", "exited"), ("kill", "killed")):
            with Served(mode=mode, seconds="0") as served:
                served.program.wait()
                self.assertEqual(served.becomes(expected), expected)
                self.assertEqual(served.control(counting=False), 409)
                self.assertGreater(served.state()["totals"]["allocations"], 0)

    def test_without_viewers_it_costs_next_to_nothing(self):
        with Served() as served:
            if served.has_thread_sanitizer():
                self.skipTest("ThreadSanitizer has a thread of its own, which wakes up ten times a second")
            served.state()
            time.sleep(1)
            before = served.times_woken()
            time.sleep(6)
            self.assertLess(served.times_woken() - before, 60, "a look a second, and what that takes")

    def test_metrics_are_what_prometheus_reads(self):
        with Served() as served:
            status, text, headers = served.ask("/metrics")
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            self.assertRegex(text.decode(), r'(?m)^heapwright_allocations_total{process="\d+",program="example-server"} \d+$')
            if shutil.which("promtool"):
                subprocess.run(["promtool", "check", "metrics"], input=text, check=True, capture_output=True)

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        dashboard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/grafana-dashboard.json")
        with open(dashboard) as file:
            asked = set(re.findall(r"heapwright_[a-z_]+", " ".join(t["expr"] for p in json.load(file)["panels"] for t in p["targets"])))
        with Served() as served:
            there = set(re.findall(r"(?m)^(heapwright_[a-z_]+)", served.ask("/metrics")[1].decode()))
        self.assertGreater(len(asked), 8)
        self.assertEqual(asked - there, set())

    def test_profiles_and_tables_can_be_saved(self):
        with Served() as served:
            for path in ("/debug/pprof/heap", "/debug/pprof/allocs?seconds=1"):
                self.assertEqual(served.ask(path)[1][:2], b"\x1f\x8b")
            self.assertRegex(served.ask("/api/collapsed")[1].decode(), r"(?m)^server::run_forever;.* \d+$")
            for name, columns in (("classes", 8), ("threads", 11), ("history", 5), ("sites", 12)):
                lines = served.ask(f"/api/{name}.csv")[1].decode().splitlines()
                self.assertEqual(len(lines[0].split(",")), columns)
                self.assertGreater(len(lines), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
