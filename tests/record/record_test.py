"""`heapwright record` and `heapwright trace`, as a user meets them: whether a trace has what a program is known to have done, and what becomes of it where something ends too soon.

usage: record_test.py HEAPWRIGHT RECORDED LIBHEAPWRIGHT PROBE RECORDED_EARLY RECORDED_LIMITED
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEAPWRIGHT, RECORDED, LIBRARY, PROBE, EARLY, LIMITED = (os.path.abspath(path) for path in sys.argv[1:7])
PATIENCE = 100
POOLS = (72704, 73728)  # what libstdc++ allocates before main, for exceptions


def clean_environment(**more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))} | more


def heapwright(*arguments, **environment):
    return subprocess.run([HEAPWRIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(**environment))


def processor_ticks(process):
    with open(f"/proc/{process}/stat") as file:
        return sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])


class Trace:
    """What `trace dump` prints, read; each free is of a block that was allocated and not freed before, by whichever thread."""

    def __init__(self, file):
        dumped = heapwright("trace", "dump", file)
        self.code, self.notes, self.processes, self.stacks, self.names, self.memory, self.touched, self.events, self.end = dumped.returncode, [], [], {}, {}, [], {}, [], None
        for line in dumped.stdout.splitlines():
            words = line.split(" ")
            if words[0] == "process":
                self.processes.append(line)
            elif words[0] == "note":
                self.notes.append(line)
            elif words[0] == "stack":
                stack = words[1], words[2]
                self.stacks[stack], self.names[stack] = words[3:], []
            elif line.startswith("  "):
                self.names[stack].append(line.strip())
            elif words[0] == "memory":
                self.memory.append(words[1:])
            elif words[0] == "touched":
                self.touched[words[1]] = int(words[2])
            elif words[0] == "end":
                self.end = line[4:]
            elif re.match(r"\d+\.\d+ ", line):
                self.events.append(words)

    def of(self, process):
        return [words for words in self.events if words[0].startswith(f"{process}.")]

    def check_blocks(self):
        """Blocks of which a free was recorded. Threads lie side by side, so all allocations are looked at first."""
        allocated = {words[4] if words[2] == "reallocate" else words[3] for words in self.events if words[2] in ("allocate", "reallocate")}
        freed = set()
        for words in self.events:
            if words[2] not in ("free", "reallocate") or words[3] == "?":
                continue
            block, key = words[3], (words[0].split(".")[0], words[3])
            assert block in allocated, f"{words}: was not allocated"
            assert key not in freed, f"{words}: was freed before"
            freed.add(key)
        return freed

    def requests(self, process):
        """Of the program's own blocks: (event, size, alignment, zeroed)."""
        return [request for _, request in self.own(process)]

    def own(self, process):
        result = []
        for words in self.of(process):
            if found := re.search(r"(\d+) bytes(?: aligned to (\d+))?( zeroed)? stack", " ".join(words)):
                if 70000 <= int(found[1]) < 80000 and int(found[1]) not in POOLS:
                    result.append((words, (words[2], int(found[1]), int(found[2] or 0), bool(found[3]))))
        return result


class Record(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "trace")

    def recorded(self, *command, code=0, options=(), **environment):
        result = heapwright("record", "-o", self.file, *options, "--", *command, **environment)
        self.assertEqual(result.returncode, code, result.stderr)
        self.message = result.stderr
        return Trace(self.file)

    def until(self, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_each_kind_of_call(self):
        for environment in ({}, {"LD_PRELOAD": LIBRARY}):
            trace = self.recorded(RECORDED, "kinds", code=7, **environment)
            self.assertEqual(trace.requests(0), [("allocate", 70001, 0, False), ("allocate", 70002, 0, True), ("allocate", 77824, 4096, False), ("allocate", 70004, 0, False),
                                                 ("allocate", 70005, 256, False), ("reallocate", 70006, 0, False), ("allocate", 70007, 0, False), ("allocate", 70008, 0, False)])
            freed = {block for _, block in trace.check_blocks()}
            own = [(words[4] if words[2] == "reallocate" else words[3], size) for words, (_, size, _, _) in trace.own(0)]
            self.assertEqual([size for block, size in own if block not in freed], [70008])
            self.assertEqual(trace.end, "the command has ended (exit code 7)")
            self.assertIn(environment.get("LD_PRELOAD", "libc.so.6").split("/")[-1].split(".")[0], heapwright("trace", "info", self.file).stdout)

    def test_the_first_call_of_a_process_is_recorded(self):
        # A constructor of a library, before the probe's own.
        trace = self.recorded(EARLY)
        self.assertEqual([size for _, size, _, _ in trace.requests(0)], [70001, 70002, 70003])
        self.assertEqual([trace.names["0", words[-1]][0].split()[0] for words, _ in trace.own(0)], ["before_main", "before_main", "block_from_library"])

    def test_processes_are_noted_when_they_ended(self):
        self.recorded("sh", "-c", f"{RECORDED} handover 5; exit 0")
        told = heapwright("trace", "info", self.file).stdout
        parent, child = re.findall(r"^process \d \((\d+)\)", told, re.MULTILINE)
        ended = re.findall(r"^([\d.]+) s: process (\d+) has exited$", told, re.MULTILINE)
        self.assertEqual([process for _, process in ended], [child, parent], told)
        self.assertLessEqual(float(ended[0][0]), float(ended[1][0]))

    def test_counts_are_as_people_read_them(self):
        self.recorded(RECORDED, "handover", "5")
        self.assertRegex(self.message, r"heapwright: \d,\d{3} events in ")
        self.assertRegex(heapwright("trace", "info", self.file).stdout, r"; \d,\d{3} allocations, \d+ reallocations?, \d,\d{3} frees, of them ")

    def test_blocks_that_change_hands(self):
        trace = self.recorded(RECORDED, "handover", "50")
        freed = trace.check_blocks()
        by_thread = {}
        for words in trace.events:
            if words[2] == "allocate" and words[4] == "777":
                by_thread.setdefault(words[0], []).append(words[3])
        self.assertEqual([len(blocks) for blocks in by_thread.values()], [5000] * 4)
        for blocks in by_thread.values():
            self.assertTrue(all(("0", block) in freed for block in blocks))
        # Freed by another: by one thread all of them, in the order of their allocation.
        freed_by = {words[3]: words[0] for words in trace.events if words[2] == "free"}
        for thread, blocks in by_thread.items():
            by = [freed_by[block] for block in blocks]
            self.assertEqual(len(set(by)), 1, "one thread frees what another has allocated")
            self.assertNotEqual(by[0], thread)

    def test_addresses_that_many_threads_use_again_at_once(self):
        trace = self.recorded(RECORDED, "exchange", "20000")
        allocated = sum(words[2] == "allocate" for words in trace.events)
        self.assertGreaterEqual(allocated, 16 * 20000)
        left = allocated - len(trace.check_blocks())
        self.assertTrue(512 <= left < 600, f"one in each place, and what threads leave; {left}")
        self.assertLessEqual(sum(words[2] == "free" and words[3] == "?" for words in trace.events), 1)

    def test_a_trace_is_complete_when_a_limit_has_ended_it(self):
        process, program = self.started(RECORDED, "endless", options=("--seconds", "0.1"))
        self.until(lambda: os.path.exists(self.file))
        self.assertIsNone(process.poll(), "it stays until the command has ended")
        self.assertEqual(Trace(self.file).end, "after 0.1 s, as asked")
        process.kill()
        os.kill(program, signal.SIGKILL)
        process.wait(PATIENCE)

    def test_a_child_frees_what_its_parent_has_allocated(self):
        trace = self.recorded(RECORDED, "fork")
        trace.check_blocks()
        self.assertEqual(len(trace.processes), 2)
        named = {words[4]: words[3] for words in trace.of(0) if words[2] == "allocate"}
        frees = [words[3] for words in trace.of(1) if words[2] == "free"]
        self.assertIn(named["70001"], frees, "the parent's block")
        self.assertEqual([size for _, size, _, _ in trace.requests(1)], [70003])

    def after_forks(self, *options):
        """What is recorded of 150 children that come and go while the recorder does not get on."""
        process, program = self.started(RECORDED, "forks", "150", options=options)
        if options:
            self.until(lambda: os.path.exists(self.file))
        process.send_signal(signal.SIGSTOP)
        os.kill(program, signal.SIGUSR1)
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 0)
        return Trace(self.file)

    def test_children_that_come_faster_than_they_are_found(self):
        trace = self.after_forks()
        self.assertEqual(len(trace.processes), 151)
        self.assertEqual([process for process in range(1, 151) if [size for _, size, _, _ in trace.requests(process)] != [70001]], [])
        self.assertEqual([note for note in trace.notes if "not recorded" in note], [])
        self.assertTrue(any("waited" in note for note in trace.notes))

    def test_children_that_come_when_a_limit_has_ended_the_recording(self):
        self.assertEqual(len(self.after_forks("--seconds", "0.1").processes), 1)

    def test_a_daemon_that_has_no_parent_any_more(self):
        trace = self.recorded(RECORDED, "daemon")
        self.assertEqual([[size for _, size, _, _ in trace.requests(process)] for process in range(len(trace.processes))], [[70001], [70002]])

    def test_a_child_that_is_about_to_become_a_program(self):
        # The shell ends when its child has begun to load another program, at the latest.
        trace = self.recorded("sh", "-c", f"{RECORDED} kinds >/dev/null &")
        self.assertEqual([len(trace.requests(process)) for process in range(len(trace.processes))][-1], 8, trace.processes)

    def test_children_without_the_probe_are_not_waited_for(self):
        done = heapwright("record", "-o", self.file, "--", sys.executable, "-c", f"import subprocess as s\nprint(s.Popen(['sleep', '{2 * PATIENCE}'], env={{}}, stdout=s.DEVNULL, stderr=s.DEVNULL).pid)")
        os.kill(int(done.stdout), signal.SIGTERM)  # it runs
        self.assertEqual(done.returncode, 0, done)

    def test_a_program_that_becomes_another(self):
        trace = self.recorded(RECORDED, "exec", code=7)
        self.assertEqual([size for _, size, _, _ in trace.requests(0)], [70001])
        self.assertEqual([size for _, size, _, _ in trace.requests(1)], [70001, 70002, 77824, 70004, 70005, 70006, 70007, 70008])
        self.assertTrue(any("has become another program" in note for note in trace.notes), trace.notes)

    def test_threads_that_end(self):
        trace = self.recorded(RECORDED, "threads")
        ends = [words[0] for words in trace.events if "the thread ends" in " ".join(words)]
        self.assertEqual(len(set(ends)), 20)
        by = {words[0] for words in trace.events if words[2] == "allocate" and words[4] == "777"}
        self.assertEqual(by, set(ends))

    def test_a_signal_handler_that_allocates(self):
        trace = self.recorded(RECORDED, "signal")
        trace.check_blocks()
        sizes = [words[4] for words in trace.events if words[2] == "allocate"]
        self.assertEqual((sizes.count("777"), sizes.count("70002")), (2000, 2000))

    def test_call_stacks(self):
        trace = self.recorded(RECORDED, "kinds", code=7)
        of_own = {words[-1] for words, _ in trace.own(0)}
        self.assertGreater(len(of_own), 4)
        for stack in of_own:
            self.assertGreater(len(trace.stacks["0", stack]), 1, "its addresses are there")
            # Names come from the files, as the program has ended.
            self.assertRegex("\n".join(trace.names["0", stack]), r"(?m)^(block|kinds)\(?.*  recorded\.cpp:\d+$")

    def test_calls_in_python(self):
        program = os.path.join(self.folder.name, "kept.py")
        with open(program, "w") as file:
            file.write("def keep(n):\n    all = []\n    for _ in range(n):\n        all.append(bytearray(71_000))\n    return all\nkept = keep(300)\n")
        trace = self.recorded("/usr/bin/python3", program)
        kept = {words[-1] for words, _ in trace.own(0)}
        self.assertEqual(len(kept), 1)
        names = "\n".join(trace.names["0", kept.pop()])
        self.assertRegex(names, r"(?m)^keep  kept\.py:4\n<module>  kept\.py:6$")
        self.assertNotIn("_PyEval_EvalFrameDefault", names)
        piece = os.path.join(self.folder.name, "piece")
        self.assertEqual(heapwright("trace", "slice", self.file, "-o", piece, "--to", "100").returncode, 0)
        self.assertEqual(Trace(piece).names, trace.names)

    def test_a_piece_has_the_names_of_the_whole(self):
        whole = self.recorded(RECORDED, "kinds", code=7)
        piece = os.path.join(self.folder.name, "piece")
        self.assertEqual(heapwright("trace", "slice", self.file, "-o", piece, "--to", "100").returncode, 0)
        names = Trace(piece).names
        self.assertGreater(len(names), 0)
        self.assertTrue(all(whole.names[stack] == frames for stack, frames in names.items()))

    def started(self, *command, options=()):
        process = subprocess.Popen([HEAPWRIGHT, "record", "-o", self.file, *options, "--", *command], env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(process.stdout.readline(), "running\n")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return process, int(file.read().split()[0])

    def test_a_program_that_is_killed(self):
        process, program = self.started(RECORDED, "endless")
        os.kill(program, signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGKILL)
        trace = Trace(self.file)
        self.assertEqual((trace.code, trace.end), (0, "the command has ended (killed by SIGKILL)"))
        self.assertGreater(len(trace.check_blocks()), 100000)

    def test_a_signal_goes_on_to_the_program(self):
        process, program = self.started(RECORDED, "endless")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)
        self.assertEqual(Trace(self.file).end, "the command has ended (killed by SIGTERM)")

    def test_a_second_signal_ends_the_recorder_and_the_command_goes_on(self):
        process, program = self.started("sh", "-c", f"trap '' TERM; exec {RECORDED} endless")
        try:
            for _ in range(2):
                process.send_signal(signal.SIGTERM)
                time.sleep(0.05)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGTERM)
            before = processor_ticks(program)
            time.sleep(0.5)
            self.assertGreater(processor_ticks(program), before, "the command goes on")
        finally:
            os.kill(program, signal.SIGKILL)
        self.assertIn("heapwright: the command goes on\n", process.stderr.read())
        trace = Trace(self.file)
        self.assertEqual((trace.code, trace.end), (0, "the recorder was told to end"))
        self.assertGreater(len(trace.check_blocks()), 1000)

    def test_the_program_goes_on_where_the_recorder_is_killed(self):
        process, program = self.started(RECORDED, "endless")
        self.addCleanup(lambda: os.kill(program, signal.SIGKILL))  # before the wait for the end of its output
        process.kill()
        process.wait(PATIENCE)
        time.sleep(1)
        before = processor_ticks(program)
        time.sleep(1)
        self.assertGreater(processor_ticks(program) - before, os.sysconf("SC_CLK_TCK") / 5, "it waits for nobody")

    def test_limits(self):
        for options, reason in ((("--seconds", "0.1"), r"after 0\.1 s, as asked"), (("--max-bytes", "2000"), r"after 2000 bytes of trace, as asked")):
            trace = self.recorded("sh", "-c", f"timeout 3 {RECORDED} endless; {RECORDED} kinds", code=7, options=options)
            self.assertRegex(trace.end, reason)
            self.assertGreater(len(trace.check_blocks()), 0)
            self.assertEqual(sum(re.search(r"id \d+ \S+recorded kinds$", process) is not None for process in trace.processes), 0, "it began after that")

    def test_a_limit_of_bytes_is_kept(self):
        for limit, bytes in (("05000", 5000), ("10KiB", 10240)):
            trace = self.recorded("timeout", "3", RECORDED, "endless", code=124, options=("--max-bytes", limit))
            self.assertEqual(trace.end, f"after {bytes} bytes of trace, as asked")
            self.assertGreater(os.path.getsize(self.file), bytes)
            self.assertLess(os.path.getsize(self.file), bytes + 8192)
            trace.check_blocks()
        for limit in ("1 parsec", "-1", "some"):
            result = heapwright("record", "-o", self.file, "--max-bytes", limit, "--", "true")
            self.assertEqual(result.returncode, 125)
            self.assertRegex(result.stderr, r"--max-bytes.*(100KiB|2MB)")

    def test_a_piece_of_a_trace(self):
        whole = self.recorded(RECORDED, "handover", "50")
        middle = sorted(float(words[1]) for words in whole.events)[len(whole.events) // 2] + 3e-5  # between two units of time
        pieces = []
        for name, options in (("first", ("--to", str(middle))), ("second", ("--from", str(middle)))):
            piece = os.path.join(self.folder.name, name)
            result = heapwright("trace", "slice", self.file, "-o", piece, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            pieces.append(Trace(piece))
        for piece in pieces:
            piece.check_blocks()
            self.assertEqual(len(piece.processes), 1)
            self.assertTrue({words[-1] for words in piece.events if words[2] == "allocate"} - {"0"} <= {stack for _, stack in piece.stacks})
            self.assertIn("which ended: the command has ended", piece.end)
        kind = lambda words: (words[0], words[1], words[2])
        self.assertEqual(sorted(map(kind, pieces[0].events + pieces[1].events)), sorted(map(kind, whole.events)), "each event is in one of them")
        self.assertTrue(all(float(words[1]) < middle for words in pieces[0].events))
        # What the first piece has allocated is from before the second one.
        freed = lambda trace: sum(words[2] == "free" and words[3] != "?" for words in trace.events)
        unknown = sum(words[2] == "free" and words[3] == "?" for words in pieces[1].events)
        self.assertEqual(freed(pieces[0]) + freed(pieces[1]) + unknown, freed(whole))

    def test_a_piece_is_one_process(self):
        self.recorded(RECORDED, "fork")
        piece = os.path.join(self.folder.name, "piece")
        self.assertEqual(heapwright("trace", "slice", self.file, "-o", piece, "--process", "1").returncode, 0)
        trace = Trace(piece)
        self.assertEqual(([size for _, size, _, _ in trace.requests(1)], trace.of(0)), ([70003], []))
        for words, complaint in ((("--process", "7"), "has no process 7"), (("--from", "2", "--to", "1"), "--to is not behind --from"), ((), "-o FILE is missing")):
            result = heapwright("trace", "slice", self.file, *words, *(["-o", piece] if words else []))
            self.assertEqual(result.returncode, 125)
            self.assertIn(complaint, result.stderr)
        for words, complaint in ((("inof", self.file), "say info, dump or slice, not inof; did you mean info?"), (("info",), "trace info: FILE is missing")):
            self.assertIn(complaint, heapwright("trace", *words).stderr)
        self.assertIn("takes a trace and no options", heapwright("trace", "info", self.file, "--from", "1").stderr)
        self.assertIn("--output", heapwright("trace", "slice", self.file, "-o", self.file).stderr)

    def test_the_command_is_kept_with_its_empty_arguments(self):
        self.recorded("perl", "-e", "1", "", "a b", "")
        self.assertIn("perl -e 1 '' 'a b' ''", heapwright("trace", "info", self.file).stdout)

    def test_memory_over_time(self):
        trace = self.recorded("sh", "-c", f"{RECORDED} kinds; sleep 0.2")
        self.assertGreater(len(trace.memory), 5)
        sizes = {words[3]: int(words[4]) for words in trace.of(1) if words[2] == "allocate"}
        touched = {sizes[block]: bytes for block, bytes in trace.touched.items() if block in sizes}
        self.assertEqual(set(touched), {size for size in sizes.values() if size >= 65536})
        self.assertTrue(all(bytes <= size for size, bytes in touched.items()))
        self.assertLess(touched[70008], 10000, "it is never written to")

    def test_of_a_short_buffer_that_is_freed_at_once_nothing_is_asked(self):
        """To ask takes a microsecond, many times what it takes to record the block."""
        trace = self.recorded(RECORDED, "buffers")
        sizes = {words[3]: int(words[4]) for words in trace.of(0) if words[2] == "allocate"}
        asked = [sizes[block] for block in trace.touched if block in sizes]
        self.assertEqual(asked.count(20002), 1)
        self.assertLess(asked.count(20001), 100)

    def test_the_memory_of_a_program_without_the_probe_is_not_that_of_the_one_before(self):
        large = "my $all = 'x' x 50_000_000; sleep 1"
        trace = self.recorded("env", "-u", "LD_PRELOAD", "perl", "-e", large)
        self.assertTrue(any("has become a program without the probe" in note for note in trace.notes), trace.notes)
        self.assertLess(max((int(words[-1]) for words in trace.memory), default=0), 10_000_000, trace.memory)

    def test_a_program_goes_on_where_its_files_may_not_be_as_long_as_its_rings(self):
        trace = self.recorded(LIMITED, "7", code=7)
        self.assertEqual(trace.processes, [])
        self.assertRegex(self.message, r"process \d+ is not recorded, nor are children that it forks: it could not make its file in \S+: File too large \(ulimit -f; .*\)\n")
        self.assertRegex(heapwright("trace", "info", self.file).stdout, r"(?m)^no process\n[\d.]+ s: process \d+ is not recorded, .* File too large")
        # The exit code is the command's own, unless that would hide that the trace has nothing.
        self.recorded(LIMITED, code=125)

    def test_processes_without_segments_are_told(self):
        def limited(then):
            return f"import os, resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))\nif os.fork() == 0: {then}\nos.wait()"
        trace = self.recorded(sys.executable, "-c", limited("bytearray(70001); os._exit(0)"))
        self.assertEqual(len(trace.processes), 1)
        self.assertRegex(self.message, r"heapwright: children of process \d+ are not recorded: it could not make its file in .*: File too large")
        self.assertEqual(sum("are not recorded" in note for note in trace.notes), 1, trace.notes)
        trace = self.recorded(sys.executable, "-c", limited(f"os.execv({RECORDED!r}, ['recorded', 'kinds'])"))
        self.assertEqual(len(trace.processes), 1)
        self.assertRegex(self.message, r"heapwright: process \d+ is not recorded: it could not make its file in .*: File too large")
        self.assertEqual(sum("is not recorded" in note for note in trace.notes), 1, trace.notes)

    def test_a_full_disk(self):
        result = heapwright("record", "-o", "/dev/full", "--", RECORDED, "kinds")
        self.assertEqual(result.returncode, 125)
        self.assertIn("No space left on device", result.stderr)

    def test_what_there_was_room_for_stays(self):
        small = os.path.join(self.folder.name, "small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("may not mount")
        try:
            result = heapwright("record", "-o", f"{small}/trace", "--", "perl", "-e", "my %all; $all{$_ * 7919 % 1000003} = 'x' x ($_ % 300) for 1..300000; print 'done'")
            self.assertEqual((result.returncode, result.stdout), (125, "done"), result)
            kept = re.search(r"No space left on device; what there was room for is in (\S+trace\.\d+-0\.unfinished): a torn trace", result.stderr).group(1)
            self.assertEqual(os.listdir(small), [os.path.basename(kept)])
            told = heapwright("trace", "info", kept)
            self.assertEqual(told.returncode, 1, told)
            self.assertRegex(told.stdout, r" [1-9][\d,]+ allocations.*\n(.*\n)*.*torn: ")
            self.assertEqual(heapwright("replay", "--memory", "--only", "glibc", kept).returncode, 0)
        finally:
            subprocess.run(["umount", small], check=True)

    def test_what_cannot_be_recorded(self):
        for command, code in ((["/no/such/program"], 127), (["/etc/passwd"], 126)):
            self.assertEqual(heapwright("record", "-o", self.file, "--", *command).returncode, code)
        self.assertEqual(heapwright("record", "-o", "/no/such/folder/trace", "--", "true").returncode, 125)
        self.assertFalse(os.path.exists(self.file))
        self.recorded("true")
        with open(self.file, "rb") as file:
            before = file.read()
        done = heapwright("record", "-o", self.file, "--", "")
        self.assertEqual((done.returncode, done.stderr), (127, "heapwright: the command is empty\n"))
        with open(self.file, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_traces_that_are_none(self):
        self.recorded(RECORDED, "kinds", code=7)
        with open(self.file, "rb") as file:
            whole = file.read()

        def info(data):
            with open(self.file, "wb") as file:
                file.write(data)
            return heapwright("trace", "info", self.file)
        torn = info(whole[:-1])
        self.assertEqual(torn.returncode, 1)
        self.assertIn("torn: the file is cut off", torn.stdout)
        piece = os.path.join(self.folder.name, "piece")
        self.assertEqual(heapwright("trace", "slice", self.file, "-o", piece).returncode, 1)
        cause = f"a piece of {self.file}, which is torn: the file is cut off"
        told = heapwright("trace", "info", piece)
        self.assertEqual((told.returncode, told.stdout.count("torn")), (1, 1), told.stdout)
        self.assertIn(f"; {cause}\n", told.stdout)
        self.assertTrue(heapwright("trace", "dump", piece).stdout.endswith(f"\nend {cause}\n"))
        smaller = os.path.join(self.folder.name, "smaller")
        self.assertEqual(heapwright("trace", "slice", piece, "-o", smaller, "--process", "0").returncode, 1)
        self.assertIn(f"; a piece of {piece} (process 0), which is {cause}\n", heapwright("trace", "info", smaller).stdout)
        self.assertIn("is a torn trace: it is cut off before its first event", info(whole[:12]).stderr)
        for data, complaint in ((b"", "is not a trace"), (b"no trace at all, but long", "is not a trace"), (whole[:12] + b"\x07" + whole[13:], "of version 7; this heapwright reads 1")):
            result = info(data)
            self.assertEqual(result.returncode, 125)
            self.assertIn(complaint, result.stderr)
        self.assertIn("No such file", heapwright("trace", "info", "/no/such/trace").stderr)


class RunningProcess(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "trace")
        self.segments = os.path.join(self.folder.name, "segments")

    def running(self, *command, probe="off", preload=PROBE):
        """Past its start."""
        process = subprocess.Popen(command, env=clean_environment(LD_PRELOAD=preload, HEAPWRIGHT_PROBE=probe, HEAPWRIGHT_SEGMENT_DIR=self.segments), stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(process.stdout.readline(), "running\n")
        return process

    def recorder(self, process, *options):
        recorder = subprocess.Popen([HEAPWRIGHT, "record", "-o", self.file, *options, str(process.pid)], env=clean_environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (recorder.kill(), recorder.communicate()))
        self.assertRegex(recorder.stderr.readline(), rf"recording process {process.pid} \(.*\); Ctrl-C ends the recording")
        return recorder

    def goes_on(self, process):
        before, until = processor_ticks(process.pid), time.monotonic() + PATIENCE
        while processor_ticks(process.pid) - before <= os.sysconf("SC_CLK_TCK") / 10:
            self.assertLess(time.monotonic(), until, "it waits for somebody")
            time.sleep(0.05)

    def check_endless(self, trace):
        self.assertGreater(len(trace.check_blocks()), 1000)
        self.assertLessEqual({words[4] for words in trace.events if words[2] == "allocate"}, {"777"})
        self.assertLessEqual(sum(words[3] == "?" for words in trace.events), 1, "the program has one block at a time")
        times = [float(words[1]) for words in trace.events]
        self.assertGreaterEqual(min(times), 0)
        self.assertLess(max(times), 2)

    def test_again_and_again(self):
        process = self.running(RECORDED, "endless")
        for _ in range(3):
            self.assertEqual(self.recorder(process, "--seconds", "0.05").wait(PATIENCE), 0)
            trace = Trace(self.file)
            self.assertEqual((trace.code, trace.end), (0, "after 0.05 s, as asked"))
            self.assertIn(f"process 0 id {process.pid} ", trace.processes[0])
            self.check_endless(trace)
            self.goes_on(process)

    def test_ctrl_c_ends_the_recording_alone(self):
        process = self.running(RECORDED, "endless")
        recorder = self.recorder(process)
        time.sleep(0.1)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assertEqual(Trace(self.file).end, "the recorder was told to end")
        self.goes_on(process)

    def test_a_recorder_that_is_killed(self):
        process = self.running(RECORDED, "endless")
        recorder = self.recorder(process)
        time.sleep(0.1)
        recorder.kill()
        recorder.wait(PATIENCE)
        self.goes_on(process)
        # The next one has nothing of what that one has left in the rings.
        self.assertEqual(self.recorder(process, "--seconds", "0.05").wait(PATIENCE), 0)
        self.check_endless(Trace(self.file))

    def test_the_process_is_killed(self):
        process = self.running(RECORDED, "endless")
        recorder = self.recorder(process)
        time.sleep(0.05)
        process.kill()
        process.wait(PATIENCE)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        trace = Trace(self.file)
        self.assertEqual(trace.end, "the process has ended")
        self.check_endless(trace)
        self.assertEqual(self.rings(), [])

    def test_the_process_becomes_another_program(self):
        process = self.running(sys.executable, "-c", "import os, time\nprint('running', flush=True)\nfor i in range(2000):\n  bytearray(70001)\n  time.sleep(0.001)\nos.execv('/bin/sleep', ['sleep', '60'])")
        self.assertEqual(self.recorder(process).wait(PATIENCE), 0)
        trace = Trace(self.file)
        self.assertEqual(trace.end, "the process has become another program")
        self.assertGreater(len(trace.requests(0)), 10)
        self.assertEqual(self.rings(), [])

    def rings(self):
        return [name for name in os.listdir(self.segments) if name.endswith(".rings")]

    def without_rings(self, change):
        """A process that may not make its rings after `change`, a statement of Python."""
        return self.running(sys.executable, "-c", f"import os, resource, signal\n{change}\nprint('running', flush=True)\nwhile True:\n  bytearray(70001)")

    def test_the_process_goes_on_where_its_files_may_not_be_as_long_as_its_rings(self):
        process = self.without_rings("signal.signal(signal.SIGXFSZ, signal.SIG_DFL); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))")
        self.assertRegex(self.refused(process), r"File too large \(ulimit -f;")
        self.goes_on(process)

    def refused(self, process):
        result = heapwright("record", "-o", self.file, "--seconds", str(PATIENCE), str(process.pid))
        self.assertEqual((result.returncode, result.stdout), (125, ""), result.stderr)
        self.assertRegex(result.stderr, f"\nheapwright: process {process.pid} cannot be recorded: it could not make its file in {self.segments}: ")
        self.assertEqual(os.listdir(self.folder.name), ["segments"])
        return result.stderr

    def test_a_process_that_cannot_make_its_rings(self):
        process = self.without_rings("resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
        for _ in range(2):
            self.assertRegex(self.refused(process), r"Too many open files \(ulimit -n\)")
        self.goes_on(process)

    def test_a_process_that_has_changed_its_user_or_its_root(self):
        if os.geteuid() != 0:
            self.skipTest("may not change them")
        for change, why in (("os.setgid(65534); os.setuid(65534)", "Permission denied"), (f"os.chroot({os.path.dirname(RECORDED)!r}); os.chdir('/')", "No such file or directory")):
            process = self.without_rings(change)
            self.assertIn(f"{why} (its user or its root folder has changed); `heapwright record -- COMMAND` starts a program", self.refused(process))
            self.goes_on(process)
            process.kill()

    def test_its_children_are_not_recorded(self):
        process = self.running(sys.executable, "-c", "import os\nprint('running', flush=True)\nwhile True:\n  bytearray(70001)\n  if os.fork() == 0: bytearray(70002); os._exit(0)\n  os.wait()")
        self.assertEqual(self.recorder(process, "--seconds", "0.3").wait(PATIENCE), 0)
        trace = Trace(self.file)
        self.assertEqual(len(trace.processes), 1)
        self.assertGreater(len(trace.events), 10)
        self.assertEqual({size for _, size, _, _ in trace.requests(0)}, {70002})
        self.assertEqual([name for name in self.rings() if not name.startswith(f"{process.pid}-")], [])

    def test_what_cannot_be_recorded(self):
        counting = self.running(RECORDED, "endless", probe="on")
        without = self.running(RECORDED, "endless", preload="")
        recorded = self.running(RECORDED, "endless")
        self.recorder(recorded)
        other = os.path.join(self.folder.name, "other")
        for process, said in ((counting.pid, "its probe counts"), (without.pid, "the probe is not in it; LD_PRELOAD=libheapwright-probe.so HEAPWRIGHT_PROBE=off starts"), (recorded.pid, "somebody records it already"),
                              (999999999, "no such process"), (0, "0 is no process")):
            result = heapwright("record", "-o", other, str(process))
            self.assertEqual((result.returncode, result.stdout), (125, ""), result.stderr)
            self.assertRegex(result.stderr, f"^heapwright: .*({said})")
            self.assertFalse(os.path.exists(other))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[7:])
