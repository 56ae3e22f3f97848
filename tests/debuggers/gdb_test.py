#!/usr/bin/env python3
"""debuggers/heapwright_gdb.py in a real gdb: what it says of known blocks, on live processes and core files, of whole and of stripped libraries; and of
what is not there, not known, or damaged.

Usage: gdb_test.py path/to/heapwright path/to/lib path/to/programs path/to/gdb [unittest options]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
from support import without_names, words_of

HEAPWRIGHT, LIBRARIES, PROGRAMS, GDB = (os.path.abspath(p) for p in sys.argv[1:5])
SCRIPT = support.script("heapwright_gdb.py")
KNOWN, STATIC, KIT = support.programs(PROGRAMS)
DEFAULT, HARDENED = support.libraries(LIBRARIES)

BLOCKS = ("in_use freed beside_in_use longer page_run page_run_freed large large_freed aligned of_no_bytes by_new of_worker freed_by_worker "
          "of_ended").split()
STOP = ["break all_are_there", "run", "up"]


def gdb(*commands, program=None, core=None, preload=None, script=SCRIPT):
    """What it prints, both ways, without what it says at a start."""
    words = [GDB, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off", "-iex", "set width 0"]
    if script:
        words += ["-ex", "source " + script]
    if preload:
        words += ["-ex", "set environment LD_PRELOAD " + preload]
    for command in commands:
        words += ["-ex", command]
    words += [w for w in (program, core) if w]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          env={**os.environ, "LC_ALL": "C", "HEAPWRIGHT_GDB_DEBUG": ""}).stdout


def asked(said):
    """{name: what was said}, where `echo` has named it."""
    parts = re.split(r"@@(\S+)@@\n", said)
    return dict(zip(parts[1::2], (p.strip() for p in parts[2::2])))


def questions(names):
    for name in names:
        yield "echo @@%s@@\\n" % name
        yield "heapwright block %s" % name


class Case(support.Case):
    def no_traceback(self, said):
        for word in ("Traceback", "Python Exception", "make no sense to this script"):
            self.assertNotIn(word, said)

    def live_and_core(self, names, program=KNOWN, preload=None, more=()):
        """{name: what is said of the live process}, the same of its core file, and the core file."""
        core = self.core_path()
        said = gdb(*STOP, *questions(names), "echo @@end@@\\n", *more, "generate-core-file " + core, program=program, preload=preload)
        self.no_traceback(said)
        live = asked(said)
        self.assertTrue(os.path.exists(core), said)
        of_core = asked(gdb("up", *questions(names), "echo @@end@@\\n", program=program, core=core))
        return live, of_core, core


class Blocks:
    """For each library: what is said of each block."""
    preload = None
    program = KNOWN
    is_hardened = False
    stripped = False

    def library(self):
        if self.preload is None:
            return None
        copy = os.path.join(self.directory, os.path.basename(self.preload))
        shutil.copy(os.path.realpath(self.preload), copy)
        if self.stripped:
            subprocess.run(["strip", "--strip-all", copy], check=True)
        return copy

    def test_says_where_blocks_are(self):
        library = self.library()
        names = BLOCKS + ["&on_stack", "(char*)in_use+13", "(char*)page_run+5000", "(char*)large+500000", "(char*)large+1048580", "(char*)large_freed+2000000"] + ["many[%d]" % i for i in range(0, 4000, 100)]
        names += ["many[%d]" % i for i in range(1, 40, 2)] + ["sent[%d]" % i for i in range(30)]
        live, core, path = self.live_and_core(names, self.program, support.without_guards(PROGRAMS, library) if self.is_hardened else library)
        self.check(live)
        without_threads = lambda text: re.sub(r"thread (\d+) \([^)]*\)", r"thread \1", text)  # noqa: E731
        for name in live:
            if name != "&on_stack" and name != "end":
                self.assertEqual(without_threads(live[name]), without_threads(core[name]), name)
        self.assertIn("is no address of the heap. It lies in the stack of thread 1.", core["&on_stack"])
        if library is None:
            return
        # Long gone: the library's file, and what was said of it.
        os.remove(library)
        gone = asked(gdb("up", *questions(names), program=self.program, core=path))
        self.check(gone)

    def check(self, said):
        says = {name: words_of(answer) for name, answer in said.items()}
        at = lambda name: int(says[name]["block"].split(",")[0].split(";")[0], 16)  # noqa: E731

        self.assertRegex(says["in_use"]["block"], r"^0x[0-9a-f]+$")
        self.assertEqual(says["in_use"]["state"], "in use")
        self.assertRegex(says["in_use"]["size"], r"^112 bytes, class \d+$")
        self.assertRegex(says["in_use"]["owner"], r"^the cache of thread 1 ")
        self.assertRegex(says["in_use"]["span"], r"of class \d+; \d+ blocks? with the program, \d+ in thread caches, \d+ free, \d+ never given out$")
        self.assertEqual(says["(char*)in_use+13"]["block"], "%#x, 13 bytes before the address" % at("in_use"))
        self.assertEqual(says["(char*)in_use+13"]["state"], "in use")

        place = "quarantine" if self.is_hardened else "deferred frees"
        self.assertRegex(says["freed"]["state"], "^free, in the %s of the cache of thread 1 " % place)
        self.assertEqual(says["longer"]["state"], "in use")
        self.assertRegex(says["longer"]["owner"], r"^the cache of thread 1 .*which got the block last$")

        self.assertEqual(says["page_run"]["state"], "in use")
        self.assertIn("a page run for this block alone", says["page_run"]["span"])
        self.assertEqual(says["(char*)page_run+5000"]["block"], "%#x, 5,000 bytes before the address" % at("page_run"))
        self.assertRegex(says["page_run_freed"]["state"], "^free, in the (%s|free list) of the cache of thread 1 " % place)

        self.assertEqual(says["large"]["state"], "in use")
        self.assertEqual(says["(char*)large+500000"]["block"], "%#x, 500,000 bytes before the address" % at("large"))
        self.assertEqual(says["(char*)large+1048580"]["block"], "%#x, 1,048,580 bytes before the address, which is 4 bytes behind what was asked for" % at("large"))
        if self.is_hardened:
            self.assertRegex(says["large"]["seal"], "of a live block: 1,048,576 bytes asked for by malloc")
            self.assertRegex(says["large_freed"]["state"], "^free: nothing can touch it")
            self.assertEqual(says["of_no_bytes"]["state"], "in use")
            self.assertIn("no bytes", says["of_no_bytes"]["size"])
            self.assertEqual(says["in_use"]["seal"], "of a live block: 100 bytes asked for by malloc")
            self.assertEqual(says["by_new"]["seal"], "of a live block: 48 bytes asked for by new")
            self.assertEqual(says["aligned"]["seal"], "of a live block: 640 bytes asked for by malloc, aligned to 64")
            self.assertEqual(says["freed"]["seal"], "of a free block")
            self.assertRegex(says["freed_by_worker"]["state"], "^free, in the quarantine of the cache of thread 2 ")
        else:
            self.assertIn("no class: 1,048,576 asked for", says["large"]["size"])
            self.assertRegex(said["(char*)large_freed+2000000"], "lies in a span without blocks\n.*free|is no address of the heap")
            self.assertNotIn("seal", says["in_use"])
            self.assertRegex(says["freed_by_worker"]["state"],
                             "^free, freed by a thread that is not its owner, in the outbox of the cache of thread 2 ")
            self.assertRegex(says["freed_by_worker"]["owner"], "^the cache of thread 1 ")
        # A refill puts some blocks behind the one that it gives out into the free list. A full batch goes to the owner's inbox.
        if not self.is_hardened:
            waits = {says["sent[%d]" % i]["state"].split(" (")[0] for i in range(30)}
            self.assertEqual(waits, {"free, freed by another thread, in the inbox of the cache of thread 1",
                                     "free, freed by a thread that is not its owner, in the outbox of the cache of thread 2"})
        self.assertRegex(says["beside_in_use"]["state"], "^(never given out|free, in the free list of the cache of thread 1 )")
        self.assertEqual(says["of_worker"]["state"], "in use")
        self.assertRegex(says["of_worker"]["owner"], "^the cache of thread 2 ")
        self.assertEqual(says["of_ended"]["state"], "in use")
        self.assertEqual(says["of_ended"]["owner"].split(":")[0], "thread cache 3 (parked")

        freed = [says["many[%d]" % i]["state"] for i in range(0, 4000, 100)]
        self.assertTrue(all(state.startswith("free, in ") for state in freed), freed)
        self.assertIn("free, in the central free list", freed)
        self.assertEqual({says["many[%d]" % i]["state"] for i in range(1, 40, 2)}, {"in use"})


class Default(Blocks, Case):
    preload = DEFAULT


class Stripped(Blocks, Case):
    preload = DEFAULT
    stripped = True


class Hardened(Blocks, Case):
    preload = HARDENED
    is_hardened = True


class StrippedHardened(Hardened):
    stripped = True


class Static(Blocks, Case):
    program = STATIC


class GuardPages(Case):
    def test_live_and_what_gdb_leaves_out_of_a_core_file(self):
        live, core, _ = self.live_and_core(["in_use", "large", "freed"], preload=HARDENED)
        self.assertRegex(live["in_use"], "state    in use\nseal     of a live block: 100 bytes asked for by malloc")
        self.assertRegex(live["large"], "state    in use\nseal     of a live block: 1,048,576 bytes asked for by malloc")
        for name, answer in core.items():
            self.no_traceback(answer)
            if name != "end":
                self.assertTrue(answer.split(":")[0] == live[name].split(":")[0] or
                                "The core file does not have the heap's records: they read as zeros." in answer, answer)


class Mixed(Case):
    """A malloc of `heapwright build`, whose blocks of many sizes share spans."""

    def test_says_where_blocks_are(self):
        recipe, library = os.path.join(self.directory, "mixed.hpp"), os.path.join(self.directory, "libmixed.so")
        with open(recipe, "w") as file:
            file.write("#include <heapwright/heap/recipe.hpp>\nnamespace mine {\ninline constexpr heapwright::recipe mixed{.spans = {.mixed_up_to = 2048}};\n}\n")
        built = subprocess.run([HEAPWRIGHT, "build", recipe, "-o", library], capture_output=True, text=True, timeout=300)
        self.assertEqual(built.returncode, 0, built.stderr)
        names = ["in_use", "freed", "(char*)in_use+13", "of_worker", "large"] + ["many[%d]" % i for i in range(80)]
        live, core, _ = self.live_and_core(names, KNOWN, library, ["heapwright heap"])
        says = {name: words_of(answer) for name, answer in live.items()}
        self.assertEqual(says["in_use"]["state"], "in use")
        self.assertIn("mixed, blocks of many sizes", says["in_use"]["span"])
        self.assertRegex(says["in_use"]["size"], r"^112 bytes, class \d+$")
        self.assertEqual(says["(char*)in_use+13"]["block"], says["in_use"]["block"] + ", 13 bytes before the address")
        self.assertRegex(says["freed"]["state"], "^free, ")
        self.assertEqual(says["of_worker"]["state"], "in use")
        self.assertEqual(says["large"]["state"], "in use")
        self.assertTrue(all(says["many[%d]" % i]["state"].startswith("free") == (i % 2 == 0) for i in range(80)), live)
        self.assertIn("recipe   mine::mixed", live["end"])
        self.assertEqual([words_of(core[n])["block"] for n in names], [words_of(live[n])["block"] for n in names])


class Heap(Case):
    def test_has_the_figures_of_info(self):
        core = self.core_path()
        said = gdb(*STOP, "echo @@heap@@\\n", "heapwright heap", "echo @@info@@\\n",
                   "python subprocess = __import__('subprocess'); print(subprocess.run([%r, 'info', '--json', str(gdb.selected_inferior().pid)], "
                   "stdout=subprocess.PIPE, universal_newlines=True).stdout)" % HEAPWRIGHT,
                   "echo @@spans@@\\n", "heapwright spans", "echo @@all@@\\n", "heapwright spans all", "echo @@large@@\\n", "heapwright spans large all", "echo @@free@@\\n", "heapwright spans free",
                   "echo @@class@@\\n", "heapwright spans 7", "echo @@wrong@@\\n", "heapwright spans 999", "echo @@word@@\\n", "heapwright spans nonsense",
                   "echo @@end@@\\n", "generate-core-file " + core, program=KNOWN, preload=DEFAULT)
        self.no_traceback(said)
        parts = asked(said)
        info = __import__("json").loads(parts["info"])

        def show(n):
            return "%d B" % n if n < 1024 else next("%.*f %s" % (1 if n / unit < 100 else 0, n / unit, name) for unit, name in
                                                    ((1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB")) if n / unit < 1024)
        for key, meaning in (("mapped", "held for blocks"), ("spans", "  in spans of small blocks"), ("large", "  in large blocks"),
                             ("free_resident", "  free, not given back"), ("free_decommitted", "  free, given back or new"),
                             ("metadata", "reserved for the heap's records"), ("metadata_resident", "  of these in memory, about")):
            self.assertIn("%-32s%10s\n" % (meaning, show(info["bytes"][key])), parts["heap"])
        self.assertIn("library  " + DEFAULT.rsplit("/", 1)[0], parts["heap"])
        self.assertIn("version  %s (release)" % info["version"], parts["heap"])
        self.assertIn("recipe   default_recipe", parts["heap"])
        self.assertIn("threads  2 now, 3 ever", parts["heap"])
        blocks = [int(line.split()[0]) for line in parts["heap"].split("class  ")[1].splitlines()[1:] if line.strip()[:1].isdigit()]
        self.assertLessEqual(len(blocks), 10)
        self.assertRegex(parts["heap"], r"and \d+ classes with .* in spans")

        self.assertRegex(parts["spans"], r"of small blocks: [\d,]+ blocks? allocated, \d+ free, \d+ never given out")
        self.assertRegex(parts["spans"], r"and \d+ spans? with .*, left out: `heapwright spans all` lists them, too")
        self.assertEqual(parts["all"].count("\n") + 1, 51 + int(re.search(r"and (\d+) spans?", parts["spans"])[1]))
        self.assertEqual(parts["all"].splitlines()[:51], parts["spans"].splitlines()[:51])
        self.assertLessEqual(parts["spans"].count("\n"), 52)
        self.assertRegex(parts["large"], r"1\.0 MiB +- +large")
        self.assertNotIn("of small blocks", parts["large"])
        self.assertIn("free, ", parts["free"])
        self.assertEqual(set(re.findall(r"^0x\w+ +\S+ \w+ +(\S+)", parts["class"], re.M)), {"7"})
        self.assertEqual(sorted(re.findall(r"attached to the cache of thread (\d) \(LWP", parts["class"])), ["1", "2"])
        self.assertRegex(parts["wrong"], "There is no class 999. Give a number from 1 to ")
        self.assertRegex(parts["word"], "There is no class nonsense.")
        of_core = asked(gdb("echo @@heap@@\\n", "heapwright heap", "echo @@spans@@\\n", "heapwright spans", program=KNOWN, core=core))
        self.assertEqual(of_core["heap"], parts["heap"])
        self.assertEqual(of_core["spans"], without_names(parts["spans"]))


class Refuses(Case):
    def test_without_a_process(self):
        for command in ("heapwright block 1", "heapwright heap", "heapwright spans"):
            said = gdb(command, program=KNOWN)
            self.assertIn("There is no process and no core file. Start the program (run), or load a core file", said)
            self.no_traceback(said)

    def test_a_process_that_runs(self):
        said = gdb("run 30 &", "heapwright heap", "kill", program=shutil.which("sleep"), preload=DEFAULT)
        self.assertIn("The process is running. Stop it first (interrupt).", said)

    def test_the_first_instruction(self):
        said = gdb("starti", "heapwright heap", program=KNOWN, preload=DEFAULT)
        self.assertIn("or its libraries are not loaded yet (let it run to main).", said)

    def test_code_that_would_run_in_the_program(self):
        said = gdb(*STOP, "heapwright block function_of_program()", "print function_of_program()", "heapwright block $1", program=KNOWN, preload=DEFAULT)
        self.assertIn("gdb would have to run code in the program to evaluate function_of_program(). Let `print function_of_program()` do that, and give the `$1` that "
                      "it prints.", said)
        self.assertIn("state    in use", said)

    def test_the_word_alone(self):
        said = asked(gdb("echo @@alone@@\\n", "heapwright", "echo @@nonsense@@\\n", "heapwright nonsense 1", program=KNOWN))
        self.assertRegex(said["alone"], "heapwright block -- Describe the block of the heap that an address belongs to.")
        self.assertEqual(said["nonsense"], "There is no command heapwright nonsense. `help heapwright` lists them.")

    def test_another_malloc(self):
        said = gdb(*STOP, "heapwright block in_use", program=KNOWN)
        self.assertIn("There is no libheapwright in this process: its malloc is another one, or ", said)
        self.no_traceback(said)

    def test_what_is_no_address(self):
        said = asked(gdb(*STOP, "echo @@none@@\\n", "heapwright block", "echo @@name@@\\n", "heapwright block no_such_name",
                         "echo @@struct@@\\n", "heapwright block has_worked", "echo @@null@@\\n", "heapwright block 0",
                         "echo @@high@@\\n", "heapwright block -1", "echo @@code@@\\n", "heapwright block main",
                         "echo @@data@@\\n", "heapwright block &large", "echo @@array@@\\n", "heapwright block many", "echo @@stack@@\\n",
                         "heapwright block on_stack", "echo @@text@@\\n", 'heapwright block "abc"', "echo @@hole@@\\n", "heapwright block 0x123456789000",
                         program=KNOWN, preload=DEFAULT))
        self.assertIn("Which address?", said["none"])
        self.assertIn("gdb cannot evaluate no_such_name: No symbol", said["name"])
        self.assertRegex(said["struct"], r"has_worked is a .*, not an address. Give a pointer, or &\(has_worked\).")
        self.assertIn("0x0 is no address of the heap. There is no memory at it.", said["null"])
        self.assertIn("0xffffffffffffffff is no address of the heap.", said["high"])
        self.assertIn("is no address of the heap. It is main in section .text", said["code"])
        self.assertIn("is no address of the heap. It is large in section .bss", said["data"])
        self.assertIn("is no address of the heap. It is many in section .bss", said["array"])
        self.assertIn("is no address of the heap. It lies in the stack of thread 1.", said["stack"])
        self.assertIn('"abc" is not in the memory of the program: it has no address.', said["text"])
        self.assertIn("0x123456789000 is no address of the heap. There is no memory at it.", said["hole"])
        for answer in said.values():
            self.no_traceback(answer)

    def test_a_freed_large_block_in_the_list(self):
        said = gdb(*STOP, "heapwright spans large", program=KNOWN, preload=HARDENED)
        self.assertRegex(said, r"3\.0 MiB +- +large, free: nothing can touch it yet\n")
        self.assertRegex(said, r"1\.0 MiB +- +large\n")

    def test_sourced_by_a_script(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write("import gdb\ngdb.execute('source %s')\n" % SCRIPT)
            script.flush()
            said = gdb("source " + script.name, *STOP, "heapwright block in_use", program=KNOWN, preload=DEFAULT, script=None)
        self.assertIn("state    in use", said)

    def test_before_it_has_begun(self):
        said = gdb("set stop-on-solib-events 1", "run", "continue", "heapwright heap", program=KNOWN, preload=DEFAULT)
        self.assertRegex(said, "its constructors have not run yet|There is no libheapwright in this process|held for blocks")
        self.no_traceback(said)

    def test_a_record_of_another_layout(self):
        said = gdb(*STOP, "set {int}((char*)&heapwright_process_record + 16) = 99", "heapwright block in_use", program=KNOWN, preload=DEFAULT)
        self.assertRegex(said, r"libheapwright\S* writes record layout 99; this script reads layout \d+. Load the script that came with")
        self.no_traceback(said)

    def test_selects_what_was_selected(self):
        said = gdb(*STOP, "thread 2", "up", "up", "python before = (gdb.selected_thread().num, gdb.selected_frame().level())",
                   "heapwright block in_use", "heapwright block $sp",
                   "python print('same' if before == (gdb.selected_thread().num, gdb.selected_frame().level()) else 'moved')",
                   program=KNOWN, preload=DEFAULT)
        self.assertIn("\nsame\n", said)
        self.assertIn("stack of thread 2", said)


class Damaged(Case):
    """Each ends in sentences."""

    def after(self, *damage, ask, preload=DEFAULT):
        said = gdb(*STOP, *damage, "echo @@said@@\\n", *ask, program=KNOWN, preload=preload)
        self.no_traceback(said)
        return asked(said)["said"]

    def test_a_link(self):
        said = self.after("set {long}many[0] = 0x4141414141414141", "set {long}many[3998] = 0x4141414141414141",
                          ask=["heapwright block many[%d]" % i for i in (0, 1, 3998)])
        self.assertRegex(said, r"note: The (list of .*|free list of the span at 0x\w+) leads to 0x4141414141414141, which is no block of its class: "
                               r"the first word of the block at 0x\w+ was overwritten, after its free or by a write beyond the block before it")
        self.assertRegex(said, r"\d+ blocks? with the program or behind the damage, ")

    def test_a_link_of_zeros(self):
        """Is the end of a list in the default malloc, which has a count."""
        said = self.after(*("set {long}many[%d] = 0" % i for i in range(0, 4000, 100)), ask=["heapwright block many[0]"])
        self.assertRegex(said, r"note: The (list of .*|free list of the span at 0x\w+) has \d+ blocks?, and counts \d+: a free block was written to, or a "
                               r"thread is at work on the list\.")

    def test_free_blocks_behind_a_damaged_place(self):
        """They are in no list that can be followed."""
        damage = ["set {long}many[%d] = 0x4141414141414141" % i for i in range(0, 4000, 2)]
        ask = ["heapwright block many[%d]" % i for i in range(0, 200, 2)]
        said = self.after(*damage, ask=ask)
        self.assertNotRegex(said, "state    in use\n")
        self.assertIn("state    in use, or free behind the damaged place of a list\n", said)
        said = self.after(*damage, ask=ask, preload=HARDENED)
        self.assertNotRegex(said, "state    in use")
        self.assertIn("state    free, in no list: a list is damaged, or a thread is at work on the block\nseal     of a free block\n", said)

    def test_a_write_beyond_into_a_free_block(self):
        said = self.after(*("set {char[16]}((char*)many[%d] - 8) = \"AAAAAAAAAAAAAAA\"" % i for i in range(0, 4000, 200)),
                          ask=["heapwright block many[%d]" % i for i in range(0, 4000, 200)], preload=HARDENED)
        self.assertRegex(said, r"note: The .* (breaks off at|leads to) 0x\w+.*: its first word was overwritten, and so was the end of the block before it, at "
                               r"0x\w+, which has been written beyond\.")

    def test_a_scrambled_link(self):
        """Zeros, too, are no link. What is said of the first block of a span is less exact: none is before it."""
        said = self.after("set {long}many[0] = 0", "set {long}many[3998] = 0", ask=["heapwright block many[%d]" % i for i in (0, 1, 3998)], preload=HARDENED)
        self.assertRegex(said, r"note: The (list of .*|free list of the span at 0x\w+) breaks off at 0x\w+: the first word of "
                               r"(that block was written to after its free|the block at 0x\w+ was overwritten, after its free or by)")

    def test_a_circle(self):
        said = self.after("set {long}freed = (long)freed", ask=["heapwright block freed"])
        self.assertRegex(said, "state    free, in the deferred frees")
        self.assertRegex(said, r"note: The list of deferred frees of class \d+ in the cache of thread 1 .* leads in a circle, at 0x\w+: ")

    def test_the_end_of_a_block(self):
        said = self.after("set {char}((char*)in_use + 100) = 0", ask=["heapwright block in_use"], preload=HARDENED)
        self.assertRegex(said, "state    in use\nseal     overwritten: ")

    def test_a_guarded_sample(self):
        said = gdb("set environment HEAPWRIGHT_GUARD_SAMPLE 1", *STOP, "echo @@in_use@@\\n", "heapwright block (char*)in_use+7", "echo @@freed@@\\n",
                   "heapwright block freed", "echo @@behind@@\\n", "heapwright block (char*)in_use+2000", program=KNOWN, preload=DEFAULT)
        self.no_traceback(said)
        parts = asked(said)
        self.assertRegex(parts["in_use"] + parts["freed"], "span     none: a guarded sample, with pages of its own")
        self.assertRegex(parts["behind"], r"^block    0x\w+, 2,000 bytes before the address, which is [\d,]+ bytes behind its end\nsize     112 bytes\n")

    # Python in gdb finds the words of the process to damage by the script itself, and mends them again.
    EACH = """
heap = heapwright_commands.Heaps(Process()).all[0]
p = heap.p
block = Process().address_of("in_use")
inferior = gdb.selected_inferior()

def damage(at, value, size=8):
    was = bytes(inferior.read_memory(at, size))
    inferior.write_memory(at, value.to_bytes(size, "little"))
    for command in ("heapwright block freed", "heapwright block in_use", "heapwright heap", "heapwright spans"):
        try:
            print(gdb.execute(command, to_string=True))
        except gdb.error as e:
            print(e)
    inferior.write_memory(at, was)

for place in %r:
    print("@@%%s@@" %% place.replace(" ", ""))
    eval("damage(%%s)" %% place)
print("@@end@@")
gdb.execute("heapwright block in_use")
"""

    def each(self, *places):
        script = os.path.join(self.directory, "each.py")
        with open(script, "w") as file:
            file.write(self.EACH % (places,))
        said = gdb(*STOP, "python exec(open(%r).read())" % script, program=KNOWN, preload=DEFAULT)
        parts = asked(said)
        self.assertEqual(len(parts), len(set(places)) + 1, said)
        for place, answer in parts.items():
            with self.subTest(place):
                self.no_traceback(answer)
                self.assertTrue(answer)
        self.assertIn("state    in use", parts["end"])
        return parts

    def test_spans(self):
        span = "heap.span_at(block)"
        parts = self.each(span + " + p.span_start, 0x4141414141414141", span + " + p.span_start, 0", span + " + p.span_pages, 0",
                  span + " + p.span_pages, 0xFFFFFFFFFFFFFFFF", span + " + p.span_size_class, 255, 1", span + " + p.span_size_class, 0, 1",
                  span + " + p.span_state, 77, 1", span + " + p.span_state, 4, 1", span + " + p.span_state, 3, 1",
                  span + " + p.span_capacity, 0xFFFFFFFF, 4",
                  span + " + p.span_carved, 0xFFFFFFFF, 4", span + " + p.span_offset, 0xFFFF, 2", span + " + p.span_guard_pages, 255, 1",
                  span + " + p.span_free, 0x4141414141414141", span + " + p.span_free, block", span + " + p.span_owner, 0xFFFFFFFF, 4")
        for field, sentence in (("span_start,0", "no sound record of a span has the page"), ("span_pages,0", "no sound record of a span has the page"),
                                ("span_size_class,0,1", "is of class 0, which this heap does not have"), ("span_state,77,1", "in state 77, which"),
                                ("span_state,4,1", "says what cannot be"), ("span_capacity,0xFFFFFFFF,4", "do not agree"),
                                ("span_carved,0xFFFFFFFF,4", "do not agree"), ("span_offset,0xFFFF,2", "before its first block"),
                                ("span_guard_pages,255,1", "says what cannot be"), ("span_free,block", "which is no block of its class")):
            self.assertIn(sentence, parts[span + "+p." + field])

    def test_the_page_map(self):
        leaf = "heap._leaf(block >> p.leaf_shift)"
        page = "(block >> p.page_shift) % heap.leaf_pages"
        self.each("p.page_map_root + (block >> p.leaf_shift) * 8, 0x4141414141414141", "p.page_map_root + (block >> p.leaf_shift) * 8, 1",
                  "%s + %s * 4, 0xFFFFFFFF, 4" % (leaf, page), "%s + %s * 4, p.mixed_tag, 4" % (leaf, page),
                  "%s + p.leaf_spans + %s * 8, 0x4141414141414141" % (leaf, page), "%s + p.leaf_spans + %s * 8, block" % (leaf, page))

    def test_thread_caches(self):
        self.each("p.heap + p.caches_open, 0x4141414141414141", "p.heap + p.caches_open, 8",
                  "heap.caches()[0].address + p.cache_next, heap.caches()[0].address + p.cache_registered",
                  "heap.caches()[0].address + p.cache_inbox + 8 * heap.class_of(heap.tag(block)), 0xFFFFFFFFFFFFFFFF",
                  "heap.caches()[0].address + p.cache_classes + heap.class_of(heap.tag(block)) * p.cache_class_bytes + p.list_fresh, 0x4141414141414140")

    def test_the_record(self):
        places = "heap.record.places"
        self.each(*("%s + %d, 0x4141414141414141" % (places, at) for at in (0, 8)),
                  *("%s + %d, 0x%x, 4" % (places, at, value) for at in range(16, 340, 4) for value in (0x41414141, 0, 1, 0xFFFFFFFF)))
        self.each("heap.record.address + 1264, 0x4141414141414141", "heap.record.address + 152, 0x4141414141414141")


class Kit(Case):
    def test_pretty_printers(self):
        said = asked(gdb("break all_are_there", "run", "up", *(line for name in ("asked", "scratch", "nodes", "own", "figures.mapped", "&asked", "words", "orders")
                                                             for line in ("echo @@%s@@\\n" % name, "print " + name)), program=KIT))
        value = {name: text.split(" = ", 1)[-1] for name, text in said.items()}
        self.assertEqual(value["asked"], "96 bytes, aligned to 32")
        self.assertRegex(value["scratch"], r"^arena: 10\.9 KiB in use of 12\.0 KiB, in 2 chunks$")
        self.assertEqual(value["nodes"], "pool of blocks of 48 bytes: 1365 in 1 chunk, 70 free, 1195 of the last chunk never given out")
        self.assertEqual(value["orders"], "object_pool of blocks of 16 bytes: 0 in 0 chunks, 0 free, 0 of the last chunk never given out")
        self.assertEqual(value["own"], "heap orders")
        self.assertEqual(value["figures.mapped"], "4096")
        self.assertEqual(value["words"], "arena: 0 B in use of 256 B, in 0 chunks")
        self.assertIn("(heapwright::layout *)", value["&asked"])

    def test_values_that_are_none(self):
        """Of memory that nothing has initialised."""
        damage = [line for name in ("asked", "scratch", "nodes", "orders", "words") for line in
                  ("python gdb.selected_inferior().write_memory(int(gdb.parse_and_eval('&%s')), b'\\xc5' * int(gdb.parse_and_eval('sizeof %s')))" % (name, name),
                   "echo @@%s@@\\n" % name, "print " + name)]
        for name, answer in asked(gdb("break all_are_there", "run", "up", *damage, program=KIT)).items():
            self.assertRegex(answer, r"<not initialised, or damaged>|<cannot be read: Cannot access memory at address 0xc5", name)


class Loading(Case):
    def test_is_loaded_beside_an_installed_library(self):
        """gdb looks for LIBRARY-gdb.py in its directories for the path of the library."""
        prefix = os.path.join(self.directory, "prefix")
        installed = subprocess.run(["cmake", "--install", os.path.dirname(LIBRARIES), "--prefix", prefix, "--component", "library"],
                                   capture_output=True, text=True)
        if installed.returncode != 0:
            self.skipTest("the tree is not built as a whole")
        libraries = [os.path.join(d, n) for d, _, names in os.walk(prefix) for n in names if re.fullmatch(r"libheapwright\.so\.\d+\.\d+\.\d+", n)]
        self.assertEqual(len(libraries), 1)
        said = subprocess.run([GDB, "-nx", "-batch", "-iex", "add-auto-load-safe-path " + prefix, "-iex",
                               "add-auto-load-scripts-directory %s/share/gdb/auto-load" % prefix, "-iex", "set debuginfod enabled off", "-iex",
                               "set startup-with-shell off", "-ex", "set environment LD_PRELOAD " + libraries[0], *(w for c in STOP for w in ("-ex", c)),
                               "-ex", "heapwright block in_use", KNOWN], capture_output=True, text=True)
        self.assertIn("state    in use", said.stdout, said.stderr)

    def test_the_script_knows_the_record(self):
        """The order of its names is that of the headers."""
        sys.path.insert(0, os.path.dirname(SCRIPT))
        from heapwright_heap import FIGURES, PLACES, SAMPLES
        from heapwright_record import RECORD_FIELDS

        def fields(header, struct):
            with open(os.path.join(support.ROOT, "include", "heapwright", *header.split("/"))) as file:
                body = re.search(r"^struct %s \{$(.*?)^\};$" % struct, file.read(), re.S | re.M)[1]
            return re.findall(r"^  (?!static)(?:const )?[\w:]+[*]* (\w+)(?:\[\w+\])?(?: = [^;]*)?;", body, re.M)
        self.assertEqual(fields("heap/heap_places.hpp", "heap_places"), PLACES)
        record = [f for f in fields("malloc/process_record.hpp", "process_record") if f != "values"]
        values = fields("malloc/process_record.hpp", "recipe_values")
        at = RECORD_FIELDS.index("last_span_bytes")
        self.assertEqual(RECORD_FIELDS[:at] + RECORD_FIELDS[at + len(values):], record)
        self.assertEqual(RECORD_FIELDS[at:at + len(values)], values)
        self.assertEqual(fields("malloc/process_record.hpp", "guarded_sample_places"), SAMPLES)
        self.assertEqual(fields("heap/figures.hpp", "heap_figures"), FIGURES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
