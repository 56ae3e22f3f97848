"""What `live --save` keeps: all processes, small, with what only the viewer has seen; and damaged files.

usage: saved_run_test.py HEAPWRIGHT LIBHEAPWRIGHT
"""
import fcntl
import glob
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import zlib

from watched import HEAPWRIGHT, PATIENCE, Viewer, Watched, clean_environment, wait_for

# Keeps 30 MB for a while, frees most of it, and tells its own process id.
PROGRAM = """
import os, sys, time
blocks = [bytes(100_000) for _ in range(300)]
time.sleep(float(sys.argv[1]))
blocks = blocks[:10]
time.sleep(0.3)
"""

# Keeps 20 MB. Each child that it forks keeps 1 MB more.
FORKING = """
import os, sys
blocks = [bytes(100_000) for _ in range(200)]
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        blocks += [bytes(100_000) for _ in range(10)]
        os._exit(0)
    os.wait()
os._exit(0)  # frees nothing
"""

# The child goes on without its parent, until its input ends.
OUTLIVED = """
import os, sys
blocks = [bytes(100_000) for _ in range(200)]
if os.fork() == 0:
    blocks.append(bytes(100))
    sys.stdin.read()
else:
    sys.stdin.readline()
os._exit(0)
"""


def heapwright(*arguments, **more):
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(), **more)


def is_left_behind(folder, names):
    """Nobody holds its lock, and it has nothing but segments with these names. Other tests have folders there, too."""
    try:
        if not {name.partition(".")[0] for name in os.listdir(folder)} <= names:
            return False
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return False  # it has just gone, or is somebody else's
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.exists(folder)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


class SavedRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "run")
        # The command's own process is a shell, which does little; the others are its children.
        script = f"{sys.executable} -c \"$0\" 2.5; {sys.executable} -c \"$0\" 1 & wait; exit 3"
        cls.result = heapwright("live", "--no-browser", "--exit-with-program", "--save", cls.file, "--", "sh", "-c", script, PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_all_processes_are_there_in_little_room(self):
        self.assertEqual(self.result.returncode, 3, self.result.stderr)
        self.assertLess(os.path.getsize(self.file), 1 << 20)
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        with Viewer("--file", self.file) as viewer:
            self.assertEqual([p["arguments"][0] for p in viewer.processes()], ["sh", sys.executable, sys.executable])
            self.assertEqual(viewer.state()["process"]["state"], "exited")

    def test_time_line_resident_memory_and_memory_map_are_there(self):
        with Viewer("--file", self.file) as viewer:
            longest = min((p for p in viewer.processes() if p["arguments"][0] == sys.executable), key=lambda p: p["id"])
            about = "?" + urllib.parse.urlencode({"process": longest["name"]})
            history = viewer.get("/api/history" + about)
            self.assertGreater(max(history["live"]), 25_000_000)
            self.assertGreater(max(rss for rss in history["rss"] if rss), 25_000_000)
            self.assertLess(history["live"][-1], 10_000_000)
            state = viewer.get("/api/state" + about)
            self.assertGreater(state["memory"]["rss"], 1_000_000)
            memory = viewer.get("/api/memory" + about)
            self.assertTrue(any("python" in row[1] for row in memory["mappings"]))
            self.assertEqual(sum(bytes for _, bytes in memory["parts"]) - memory["not_resident"], memory["rss"])

    def test_diff_and_leaks_take_all_its_processes(self):
        result = heapwright("diff", self.file, self.file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("of 3 and 3 processes", result.stdout)
        peak = re.search(r"(?m)^peak +([\d.]+) MiB", result.stdout)
        self.assertIn(round(float(peak[1])), range(28, 36), "the highest of one process, not their sum")
        self.assertEqual(len(set(re.findall(r"\(process (\d+)\) ended", heapwright("leaks", self.file).stdout))), 3)

    def test_blocks_of_the_parent_of_a_fork_are_counted_once(self):
        saved = {}
        for forks in (0, 3):
            saved[forks] = os.path.join(self.folder.name, f"forks-{forks}")
            result = heapwright("live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", saved[forks], "--",
                                sys.executable, "-c", FORKING, str(forks))
            self.assertEqual(result.returncode, 0, result.stderr)
        result = heapwright("diff", saved[0], saved[3], "--fail-if", "live>+4MiB", "--fail-if", "allocated>+4MiB")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("of 1 and 4 processes", result.stdout)
        result = heapwright("diff", saved[0], saved[3], "--fail-if", "live>+2MiB")
        self.assertEqual(result.returncode, 1, "each child keeps 1 MB of its own")

        # Each process by itself, from its segment.
        with Viewer("--file", saved[3]) as viewer:
            parent, *children = sorted(viewer.processes(), key=lambda p: p["forked_from"])
            self.assertTrue(all(c["forked_from"] == parent["id"] and c["live"] > 20_000_000 for c in children))
            metrics = viewer.text("/metrics")
            live, inherited = ({int(process): int(value) for process, value in re.findall(rf'heapwright_{name}{{process="(\d+)".*?}} (\d+)', metrics)}
                               for name in ("live_bytes", "inherited_bytes"))
            self.assertEqual(inherited[parent["id"]], 0)
            for c in children:
                self.assertGreater(inherited[c["id"]], 19_000_000)
                self.assertLess(live[c["id"]] - inherited[c["id"]], 2_000_000)
        reports = [r for r in heapwright("leaks", saved[3]).stdout.split("heapwright leaks: ") if "(process" in r]
        self.assertEqual(len(reports), 4)
        for report in reports:
            is_parent = f"(process {parent['id']})" in report
            unfreed = int(re.search(r"(?m)^ +([\d,]+) bytes in .* not freed$", report)[1].replace(",", ""))
            self.assertTrue(19_000_000 < unfreed < 25_000_000 if is_parent else 990_000 < unfreed < 3_000_000, report)
            self.assertEqual(f"that process {parent['id']} had at the fork" in report, not is_parent, report)

    def test_the_sum_of_running_processes_has_each_block_once(self):
        """While the parent runs, and when its child has outlived it."""
        with Watched(sys.executable, "-c", OUTLIVED) as program:
            def answer(running):
                """Of processes with all that is in `blocks`: a reading is kept for a moment."""
                def answered():
                    a = program.get("/api/processes")
                    live = [row[a["columns"].index("live")] for row in a["rows"]]
                    return a["running"] == running and min(live) > 20_000_000 and a
                return wait_for(f"{running} running", answered)
            both = answer(2)
            self.assertLess(20_000_000, both["live"])
            self.assertLess(both["live"], 25_000_000)
            program.tool.stdin.write("end\n")
            program.tool.stdin.flush()
            self.assertLess(20_000_000, answer(1)["live"])

    def test_more_processes_than_are_watched_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "many")
            many = "for i in $(seq 70); do sleep 3 & done; wait"
            result = heapwright("live", "--no-browser", "--exit-with-program", "--save", file, "--", "sh", "-c", many)
            self.assertEqual(result.returncode, 0, result.stderr)
            with Viewer("--file", file) as viewer:
                ids = {row["id"] for row in viewer.processes()}
                self.assertGreaterEqual(len(ids), 71)
                self.assertEqual({int(found) for found in re.findall(r'heapwright_live_bytes{process="(\d+)"', viewer.text("/metrics"))}, ids)
            self.assertIn(f"{len(ids)} processes", heapwright("top", file).stderr)
            for process in ids:
                self.assertIn(f"process {process} ", heapwright("top", file, "--process", str(process)).stdout)

    def test_a_killed_program_is_told_to_be_so(self):
        file = os.path.join(self.folder.name, "killed")
        result = heapwright("live", "--no-browser", "--exit-with-program", "--save", file, "--", sys.executable, "-c",
                            PROGRAM + "os.kill(os.getpid(), 9)", "1.5")
        self.assertEqual(result.returncode, 137)
        with Viewer("--file", file) as viewer:
            self.assertEqual(viewer.state()["process"]["state"], "killed")
            self.assertGreater(viewer.state()["memory"]["rss"], 1_000_000)

    def test_one_that_still_runs_is_told_to_be_so(self):
        file = os.path.join(self.folder.name, "running")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
            environment = clean_environment(HEAPWRIGHT_SEGMENT_DIR=segments, LD_PRELOAD=os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so"))
            with subprocess.Popen([sys.executable, "-c", PROGRAM, "100"], env=environment) as program:
                wait_for("the segment", lambda: os.listdir(segments))
                tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--save", file, str(program.pid)],
                                        env=clean_environment(HEAPWRIGHT_SEGMENT_DIR=segments), stderr=subprocess.PIPE, text=True)
                self.assertIn("live at", tool.stderr.readline())
                time.sleep(1.5)
                tool.send_signal(signal.SIGINT)
                self.assertEqual(tool.wait(PATIENCE), 0)
                tool.stderr.close()
                program.kill()
        with Viewer("--file", file) as viewer:
            self.assertEqual(viewer.state()["process"]["state"], "left")

    def test_a_segment_as_the_probe_leaves_it_is_read_too(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
            environment = clean_environment(HEAPWRIGHT_SEGMENT_DIR=segments, LD_PRELOAD=os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so"))
            subprocess.run([sys.executable, "-c", PROGRAM, "0"], env=environment, check=True)
            (name,) = os.listdir(segments)
            self.assertIn("ended", heapwright("top", os.path.join(segments, name)).stdout)

    def test_damaged_files_are_refused_in_a_sentence(self):
        with open(self.file, "rb") as file:
            good = file.read()
        header, _, data = gzip.decompress(good).partition(b"\n")
        head = json.loads(header)
        first = head["processes"][0]
        another = lambda **changes: gzip.compress(json.dumps(head | {"processes": [first | changes]}).encode() + b"\n" + data)
        bad = {"cut off": good[:len(good) // 2], "cut off early": good[:30], "no header": gzip.compress(b"x" * 100), "empty": gzip.compress(b""),
               "flipped": good[:200] + bytes(b ^ 0xff for b in good[200:240]) + good[240:],
               "another format": gzip.compress(json.dumps(head | {"format": "heapwright saved run 9"}).encode() + b"\n"),
               "no processes": gzip.compress(json.dumps(head | {"processes": []}).encode() + b"\n"),
               "a name that leads elsewhere": another(name="../../tmp/x"), "a part beyond the end": another(parts=[[first["bytes"], 4096]]),
               "parts that wrap around": another(parts=[[2**64 - 4096, 8192]]), "no segment": another(parts=[]), "too long": another(bytes=2**60),
               "no numbers": another(bytes="many"), "a past of another kind": another(past=[1])}
        for what, content in bad.items():
            path = os.path.join(self.folder.name, "bad")
            with open(path, "wb") as file:
                file.write(content)
            for command in (["top"], ["diff", self.file], ["leaks"], ["live", "--no-browser", "--file"]):
                with self.subTest(what, command=command[0]):
                    result = heapwright(*command, path)
                    self.assertEqual(result.returncode, 125, result.stdout)
                    self.assertRegex(result.stderr, r"^heapwright: [^\n]+\n$")
        names = {p["name"] for p in head["processes"]} | {"x"}
        self.assertEqual([f for f in glob.glob("/dev/shm/heapwright-live-*") if is_left_behind(f, names)], [])

    def test_a_bit_that_was_flipped_is_seen(self):
        with open(self.file, "rb") as file:
            good = file.read()
        path = os.path.join(self.folder.name, "flipped")
        seen = 0
        for at in range(12, len(good) - 8, len(good) // 40):
            flipped = good[:at] + bytes([good[at] ^ 16]) + good[at + 1:]
            try:  # among zeros, a copy from another distance is the same content
                if gzip.decompress(flipped) == gzip.decompress(good):
                    continue
            except (OSError, EOFError, zlib.error):
                pass
            with open(path, "wb") as file:
                file.write(flipped)
            with self.subTest(at=at):
                self.assertEqual(heapwright("diff", path, path).returncode, 125)
                seen += 1
        self.assertGreater(seen, 20)

    def test_a_message_on_a_damaged_file_is_text(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(gzip.compress(b'{"format": "\xff\x1b[2J' + b"x" * 100_000 + b'"}\n'))
            file.flush()
            result = subprocess.run([HEAPWRIGHT, "diff", file.name, file.name], capture_output=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 125)
            self.assertNotIn(b"\x1b", result.stderr)
            self.assertIn("it is no saved run", result.stderr.decode())
            self.assertLess(len(result.stderr), 1000)

    def test_a_full_disk_is_told(self):
        result = heapwright("live", "--no-browser", "--exit-with-program", "--save", "/dev/full", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("/dev/full", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
