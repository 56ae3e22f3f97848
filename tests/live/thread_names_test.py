"""Whose memory it is, by the names of the threads that have asked for it: what `heapwright live` answers for a program that knows.

usage: thread_names_test.py HEAPWRIGHT LIBHEAPWRIGHT NAMED_THREADS
"""
import json
import math
import os
import sys
import unittest
import urllib.parse

from watched import Watched, wait_for, without_stack

PROGRAM = os.path.abspath(sys.argv[3])
MAIN = "named_threads"
BLOCK = 100_000
VALUES = ("live", "peak", "allocated", "count", "short")


class NamedThreads(Watched):
    """`truth`: live bytes by name, as the program has counted them last."""

    def __init__(self, **more):
        super().__init__(PROGRAM, **more)
        self.truth = json.loads(self.hear())
        self.early = without_stack(self.state())["live"]

    def tell(self, *lines):
        for line in lines:
            self.truth = json.loads(super().tell(line))

    def stacks(self, **question):
        return self.get("/api/stacks?" + urllib.parse.urlencode(question))

    def names(self, **question):
        """The value of each name."""
        return dict(self.stacks(**question)["threads"])

    def total(self, **question):
        return self.stacks(**question)["total"][0]


class ThreadNames(unittest.TestCase):
    def check_sums(self, watched, **question):
        """Every answer for one name is its share of the answer for all."""
        for value in VALUES:
            with self.subTest(value=value, **question):
                names = watched.names(value=value, **question)
                self.assertAlmostEqual(sum(names.values()), watched.total(value=value, **question), delta=len(names))
                for name in filter(None, names):
                    answer = watched.stacks(value=value, threads=name, **question)
                    self.assertEqual(answer["total"][0], names[name], name)
                    self.assertEqual(dict(answer["threads"]), names, "which threads there are does not depend on whom one asks about")

    def test_all_blocks_to_the_byte(self):
        with NamedThreads() as watched:
            watched.tell("pools")
            # Each named itself after its first block.
            self.assertEqual({name: round(live / BLOCK) for name, live in watched.truth.items()},
                             {MAIN: 5, "io-1": 10, "io-2": 10, "io-3": 10, "work-1": 10, "work-2": 10})
            watched.tell("cross")
            self.assertEqual({name: round(watched.truth[name] / BLOCK) for name in ("io-1", "io-2", "work-1", "work-2")},
                             {"io-1": 9, "io-2": 9, "work-1": 9, "work-2": 10})
            watched.tell("ended", "markup")
            state = watched.stop()
            self.assertGreater(state["process"]["threads_folded"], 100)
            names = watched.names()
            self.assertEqual({name: live for name, live in names.items() if name != MAIN}, {name: live for name, live in watched.truth.items() if name != MAIN})
            self.assertGreaterEqual(names[MAIN], watched.truth[MAIN])
            self.assertEqual(sum(names.values()), state["totals"]["live"] - watched.early)
            self.check_sums(watched)
            self.check_other_answers(watched, names)

    def check_other_answers(self, watched, names):
        pool = sum(live for name, live in names.items() if name.startswith("io-"))
        self.assertEqual(watched.total(threads="io-*"), pool)
        self.assertEqual(watched.total(threads="io-?"), pool)
        history = watched.get("/api/site_history?threads=io-*")
        self.assertEqual(sum(site["live"][-1] for site in history["sites"]) + history["others"][-1], pool)
        self.assertEqual(watched.total(threads="*"), sum(names.values()))
        self.assertEqual(watched.total(threads="IO-*"), 0)
        self.assertEqual(watched.total(threads="</script><b>x"), names["</script><b>x"])
        for pattern, bytes in (("io-*", pool), ("ended-3", names["ended-3"]), ("nobody", 0)):
            asked = urllib.parse.urlencode({"threads": pattern, "value": "live"})
            with self.subTest(pattern):
                self.assertEqual(sum(site["live_bytes"] for _, site in watched.sites(asked)), bytes)
                lines = watched.text("/api/collapsed?" + asked).splitlines()
                self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), bytes)
                self.assertTrue(all("keep_block" in line for line in lines))
        # What several threads do in one place is one site, and its stacks count once.
        [(_, site)] = [found for found in watched.sites("threads=io-*") if any("keep_block" in function for function in found[0])]
        self.assertEqual((site["stacks"], round(site["live_bytes"] / BLOCK)), (1, 28))

    def test_growth_since_a_mark(self):
        with NamedThreads() as watched:
            watched.tell("pools")
            since = watched.mark("pools have ended")
            watched.tell("ended", "cross")
            watched.stop()
            names = watched.names(since=since)
            self.assertEqual(names["io-1"], watched.truth["io-1"] // 9, "what has shrunk has changed, too")
            self.assertNotIn("io-3", names)
            self.assertEqual(names["ended-1"], watched.truth["ended-1"])
            grown = watched.stacks(since=since, threads="io-*")["grown"][0]
            self.assertEqual(grown, -2 * watched.truth["io-1"] // 9)
            self.check_sums(watched, since=since)

    def test_another_name_is_seen_at_once_and_one_that_is_no_utf8(self):
        with NamedThreads() as watched:
            watched.tell("renamed", "cut")
            watched.stop()
            names = watched.names()
            for name in ("before", "after", "at last"):
                self.assertEqual(names[name], watched.truth[name])

            # Of a name that was cut within a letter, the letter is not known.
            [cut] = [name for name in names if name.startswith("\u0447")]
            self.assertEqual(cut, "\u0447\u0438\u0442\u0430\u0442\u0435\u043b\ufffd")
            self.assertEqual(round(names[cut] / BLOCK), 1)
            self.assertEqual(watched.total(threads=cut), names[cut])

    def test_what_the_child_of_a_fork_has_from_its_parent_stays_with_the_names_of_the_parent(self):
        with NamedThreads() as watched:
            watched.tell("pools", "fork")
            child = wait_for("the child", lambda: next((row[0] for row in watched.get("/api/processes")["rows"] if row[1] != watched.id), None))
            names = watched.names(process=child)
            block = watched.truth["io-1"] // 10
            self.assertEqual({name: live for name, live in names.items() if name != MAIN},
                             {"child": block, "io-1": 9 * block, **{name: 10 * block for name in ("io-2", "io-3", "work-1", "work-2")}})
            self.assertEqual(watched.total(process=child, threads="io-*"), 29 * block)
            self.assertEqual(watched.names()["io-1"], watched.truth["io-1"], "the parent's own")
            self.assertNotIn("child", watched.names())

    def test_names_beyond_those_that_there_is_room_for(self):
        with NamedThreads() as watched:
            watched.tell("pools", "many")
            state = watched.stop()
            names = watched.names()
            self.assertEqual(len(names), 256, "255 names, and one row for those without")
            without = {name: live for name, live in watched.truth.items() if name not in names}
            self.assertEqual(len(without), 306 - 255)
            self.assertEqual(names["(other threads)"], sum(without.values()))
            self.assertEqual({name: live for name, live in names.items() if name not in (MAIN, "(other threads)")},
                             {name: live for name, live in watched.truth.items() if name not in (MAIN, *without)})
            self.assertEqual(sum(names.values()), state["totals"]["live"] - watched.early)
            self.assertEqual(watched.total(threads="*"), sum(names.values()))
            self.assertEqual(watched.total(threads="many-299"), 0)

    def test_estimates(self):
        interval = 65_536
        with NamedThreads(sample=str(interval)) as watched:
            watched.tell("pools", "cross", "ended", "many")
            watched.stop()
            self.check_sums(watched)
            names = watched.names()
            for pattern, prefix in (("io-*", "io-"), ("ended-*", "ended-")):
                truth = sum(live for name, live in watched.truth.items() if name.startswith(prefix))
                # Seven standard deviations: viewers_test.py.
                self.assertLess(abs(watched.total(threads=pattern) - truth), 7 * math.sqrt(truth * interval))
            self.assertEqual(watched.total(threads="io-*"), sum(live for name, live in names.items() if name.startswith("io-")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
