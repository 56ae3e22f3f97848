"""What has grown and shrunk: from one moment to another, and beside another run.

usage: changes_test.py HEAPWRIGHT LIBHEAPWRIGHT
"""
import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error

from watched import HEAPWRIGHT, PATIENCE, PYTHON, Watched, clean_environment, wait_for

PROGRAM = """
import sys
cache, log = [], []
def page(): return bytearray(5000)
def line_of_log(): return bytearray(7000)
for order in sys.stdin:
    what, n = order.split()
    if what == "cache": cache += [page() for _ in range(int(n))]
    if what == "log": log += [line_of_log() for _ in range(int(n))]
    if what == "drop": cache.clear()
    print("done", flush=True)
"""
OF_CACHE, OF_LOG = 5001, 7001  # at least, and less than 64 bytes more


class Changes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("program.py"), "w") as file:
            file.write(PROGRAM)

    def path(self, name):
        return os.path.join(self.folder, name)

    def watch(self, *lines, options=(), sample="1"):
        watched = Watched(PYTHON, self.path("program.py"), options=options, sample=sample)
        self.addCleanup(watched.end)
        for line in lines:
            self.assertEqual(watched.tell(line), "done")
        return watched

    def save(self, name, *lines):
        watched = self.watch(*lines, options=("--save", self.path(name), "--exit-with-program"))
        watched.tool.stdin.close()
        watched.tool.wait(PATIENCE)
        for end in (watched.tool.stdout, watched.tool.stderr):
            end.close()
        return self.path(name)

    def after_another_moment(self, watched):
        """When the figures of all stacks were kept for the last time, after what has been told."""
        told = watched.new_state()["at"]
        return wait_for("another moment", lambda: (at := watched.get("/api/site_history")["at"][-2:])[0] >= told and at[0])

    def grown(self, watched, question):
        """By function of the program, in bytes."""
        answer = watched.get("/api/sites?" + question)
        grown = {}
        for site in answer["sites"]:
            function = answer["places"][site["stack"][site["site"]]][0]
            grown[function] = grown.get(function, 0) + site["grown"]
        return grown

    def assert_blocks(self, bytes_, blocks, of_one):
        self.assertGreaterEqual(abs(bytes_), abs(blocks) * of_one)
        self.assertLess(abs(bytes_), abs(blocks) * (of_one + 64))
        self.assertEqual(bytes_ > 0, blocks > 0)

    def check_parts(self, watched, first, second):
        between = self.grown(watched, f"since=@{first}&until=@{second}")
        self.assert_blocks(between["line_of_log"], 200, OF_LOG)
        self.assertEqual(between["page"], 0)
        after = self.grown(watched, f"since=@{second}")
        self.assert_blocks(after["page"], -100, OF_CACHE)
        self.assertEqual(after["line_of_log"], 0)
        tree = watched.get(f"/api/stacks?since=@{first}&until=@{second}")
        self.assertTrue(tree["is_growth"])
        self.assertEqual(tree["grown"][0], sum(between.values()))
        history = watched.get("/api/site_history")
        rows = {history["places"][row["place"]][0]: row["live"] for row in history["sites"]}
        when = history["at"].index(second)
        self.assert_blocks(rows["line_of_log"][when], 200, OF_LOG)
        self.assert_blocks(rows["page"][when], 100, OF_CACHE)
        self.assertEqual(rows["page"][-1], 0)
        for of_site in rows.values():
            self.assertEqual(len(of_site), len(history["at"]))

    def test_a_part_of_the_time(self):
        watched = self.watch("cache 100", options=("--save", self.path("saved")))
        first = self.after_another_moment(watched)
        watched.tell("log 200")
        second = self.after_another_moment(watched)
        number = watched.mark("half")
        watched.tell("drop 0")
        self.after_another_moment(watched)
        self.check_parts(watched, first, second)
        for question, code in ((f"until=@{second}", 400), ("since=@x", 404), ("since=77", 404)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                watched.get("/api/stacks?" + question)
            self.assertEqual(refused.exception.code, code)
        watched.end()
        # A saved run knows it too, and what a mark is near to.
        saved = SavedRun(self.path("saved"))
        self.addCleanup(saved.end)
        self.check_parts(saved, first, second)
        self.assert_blocks(self.grown(saved, f"since={number}")["page"], -100, OF_CACHE)

    def test_another_run(self):
        before = self.save("before", "cache 100", "log 200", "drop 0", "cache 100")
        watched = self.watch("cache 300", options=("--against", before, "--read-only"))
        self.assertEqual(watched.stop()["other_run"], "before")
        grown = self.grown(watched, "value=allocated&since=other")
        self.assert_blocks(grown["page"], 100, OF_CACHE)
        self.assert_blocks(grown["line_of_log"], -200, OF_LOG)
        (now,) = [site["at_peak"] for names, site in watched.sites("value=peak&since=other") if names[site["site"]] == "page"]
        self.assert_blocks(now, 300, OF_CACHE)
        at_peak = self.grown(watched, "value=peak&since=other")
        self.assert_blocks(at_peak["page"], 200, OF_CACHE)
        tree = watched.get("/api/stacks?value=allocated&since=other")
        names = [tree["places"][place][0] if place >= 0 else "all" for place in tree["place"]]
        by_name = dict(zip(names, tree["grown"]))
        self.assertEqual(by_name["line_of_log"], grown["line_of_log"])
        self.assertEqual(by_name["all"], sum(grown.values()))
        self.assertFalse(watched.state()["may_control"])
        for path, order, code in (("/api/collapsed?since=other", None, 400), ("/api/control", {"mark": "x"}, 403)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                watched.text(path, order)
            self.assertEqual(refused.exception.code, code)
        plain = self.watch()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            plain.get("/api/stacks?since=other")
        self.assertEqual(refused.exception.code, 404)

    def test_what_was_not_seen_in_one_run_is_in_the_error(self):
        before, interval = self.save("before", "log 200"), 1 << 20
        watched = self.watch(options=("--against", before), sample=str(interval))
        (missing,) = [site for names, site in watched.sites("value=allocated&since=other") if names[site["site"]] == "line_of_log"]
        self.assert_blocks(missing["grown"], -200, OF_LOG)
        self.assertGreater(missing["value_error"], 3 * interval)

    def test_the_page_of_a_difference(self):
        before, after = self.save("before", "cache 100"), self.save("after", "cache 100", "log 200")
        diff = lambda *more: subprocess.run([HEAPWRIGHT, "diff", before, after, *more], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment())
        self.assertEqual(diff("--html", self.path("page.html")).returncode, 0)
        with open(self.path("page.html")) as file:
            packed = re.search(r'<script type="application/gzip" id="snapshot">([^<]*)</script>', file.read())[1]
        kept = json.loads(gzip.decompress(base64.b64decode(packed)))
        self.assertEqual(kept["view"], "where?value=peak&since=other")
        (answers,) = kept["processes"].values()
        sites = answers["/api/sites?most=1000&since=other&value=peak"]
        log = next(site for site in sites["sites"] if sites["places"][site["stack"][site["site"]]][0] == "line_of_log")
        self.assert_blocks(log["grown"], 200, OF_LOG)
        for path in (before, "-", "/no/such/folder/page.html"):
            self.assertEqual(diff("--html", path).returncode, 125, path)


class SavedRun(Watched):
    def __init__(self, file):
        self.token, self.id = None, None
        self.tool = subprocess.Popen([HEAPWRIGHT, "live", "--no-browser", "--file", file], env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/", self.tool.stderr.readline())[1])


if __name__ == "__main__":
    sys.argv = sys.argv[:1] + sys.argv[3:]
    unittest.main()
