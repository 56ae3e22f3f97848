"""A program in a container, watched from the host: it has another process id, /dev/shm and files of its own.

usage: containers_test.py HEAPWRIGHT LIBHEAPWRIGHT LEAKING_SERVER
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from watched import HEAPWRIGHT, LOCAL, PATIENCE, PYTHON, clean_environment, wait_for

SERVER = sys.argv[3]
PROBE = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright-probe.so")
# A user namespace, so that no privileges are needed where the system allows that.
CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc"]


def can_have_containers():
    return shutil.which("unshare") and subprocess.run([*CONTAINER, "mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True).returncode == 0


def heapwright(*arguments):
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment())


@unittest.skipUnless(can_have_containers(), "namespaces cannot be made here")
class Containers(unittest.TestCase):
    SHARED = False

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        inside = os.path.join(self.folder.name, "inside")
        os.mkdir(inside)
        # The program is a file that only the container has.
        own_segments = "" if self.SHARED else "mount -t tmpfs none /dev/shm && "
        script = f"{own_segments}mount -t tmpfs none {inside} && cp {SERVER} {inside}/server && exec env LD_PRELOAD={PROBE} {inside}/server 100 500"
        self.container = subprocess.Popen([*CONTAINER, "sh", "-c", script], env=clean_environment(), stdout=subprocess.DEVNULL)
        self.id = wait_for("the program", lambda: self.server_inside(f"{inside}/server"))
        time.sleep(1)

    def tearDown(self):
        os.kill(self.id, signal.SIGKILL)
        self.container.wait(PATIENCE)
        self.folder.cleanup()

    @staticmethod
    def server_inside(path):
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read().startswith(path.encode() + b"\0"):
                        return int(name)
            except OSError:
                pass

    def test_its_source_is_shown_and_no_link_leads_out_of_it(self):
        inside = os.path.join(self.folder.name, "inside")
        for folder in (self.folder.name, inside):  # the container has another folder in the place of the second
            with open(os.path.join(folder, "other.cpp"), "w") as file:
                file.write("another file\n" * 400)
        tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", str(self.id)], env=clean_environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(tool.communicate)
        self.addCleanup(tool.terminate)
        address = re.search(r"http://[\d.:]+/", tool.stderr.readline())[0]

        def get(path):
            with LOCAL.open(address + path, timeout=PATIENCE) as answer:
                return json.load(answer)
        file, line = wait_for("a site", lambda: next((p[1:3] for p in get("api/sites?value=live")["places"] if "look_up" in p[0] and p[1]), None))

        def source():
            return get(f"api/source?file={file}&line={line}")["lines"]
        with open(file) as text:
            self.assertIn(text.read().splitlines()[line - 1], source())

        def within(*command):
            subprocess.run(["nsenter", f"--target={self.id}", "--user", "--mount", "--preserve-credentials", *command], check=True)
        within("mount", "-t", "tmpfs", "none", os.path.dirname(file))
        self.assertEqual(source(), [], "it is the container's file, which is gone")
        within("ln", "-s", f"{self.folder.name}/other.cpp", file)
        self.assertEqual(set(source()), {"another file"})
        for target in (f"{inside}/other.cpp", f"/proc/self/root{self.folder.name}/other.cpp"):
            within("ln", "-sf", target, file)
            self.assertEqual(source(), [], target)
        within("rm", file)
        within("mkfifo", file)
        self.assertEqual(source(), [], "a pipe is not waited for")

    def test_it_is_listed_shown_named_and_saved_by_its_id_here(self):
        self.assertRegex(heapwright("live", "--list").stdout, rf"(?m)^ *{self.id}  running  .*server 100 500$")
        top = heapwright("top", str(self.id))
        self.assertIn(f"process {self.id}  running", top.stdout, top.stderr)
        self.assertRegex(top.stdout, r"look_up  leaking_server.cpp:\d+")
        self.assertRegex(top.stdout, r"RSS \d+(\.\d)? MiB")
        saved = os.path.join(self.folder.name, "saved")
        with subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--save", saved, str(self.id)], env=clean_environment(), stderr=subprocess.PIPE, text=True) as tool:
            self.assertRegex(tool.stderr.readline(), "live at")
            time.sleep(1.5)
            tool.send_signal(signal.SIGINT)
            self.assertEqual(tool.wait(PATIENCE), 0)
        self.assertRegex(heapwright("top", saved).stdout, r"running when it was saved .*\n.*RSS \d")


class ContainersThatShareTheFolderOfSegments(Containers):
    """As with a volume, or with --ipc=host."""

    SHARED = True


# Allocates, forks, and the child forks again: each holds more than the one before.
FORKS = """
import os, time
kept = [bytearray(1_000_000)]
for more in (2_000_000, 4_000_000):
    if os.fork():
        break
    kept.append(bytearray(more))
os.write(1, b"ready\\n")
time.sleep(1000)
"""


@unittest.skipUnless(can_have_containers(), "namespaces cannot be made here")
class NamespaceBelowLive(unittest.TestCase):
    """Only the process ids differ: the segments are where those of `live` are."""

    def inner_ids(self):
        """The ids here of the processes in the namespace, by what they call themselves."""
        ids = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as environ, open(f"/proc/{name}/status") as status:
                    if self.mark in environ.read():
                        own = re.search(r"NSpid:\t(.*)", status.read())[1].split()
                        if len(own) > 1:
                            ids[int(own[-1])] = int(name)
            except OSError:
                pass
        return ids

    def start(self, *command, **variables):
        self.mark = f"HEAPWRIGHT_TEST_MARK={os.getpid()}-{self.id()}".encode()
        started = subprocess.Popen([*command, *CONTAINER, PYTHON, "-c", FORKS], env=clean_environment(HEAPWRIGHT_TEST_MARK=self.mark.decode().partition("=")[2], **variables),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (started.communicate()))
        self.addCleanup(lambda: [os.kill(id, signal.SIGKILL) for own, id in self.inner_ids().items() if own == 1])  # ends all of the namespace
        return started

    def test_its_processes_run_and_have_their_ids_here(self):
        tool = self.start(HEAPWRIGHT, "live", "--no-browser", "--port", "0", "--")
        self.addCleanup(tool.terminate)
        port = re.search(r":(\d+)/", tool.stderr.readline())[1]
        for _ in range(3):
            self.assertEqual(tool.stdout.readline(), "ready\n")
        inner = self.inner_ids()
        self.assertEqual(sorted(inner), [1, 2, 3])

        def get(path):
            with LOCAL.open(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
                return json.load(answer)

        def rows():
            table = get("/api/processes")
            return [dict(zip(table["columns"], row)) for row in table["rows"]]
        by_id = {row["id"]: row for row in rows()}
        self.assertEqual(len(by_id), len(rows()), by_id)
        for own, id in inner.items():
            self.assertTrue(by_id[id]["running"], by_id)
            if own > 1:
                self.assertEqual(by_id[id]["forked_from"], inner[own - 1])
            state = get(f"/api/state?process={by_id[id]['name']}")
            self.assertEqual((state["process"]["id"], state["process"]["state"]), (id, "running"))
            self.assertGreater(state["memory"]["rss"], 1_000_000)
        listed = heapwright("live", "--list").stdout
        for id in inner.values():
            self.assertEqual(len(re.findall(rf"(?m)^ *{id}  running ", listed)), 1, listed)
        os.kill(inner[3], signal.SIGKILL)
        ended = wait_for("its end", lambda: next((row for row in rows() if row["id"] == inner[3] and not row["running"]), None))
        self.assertEqual(ended["name"], by_id[inner[3]]["name"], "its id stays")

    def test_its_segments_are_not_taken_for_those_of_processes_that_are_gone(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            environment = clean_environment(LD_PRELOAD=PROBE, HEAPWRIGHT_SEGMENT_DIR=folder)
            own = next(id for id in range(os.getpid() - 1, 1, -1) if not os.path.exists(f"/proc/{id}"))
            script = f'exec 3<&0; echo {own - 1} >/proc/sys/kernel/ns_last_pid; {PYTHON} -c "import sys; print(flush=True); sys.stdin.read()" <&3 3<&- & wait'
            inside = subprocess.Popen([*CONTAINER, "sh", "-c", script + "; exit"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.assertEqual(inside.stdout.readline(), "\n")
            name = max(name for name in os.listdir(folder) if name.startswith(f"{own}-"))  # of its last program
            for _ in range(140):
                subprocess.run([PYTHON, "-c", ""], env=environment, check=True)
            files = os.listdir(folder)
            self.assertLess(len(files), 72)
            self.assertIn(name, files)
            inside.communicate()
            for _ in range(70):
                subprocess.run([PYTHON, "-c", ""], env=environment, check=True)
            self.assertNotIn(name, os.listdir(folder), "it is gone now")

    def test_it_is_listed_once(self):
        with tempfile.TemporaryDirectory() as folder:
            started = self.start(LD_PRELOAD=PROBE, HEAPWRIGHT_SEGMENT_DIR=folder)
            for _ in range(3):
                self.assertEqual(started.stdout.readline(), "ready\n")
            inner = self.inner_ids()
            listed = subprocess.run([HEAPWRIGHT, "live", "--list"], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(HEAPWRIGHT_SEGMENT_DIR=folder)).stdout
            of_folder = [line.split()[:2] for line in listed.splitlines() if "kept = [" in line or "unshare" in line and line.split()[0] == str(started.pid)]
            self.assertEqual(sorted(of_folder), sorted([str(id), "running"] for id in (started.pid, *inner.values())), listed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
