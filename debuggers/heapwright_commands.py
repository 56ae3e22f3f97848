"""The commands that debuggers have: `heapwright block`, `heapwright heap` and `heapwright spans`.

A debugger gives an object with what it knows of the process:

    name                       of the debugger
    errors                     the exceptions that it raises
    is_core                    it is a core file that is looked at
    check()                    raises a Problem where there is no process
    read_memory(at, size)      raises Unreadable
    images()                   [(begin, path)]: where the beginnings of files are mapped
    address_of_record()        of the symbol heapwright_process_record; None: there is none that is known
    threads()                  [(thread pointer, "2 (LWP 17 name)")], the pointer being that of its thread-local storage
    thread_of_stack(address)   the number of the thread whose stack has the address, or None
    place_of(address)          a sentence on an address that is not the heap's, or None
    address_of(expression)     raises a Problem where it is no address
    write(line)                to the user
"""
import os
import sys

from heapwright_describer import Describer
from heapwright_heap import NOT_IN_CORE, Heap
from heapwright_record import WORD, Memory, Problem, Record, Unreadable, record_of_image, show_bytes, show_count

MOST_SPANS = 50
MOST_CLASSES = 10


def records(process, memory):
    """The records of all mallocs of ours in the process."""
    process.check()
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
    for begin, path in process.images():
        add(record_of_image(memory, begin), path)
    if not found:
        add(process.address_of_record(), "the program")
    if not found:
        raise problems[0] if problems else Problem(
            "There is no libheapwright in this process: its malloc is another one, or its libraries are not loaded yet (let it run to main). "
            "`heapwright run PROGRAM` starts a program on it.")
    begun = [r for r in found if r.has_begun()]
    if not begun:
        raise Problem("%s is loaded, but its constructors have not run yet. Let the program run on to main." % found[0].path)
    return begun


class Threads:
    """Which thread of the debugger has which cache."""

    def __init__(self, process, record):
        self._debugger = process.name
        self._names = {}
        for pointer, name in process.threads():
            try:
                self._names[record.memory.u64(pointer + record.cache_from_thread & WORD)] = name
            except Unreadable:
                continue

    def name_of(self, cache):
        if cache.address in self._names:
            return "the cache of thread " + self._names[cache.address]
        what = {"parked": "parked: its thread has ended", "idle": "idle: its thread has ended",
                "borrowed": "which threads without a cache borrow"}.get(cache.state, "of a thread that %s does not know" % self._debugger)
        return "thread cache %d (%s)" % (cache.id, what)


class Heaps:
    """All that are in the process."""

    def __init__(self, process):
        self._process = process
        memory = Memory(process.read_memory)
        self.all = [Heap(r, process.is_core) for r in records(process, memory)]

    def describers(self):
        for heap in self.all:
            yield Describer(heap, Threads(self._process, heap.record).name_of)

    def write_notes(self):
        for heap in self.all:
            for note in dict.fromkeys(heap.notes):
                self._process.write("note: " + note)


def what_else(process, address):
    thread = process.thread_of_stack(address)
    if thread is not None:
        return "It lies in the stack of thread %d." % thread
    known = process.place_of(address)
    if known is not None:
        return known
    try:
        process.read_memory(address, 1)
    except Unreadable:
        return "There is no memory at it."
    return "%s does not know what it is." % process.name


# --- the commands

def block(process, argument):
    """Describe the block of the heap that an address belongs to.
Usage: heapwright block EXPRESSION
The block's beginning, size and class, its span, the thread cache that owns it, and whether it is in use, free (and where), or was never
given out. EXPRESSION is any expression of the debugger whose value is an address."""
    if not argument:
        raise Problem("Which address? Usage: heapwright block EXPRESSION")
    process.check()
    address = process.address_of(argument)
    heaps = Heaps(process)
    for describer in heaps.describers():
        lines = describer.block(address)
        if lines is not None:
            for line in lines:
                process.write(line)
            break
    else:
        process.write("%#x is no address of the heap. %s" % (address, what_else(process, address)))
    heaps.write_notes()


def heap(process, argument):
    """Say how much memory the heap has, and where it is, with the classes that have most.
Usage: heapwright heap"""
    if argument:
        raise Problem("`heapwright heap` takes no argument: %s is one too many." % argument)
    heaps = Heaps(process)
    for each in heaps.all:
        _write_figures(process.write, each)
    heaps.write_notes()


def _write_figures(write, of):
    r, f = of.record, of.figures()
    write("library  %s\nversion  %s (%s)\nrecipe   %s\noptions  %s\nthreads  %d now, %d ever" % (
        r.path, r.version, r.build, r.recipe_name(), r.options or "all at their defaults", f["threads"], f["threads_total"]))
    write("")
    span_pages = f["spans"] // r.page_bytes if r.page_bytes else 0
    resident = max(f["metadata"] - f["page_map"], 0) + min(span_pages * r.page_map_bytes_per_page, f["page_map"])
    for meaning, value in (("held for blocks", f["mapped"]), ("  in spans of small blocks", f["spans"]), ("  in large blocks", f["large"]),
                           ("  free, not given back", f["free_resident"]), ("  free, given back or new", f["free_decommitted"]),
                           ("reserved for the heap's records", f["metadata"]), ("  of these in memory, about", resident)):
        write("%-32s%10s" % (meaning, show_bytes(value)))
    write("Peak %s held; %s given back to the system since the start" % (show_bytes(f["mapped_peak"]), show_bytes(f["decommitted_total"])))
    classes = sorted((c for c in of.class_figures() if c[3]), key=lambda c: -c[3])
    if not classes:
        return
    write("")
    write("class       block     in spans   allocated    blocks")
    for c, size, outside, span_bytes in classes[:MOST_CLASSES]:
        write("%5d  %10s  %11s  %10s  %8s" % (c, show_bytes(size), show_bytes(span_bytes), show_bytes(outside * size), "{:,}".format(outside)))
    rest = classes[MOST_CLASSES:]
    if rest:
        write("and %s with %s in spans" % (show_count(len(rest), "class") if len(rest) == 1 else "%d classes" % len(rest),
                                           show_bytes(sum(c[3] for c in rest))))
    write("Allocated blocks are with the program or in thread caches.")


def spans(process, argument):
    """List the spans of the heap, by address.
Usage: heapwright spans [CLASS] [all]
CLASS is the number of a class, or one of: large, free, mixed. After fifty spans the others are counted; with `all` they are listed."""
    words = argument.split()
    most = sys.maxsize if words[-1:] == ["all"] else MOST_SPANS
    wanted = " ".join(words[:-1] if most > MOST_SPANS else words)
    heaps = Heaps(process)
    for describer in heaps.describers():
        _write_spans(process.write, describer, wanted, most)
    heaps.write_notes()


def _write_spans(write, describer, argument, most):
    of = describer.heap
    p = of.p
    if not (argument in ("", "large", "free", "mixed") or (argument.isdigit() and 0 < int(argument) < p.classes_end)):
        raise Problem("There is no class %s. Give a number from 1 to %d, or large, free or mixed." % (argument, p.classes_end - 1))
    name_of_cache = {cache.id: describer.name_of(cache) for cache in of.caches()}

    def class_of(s):
        if s.state == p.state_cut:
            return s.size_class
        tag = of.tag(s.start) if s.state == p.state_large else 0
        return of.class_of(tag) if tag not in (0, p.large_tag) else 0

    def is_meant(s):
        if argument == "":
            return True
        if argument.isdigit():
            return class_of(s) == int(argument)
        return s.state in {"large": (p.state_large,), "mixed": (p.state_mixed,), "free": of.free_states}[argument]
    shown, more, more_bytes = 0, 0, 0
    for s in of.for_each_span():
        if not is_meant(s):
            continue
        if shown == most:
            more += 1
            more_bytes += s.bytes
            continue
        if shown == 0:
            write("%-18s %10s  class  %s" % ("span", "bytes", "state"))
        shown += 1
        c = class_of(s)
        what = describer.state_name(s)
        if s.state == p.state_cut:
            what += ": %s allocated, %d free, %d never given out" % (
                show_count(s.live, "block"), max(s.carved - s.live, 0), max(s.capacity - s.carved, 0))
            if s.place == p.place_attached:
                owner = s.owner >> p.owner_shift
                what += "; attached to " + name_of_cache.get(owner, "thread cache %d, which is not there" % owner)
        write("%#-18x %10s  %5s  %s" % (s.start, show_bytes(s.bytes), c or "-", what))
    if shown == 0 and of.is_core and not argument:
        raise Problem(NOT_IN_CORE)
    if shown == 0:
        write("There are no such spans." if argument else "There are no spans.")
    if more:
        write("and %s with %s, left out: `heapwright spans%s all` lists them, too" % (
            show_count(more, "span"), show_bytes(more_bytes), " " + argument if argument else ""))


COMMANDS = {"block": block, "heap": heap, "spans": spans}


def run(command, process, argument):
    """Runs one of COMMANDS. Returns the sentence that says why it could not, or None."""
    try:
        command(process, argument.strip())
    except Problem as e:
        return str(e)
    except Unreadable as e:
        return "The memory at %#x cannot be read: the core file does not have it, or the heap's records are damaged." % e.address
    except process.errors as e:
        return "%s says: %s" % (process.name, e)
    except Exception as e:  # a mistake of this script, or records that it should have refused
        if os.environ.get("HEAPWRIGHT_GDB_DEBUG"):
            raise
        return "The heap's records make no sense to this script (%s: %s). Set HEAPWRIGHT_GDB_DEBUG=1 to see where." % (type(e).__name__, e)
    return None
