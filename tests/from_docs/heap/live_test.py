#!/usr/bin/env python3
"""States what docs/live.md ("From code") and the docstrings of live.h and live.hpp say: what a program tells is what the page shows.
Written without the code.   live_test.py HEAPWRIGHT C_PROGRAM CPP_PROGRAM"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

heapwright, in_c, in_cpp = sys.argv[1:4]


def state_of(program):
    """Runs a program under `live --save`, and asks `live --file` for /api/state. Also what the program printed."""
    with tempfile.TemporaryDirectory() as folder:
        saved = str(pathlib.Path(folder) / "run.segment")
        run = subprocess.run([heapwright, "live", "--no-browser", "--exit-with-program", "--sample", "1", "--save", saved, "--", program],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
        viewer = subprocess.Popen([heapwright, "live", "--no-browser", "--file", saved], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            address = re.search(r"http://\S+", viewer.stdout.readline()).group()
            with urllib.request.urlopen(address.rstrip("/") + "/api/state", timeout=30) as answer:
                return json.load(answer), run.stdout
        finally:
            viewer.terminate()
            viewer.communicate()


def meters_of(state):
    return [dict(zip(state["meter_columns"], row)) for row in state["meters"]]


class FromC(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state, cls.printed = state_of(in_c)

    def test_the_program_gets_the_documented_answers(self):
        self.assertNotIn("not so", self.printed)

    def test_marks_have_their_names_up_to_55_bytes_and_the_first_64_are_kept(self):
        names = [mark["name"] for mark in self.state["marks"]]
        self.assertEqual(names[:2], ["loading", "1234567890123456789012345678901234567890123456789012345"])
        self.assertEqual(len(names), 64)

    def test_memory_that_no_malloc_gave_out_is_counted(self):
        """Counts memory ... as if it had: in live bytes, the peak. (The program itself calls no malloc.)"""
        totals = self.state["totals"]
        self.assertEqual((totals["live"], totals["live_blocks"]), (2 << 20, 1))
        self.assertEqual((totals["allocated_bytes"], totals["freed_bytes"]), (3 << 20, 1 << 20))

    def test_reset_begins_the_peak_again_from_what_is_live(self):
        self.assertEqual(self.state["process"]["peak"], 2 << 20)

    def test_meters_show_what_they_were_told(self):
        meters = meters_of(self.state)
        self.assertEqual(len(meters), 64)
        first = next(m for m in meters if m["name"] == "textures")
        self.assertEqual([first[k] for k in ("allocations", "deallocations", "failures", "total_bytes", "in_use", "peak")], [7, 3, 2, 7000, 4321, 6543])
        self.assertIn("in its place", [m["name"] for m in meters])
        self.assertNotIn("one more", [m["name"] for m in meters])


class FromCpp(unittest.TestCase):
    def test_a_metered_allocator_is_shown_by_its_own_counts(self):
        state, printed = state_of(in_cpp)
        is_open, *own = map(int, printed.split())
        self.assertEqual(is_open, 1)
        shown = next(m for m in meters_of(state) if m["name"] == "textures")
        figures = [shown[k] for k in ("allocations", "deallocations", "failures", "total_bytes", "in_use", "peak")]
        # the last free came after the program had printed
        self.assertEqual(figures, [own[0], own[1] + 1, own[2], own[3], own[4] - 200, own[5]])
        self.assertEqual([mark["name"] for mark in state["marks"]], ["at the end"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
