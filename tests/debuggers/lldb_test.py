#!/usr/bin/env python3
"""debuggers/heapwright_lldb.py in a real lldb: what it says of known blocks, on live processes and core files, and of what is not there, not
known, or damaged. What the commands say in general is tested in gdb (gdb_test.py): here, what lldb has to know for it.

Usage: lldb_test.py path/to/lib path/to/programs path/to/lldb path/to/gdb [unittest options]
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
from support import without_names, words_of

LIBRARIES, PROGRAMS, LLDB, GDB = (os.path.abspath(p) for p in sys.argv[1:5])
SCRIPT = support.script("heapwright_lldb.py")
KNOWN, STATIC, KIT = support.programs(PROGRAMS)
DEFAULT, HARDENED = support.libraries(LIBRARIES)
STOP = ["breakpoint set -n all_are_there", "run", "up"]

# Debian's lldb 14 looks for its own modules of Python where they are not.
MODULES = glob.glob(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(LLDB))), "lib", "python3.*", "dist-packages"))


def lldb(*commands, program=None, core=None, preload=None):
    """[(command, what it says)]"""
    with tempfile.NamedTemporaryFile("w", suffix=".lldb") as file:
        if preload:
            file.write("settings set target.env-vars LD_PRELOAD=%s\n" % preload)
        file.write("\n".join(commands) + "\n")
        file.flush()
        words = [LLDB, "--no-lldbinit", "--batch", "-o", "settings set use-color false", "-o", "command script import " + SCRIPT,
                 "-o", "command source --stop-on-error false " + file.name]
        words += ["--core", core] if core else []
        words += [program] if program else []
        environment = {**os.environ, "LC_ALL": "C", "HEAPWRIGHT_GDB_DEBUG": "", "PYTHONPATH": ":".join(MODULES),
                       "PATH": os.path.dirname(LLDB) + ":" + os.environ["PATH"]}  # Python looks there for the python3 that it belongs to
        said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env=environment).stdout
    parts = re.split(r"^\(lldb\) (.*)\n", said, flags=re.M)
    return list(zip(parts[1::2], (p.strip() for p in parts[2::2])))


def asked(said):
    return {command.replace("heapwright block ", "", 1): answer for command, answer in said if command.startswith("heapwright")}


def questions(names):
    return ["heapwright block " + name for name in names]


class Case(support.Case):
    def core_of(self, program, preload):
        """gdb writes it: this lldb cannot, on Linux."""
        core = self.core_path()
        preloaded = ["-ex", "set environment LD_PRELOAD " + preload] if preload else []
        subprocess.run([GDB, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off", *preloaded, "-ex", "break all_are_there",
                        "-ex", "run", "-ex", "generate-core-file " + core, program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        self.assertTrue(os.path.exists(core))
        return core


class Blocks:
    preload = DEFAULT
    program = KNOWN
    place = "deferred frees"
    NAMES = ("in_use", "(char*)in_use+13", "freed", "large", "(char*)large+500000", "of_worker", "freed_by_worker", "of_ended", "on_stack")

    def library(self):
        copy = os.path.join(self.directory, os.path.basename(self.preload))
        shutil.copy(os.path.realpath(self.preload), copy)
        subprocess.run(["strip", "--strip-all", copy], check=True)
        return copy

    def test_of_a_live_process(self):
        library = self.library() if self.preload else None
        self.check(asked(lldb(*STOP, *questions(self.NAMES), program=self.program, preload=library)))

    def test_of_a_core_file_whose_library_is_gone(self):
        library = self.library() if self.preload else None
        core = self.core_of(self.program, support.without_guards(PROGRAMS, library) if library else None)
        self.check(asked(lldb("up", *questions(self.NAMES), program=self.program, core=core)))
        if library:
            os.remove(library)
            self.check(asked(lldb("up", *questions(self.NAMES), program=self.program, core=core)))

    def check(self, said):
        says = {name: words_of(answer) for name, answer in said.items()}
        self.assertEqual(says["in_use"]["state"], "in use", said)
        self.assertRegex(says["in_use"]["size"], r"^112 bytes, class \d+$")
        self.assertRegex(says["in_use"]["owner"], r"^the cache of thread 1 \(LWP \d+")
        self.assertEqual(says["(char*)in_use+13"]["block"], says["in_use"]["block"] + ", 13 bytes before the address")
        self.assertRegex(says["freed"]["state"], r"^free, in the %s of the cache of thread 1 " % self.place)
        self.assertEqual(says["large"]["state"], "in use")
        self.assertEqual(says["(char*)large+500000"]["block"], says["large"]["block"] + ", 500,000 bytes before the address")
        self.assertRegex(says["of_worker"]["owner"], r"^the cache of thread 2 \(LWP \d+")
        self.assertRegex(says["freed_by_worker"]["state"], r"^free, .*in the (outbox|quarantine) of the cache of thread 2 ")
        self.assertEqual(says["of_ended"]["owner"].split(":")[0], "thread cache 3 (parked")
        self.assertIn("is no address of the heap. It lies in the stack of thread 1.", said["on_stack"])


class Default(Blocks, Case):
    pass


class Hardened(Blocks, Case):
    preload = HARDENED
    place = "quarantine"

    def test_seals(self):
        said = asked(lldb(*STOP, "heapwright block in_use", "expression -- *((char*)in_use + 100) = 0", "heapwright block (char*)in_use+1", program=KNOWN,
                          preload=HARDENED))
        self.assertEqual(words_of(said["in_use"])["seal"], "of a live block: 100 bytes asked for by malloc")
        self.assertRegex(words_of(said["(char*)in_use+1"])["seal"], "^overwritten: ")


class Static(Blocks, Case):
    preload = None
    program = STATIC


class Commands(Case):
    def test_heap_and_spans_as_gdb_has_them(self):
        core = self.core_of(KNOWN, DEFAULT)
        said = asked(lldb("heapwright heap", "heapwright spans", "heapwright spans large", "heapwright spans 7", program=KNOWN, core=core))
        gdb = subprocess.run([GDB, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "source " + support.script("heapwright_gdb.py"),
                              *(w for c in ("heapwright heap", "echo @@\\n", "heapwright spans", "echo @@\\n", "heapwright spans large", "echo @@\\n",
                                            "heapwright spans 7") for w in ("-ex", c)), KNOWN, core], capture_output=True, text=True, timeout=300).stdout
        heap, spans, large, of_class = (part.strip() for part in gdb.split("@@\n"))
        self.assertIn("held for blocks", said["heapwright heap"])
        self.assertTrue(heap.endswith(said["heapwright heap"]), heap + "\n" + said["heapwright heap"])
        answers = [without_names(said["heapwright spans" + what]) for what in ("", " large", " 7")]
        self.assertEqual(answers, [spans, large, of_class])

    def test_without_a_process(self):
        said = asked(lldb("heapwright block 1", "heapwright heap", "heapwright spans", program=KNOWN))
        for answer in said.values():
            self.assertEqual(answer, "error: There is no process and no core file. Start the program (run), or load a core file (target create --core FILE).")
        self.assertEqual(len(said), 3)

    def test_another_malloc(self):
        said = asked(lldb(*STOP, "heapwright block in_use", program=KNOWN))
        self.assertIn("There is no libheapwright in this process: its malloc is another one, or ", said["in_use"])

    def test_what_is_no_address(self):
        names = ["", "no_such_name", "has_worked", "0", "-1", "main", "&large", "many", '"abc"', "0x123456789000", "1.5"]
        said = asked(lldb(*STOP, *(q.strip() for q in questions(names)), "heapwright", "heapwright nonsense", "heapwright spans 999", "heapwright heap 1",
                          program=KNOWN, preload=DEFAULT))
        self.assertEqual(said["heapwright block"], "error: Which address? Usage: heapwright block EXPRESSION")
        self.assertEqual(said["no_such_name"], "error: lldb cannot evaluate no_such_name: use of undeclared identifier 'no_such_name'")
        self.assertRegex(said["has_worked"], r"error: has_worked is a .*, not an address. Give a pointer, or &\(has_worked\).")
        self.assertEqual(said["0"], "0x0 is no address of the heap. There is no memory at it.")
        self.assertEqual(said["-1"], "0xffffffffffffffff is no address of the heap. There is no memory at it.")
        self.assertRegex(said["main"], r"is no address of the heap. It is main in section \.text of .*/known_blocks\.")
        self.assertRegex(said["&large"], r"is no address of the heap. It is large in section \.bss of ")
        self.assertRegex(said["many"], r"is no address of the heap. It is many in section \.bss of ")
        self.assertEqual(said['"abc"'], 'error: lldb would have to run code in the program to evaluate "abc". Let `expression -- "abc"` do that, and give the `$0` '
                                         'that it prints.')
        self.assertEqual(said["0x123456789000"], "0x123456789000 is no address of the heap. There is no memory at it.")
        self.assertIn("1.5 is a double, not an address.", said["1.5"])
        self.assertRegex(said["heapwright"], "block -- Describe the block of the heap that an address belongs to.")
        self.assertIn("invalid command 'heapwright nonsense'", said["heapwright nonsense"])
        self.assertIn("There is no class 999.", said["heapwright spans 999"])
        self.assertIn("takes no argument", said["heapwright heap 1"])

    def test_a_damaged_link(self):
        said = asked(lldb(*STOP, "expression -- *(long*)many[0] = 0x4141414141414141", "expression -- *(long*)many[3998] = 0x4141414141414141",
                          *questions(["many[0]", "many[1]", "many[3998]"]), program=KNOWN, preload=DEFAULT))
        self.assertRegex("\n".join(said.values()), r"note: The (list of .*|free list of the span at 0x\w+) leads to 0x4141414141414141, which is no "
                                                   r"block of its class: the first word of the block at 0x\w+ was overwritten, after its free or by")

    def test_is_loaded_twice(self):
        said = dict(lldb("command script import " + SCRIPT, "help heapwright block", "help heapwright spans"))
        self.assertEqual(said["command script import " + SCRIPT], "")
        self.assertIn("Usage: heapwright block EXPRESSION", said["help heapwright block"])
        self.assertIn("Usage: heapwright spans [CLASS] [all]", said["help heapwright spans"])

    def test_code_that_would_run_in_the_program(self):
        said = dict(lldb(*STOP, "heapwright block function_of_program()", "expression -- function_of_program()", "heapwright block $0", program=KNOWN,
                         preload=DEFAULT))
        self.assertIn("lldb would have to run code in the program", said["heapwright block function_of_program()"])
        self.assertIn("state    in use", said["heapwright block $0"])

    def test_selects_what_was_selected(self):
        said = lldb(*STOP, "thread select 2", "frame select 1", "heapwright block of_worker", "frame info", program=KNOWN, preload=DEFAULT)
        self.assertIn("state    in use", dict(said)["heapwright block of_worker"])
        self.assertRegex(dict(said)["frame info"], "^frame #1: ")

    def test_summaries_of_the_kit(self):
        names = ("asked", "scratch", "nodes", "own", "figures.mapped", "&asked", "words", "orders")
        said = dict(lldb(*STOP, *("print " + name for name in names), program=KIT))
        value = {name: said["print " + name].split(" = ", 1)[-1] for name in names}
        self.assertEqual(value["asked"], "96 bytes, aligned to 32")
        self.assertEqual(value["scratch"], "arena: 10.9 KiB in use of 12.0 KiB, in 2 chunks")
        self.assertEqual(value["nodes"], "pool of blocks of 48 bytes: 1365 in 1 chunk, 70 free, 1195 of the last chunk never given out")
        self.assertEqual(value["orders"], "object_pool of blocks of 16 bytes: 0 in 0 chunks, 0 free, 0 of the last chunk never given out")
        self.assertEqual(value["own"], "heap orders")
        self.assertEqual(value["figures.mapped"], "4096")
        self.assertEqual(value["words"], "arena: 0 B in use of 256 B, in 0 chunks")
        self.assertRegex(value["&asked"], "^0x[0-9a-f]+$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
