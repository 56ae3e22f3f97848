#!/usr/bin/env python3
"""The heapwright command as its users meet it: what they rely on when all goes well (bad_input_test.py has the rest).

Usage: commands_test.py path/to/heapwright path/to/fixtures [unittest options]. Times are never asserted.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from support import Case, HEAPWRIGHT, PLAIN, PYTHON, TRUE, compare, fixture, heapwright, is_running


def pages(errors):
    """The pages of statistics in a text, as (process, command)."""
    return [(int(pid), command) for pid, command in re.findall(r"^heapwright \S+ \([^)]*\), process (\d+): (.*)$", errors, re.MULTILINE)]


class RunHardened(Case):
    def test_a_mistake_ends_the_command_by_name(self):
        twice = "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; " \
                "c.free.argtypes = [ctypes.c_void_p]; p = c.malloc(100); c.free(p); c.free(p)"
        result = heapwright("run", "--hardened", "--", PYTHON, "-c", twice)
        self.assertEqual(result.returncode, -signal.SIGABRT, result)
        self.assertRegex(result.stderr, r"^heapwright: double free: 0x[0-9a-f]+ \(the block is free already; a block of class \d+, with room for 104 bytes and its seal\)\n  here, in thread \d+:\n    #1 ")

    def test_what_is_right_goes_on(self):
        result = heapwright("run", "--hardened", "--stats", "--", PYTHON, "-c", "print(len([str(i) for i in range(100000)]))")
        self.assertEqual((result.returncode, result.stdout), (0, "100000\n"), result)
        self.assertRegex(result.stderr, r"^heapwright \S+ \(\w+, hardened\), process ")

    def test_not_with_another_allocator(self):
        result = heapwright("run", "--hardened", "--with", "jemalloc", "--", TRUE)
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("--with", result.stderr)


class RunStatistics(Case):
    SCRIPT = "for i in 1 2 3 4 5; do /bin/ls / >/dev/null; done; echo done; echo trouble >&2"

    def test_nothing_unless_asked(self):
        self.assertEqual(heapwright("run", "--", TRUE).stderr, "")

    def test_one_page_for_the_command_after_all_output(self):
        result = subprocess.run([HEAPWRIGHT, "run", "--stats", "sh", "-c", self.SCRIPT], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result)
        self.assertTrue(result.stdout.startswith("done\ntrouble\nheapwright "), result)
        self.assertEqual([command for _, command in pages(result.stdout)], ["sh -c " + self.SCRIPT])
        self.assertRegex(result.stdout, r"\n  mapped at the peak +[\d.]+ [KM]iB\n")

    def test_another_malloc_in_front_is_told(self):
        result = heapwright("run", "--stats", "--", HEAPWRIGHT, "run", "--with", PLAIN, "--", PYTHON, "-c", "print(1)")
        self.assertEqual((result.returncode, result.stdout), (0, "1\n"), result)
        self.assertIn("\n  libheapwright is loaded, but had nothing to do: another malloc is in effect", result.stderr)
        self.assertNotIn("nothing to do", heapwright("run", "--stats", "--", PYTHON, "-c", "print(1)").stderr)

    def test_records_resident_and_reserved(self):
        text = heapwright("run", "--stats", "--", PYTHON, "-c", "1").stderr
        resident = re.search(r"records, in memory +([\d.]+) KiB", text)
        self.assertTrue(resident, text)
        self.assertLess(float(resident[1]), 512)
        self.assertRegex(text, r"records, reserved +[\d.]+ MiB")

    def test_a_table_of_all_processes_on_request(self):
        result = heapwright("run", "--stats=all", "sh", "-c", self.SCRIPT)
        self.assertEqual(result.stdout, "done\n")
        self.assertEqual(len(pages(result.stderr)), 1)
        rows = [line for line in result.stderr.splitlines() if re.match(r"^ +\d+ .*/bin/ls /$", line)]
        self.assertEqual(len(rows), 5, result.stderr)
        self.assertEqual(len({row.split()[0] for row in rows}), 5, "each has its process id")
        self.assertIn(" 6 processes", result.stderr)

    def test_free_pages_are_not_said_to_be_in_memory(self):
        """Of a block of 45 MiB, of which 6 MiB were touched, what is free is more than RSS ever was."""
        text = heapwright("run", "--stats=all", "--", fixture("large_untouched")).stderr
        free = re.search(r"\n +free, not given back +([\d.]+) MiB\n", text)
        self.assertTrue(free, text)
        self.assertGreater(float(free[1]), 20)
        self.assertIn("pages of it that were never touched are not in memory", text)
        self.assertNotIn("free, in memory", text)
        self.assertIn(" free held ", text)
        self.assertIn(" 1 process, at its end\n", text)

    def test_another_library_has_none(self):
        for library in (PLAIN, "libjemalloc.so.2"):
            result = heapwright("run", "--stats", "--with", library, "--", "sh", "-c", "echo done; exit 3")
            self.assertEqual((result.returncode, result.stdout), (3, "done\n"))
            self.assertIn("has no statistics; libheapwright has", result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_a_long_table_is_cut(self):
        result = heapwright("run", "--stats=all", "sh", "-c", "for i in $(seq 60); do /bin/true; done")
        self.assertLess(len(result.stderr.splitlines()), 70)
        self.assertIn(" 62 processes", result.stderr)
        self.assertIn("22 more", result.stderr)

    def test_exec_is_one_process(self):
        result = heapwright("run", "--stats=all", "sh", "-c", "echo $$; exec " + PYTHON + " -c 'x = bytearray(50_000_000)'")
        self.assertEqual(pages(result.stderr), [(int(result.stdout), f"{PYTHON} -c x = bytearray(50_000_000)")])

    def test_however_the_program_ends(self):
        for end, code in [("import os; os._exit(3)", 3), ("import os; os.close(2)", 0), ("import sys; sys.exit(4)", 4),
                          ("import os; os.close(2); os._exit(5)", 5), ("raise OSError", 1)]:
            with self.subTest(end):
                result = heapwright("run", "--stats", PYTHON, "-c", end)
                self.assertEqual(result.returncode, code)
                self.assertEqual([command for _, command in pages(result.stderr)], [f"{PYTHON} -c {end}"], result)

    def test_killed(self):
        for name in ("KILL", "TERM", "ABRT"):
            result = heapwright("run", "--stats=all", "sh", "-c", f"/bin/true; kill -{name} $$")
            self.assertEqual(result.returncode, -getattr(signal, "SIG" + name), result)
            self.assertIn(f"was killed by SIG{name}", result.stderr)
            self.assertIn("/bin/true", result.stderr, "the children's are there all the same")
            self.assertEqual(pages(result.stderr), [])

    def test_the_peak_is_that_of_the_program(self):
        """Not of what the process was before it executed the program: first Python with 100 MiB, then heapwright."""
        library = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright.so")
        program = f"import os; kept = b'x' * (100 << 20); os.execv({HEAPWRIGHT!r}, ['heapwright', 'run', '--', {TRUE!r}])"
        result = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, env={**os.environ, "HEAPWRIGHT_STATS": "1"})
        direct = subprocess.run([TRUE], capture_output=True, text=True, env={**os.environ, "HEAPWRIGHT_STATS": "1", "LD_PRELOAD": library})
        peaks = [re.search(r"RSS at the peak +([\d.]+) MiB", said.stderr) for said in (result, direct)]
        self.assertTrue(all(peaks), (result, direct))
        self.assertLess(abs(float(peaks[0][1]) - float(peaks[1][1])), 1, "MiB")

    def test_a_program_without_the_library(self):
        for command in (["sh", "-c", "exec " + fixture("static")], ["env", "-u", "LD_PRELOAD", "sh", "-c", ":"]):
            result = heapwright("run", "--stats", *command)
            self.assertEqual(result.returncode, 0, result)
            self.assertIn("left no statistics", result.stderr)
        self.assertIn("has no statistics", heapwright("run", "--with", PLAIN, "--stats", "--", TRUE).stderr)
        self.refused(heapwright("run", "--stats", "--", fixture("static")), 125, "statically linked")

    def test_children_that_close_all_files(self):
        program = "import subprocess; subprocess.run(['/usr/bin/python3', '-c', '1'], close_fds=True)"
        self.assertEqual(len(re.findall(r"^ +\d+ .*/usr/bin/python3 -c 1$", heapwright("run", "--stats=all", PYTHON, "-c", program).stderr, re.MULTILINE)), 1)

    def test_children_that_fork_or_share_memory(self):
        program = "import os, subprocess\nif os.fork() == 0: os._exit(0)\nos.wait()\ntry: subprocess.run(['/no/such/program'])\nexcept OSError: pass"
        result = heapwright("run", "--stats=all", PYTHON, "-c", program)
        self.assertIn(" 2 processes", result.stderr, "not the one that could not become a program")

    def test_signals_go_to_the_command(self):
        with subprocess.Popen([HEAPWRIGHT, "run", "--stats", PYTHON, "-uc",
                               "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nprint('ready')\nwhile True: time.sleep(0.1)"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.terminate()
            errors = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 9)
            self.assertEqual(len(pages(errors)), 1)

    def test_nothing_is_left_behind(self):
        heapwright("run", "--stats", "--", TRUE, env={**os.environ, "TMPDIR": str(self.folder)})
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_environment_alone(self):
        library = heapwright("run", "sh", "-c", "echo $LD_PRELOAD").stdout.strip()
        result = subprocess.run(["sh", "-c", f"{PYTHON} -c 1; :"], env={**os.environ, "LD_PRELOAD": library, "HEAPWRIGHT_STATS": "1"},
                                capture_output=True, text=True, timeout=60)
        self.assertEqual([command for _, command in pages(result.stderr)], [f"{PYTHON} -c 1", f"sh -c {PYTHON} -c 1; :"])

    def test_usage(self):
        self.refused(heapwright("run", "--stats=some", "--", TRUE), 125, "--stats")
        self.assertEqual(heapwright("run", "--stats", "sh", "-c", "cat; exit 7", input="in").stdout, "in")


class Run(Case):
    def test_becomes_the_command(self):
        result = heapwright("run", "sh", "-c", 'echo "$@"; cat; exit 7', "sh", "--", "--stats", "-x", input="in")
        self.assertEqual((result.returncode, result.stdout), (7, "-- --stats -x\nin"))
        self.assertEqual(heapwright("run", "--", "sh", "-c", "kill -9 $$").returncode, -9)

    def test_preloads_before_what_is_there(self):
        result = heapwright("run", "--", "sh", "-c", "echo $LD_PRELOAD", env={**os.environ, "LD_PRELOAD": PLAIN})
        self.assertRegex(result.stdout, rf"^/.*libheapwright\.so:{PLAIN}\n$")

    def test_another_malloc_by_name(self):
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        show = ["--", "sh", "-c", 'echo "${LD_PRELOAD-none}"']
        self.assertRegex(heapwright("run", "--with", "hardened", *show, env=environment).stdout, r"^/.*/libheapwright-hardened\.so\n$")
        self.assertEqual(heapwright("run", "--with", "glibc", *show, env=environment).stdout, "none\n")
        self.assertIn("glibc has no statistics", heapwright("run", "--stats", "--with", "glibc", "--", TRUE).stderr)

    def test_a_name_is_no_folder_that_lies_here(self):
        (self.folder / "heapwright").mkdir()
        result = heapwright("run", "--with", "heapwright", "--", TRUE, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_through_scripts(self):
        script = self.folder / "script"
        script.write_text("#!/usr/bin/env sh\necho hello\n")
        script.chmod(0o755)
        self.assertEqual(heapwright("run", str(script)).stdout, "hello\n")


class Compare(Case):
    def rows(self, *arguments, code=0, **options):
        """The rows of a comparison by name, and all of it."""
        result = compare("--json", "-", *arguments, **options)
        self.assertEqual(result.returncode, code, result)
        found = json.loads(result.stdout)
        return {row["name"]: row for row in found["rows"]}, found

    def test_json_has_the_documented_shape(self):
        rows, found = self.rows("--", TRUE)
        self.assertEqual(list(found),
                         ["format", "heapwright", "command", "started", "machine", "rounds", "interrupted_by", "tolerance", "baseline", "notes", "rows"])
        self.assertEqual((found["format"], found["command"], found["rounds"]), ("heapwright compare 2", [TRUE], 2))
        self.assertEqual(list(rows), ["glibc", "plain"])
        for row in rows.values():
            self.assertEqual(list(row),
                             ["name", "library", "remark", "failure", "output_difference", "verdict", "metrics", "findings", "samples"])
            self.assertEqual(row["findings"], [])
            self.assertEqual(list(row["metrics"]), ["wall_seconds", "cpu_seconds", "peak_rss_bytes", "end_rss_bytes", "page_faults"])
            self.assertEqual(len(row["samples"]), 2)
            for sample in row["samples"]:
                self.assertGreater(sample["wall_seconds"], 0)
                self.assertGreater(sample["peak_rss_bytes"], 0)
                self.assertGreater(sample["minor_faults"], 0)
        self.assertIsNone(rows["glibc"]["metrics"]["wall_seconds"]["ratio"])
        ratio = rows["plain"]["metrics"]["wall_seconds"]["ratio"]
        self.assertTrue(ratio["low"] <= ratio["estimate"] <= ratio["high"])
        self.check_verdict(ratio, 0.03)

    def check_verdict(self, ratio, tolerance):
        low, high = round(ratio["low"], 2), round(ratio["high"], 2)
        said = ("same" if low >= round(1 / (1 + tolerance), 2) and high <= round(1 + tolerance, 2) else
                "less" if high < 1 else "more" if low > 1 else "unclear")
        self.assertEqual(ratio["verdict"], said)
        self.assertEqual("rounds_to_decide" in ratio, said == "unclear")

    def test_too_few_rounds_are_not_the_same(self):
        """A command whose time varies: two rounds say nothing of it, and the table says how many would."""
        turn = self.folder / "turn"
        # The runs after the warm-up: glibc, plain, plain, glibc. Now the one takes longer, now the other.
        command = ["--", "sh", "-c", f"echo >> {turn}; case $(wc -l < {turn}) in 3|5) sleep 0.3 ;; *) sleep 0.1 ;; esac"]
        rows, _ = self.rows(*command)
        ratio = rows["plain"]["metrics"]["wall_seconds"]["ratio"]
        self.assertEqual(ratio["verdict"], "unclear")
        self.assertGreater(ratio["rounds_to_decide"] or 1001, 2)
        self.assertRegex(rows["plain"]["verdict"], r"(its time is|time are) unclear, (about|more than) \d+ rounds would tell")
        turn.unlink()
        table = compare(*command).stdout
        self.assertRegex(table, r"On this program, plain.* rounds would tell")
        self.assertRegex(table, r"unclear \([0-9.]+-[0-9.]+\)")

    def test_how_much_is_the_same_can_be_said(self):
        rows, found = self.rows("--same-within", "50", "--", TRUE)
        self.assertEqual(found["tolerance"], 0.5)
        for metric in rows["plain"]["metrics"].values():
            if metric["ratio"]:
                self.check_verdict(metric["ratio"], 0.5)
        for wrong in ("0", "51", "x"):
            self.refused(compare("--same-within", wrong, "--", TRUE), 125, "same-within")

    def test_another_baseline(self):
        rows, found = self.rows("--baseline", "plain", "--", TRUE)
        self.assertEqual(found["baseline"], "plain")
        self.assertIsNone(rows["plain"]["metrics"]["wall_seconds"]["ratio"])
        self.assertIsNotNone(rows["glibc"]["metrics"]["wall_seconds"]["ratio"])
        self.assertIn("the ratio to plain", compare("--baseline", "plain", "--", TRUE).stdout)
        self.refused(compare("--baseline", "nobody", "--", "touch", str(self.folder / "run")), 125, "nobody", "glibc, plain")
        self.assertFalse((self.folder / "run").exists())

    def test_a_baseline_that_fails_is_told(self):
        result = heapwright("compare", "--rounds", "2", "--only", "glibc", "--with", "aborting=" + fixture("libaborting_allocator.so"),
                            "--with", "plain=" + PLAIN, "--baseline", "aborting", "--", TRUE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("aborting failed; ratios are to glibc", result.stdout)
        self.assertIn("the ratio to glibc", result.stdout)

    def test_ours_is_compared(self):
        result = heapwright("compare", "--rounds", "2", "--only", " glibc, heapwright ", "--", "sh", "-c", "echo hello")
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?m)^heapwright +\d")

    def test_mallocs_by_name(self):
        rows, _ = self.rows("--with", "hardened", "--with", "again=glibc", "--", TRUE)
        self.assertEqual(list(rows), ["glibc", "plain", "hardened", "again"])
        self.assertRegex(rows["hardened"]["library"], r"/libheapwright-hardened\.so")
        self.assertEqual(rows["again"]["library"], rows["glibc"]["library"])

    def test_what_is_there_already_counts_once(self):
        result = heapwright("compare", "--json", "-", "--rounds", "2", "--only", "heapwright", "--with", "heapwright", "--with", "glibc", "--", TRUE)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual([row["name"] for row in json.loads(result.stdout)["rows"]], ["glibc", "heapwright"])

    def test_findings_point_to_fields_of_a_recipe(self):
        arguments = ["--rounds", "2", "--only", "heapwright", "--", fixture("scattered"), "300000", "0", "3"]
        result = heapwright("compare", *arguments)
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?m)^heapwright, at its end: \d\d % of RSS, 4\d\.\d MiB, is free in spans, 4\d\.\d MiB of it in spans of "
                         r"blocks of 240 bytes; see spans of the recipe, docs/recipes\.md#what-live-and-compare-point-to$")
        rows = {row["name"]: row for row in json.loads(heapwright("compare", "--json", "-", *arguments).stdout)["rows"]}
        self.assertEqual(rows["glibc"]["findings"], [])
        finding = rows["heapwright"]["findings"][0]
        self.assertEqual(list(finding), ["when", "rule", "bytes", "text", "fields", "advice", "page"])
        self.assertEqual((finding["when"], finding["rule"], finding["fields"]), ("at its end", "free_in_spans_of_one_class", ["spans"]))
        self.assertGreater(finding["bytes"], 40 << 20)

    def test_a_finding_of_the_peak_and_of_a_child(self):
        """The peak is gone at the end; a child has most of the memory."""
        child = f"{fixture('scattered')} 200000 20000000 < $0"
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        program = f"sleep 1 > $0 & {child}; wait"
        result = heapwright("compare", "--rounds", "2", "--only", "heapwright", "--", "sh", "-c", program, str(fifo))
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?m)^heapwright, at its peak: \d\d % of RSS, .* in spans of blocks of 240 bytes")
        self.assertNotIn("at its end:", result.stdout)

    def test_a_small_program_has_no_findings(self):
        result = heapwright("compare", "--rounds", "2", "--only", "heapwright", "--", fixture("scattered"), "20000")
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("of the recipe", result.stdout)

    def test_a_command_that_has_freed_nearly_all_has_no_finding_on_spans(self):
        for blocks in ("100000", "400000"):
            result = heapwright("compare", "--rounds", "2", "--only", "heapwright", "--", fixture("scattered"), blocks)
            self.assertEqual(result.returncode, 0, result)
            self.assertNotIn("is free in spans", result.stdout)

    def test_free_pages_that_were_never_touched_are_no_finding(self):
        result = heapwright("compare", "--rounds", "2", "--only", "heapwright", "--", fixture("large_untouched"))
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("of the recipe", result.stdout)

    def test_page(self):
        page = self.folder / "page.html"
        result = compare("--html", str(page), "--", "sh", "-c", "true # </script><b>")
        self.assertEqual(result.returncode, 0, result)
        text = page.read_text()
        self.assertTrue(text.startswith("<!doctype html>"))
        self.assertNotIn("</script><b>", text)
        self.assertEqual(text.count("<script"), 2)
        self.assertIn("glibc", result.stdout)

    def test_peak_memory_is_that_of_the_command_and_of_its_children(self):
        hold = "x = bytearray(100 << 20); import subprocess, sys, time"
        child = f"{hold}; time.sleep(0.5)"
        rows, _ = self.rows("--", sys.executable, "-c", hold)
        self.assertGreater(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 100 << 20)
        rows, _ = self.rows("--", sys.executable, "-c", f"{hold}; subprocess.run([sys.executable, '-c', '{child}'])")
        self.assertGreater(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 200 << 20)
        rows, _ = self.rows("--", TRUE)
        self.assertLess(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 8 << 20, "ours must not be counted")

    def test_processes_that_are_large_together_for_a_moment(self):
        hold = "import time; x = bytearray(60 << 20); time.sleep(0.1)"
        child = f"{PYTHON} -c '{hold}'"
        rows, _ = self.rows("--", "sh", "-c", f"{child} & {child} & wait")
        self.assertGreater(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 120 << 20)

    def test_peak_memory_of_a_short_command_is_its_own(self):
        # The copy of this tool that becomes the command has some MiB.
        peaks = []
        for _ in range(6):
            row = json.loads(heapwright("compare", "--rounds", "6", "--only", "heapwright", "--json", "-", "--", TRUE).stdout)["rows"][0]
            peaks += [sample["peak_rss_bytes"] for sample in row["samples"]]
        self.assertLess(max(peaks), min(peaks) + (1 << 20))

    def test_memory_at_the_end_is_what_was_not_given_back(self):
        rows, _ = self.rows("--", sys.executable, "-c", "x = bytearray(100 << 20); del x")
        self.assertGreater(rows["glibc"]["metrics"]["peak_rss_bytes"]["median"], 100 << 20)
        self.assertLess(rows["glibc"]["metrics"]["end_rss_bytes"]["median"], 50 << 20)
        rows, _ = self.rows("--", sys.executable, "-c", "x = bytearray(100 << 20)\nimport os\nos._exit(0)")
        self.assertGreater(rows["glibc"]["metrics"]["end_rss_bytes"]["median"], 100 << 20)

    def test_cpu_time_of_children_counts(self):
        busy = f'{sys.executable} -c "import time\nwhile time.process_time() < 0.3: pass"'
        rows, _ = self.rows("--", "sh", "-c", f"{busy}; true")
        self.assertGreaterEqual(rows["glibc"]["metrics"]["cpu_seconds"]["median"], 0.3)

    def test_the_allocator_must_have_been_in_the_process(self):
        rows, _ = self.rows("--", "sh", "-c", "unset LD_PRELOAD; exec " + TRUE, code=1)
        self.assertIsNone(rows["glibc"]["failure"])
        self.assertIn("not on " + PLAIN, rows["plain"]["failure"])
        self.assertEqual(rows["plain"]["metrics"], {})

    def test_a_library_that_fails_has_the_failure_in_its_row(self):
        rows, _ = self.rows("--with", fixture("libaborting_allocator.so"), "--", TRUE, code=1)
        self.assertIn("SIGABRT", rows["aborting_allocator"]["failure"])
        self.assertIn("giving up", rows["aborting_allocator"]["failure"])
        self.assertEqual(len(rows["plain"]["samples"]), 2, "the others go on")

    def test_a_failing_command(self):
        result = compare("--", "sh", "-c", "echo last words >&2; exit 3")
        self.refused(result, 1, "under glibc", "exited with status 3", "last words")
        self.refused(compare("--", "sh", "-c", "kill -SEGV $$"), 1, "SIGSEGV")

    def test_outputs_that_differ(self):
        command = ["--", "sh", "-c", 'echo same; echo "${LD_PRELOAD:-none}"']
        result = compare(*command)
        self.assertEqual(result.returncode, 1)
        self.assertIn("plain: its output differs", result.stderr)
        self.assertIn("line 2", result.stderr)
        self.assertIn('instead of "none"', result.stderr)
        self.assertEqual(compare("--ignore-output", *command).returncode, 0)

    def test_a_command_that_is_never_the_same_blames_nobody(self):
        result = compare("--", "sh", "-c", "echo $$")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("--ignore-output", result.stdout)

    def test_a_program_with_its_own_allocator_is_measured_as_built_too(self):
        rows, _ = self.rows("--", fixture("brings_allocator"))
        self.assertEqual(list(rows), ["glibc", "as built", "plain"])
        self.assertIn("libplain_allocator.so", rows["as built"]["remark"])
        self.assertRegex(rows["glibc"]["library"], r"/libc\.so")

    def test_a_preloaded_allocator_is_brought_by_the_environment(self):
        rows, _ = self.rows("--", sys.executable, "-c", "import time; time.sleep(.3)", env={**os.environ, "LD_PRELOAD": PLAIN})
        self.assertEqual(rows["as built"]["remark"], "brought along: libplain_allocator.so by LD_PRELOAD")

    def test_runs_that_a_failed_row_does_not_have_are_not_counted(self):
        result = heapwright("compare", "--rounds", "3", "--only", "glibc", "--with", "plain=" + PLAIN, "--", "sh", "-c", 'test -z "$LD_PRELOAD"')
        told = re.findall(r"heapwright: (\S+(?: \d)?) \((\d+) of (\d+) runs done\)", result.stderr)
        self.assertEqual(told, [("warm-up", "0", "8"), ("round 1", "2", "5"), ("round 2", "3", "5"), ("round 3", "4", "5")], result)

    def test_a_program_whose_libraries_lie_beside_it_is_found_through_a_link(self):
        link = self.folder / "link"
        link.symlink_to(fixture("brings_allocator"))  # Its RUNPATH is $ORIGIN, as is that of java.
        rows, _ = self.rows("--", str(link))
        self.assertIn("as built", rows)

    def test_a_child_that_brings_its_allocator_is_seen_too(self):
        wrapper = f'"$0" -c "import time; time.sleep(.3)"'
        rows, _ = self.rows("--", "sh", "-c", wrapper + "; true", sys.executable)
        self.assertEqual(list(rows), ["glibc", "plain"])
        rows, _ = self.rows("--", "sh", "-c", f"LD_PRELOAD={PLAIN} {wrapper}; true", sys.executable)
        self.assertIn("as built", rows)

    def test_standard_input_is_there_for_each_run(self):
        check = ["--", "sh", "-c", 'test "$(cat)" = hello']
        self.assertEqual(compare(*check, input="hello").returncode, 0)
        text = self.folder / "input"
        text.write_text("hello")
        with text.open() as file:
            self.assertEqual(compare(*check, stdin=file).returncode, 0)
        self.assertEqual(compare("--", "sh", "-c", 'test -z "$(cat)"').returncode, 0)

    def test_a_stopped_command_goes_on(self):
        stop = "(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo on"
        self.assertEqual(compare("--", "sh", "-c", stop).returncode, 0)

    def test_signals_reach_the_command(self):
        trap = "trap 'echo caught' USR1; kill -USR1 $$; kill -USR1 $$"
        self.assertEqual(compare("--", "bash", "-c", trap).returncode, 0)

    def test_timeout_leaves_no_orphans(self):
        sleeper = ["sleep", "98765.25"]
        sleep = f"setsid {' '.join(sleeper)}"
        result = compare("--timeout", "0.5", "--", "sh", "-c", f"{sleep} & setsid {sleep} & wait")
        self.refused(result, 1, "timed out")
        self.assertFalse(is_running(*sleeper))

    def test_what_outlives_the_command_is_ended(self):
        sleeper = ["sleep", "98765.5"]
        self.assertEqual(compare("--", "sh", "-c", f"setsid {' '.join(sleeper)} >/dev/null & true").returncode, 0)
        self.assertFalse(is_running(*sleeper))

    def test_interruption_leaves_nothing(self):
        for number, sleeper in [(signal.SIGINT, ["sleep", "98766.25"]), (signal.SIGTERM, ["sleep", "98766.5"])]:
            process = subprocess.Popen([HEAPWRIGHT, "compare", "--only", "glibc", "--with", PLAIN, "--", "sh", "-c",
                                        f"{' '.join(sleeper)} & wait"],
                                       env={**os.environ, "TMPDIR": str(self.folder)},
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not is_running(*sleeper):
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)
            self.assertFalse(is_running(*sleeper))
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_interruption_while_it_warms_up_tells_what_has_failed(self):
        sleeper = ["sleep", "98766.75"]
        report = self.folder / "report.json"
        for options, told in (([], ""), (["--json", "-"], ""), (["--json", str(report)], ", and no file is written"), (["--with", "bad=" + fixture("libaborting_allocator.so")], " but what has failed")):
            process = subprocess.Popen([HEAPWRIGHT, "compare", "--only", "glibc", *options, "--with", "plain=" + PLAIN, "--", "sh", "-c",
                                        f"case $LD_PRELOAD in *plain*) exec {' '.join(sleeper)};; esac"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not is_running(*sleeper):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            table, messages = process.communicate(timeout=30)
            self.assertEqual((process.returncode, table), (-signal.SIGINT, ""))
            self.assertIn(f"heapwright: interrupted before a round was complete: nothing is known{told}\n", messages)
            self.assertEqual(re.findall(r"heapwright: under (\w+): .*SIGABRT.*giving up", messages), ["bad"] if "failed" in told else [])
            self.assertFalse(report.exists())

    def test_interruption_keeps_the_complete_rounds(self):
        """Ended in its third round: table, JSON and page of two, and by the signal."""
        count, reports = self.folder / "runs", [self.folder / "report.json", self.folder / "report.html"]
        process = subprocess.Popen([HEAPWRIGHT, "compare", "--only", "glibc", "--with", "plain=" + PLAIN, "--rounds", "500",
                                    "--json", reports[0], "--html", reports[1], "--", "sh", "-c", f"echo >> {count}"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not count.exists() or len(count.read_text()) < 7:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        table, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -signal.SIGINT)
        found = json.loads(reports[0].read_text())
        self.assertEqual(found["interrupted_by"], "SIGINT")
        self.assertGreaterEqual(found["rounds"], 2)
        for row in found["rows"]:
            self.assertEqual(len(row["samples"]), found["rounds"])
        self.assertIn(f"interrupted by SIGINT after {found['rounds']} of 500 rounds", table)
        self.assertIn("interrupted by SIGINT", reports[1].read_text())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
