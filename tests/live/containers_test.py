"""A program in a container, watched from the host: it has another process id, /dev/shm and files of its own.

usage: containers_test.py HEAPWRIGHT LIBHEAPWRIGHT LEAKING_SERVER
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from watched import HEAPWRIGHT, PATIENCE, clean_environment, wait_for

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
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        inside = os.path.join(self.folder.name, "inside")
        os.mkdir(inside)
        # The program is a file that only the container has.
        script = f"mount -t tmpfs none /dev/shm && mount -t tmpfs none {inside} && cp {SERVER} {inside}/server && exec env LD_PRELOAD={PROBE} {inside}/server 100 500"
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
