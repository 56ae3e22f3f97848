"""What `heapwright live --push` sends, to receivers that take it, refuse it, hang or are not there.

usage: push_test.py HEAPWRIGHT LIBHEAPWRIGHT

OTLP is read by the classes that opentelemetry-proto generates from its schema; PyPI has them.
"""
import contextlib
import gzip
import http.server
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (ExportProfilesPartialSuccess, ExportProfilesServiceRequest,
                                                                                       ExportProfilesServiceResponse)

from watched import HEAPWRIGHT, PATIENCE, PYTHON, PYTHON_PROGRAM, Watched, clean_environment, free_port, wait_for, without_stack

PROBE = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
# A proxy of the surroundings has nothing to do here.
DIRECT = {"no_proxy": "127.0.0.1,localhost"}


class Taken:
    """A request that a receiver has had."""

    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = urllib.parse.urlsplit(path).path, headers, body
        self.query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))


class Receiver:
    """`answer(taken)` gives status, headers and body; what it raises closes the connection."""

    def __init__(self, answer=None, context=None):
        self.all, self.taken, self.is_over = [], [], threading.Event()
        self.answer = answer or (lambda request: (200, {}, b""))
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = Taken(self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
                receiver.all.append(request)
                try:
                    status, headers, body = receiver.answer(request)
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                if status < 300:
                    receiver.taken.append(request)
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in ({"Content-Length": str(len(body))} | headers).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # a client that hangs up, or trusts another authority
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()

    def of(self, pid):
        """What was taken, of one process."""
        return [p for p in map(profile_of, self.taken) if p.pid == pid]


def fields(message):
    """Of a message in protobuf: numbers of fields and their values."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            length = number()
            yield key >> 3, message[at:at + length]
            at += length


def numbers(packed):
    return [value for _, value in fields(b"".join(b"\x08" + part for part in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", packed)))]


class Pprof:
    """A profile as Pyroscope takes it, by the fields of profile.proto."""

    def __init__(self, request):
        name = re.fullmatch(r"([^{]*)\{(.*)\}", request.query["name"])
        self.service, self.labels = name[1], dict(pair.split("=") for pair in name[2].split(","))
        self.pid = int(self.labels["process_pid"])
        parts = list(fields(gzip.decompress(request.body)))
        texts = [part.decode() for field, part in parts if field == 6]
        values = [dict(fields(part)) for field, part in parts if field == 2]
        self.types = [(texts[t[1]], texts[t[2]]) for t in (dict(fields(part)) for field, part in parts if field == 1)]
        self.sums = dict(zip((name for name, _ in self.types), map(sum, zip(*(numbers(v[2]) for v in values)))))
        self.labels_of_samples = [v[3] for v in values if 3 in v]
        self.functions = {texts[dict(fields(part))[2]] for field, part in parts if field == 5}
        self.time_ns = dict(parts)[9]


class Otlp:
    """A request as an OTLP receiver takes it. Reading it checks what the schema's comments demand."""

    def __init__(self, taken):
        request = ExportProfilesServiceRequest.FromString(gzip.decompress(taken.body))
        assert not unknown_fields(request), "the schema has no such fields"
        d = request.dictionary
        for table in (d.mapping_table, d.location_table, d.function_table, d.link_table, d.attribute_table, d.stack_table):
            assert table[0] == type(table[0])(), "the first entry is empty"
        assert d.string_table[0] == "" and len(set(d.string_table)) == len(d.string_table)
        (of_process,) = request.resource_profiles
        (scope,) = of_process.scope_profiles
        assert scope.scope.name == "heapwright"
        attributes = {a.key: a.value for a in of_process.resource.attributes}
        self.pid = attributes.pop("process.pid").int_value
        self.labels = {key: value.string_value for key, value in attributes.items()}
        self.service = self.labels["service.name"]
        self.types = [(d.string_table[p.sample_type.type_strindex], d.string_table[p.sample_type.unit_strindex]) for p in scope.profiles]
        self.sums, self.functions = {}, set()
        for (name, _), profile in zip(self.types, scope.profiles):
            stacks = [sample.stack_index for sample in profile.samples]
            assert 0 not in stacks and len(set(stacks)) == len(stacks), "a stack has one sample"
            assert all(len(sample.values) == 1 for sample in profile.samples)
            self.sums[name] = sum(sample.values[0] for sample in profile.samples)
            for location in (d.location_table[i] for s in stacks for i in d.stack_table[s].location_indices):
                assert location.mapping_index < len(d.mapping_table)
                self.functions |= {d.string_table[d.function_table[line.function_index].name_strindex] for line in location.lines}
            self.time_ns = profile.time_unix_nano + profile.duration_nano
        mappings = d.mapping_table[1:]
        self.files = {d.string_table[m.filename_strindex] for m in mappings}
        self.build_ids = [d.attribute_table[i].value.string_value for m in mappings for i in m.attribute_indices]


def unknown_fields(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    if len(UnknownFieldSet(message)):
        return True
    return any(unknown_fields(part) for field, value in message.ListFields() if field.message_type
               for part in ([value] if not field.is_repeated else value))


def profile_of(request):
    return Otlp(request) if request.path.endswith("/v1development/profiles") else Pprof(request)


def live(receiver, *arguments, kind="pyroscope", scheme="http", every="1", options=(), **variables):
    """A run to its end: its exit code, and what stderr has beside the address."""
    command = [HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--sample", "1", "--push", f"{kind}+{scheme}://127.0.0.1:{receiver if isinstance(receiver, int) else receiver.port}",
               "--push-every", every, *options, "--", *arguments]
    result = subprocess.run(command, env=clean_environment(**DIRECT, **variables), capture_output=True, text=True, timeout=PATIENCE)
    return result.returncode, [line for line in result.stderr.splitlines() if " live at " not in line]


# Holds as many blocks of 100,000 bytes as it is told, a tenth of a second each, and ends.
KEEPS = "import sys, time\nkept = []\nfor i in range(int(sys.argv[1])):\n    kept.append(bytearray(100_000))\n    time.sleep(0.1)\nsys.exit(7)\n"


class WhatIsSent(unittest.TestCase):
    def compare_with_the_page(self, kind):
        with Receiver() as receiver:
            options = ("--push", f"{kind}+http://127.0.0.1:{receiver.port}/below/", "--push-every", "1", "--push-label", "region=eu", "--push-header", "X-Scope-OrgID: team")
            with Watched(PYTHON, "-c", PYTHON_PROGRAM, options=options, environment=DIRECT | {"HEAPWRIGHT_PUSH_HEADERS": "Authorization: Bearer secret\nX-Other: 1"}) as watched:
                self.assertEqual(watched.hear(), "ready")
                for number in (20, 30, 40):
                    self.assertEqual(watched.tell(f"keep {number}"), "done")
                    count = len(receiver.taken)
                    wait_for("another profile", lambda: len(receiver.taken) > count + 1)
                self.assertEqual(watched.tell("thread 20"), "done")
                state = watched.stop()
                count = len(receiver.taken)
                wait_for("profiles of the stopped program", lambda: len(receiver.taken) > count + 2)
                with open(f"/proc/{watched.id}/environ", "rb") as environ, open(f"/proc/{watched.tool.pid}/cmdline", "rb") as words:
                    self.assertFalse(b"secret" in environ.read() + words.read())
            profiles = receiver.of(watched.id)
        totals, early = state["totals"], without_stack(state)
        last = profiles[-1]
        self.assertEqual(last.types, TYPES)
        for name, of_page in (("inuse_space", "live"), ("inuse_objects", "live_blocks")):
            self.assertEqual(last.sums[name], totals[of_page] - early[of_page], name)
        for name, of_page in (("alloc_space", "allocated_bytes"), ("alloc_objects", "allocations")):
            self.assertEqual(sum(p.sums[name] for p in profiles), totals[of_page] - early[of_page], name)
            self.assertEqual(last.sums[name], 0, "nothing is told twice")
        self.assertLessEqual({"keep", "named", "ffi_call"}, last.functions)
        self.assertEqual(last.service, os.path.basename(PYTHON))
        self.assertLess(abs(last.time_ns / 1e9 - time.time()), PATIENCE)
        for request in receiver.taken:
            self.assertEqual([request.headers[h] for h in ("Authorization", "X-Scope-OrgID", "X-Other")], ["Bearer secret", "team", "1"])
        return receiver.taken[-1], last

    def test_pyroscope(self):
        request, last = self.compare_with_the_page("pyroscope")
        self.assertEqual(request.path, "/below/ingest")
        self.assertEqual((request.query["format"], request.query["spyName"]), ("pprof", "heapwright"))
        self.assertLessEqual(int(request.query["from"]), int(request.query["until"]))
        self.assertLessEqual(abs(int(request.query["until"]) - last.time_ns // 1_000_000_000), 1)
        self.assertEqual(set(last.labels), {"host_name", "process_executable_name", "process_pid", "region"})
        self.assertEqual(last.labels["region"], "eu")
        self.assertEqual(last.labels_of_samples, [], "each name of threads would be a series")

    def test_otlp(self):
        request, last = self.compare_with_the_page("otlp")
        self.assertEqual(request.path, "/below/v1development/profiles")
        self.assertEqual((request.headers["Content-Type"], request.headers["Content-Encoding"]), ("application/x-protobuf", "gzip"))
        self.assertEqual(set(last.labels), {"service.name", "host.name", "process.executable.name", "region"})
        self.assertIn(os.path.realpath(PYTHON), last.files)
        self.assertTrue(all(re.fullmatch("[0-9a-f]{40}", id) for id in last.build_ids) and last.build_ids)

    def test_a_short_program_is_sent_at_its_end(self):
        for kind in ("pyroscope", "otlp"):
            with self.subTest(kind), Receiver() as receiver:
                self.assertEqual(live(receiver, PYTHON, "-c", KEEPS, "3", kind=kind, every="3600", options=("--push-label", "service.name=a shop")), (7, []))
                (profile,) = map(profile_of, receiver.taken)
                self.assertEqual(profile.service, "a shop" if kind == "otlp" else "a_shop")
                self.assertGreater(profile.sums["alloc_space"], 300_000)

    def test_all_processes_of_a_command_each_block_once(self):
        forks = "import os, time\nkept = bytearray(50_000_000)\nif os.fork():\n    os.wait()\nelse:\n    more = bytearray(3_000_000)\n    time.sleep(3)\n    os._exit(0)\n"
        with Receiver() as receiver:
            self.assertEqual(live(receiver, "sh", "-c", f'{PYTHON} -c "$0"; exit 3', forks), (3, []))
        by_process = {}
        for profile in map(profile_of, receiver.taken):
            by_process.setdefault(profile.pid, []).append(profile)
        sizes = sorted(sum(p.sums["alloc_space"] for p in of if p.service != "sh" and p.service != "dash") for of in by_process.values())
        parent, child = sizes[-1], sizes[-2]
        self.assertGreater(parent, 50_000_000)
        self.assertTrue(3_000_000 < child < 50_000_000, sizes)

    def test_a_process_that_runs_is_told_from_now_on(self):
        with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
            environment = clean_environment(**DIRECT, LD_PRELOAD=PROBE, HEAPWRIGHT_SEGMENT_DIR=folder, HEAPWRIGHT_SAMPLE="1")
            with subprocess.Popen([PYTHON, "-c", PYTHON_PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program, \
                    subprocess.Popen([PYTHON, "-c", PYTHON_PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
                def tell(line):
                    program.stdin.write(line + "\n")
                    program.stdin.flush()
                    return program.stdout.readline()
                self.assertEqual((program.stdout.readline(), other.stdout.readline()), ("ready\n", "ready\n"))
                tell("keep 100")
                command = [HEAPWRIGHT, "live", "--no-browser", "--exit-with-program", "--push", f"pyroscope+http://127.0.0.1:{receiver.port}", "--push-every", "1", str(program.pid)]
                del environment["LD_PRELOAD"]
                with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as tool:
                    self.assertRegex(tool.stderr.readline(), "live at")
                    wait_for("two profiles", lambda: len(receiver.taken) > 1)
                    tell("keep 20")
                    count = len(receiver.taken)
                    wait_for("another", lambda: len(receiver.taken) > count + 1)
                    program.stdin.close()
                    program.wait(PATIENCE)
                    self.assertEqual((tool.wait(PATIENCE), tool.stderr.read()), (0, ""))
                other.stdin.close()
        profiles = receiver.of(program.pid)
        self.assertEqual(len(profiles), len(receiver.taken), "another program that shares the folder is not of the run")
        self.assertGreater(profiles[0].sums["inuse_space"], 100 * 100_000)
        allocated = sum(p.sums["alloc_space"] for p in profiles)
        self.assertTrue(20 * 100_000 <= allocated < 50 * 100_000, allocated)

    def test_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = (os.path.join(folder, name) for name in ("key.pem", "certificate.pem"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1",
                            "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            with Receiver(context=context) as receiver:
                code, messages = live(receiver, PYTHON, "-c", KEEPS, "1", scheme="https", every="3600")
                self.assertEqual((code, receiver.all, len(messages)), (7, [], 1))
                self.assertIn("certificate", messages[0])
                self.assertEqual(live(receiver, PYTHON, "-c", KEEPS, "1", scheme="https", every="3600", SSL_CERT_FILE=certificate), (7, []))
                self.assertEqual(len(receiver.taken), 1)


class WhenItIsNotTaken(unittest.TestCase):
    def test_the_program_and_the_page_go_on_and_one_message_says_why(self):
        def hang(request):
            receiver.is_over.wait(PATIENCE)
            raise ConnectionAbortedError

        def cut(request):
            raise ConnectionAbortedError
        answers = {"answers 500 \\(broken\\)": (500, {}, b"broken\nin detail"), "answers 401.*--push-header": (401, {}, b""), "answers 404.*Pyroscope": (404, {}, b""),
                   "answers 413.*larger": (413, {}, b""), "points to http://elsewhere.example.com/ingest": (302, {"Location": "http://elsewhere.example.com/ingest"}, b""),
                   "answered in time": hang, "Empty reply": cut}
        for pattern, answer in answers.items():
            with self.subTest(pattern), Receiver(answer if callable(answer) else lambda request: answer) as receiver:
                code, messages = live(receiver, PYTHON, "-c", KEEPS, "40")
                self.assertEqual(code, 7)
                self.assertRegex(messages[0], rf"^heapwright: push to pyroscope\+http://127.0.0.1:\d+: .*{pattern}")
                self.assertGreater(len(receiver.all), 0)
                self.assertLessEqual(len(messages), 2, messages)
                self.assertRegex(messages[-1], "The last profiles are lost$")

    def test_nobody_is_there(self):
        code, messages = live(free_port(), PYTHON, "-c", KEEPS, "25", kind="otlp")
        self.assertEqual((code, len(messages)), (7, 2), messages)
        self.assertIn("Couldn't connect", messages[0])

    def test_the_page_answers_while_the_receiver_hangs_and_a_signal_ends_it(self):
        with Receiver(lambda request: receiver.is_over.wait(PATIENCE) and (200, {}, b"")) as receiver:
            options = ("--push", f"otlp+http://127.0.0.1:{receiver.port}", "--push-every", "1")
            with Watched(PYTHON, "-c", PYTHON_PROGRAM, options=options, environment=DIRECT) as watched:
                self.assertEqual(watched.hear(), "ready")
                wait_for("a request", lambda: receiver.all)
                self.assertEqual(watched.state()["process"]["state"], "running")
                self.assertEqual(watched.tell("keep 5"), "done")
                watched.tool.send_signal(signal.SIGTERM)
                self.assertEqual(watched.tool.wait(PATIENCE), 128 + signal.SIGTERM)
                self.assertFalse(receiver.is_over.is_set())

    def test_nothing_is_missing_when_it_works_again(self):
        refusals = iter([503] * 2 + [429])
        with Receiver(lambda request: (next(refusals, 200), {}, b"later")) as receiver:
            with Watched(PYTHON, "-c", PYTHON_PROGRAM, options=("--push", f"otlp+http://127.0.0.1:{receiver.port}", "--push-every", "1"), environment=DIRECT) as watched:
                self.assertEqual(watched.hear(), "ready")
                watched.tell("keep 20")
                wait_for("it has begun to refuse", lambda: receiver.all)
                watched.tell("keep 30")
                state = watched.stop()
                wait_for("it works again", lambda: len(receiver.taken) > 1)
                messages = [watched.tool.stderr.readline() for _ in range(2)]
            profiles = receiver.of(watched.id)
        self.assertEqual(len(receiver.all) - len(receiver.taken), 3)
        self.assertEqual(sum(p.sums["alloc_space"] for p in profiles), state["totals"]["allocated_bytes"] - without_stack(state)["allocated_bytes"])
        self.assertIn("answers 503", messages[0])
        self.assertIn("works again", messages[1])

    def test_what_is_taken_in_part_is_not_sent_again(self):
        part = ExportProfilesServiceResponse(partial_success=ExportProfilesPartialSuccess(rejected_profiles=2, error_message="no objects here")).SerializeToString()
        with Receiver(lambda request: (200, {}, part)) as receiver:
            code, messages = live(receiver, PYTHON, "-c", KEEPS, "25", kind="otlp")
        self.assertEqual((code, len(messages)), (7, 1), messages)
        self.assertIn("has left out profiles: no objects here", messages[0])
        self.assertGreater(len(receiver.taken), 1)
        self.assertLess(sum(profile_of(r).sums["alloc_objects"] for r in receiver.taken[1:]), profile_of(receiver.taken[0]).sums["alloc_objects"])


class Arguments(unittest.TestCase):
    def refused(self, *arguments, **variables):
        result = subprocess.run([HEAPWRIGHT, "live", "--no-browser", *arguments], env=clean_environment(**variables), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 125, arguments)
        self.assertNotIn("secret", result.stderr)
        return result.stderr

    def test_bad_ones_are_refused_before_anything_starts(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "started")
            run = ("--", "touch", mark)
            for url in ("http://localhost:4040", "otlp+ftp://localhost", "pyroscope+http://", "pyroscope+http:///path", "otlp+http://:4318", "otlp+http://localhost:99999",
                        "otlp+http://localhost/?a=b", "otlp+http://local host", "jaeger+http://localhost"):
                self.assertIn(f"--push {url}: ", self.refused("--push", url, *run))
            self.assertIn("seen by others", self.refused("--push", "otlp+https://user:pass@localhost", *run))
            url = ("--push", "otlp+http://127.0.0.1:1")
            for header in ("secret", ": secret", "A b: secret", "Name: secret\nOther: 1"):
                self.assertIn("--push-header takes NAME: VALUE", self.refused(*url, "--push-header", header, *run))
            self.assertIn("HEAPWRIGHT_PUSH_HEADERS takes NAME: VALUE", self.refused(*url, *run, HEAPWRIGHT_PUSH_HEADERS="secret"))
            for label in ("region", "=eu", "region=", "1st=x", "a-b=c", "a=b,c", "a=b}"):
                self.assertIn(f"--push-label {label}: ", self.refused(*url, "--push-label", label, *run))
            self.assertIn("--push-every", self.refused(*url, "--push-every", "0", *run))
            self.assertIn("--push-every requires --push", self.refused("--push-every", "5", *run))
            self.assertIn("--push is for a COMMAND or a PID", self.refused(*url, "--file", mark))
            self.assertFalse(os.path.exists(mark))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
