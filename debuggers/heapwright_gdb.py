"""Commands and pretty printers for gdb: `source heapwright_gdb.py`, or installed where gdb finds it by itself. docs/debuggers.md describes them.

    heapwright block EXPRESSION    what the heap knows of an address
    heapwright heap                how much memory the heap has, and where
    heapwright spans [CLASS]       its spans

They work on running processes and core files, on any build of libheapwright, stripped ones too: the process says itself where the parts of its
heap lie (heapwright_record.py). Only the pretty printers need debugging information, that of the program.
"""
import contextlib
import os
import re
import sys

import gdb
import gdb.printing

# Not __file__: a script that sources this one keeps its own there.
sys.path.insert(0, os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))
sys.dont_write_bytecode, _writes_bytecode = True, sys.dont_write_bytecode
import heapwright_commands  # noqa: E402
import heapwright_values  # noqa: E402
from heapwright_record import WORD, Problem, Unreadable  # noqa: E402
sys.dont_write_bytecode = _writes_bytecode
del sys.path[0]


def text_of(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error:
        return ""


def mappings():
    """[(begin, end, offset, path)], as the system or the core file has them."""
    found = []
    for line in text_of("info proc mappings").splitlines():
        m = re.match(r"\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)(?:\s+[-rwxsp]{4})?\s*(.*)$", line)
        if m:
            found.append((int(m[1], 16), int(m[2], 16), int(m[3], 16), m[4].strip()))
    return found


def sections():
    for line in text_of("info files").splitlines():
        m = re.match(r"\s*0x([0-9a-f]+) - 0x([0-9a-f]+) is (\S+)(?: in (.*))?$", line)
        if m:
            yield int(m[1], 16), int(m[2], 16), m[3], m[4]


def stopped_threads():
    """Selects each, and at the end what was selected."""
    selected = gdb.selected_thread()
    frame = gdb.selected_frame() if selected is not None and selected.is_valid() and not selected.is_running() else None
    try:
        for thread in gdb.selected_inferior().threads():
            if thread.is_valid() and not thread.is_running():
                thread.switch()
                yield thread
    finally:
        if selected is not None and selected.is_valid():
            selected.switch()
            if frame is not None and frame.is_valid():
                frame.select()


def register(names):
    for name in names:
        try:
            return int(gdb.parse_and_eval(name)) & WORD
        except (gdb.error, ValueError, TypeError):
            continue
    return None


@contextlib.contextmanager
def no_calls():
    """Nothing runs in the program meanwhile: other threads would go on, and gdb calls malloc to make room for a text."""
    was_allowed = gdb.parameter("may-call-functions")
    gdb.execute("set may-call-functions off")
    try:
        yield
    finally:
        gdb.execute("set may-call-functions %s" % ("on" if was_allowed else "off"))


def address_in_program(value):
    """Of an array or a function; None: it is gdb's own, and not in the memory of the program."""
    try:
        return value.address
    except gdb.error:
        return None


class Process:
    """What gdb knows of it, as heapwright_commands asks for it."""
    name = "gdb"
    errors = (gdb.error,)
    THREAD_POINTERS = ("$fs_base", "$tpidr", "$tpidr_el0")

    @property
    def is_core(self):
        return "core dump file" in text_of("info files")

    def check(self):
        inferior = gdb.selected_inferior()
        if inferior.pid == 0 or not inferior.threads():
            raise Problem("There is no process and no core file. Start the program (run), or load a core file (core-file FILE).")
        if any(thread.is_running() for thread in inferior.threads()):
            raise Problem("The process is running. Stop it first (interrupt).")

    def read_memory(self, address, size):
        try:
            return gdb.selected_inferior().read_memory(address, size)
        except (gdb.error, OverflowError, ValueError):
            raise Unreadable(address) from None

    def images(self):
        return [(begin, path) for begin, _, offset, path in mappings() if offset == 0 and path.startswith("/")]

    def address_of_record(self):
        try:
            return int(gdb.parse_and_eval("(unsigned long) &heapwright_process_record"))
        except gdb.error:
            return None

    def threads(self):
        for thread in stopped_threads():
            pointer = register(self.THREAD_POINTERS)
            if pointer is not None:
                words = ("LWP %d" % thread.ptid[1] if thread.ptid[1] else "", thread.name or "")
                yield pointer, "%d (%s)" % (thread.num, " ".join(filter(None, words)))

    def thread_of_stack(self, address):
        parts = [(b, e) for b, e, _, _ in mappings()] + [(b, e) for b, e, name, _ in sections() if name.startswith("load")]
        begin, end = next(((b, e) for b, e in parts if b <= address < e), (0, 0))
        for thread in stopped_threads():
            if begin <= (register(["$sp"]) or 0) < end:
                return thread.num
        return None

    def place_of(self, address):
        symbol = text_of("info symbol %#x" % address).strip()
        if symbol and not symbol.startswith("No symbol"):
            return "It is %s." % symbol
        for begin, end, name, path in sections():
            if begin <= address < end and not name.startswith("load"):
                return "It lies in the section %s of %s." % (name, path or "the program")
        for begin, end, _, path in mappings():
            if begin <= address < end:
                return "It lies in the mapping %#x-%#x%s." % (begin, end, " of " + path if path else ", which belongs to no file")
        return None

    def address_of(self, expression):
        with no_calls():
            return self._address_of(expression)

    def _address_of(self, expression):
        try:
            value = gdb.parse_and_eval(expression)
            kind = value.type.strip_typedefs()
            while kind.code in (gdb.TYPE_CODE_REF, getattr(gdb, "TYPE_CODE_RVALUE_REF", -1)):
                value = value.referenced_value()
                kind = value.type.strip_typedefs()
            if kind.code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC):
                value = address_in_program(value)
                if value is None:
                    raise Problem("%s is not in the memory of the program: it has no address." % expression)
            elif kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_FLT):
                raise Problem("%s is a %s, not an address. Give a pointer, or &(%s)." % (expression, kind, expression))
            return int(value) & WORD
        except gdb.error as e:
            if "may-call-functions" in str(e):
                raise Problem("gdb would have to run code in the program to evaluate %s. Let `print %s` do that, and give the `$1` that it prints." % (expression, expression)) from None
            raise Problem("gdb cannot evaluate %s: %s" % (expression, str(e).rstrip("."))) from None

    def write(self, line):
        print(line)


class Prefix(gdb.Command):
    """What libheapwright knows of the memory of the program."""

    def __init__(self):
        super().__init__("heapwright", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError("There is no command heapwright %s. `help heapwright` lists them." % argument.split()[0])
        gdb.execute("help heapwright")


class Command(gdb.Command):
    def __init__(self, name, command):
        self.__doc__ = command.__doc__
        self._command = command
        super().__init__("heapwright " + name, gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION if name == "block" else gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        problem = heapwright_commands.run(self._command, Process(), argument)
        if problem is not None:
            raise gdb.GdbError(problem)


class Value:
    """A gdb.Value, as heapwright_values asks for it."""

    def __init__(self, value):
        self._value = value

    def __getitem__(self, name):
        return Value(self._value[name])

    def __int__(self):
        return int(self._value)

    def members(self):
        return [Value(self._value[field]) for field in self._value.type.strip_typedefs().fields() if not field.is_base_class]

    def target(self):
        return Value(self._value.dereference())

    @property
    def address(self):
        return int(self._value.address)

    @property
    def size(self):
        return self._value.type.sizeof

    @property
    def target_size(self):
        return self._value.type.target().sizeof

    def text(self):
        return self._value.string("utf-8", "replace", 100)


class Printer:
    def __init__(self, printer, value):
        self._printer, self._value = printer, value

    def to_string(self):
        return heapwright_values.safe(self._printer, Value(self._value), (gdb.error,))


def add_printers():
    all_ = gdb.printing.RegexpCollectionPrettyPrinter("heapwright")
    for name, pattern, printer in heapwright_values.PRINTERS:
        all_.add_printer(name, pattern, lambda value, of=printer: Printer(of, value))
    gdb.printing.register_pretty_printer(None, all_, replace=True)


Prefix()
for _name, _command in heapwright_commands.COMMANDS.items():
    Command(_name, _command)
add_printers()
