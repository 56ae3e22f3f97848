"""The command on an old kernel: tests/malloc/shims/as_linux_4_19.c answers for it."""
import json
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.request

from support import HEAPWRIGHT, PYTHON, Case, heapwright

AS_LINUX_4_19 = os.environ["AS_LINUX_4_19"]
ALLOCATE = "all = [bytearray(1000) for i in range(20000)]"


def old(*arguments, **options):
    return subprocess.run([AS_LINUX_4_19, HEAPWRIGHT, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **options)


class OldKernel(Case):
    def setUp(self):
        super().setUp()
        if subprocess.run([AS_LINUX_4_19, "true"]).returncode == 77:
            self.skipTest("the kernel filters no system calls")

    def test_run(self):
        for options in ([], ["--stats"], ["--hardened"]):
            result = old("run", *options, "--", PYTHON, "-c", "print(6 * 7)")
            self.assertEqual((result.returncode, result.stdout), (0, "42\n"), result.stderr)

    def test_info(self):
        process = subprocess.Popen([AS_LINUX_4_19, HEAPWRIGHT, "run", "--", PYTHON, "-c", "print('begun', flush=True); input()"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begun\n")
        result = old("info", "--json", str(process.pid))
        process.communicate("\n", timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(json.loads(result.stdout)["bytes"]["mapped"], 0)

    def test_record(self):
        trace = str(self.folder / "a.trace")
        result = old("record", "-o", trace, "--", PYTHON, "-c", ALLOCATE)
        self.assertRegex(result.stderr, r"^heapwright: [\d,]+ events in ")
        told = heapwright("trace", "info", trace)
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertGreater(int(re.search(r"; ([\d,]+) allocations", told.stdout)[1].replace(",", "")), 20000)

    def test_leaks(self):
        result = old("leaks", "--", PYTHON, "-c", ALLOCATE)
        self.assertRegex(result.stderr + result.stdout, r"[\d,]+ bytes in [\d,]+ blocks")

    def test_live(self):
        process = subprocess.Popen([AS_LINUX_4_19, HEAPWRIGHT, "live", "--no-browser", "--sample", "1", "--", PYTHON, "-c", ALLOCATE + "; input()"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            page = re.search(r"live at (\S+)", process.stderr.readline())[1]
            for _ in range(100):
                with urllib.request.urlopen(page + "api/state", timeout=10) as answer:
                    peak = (json.load(answer).get("process") or {}).get("peak", 0)
                if peak > 20_000_000:
                    break
                time.sleep(0.1)
            self.assertGreater(peak, 20_000_000)
            with urllib.request.urlopen(page + "api/collapsed", timeout=10) as answer:
                self.assertIn(b"PyByteArray", answer.read())
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def test_no_room_for_what_is_counted(self):
        """Of a page that there is no memory for, the kernel says so, and the program goes on."""
        small = self.folder / "small"
        small.mkdir()
        probe = os.path.join(os.path.dirname(os.path.dirname(HEAPWRIGHT)), "lib", "libheapwright-probe.so")
        environment = {**os.environ, "LD_PRELOAD": probe, "HEAPWRIGHT_SAMPLE": "1", "HEAPWRIGHT_SEGMENT_DIR": str(small)}
        segments = []
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", small], capture_output=True).returncode != 0:
            self.skipTest("may not mount")
        try:
            for size in ("160k", "600k", "2m", "6m", "30m"):
                subprocess.run(["mount", "-o", "remount,size=" + size, small], check=True)
                result = subprocess.run([AS_LINUX_4_19, PYTHON, "-c", ALLOCATE + "; print(6 * 7)"], capture_output=True, text=True, env=environment)
                self.assertEqual((result.returncode, result.stdout), (0, "42\n"), result)
                segments.append(any(small.glob("*.segment")))
                for file in small.iterdir():
                    file.unlink()
            self.assertEqual((segments[0], segments[-1]), (False, True))
        finally:
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
