"""A server with two leaks, watched with the defaults: both are named within a minute, and sampling holds its cost.

usage: leaking_server_test.py HEAPWRIGHT LIBHEAPWRIGHT LEAKING_SERVER
"""
import sys
import time
import unittest

from watched import Watched, wait_for

SERVER = sys.argv.pop(3)
LEAKS = {"open_session", "note_referrer"}


def named_leaks(watched):
    answer = watched.get("/api/leaks")
    return {answer["places"][row["stack"][row["site"]]][0].rpartition("::")[2]: row for row in answer["sites"]}


class TheDefaults(unittest.TestCase):
    def test_name_both_leaks_and_nothing_else_within_a_minute(self):
        with Watched(SERVER, "120", "2000", sample="auto") as watched:
            begin = time.monotonic()
            seen = wait_for(f"{LEAKS} are named", lambda: (leaks := named_leaks(watched)).keys() == LEAKS and leaks)
            self.assertLess(time.monotonic() - begin, 60)
            answer = watched.get("/api/leaks")
            self.assertLessEqual(len(answer["sites"]), answer["sites_judged"])
            self.assertLessEqual(answer["sites_judged"], answer["sites_with_live_samples"])
            process = watched.state()["process"]
            self.assertTrue(process["interval_adapts"])
            self.assertTrue(process["sampling_share"] < 0.01 or process["sampling_share_of_time"] < 0.0013, process)
            # 2000 requests a second, of which each loses a block of 128 bytes: 136 with malloc's rounding.
            error = seen["open_session"]["live_bytes_error"] / seen["open_session"]["live_bytes"]
            self.assertLess(error, 0.5)
            watched.control(interval=4096)
            self.assertFalse(watched.new_state()["process"]["interval_adapts"])
            watched.control(interval="auto")
            self.assertTrue(watched.new_state()["process"]["interval_adapts"])

    def test_name_a_leak_beside_a_large_heap(self):
        with Watched(SERVER, "120", "200", "512", sample="auto") as watched:
            found = wait_for("the larger leak is named", lambda: named_leaks(watched).get("open_session"))
            # With a sample for each 1/2048 of what is live, eight samples of the leak take 80 s.
            self.assertLess(watched.state()["process"]["interval"], 100_000)
            self.assertGreaterEqual(found["live_samples"], 8)
            places = (answer := watched.get("/api/sites"))["places"]
            held = [row for row in answer["sites"] if "main" in places[row["stack"][row["site"]]][0]]
            error = sum(row["live_bytes_error"] for row in held)
            self.assertLess(error, 200 << 20)
            self.assertAlmostEqual(sum(row["live_bytes"] for row in held), 512 << 20, delta=2 * error)
            self.assertLess(sum(row["live_samples"] for row in answer["sites"]), 3000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
