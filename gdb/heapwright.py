"""Commands and pretty printers for gdb: `source heapwright.py`, or installed where gdb finds it by itself. docs/gdb.md describes them.

    heapwright block EXPRESSION    what the heap knows of an address
    heapwright heap                how much memory the heap has, and where
    heapwright spans [CLASS]       its spans

They work on running processes and core files, on any build of libheapwright, stripped ones too: the process says itself where the parts of its
heap lie (heapwright_record.py). Only the pretty printers need debugging information, that of the program.
"""
import os
import re
import sys

import gdb
import gdb.printing

# Not __file__: a script that sources this one keeps its own there.
sys.path.insert(0, os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))
sys.dont_write_bytecode, _writes_bytecode = True, sys.dont_write_bytecode
from heapwright_describer import Describer  # noqa: E402
from heapwright_heap import NOT_IN_CORE, Heap  # noqa: E402
from heapwright_record import WORD, Memory, Problem, Record, Unreadable, record_of_image, show_bytes, show_count  # noqa: E402
sys.dont_write_bytecode = _writes_bytecode
del sys.path[0]

MOST_SPANS = 50
MOST_CLASSES = 10


# --- what gdb knows of the process

def read_memory(address, size):
    try:
        return gdb.selected_inferior().read_memory(address, size)
    except (gdb.error, OverflowError, ValueError):
        raise Unreadable(address) from None


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


def check_process():
    inferior = gdb.selected_inferior()
    if inferior.pid == 0 or not inferior.threads():
        raise Problem("There is no process and no core file. Start the program (run), or load a core file (core-file FILE).")


def records(memory):
    """The records of all mallocs of ours in the process."""
    check_process()
    found, problems, seen = [], [], set()

    def add(address, path):
        if address is None or address in seen:
            return
        seen.add(address)
        try:
            found.append(Record(memory, address, path))
        except Problem as e:
            problems.append(e)
        except Unreadable as e:
            problems.append(Problem("The record of %s, at %#x, is not in the core file or cannot be read." % (path, e.address)))
    for begin, _, offset, path in mappings():
        if offset == 0 and path.startswith("/"):
            add(record_of_image(memory, begin), path)
    if not found:
        try:
            add(int(gdb.parse_and_eval("(unsigned long) &heapwright_process_record")), "the program")
        except gdb.error:
            pass
    if not found:
        raise problems[0] if problems else Problem(
            "There is no libheapwright in this process: its malloc is another one. `heapwright run PROGRAM` starts a program on it.")
    begun = [r for r in found if r.has_begun()]
    if not begun:
        raise Problem("%s is loaded, but its constructors have not run yet. Let the program run on to main." % found[0].path)
    return begun


class Threads:
    """Which gdb thread has which cache."""
    POINTERS = ("$fs_base", "$tpidr", "$tpidr_el0")  # to a thread's storage

    def __init__(self, record):
        self._names = {}
        inferior = gdb.selected_inferior()
        selected = gdb.selected_thread()
        frame = gdb.selected_frame() if selected is not None and selected.is_valid() and not selected.is_running() else None
        try:
            for thread in inferior.threads():
                if not thread.is_valid() or thread.is_running():
                    continue
                thread.switch()
                pointer = self._pointer()
                if pointer is None:
                    continue
                try:
                    cache = record.memory.u64(pointer + record.cache_from_thread & WORD)
                except Unreadable:
                    continue
                self._names[cache] = "thread %d (%s)" % (thread.num, " ".join(filter(None, ("LWP %d" % thread.ptid[1] if thread.ptid[1] else "",
                                                                                            thread.name or ""))))
        finally:
            if selected is not None and selected.is_valid():
                selected.switch()
                if frame is not None and frame.is_valid():
                    frame.select()

    def _pointer(self):
        for name in self.POINTERS:
            try:
                return int(gdb.parse_and_eval(name)) & WORD
            except (gdb.error, ValueError, TypeError):
                continue
        return None

    def name_of(self, cache):
        if cache.address in self._names:
            return "the cache of " + self._names[cache.address]
        what = {"parked": "parked: its thread has ended", "idle": "idle: its thread has ended",
                "borrowed": "which threads without a cache borrow"}.get(cache.state, "of a thread that gdb does not know")
        return "thread cache %d (%s)" % (cache.id, what)


class Heaps:
    def __init__(self):
        self.memory = Memory(read_memory)
        is_core = "core dump file" in text_of("info files")
        self.all = [Heap(r, is_core) for r in records(self.memory)]

    def describers(self):
        for heap in self.all:
            yield Describer(heap, Threads(heap.record).name_of)

    def print_notes(self):
        for heap in self.all:
            for note in dict.fromkeys(heap.notes):
                print("note: " + note)


# --- an address that is not the heap's

def sections():
    for line in text_of("info files").splitlines():
        m = re.match(r"\s*0x([0-9a-f]+) - 0x([0-9a-f]+) is (\S+)(?: in (.*))?$", line)
        if m:
            yield int(m[1], 16), int(m[2], 16), m[3], m[4]


def stack_of(address):
    """The thread whose stack has the address, or None."""
    parts = [(b, e) for b, e, _, _ in mappings()] + [(b, e) for b, e, name, _ in sections() if name.startswith("load")]
    part = next(((b, e) for b, e in parts if b <= address < e), None)
    if part is None:
        return None
    selected = gdb.selected_thread()
    frame = gdb.selected_frame() if selected is not None and not selected.is_running() else None
    try:
        for thread in gdb.selected_inferior().threads():
            if thread.is_running():
                continue
            thread.switch()
            if part[0] <= int(gdb.parse_and_eval("(unsigned long) $sp")) < part[1]:
                return thread.num
    except gdb.error:
        pass
    finally:
        if selected is not None:
            selected.switch()
            if frame is not None and frame.is_valid():
                frame.select()
    return None


def what_else(address):
    thread = stack_of(address)
    if thread is not None:
        return "It lies in the stack of thread %d." % thread
    symbol = text_of("info symbol %#x" % address).strip()
    named = [(name, path) for b, e, name, path in sections() if b <= address < e and not name.startswith("load")]
    if symbol and not symbol.startswith("No symbol"):
        return "It is %s." % symbol
    if named:
        name, path = named[0]
        return "It lies in the section %s of %s." % (name, path or "the program")
    for begin, end, _, path in mappings():
        if begin <= address < end:
            return "It lies in the mapping %#x-%#x%s." % (begin, end, " of " + path if path else ", which belongs to no file")
    try:
        read_memory(address, 1)
    except Unreadable:
        return "There is no memory at it."
    return "gdb does not know what it is."


def address_in_program(value):
    """Of an array or a function; None: it is gdb's own, and not in the memory of the program."""
    # gdb would call malloc there to make room for it.
    was_allowed = gdb.parameter("may-call-functions")
    gdb.execute("set may-call-functions off")
    try:
        return value.address
    except gdb.error:
        return None
    finally:
        gdb.execute("set may-call-functions %s" % ("on" if was_allowed else "off"))


def address_of(expression):
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
        raise Problem("gdb cannot evaluate %s: %s" % (expression, str(e).rstrip("."))) from None


# --- the commands

class Command(gdb.Command):
    """Whatever happens, the user gets a sentence."""

    def invoke(self, argument, from_tty):
        try:
            self.run(argument.strip())
        except Problem as e:
            raise gdb.GdbError(str(e))
        except Unreadable as e:
            raise gdb.GdbError("The memory at %#x cannot be read: the core file does not have it, or the heap's records are damaged." % e.address)
        except gdb.error as e:
            raise gdb.GdbError("gdb says: %s" % e)
        except gdb.GdbError:
            raise
        except Exception as e:  # a mistake of this script, or records that it should have refused
            if os.environ.get("HEAPWRIGHT_GDB_DEBUG"):
                raise
            raise gdb.GdbError("The heap's records make no sense to this script (%s: %s). Set HEAPWRIGHT_GDB_DEBUG=1 to see where."
                               % (type(e).__name__, e))


class Prefix(gdb.Command):
    """What libheapwright knows of the memory of the program."""

    def __init__(self):
        super().__init__("heapwright", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Block(Command):
    """Describe the block of the heap that an address belongs to.
Usage: heapwright block EXPRESSION
The block's beginning, size and class, its span, the thread cache that owns it, and whether it is in use, free (and where), or was never
given out. EXPRESSION is any expression of gdb whose value is an address."""

    def __init__(self):
        super().__init__("heapwright block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def run(self, argument):
        if not argument:
            raise Problem("Which address? Usage: heapwright block EXPRESSION")
        check_process()
        address = address_of(argument)
        heaps = Heaps()
        for describer in heaps.describers():
            lines = describer.block(address)
            if lines is not None:
                print("\n".join(lines))
                break
        else:
            print("%#x is no address of the heap. %s" % (address, what_else(address)))
        heaps.print_notes()


class HeapCommand(Command):
    """Say how much memory the heap has, and where it is, with the classes that have most.
Usage: heapwright heap"""

    def __init__(self):
        super().__init__("heapwright heap", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def run(self, argument):
        heaps = Heaps()
        for heap in heaps.all:
            self._print(heap)
        heaps.print_notes()

    @staticmethod
    def _print(heap):
        r, f = heap.record, heap.figures()
        print("library  %s\nversion  %s (%s)\nrecipe   %s\noptions  %s\nthreads  %d now, %d ever\n" % (
            r.path, r.version, r.build, r.recipe_name(), r.options or "all at their defaults", f["threads"], f["threads_total"]))
        span_pages = f["spans"] // r.page_bytes if r.page_bytes else 0
        resident = max(f["metadata"] - f["page_map"], 0) + min(span_pages * r.page_map_bytes_per_page, f["page_map"])
        for meaning, value in (("held for blocks", f["mapped"]), ("  in spans of small blocks", f["spans"]), ("  in large blocks", f["large"]),
                               ("  free, not given back", f["free_resident"]), ("  free, given back or new", f["free_decommitted"]),
                               ("reserved for the heap's records", f["metadata"]), ("  of these in memory, about", resident)):
            print("%-32s%10s" % (meaning, show_bytes(value)))
        print("Peak %s held; %s given back to the system since the start" % (show_bytes(f["mapped_peak"]), show_bytes(f["decommitted_total"])))
        classes = sorted((c for c in heap.class_figures() if c[3]), key=lambda c: -c[3])
        if not classes:
            return
        print("\nclass       block     in spans   allocated    blocks")
        for c, size, outside, span_bytes in classes[:MOST_CLASSES]:
            print("%5d  %10s  %11s  %10s  %8s" % (c, show_bytes(size), show_bytes(span_bytes), show_bytes(outside * size), "{:,}".format(outside)))
        rest = classes[MOST_CLASSES:]
        if rest:
            print("and %s with %s in spans" % (show_count(len(rest), "class") if len(rest) == 1 else "%d classes" % len(rest),
                                               show_bytes(sum(c[3] for c in rest))))
        print("Allocated blocks are with the program or in thread caches.")


class Spans(Command):
    """List the spans of the heap, by address.
Usage: heapwright spans [CLASS]
CLASS is the number of a class, or one of: large, free, mixed."""

    def __init__(self):
        super().__init__("heapwright spans", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def run(self, argument):
        heaps = Heaps()
        for describer in heaps.describers():
            self._print(describer, argument)
        heaps.print_notes()

    def _print(self, describer, argument):
        heap = describer.heap
        p = heap.p
        if not (argument in ("", "large", "free", "mixed") or (argument.isdigit() and 0 < int(argument) < p.classes_end)):
            raise Problem("There is no class %s. Give a number from 1 to %d, or large, free or mixed." % (argument, p.classes_end - 1))

        def class_of(s):
            if s.state == p.state_cut:
                return s.size_class
            tag = heap.tag(s.start) if s.state == p.state_large else 0
            return heap.class_of(tag) if tag not in (0, p.large_tag) else 0

        def is_meant(s):
            if argument == "":
                return True
            if argument.isdigit():
                return class_of(s) == int(argument)
            return s.state in {"large": (p.state_large,), "mixed": (p.state_mixed,),
                               "free": (p.state_free_resident, p.state_free_decommitted, p.state_free_large)}[argument]
        shown, more, more_bytes = 0, 0, 0
        for s in heap.for_each_span():
            if not is_meant(s):
                continue
            if shown == MOST_SPANS:
                more += 1
                more_bytes += s.bytes
                continue
            if shown == 0:
                print("%-18s %10s  class  %s" % ("span", "bytes", "state"))
            shown += 1
            c = class_of(s)
            what = describer.state_name(s)
            if s.state == p.state_cut:
                what += ": %s allocated, %d free, %d never given out" % (
                    show_count(s.live, "block"), max(s.carved - s.live, 0), max(s.capacity - s.carved, 0))
                if s.place == p.place_attached:
                    what += "; attached to cache %d" % (s.owner >> p.owner_shift)
            print("%#-18x %10s  %5s  %s" % (s.start, show_bytes(s.bytes), c or "-", what))
        if shown == 0 and heap.is_core and not argument:
            raise Problem(NOT_IN_CORE)
        if shown == 0:
            print("There are no such spans." if argument else "There are no spans.")
        if more:
            print("and %s with %s, left out: `heapwright spans CLASS` lists those of a class" % (show_count(more, "span"), show_bytes(more_bytes)))


# --- pretty printers for the kit

MOST_CHUNKS = 10000


class LayoutPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "%s, aligned to %d" % (show_count(int(self.value["size"]), "byte"), int(self.value["alignment"]))


class FigurePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return str(_atomic(self.value["value_"]))


def _atomic(atomic):
    """std::atomic of an integer of libstdc++: its base has _M_i."""
    for field in atomic.type.strip_typedefs().fields():
        if field.name == "_M_i":
            return int(atomic["_M_i"])
        if field.is_base_class:
            return _atomic(atomic.cast(field.type))
    raise gdb.error("not libstdc++")


def chunks(first, link):
    seen = set()
    while first and int(first) not in seen and len(seen) < MOST_CHUNKS:
        seen.add(int(first))
        yield first.dereference()
        first = first[link]


class ArenaPrinter:
    """What arena::stats says."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        v = self.value
        cursor, newest = int(v["cursor_"]), v["newest_"]
        buffer_begin, buffer_bytes = self._buffer(v["buffer_"])
        used_of_buffer = int(v["buffer_used_"])
        begin = (buffer_begin + 7) // 8 * 8
        in_use = used_of_buffer - begin if used_of_buffer else 0
        held, count = buffer_bytes, 0
        for c in chunks(newest, "older"):
            header = int(c.address) + c.type.sizeof
            in_use += (cursor if int(c.address) == int(newest) else int(c["used"])) - header
            held += int(c["bytes"])
            count += 1
        if v["spare_"]:
            held += int(v["spare_"].dereference()["bytes"])
            count += 1
        if not newest and buffer_bytes:
            in_use = cursor - begin
        return "arena: %s in use of %s, in %s" % (show_bytes(in_use), show_bytes(held), show_count(count, "chunk"))

    @staticmethod
    def _buffer(span):
        fields = {f.name: span[f] for f in span.type.strip_typedefs().fields()}
        extent = fields.get("_M_extent")
        size = int(extent[next(f for f in extent.type.strip_typedefs().fields())]) if extent is not None else 0
        return int(fields["_M_ptr"]), size


class PoolPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        v = self.value
        size, chunk_bytes, alignment = int(v["size_"]), int(v["chunk_bytes_"]), int(v["alignment_"])
        all_ = list(chunks(v["first_"], "next"))
        header = v["first_"].type.target().sizeof
        capacity = (chunk_bytes - (header + alignment - 1) // alignment * alignment) // size if size else 0
        free = sum(1 for _ in chunks(v["free_"], "next"))
        more = " or more" if free == MOST_CHUNKS else ""
        never = (int(v["fresh_end_"]) - int(v["fresh_"])) // size if size else 0
        return "pool of blocks of %s: %d in %s, %d%s free, %d of the last chunk never given out" % (
            show_count(size, "byte"), capacity * len(all_), show_count(len(all_), "chunk"), free, more, never)


class ObjectPoolPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "object_" + PoolPrinter(self.value["blocks_"]).to_string()


class HeapPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        name = self.value["name_"]
        return "heap %s" % (name.string("utf-8", "replace", 100) if name else "without a name")


class Safe:
    """A value that is not initialised yet, or damaged, has no pretty form."""

    def __init__(self, printer):
        self._printer = printer

    def to_string(self):
        try:
            return self._printer.to_string()
        except (gdb.error, ValueError, OverflowError, TypeError, StopIteration) as e:
            return "<cannot be read: %s>" % e


def add_printers():
    all_ = gdb.printing.RegexpCollectionPrettyPrinter("heapwright")
    for name, pattern, printer in (("layout", "^heapwright::layout$", LayoutPrinter), ("figure", "^heapwright::figure$", FigurePrinter),
                                   ("arena", "^heapwright::(stack_)?arena<.*>$", ArenaPrinter), ("pool", "^heapwright::pool<.*>$", PoolPrinter),
                                   ("object_pool", "^heapwright::object_pool<.*>$", ObjectPoolPrinter),
                                   ("heap", "^heapwright::basic_heap<.*>$", HeapPrinter)):
        all_.add_printer(name, pattern, lambda value, of=printer: Safe(of(value)))
    gdb.printing.register_pretty_printer(None, all_, replace=True)


Prefix()
Block()
HeapCommand()
Spans()
add_printers()
