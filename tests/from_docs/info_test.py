#!/usr/bin/env python3
"""`heapwright info`, as docs/commands.md says it."""
import json
import os
import pathlib
import subprocess
import unittest

from documented import Case, ENDINGS, IS_ROOT, LIBRARY, NO_SUCH_PROCESS, as_nobody, environment, heapwright, main, program, run, HEAPWRIGHT


class Info(Case):
    def waiting(self, command=ENDINGS, **options):
        process = self.starts(command, "wait", stdout=subprocess.PIPE, **options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def on_heapwright(self):
        return self.waiting(env=environment(LD_PRELOAD=LIBRARY, HEAPWRIGHT_PURGE_DELAY_MS=123))

    # "Without PID: version, the library's path, and the options that can be set."
    def test_installation(self):
        result = heapwright("info")
        self.ended(result, 0)
        self.assertIn(heapwright("--version").stdout.split()[1], result.stdout)
        for word in ("libheapwright.so", "HEAPWRIGHT_PURGE_DELAY_MS", "HEAPWRIGHT_STATS", "HEAPWRIGHT_VERBOSE"):
            self.assertIn(word, result.stdout)

    # "{format: "heapwright info 1", version, library, options[{name, default, meaning}]}"
    def test_installation_as_json(self):
        result = heapwright("info", "--json")
        self.ended(result, 0)
        answer = json.loads(result.stdout)
        self.assertEqual(set(answer), {"format", "version", "library", "options"})
        self.assertEqual(answer["format"], "heapwright info 1")
        self.assertTrue(os.path.samefile(answer["library"], LIBRARY))
        defaults = {option["name"]: option["default"] for option in answer["options"]}
        self.assertEqual(defaults, {"HEAPWRIGHT_GUARD_SAMPLE": "0", "HEAPWRIGHT_ON_MISUSE": "abort", "HEAPWRIGHT_PURGE_DELAY_MS": "400", "HEAPWRIGHT_STATS": "0", "HEAPWRIGHT_SYSLOG": "0",
                                    "HEAPWRIGHT_VERBOSE": "0"})

    # "With PID: whether libheapwright is loaded there, its version, its options and where its memory is."
    def test_a_process_on_heapwright(self):
        result = heapwright("info", self.on_heapwright().pid)
        self.ended(result, 0)
        for word in ("loaded", "libheapwright.so", "HEAPWRIGHT_PURGE_DELAY_MS=123", "RSS"):
            self.assertIn(word, result.stdout)

    def test_a_process_on_heapwright_as_json(self):
        process = self.on_heapwright()
        result = heapwright("info", "--json", process.pid)
        self.ended(result, 0)
        answer = json.loads(result.stdout)
        self.assertEqual(set(answer), {"format", "pid", "loaded", "in_effect", "malloc", "rss_bytes", "library", "version", "build", "recipe", "options", "bytes", "threads"})
        self.assertEqual((answer["format"], answer["pid"], answer["loaded"]), ("heapwright info 1", process.pid, True))
        self.assertEqual(answer["threads"], 1)
        self.assertIn({"name": "HEAPWRIGHT_PURGE_DELAY_MS", "value": "123"}, answer["options"])
        self.assertGreaterEqual(answer["bytes"]["mapped"], 1000000)
        self.assertGreaterEqual(answer["rss_bytes"], 1000000)

    # CHANGELOG: "A statically linked program gets all of malloc and start-up (options, statistics, `info`)"
    def test_static_and_linked_programs(self):
        for name in ("linked_endings", "static_linked_endings"):
            self.ended(heapwright("info", self.waiting(program(name)).pid), 0)

    # "1: not loaded; the answer names the malloc that the process has."
    def test_a_process_on_another_malloc(self):
        process = self.waiting()
        result = heapwright("info", process.pid)
        self.ended(result, 1)
        self.assertIn("glibc", result.stdout)
        answer = json.loads(heapwright("info", "--json", process.pid).stdout)
        self.assertEqual(answer["loaded"], False)
        self.assertEqual(set(answer), {"format", "pid", "loaded", "in_effect", "malloc", "rss_bytes"})

    # "2: that cannot be found out."
    def test_no_such_process(self):
        self.refused(heapwright("info", NO_SUCH_PROCESS), 2, NO_SUCH_PROCESS)
        self.refused(heapwright("info", "--json", NO_SUCH_PROCESS), 2, NO_SUCH_PROCESS)

    def test_words_that_are_no_process_id(self):
        for word in ("abc", "0", "-1", "1.5", ""):
            self.refused(heapwright("info", word), 2, "PID")

    # "Reading its memory takes the right to do so: the same user, or root."
    @unittest.skipUnless(IS_ROOT, "root alone can try as somebody else")
    def test_a_process_of_another_user(self):
        process = self.on_heapwright()
        result = heapwright("info", process.pid, **as_nobody())
        self.refused(result, 2, str(process.pid), "denied")

    # "The process is not stopped."
    def test_the_process_goes_on(self):
        process = self.on_heapwright()
        heapwright("info", process.pid)
        state = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        self.assertEqual(state, "S", "it sleeps and is not stopped")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    main()
