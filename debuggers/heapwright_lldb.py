"""Commands and summaries of types for lldb: `command script import heapwright_lldb.py`. docs/debuggers.md describes them.

    heapwright block EXPRESSION    what the heap knows of an address
    heapwright heap                how much memory the heap has, and where
    heapwright spans [CLASS]       its spans

They work on running processes and core files, on any build of libheapwright, stripped ones too: the process says itself where the parts of its
heap lie (heapwright_record.py). Only the summaries need debugging information, that of the program.
"""
import os
import re
import shlex
import sys
from array import array

import lldb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode, _writes_bytecode = True, sys.dont_write_bytecode
import heapwright_commands  # noqa: E402
import heapwright_values  # noqa: E402
from heapwright_record import WORD, Problem, Unreadable  # noqa: E402
sys.dont_write_bytecode = _writes_bytecode
del sys.path[0]

THREAD_POINTERS = ("fs_base", "tpidr")  # lldb before 18 has neither

# glibc's record of a thread on x86-64 (struct pthread) lies where the thread pointer points to.
RECORD_ALIGNMENT = 64
RECORD_ITSELF = (0, 16)  # words that have its own address
RECORD_TID = 720
MOST_SEARCHED = 64 << 20
SEARCHED_AT_ONCE = 64 << 10
PAGE = 4096


class Process:
    """What lldb knows of it, as heapwright_commands asks for it."""
    name = "lldb"
    errors = ()

    def __init__(self, target, write):
        self._target = target
        self._process = target.GetProcess()
        self._regions_read = None
        self.write = write

    @property
    def is_core(self):
        return self._process.GetPluginName() == "elf-core"

    def check(self):
        state = self._process.GetState() if self._process.IsValid() else lldb.eStateInvalid
        if state in (lldb.eStateRunning, lldb.eStateStepping):
            raise Problem("The process is running. Stop it first (process interrupt).")
        if state not in (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended):
            raise Problem("There is no process and no core file. Start the program (run), or load a core file (target create --core FILE).")

    def read_memory(self, address, size):
        error = lldb.SBError()
        try:
            content = self._process.ReadMemory(address, size, error)
        except (OverflowError, SystemError):
            raise Unreadable(address) from None
        if not error.Success() or content is None or len(content) != size:
            raise Unreadable(address)
        return content

    def _regions(self):
        """[(begin, end, name, is_writable)] of what can be read."""
        if self._regions_read is None:
            self._regions_read = []
            regions, region = self._process.GetMemoryRegions(), lldb.SBMemoryRegionInfo()
            for i in range(regions.GetSize()):
                if regions.GetMemoryRegionAtIndex(i, region) and region.IsReadable():
                    self._regions_read.append((region.GetRegionBase(), region.GetRegionEnd(), region.GetName() or "", region.IsWritable()))
        return self._regions_read

    def _region_of(self, address):
        return next((r for r in self._regions() if r[0] <= address < r[1]), None)

    def images(self):
        found = {}
        for module in self._target.module_iter():
            begin = module.GetObjectFileHeaderAddress().GetLoadAddress(self._target)
            if begin != lldb.LLDB_INVALID_ADDRESS:
                # The loader may have been given a link to the file; the system knows only the file.
                found[begin] = os.path.realpath(str(module.GetFileSpec()))
        # A core file may be of libraries whose files are gone.
        for begin, _, name, is_writable in self._regions():
            if begin not in found and not is_writable:
                found[begin] = name or "a library of which lldb has no file"
        return list(found.items())

    def address_of_record(self):
        for found in self._target.FindSymbols("heapwright_process_record"):
            address = found.GetSymbol().GetStartAddress().GetLoadAddress(self._target)
            if address != lldb.LLDB_INVALID_ADDRESS:
                return address
        return None

    # --- threads

    def threads(self):
        for thread in self._process:
            pointer = self._thread_pointer(thread)
            if pointer is not None:
                yield pointer, "%d (%s)" % (thread.GetIndexID(), " ".join(filter(None, ("LWP %d" % thread.GetThreadID(), thread.GetName() or ""))))

    def _thread_pointer(self, thread):
        frame = thread.GetFrameAtIndex(0)
        for name in THREAD_POINTERS:
            register = frame.FindRegister(name)
            if register.IsValid():
                return register.GetValueAsUnsigned()
        if not self._target.GetTriple().startswith("x86_64"):
            return None
        # A thread has its record above its stack; the first one has it where the loader has put it.
        stack = self._region_of(frame.GetSP())
        own = [(frame.GetSP() // RECORD_ALIGNMENT * RECORD_ALIGNMENT, stack[1])] if stack is not None else []
        others = sorted(((b, e) for b, e, name, is_writable in self._regions() if is_writable and name in ("", "[heap]")), key=lambda r: r[1] - r[0])
        left = MOST_SEARCHED
        for begin, end in own + others:
            left -= end - begin
            if left < 0:
                return None
            found = self._find_record(begin, end, thread.GetThreadID())
            if found is not None:
                return found
        return None

    def _find_record(self, begin, end, tid):
        for at in range(begin // SEARCHED_AT_ONCE * SEARCHED_AT_ONCE, end, SEARCHED_AT_ONCE):
            for first, content in self._readable(max(begin, at), min(end, at + SEARCHED_AT_ONCE)):
                words = array("Q", content)
                for i in range(0, len(words) - max(RECORD_ITSELF) // 8, RECORD_ALIGNMENT // 8):
                    record = first + i * 8
                    if words[i] == record and all(words[i + offset // 8] == record for offset in RECORD_ITSELF) and self._tid_in(record) == tid:
                        return record
        return None

    def _readable(self, begin, end):
        """[(begin, content)]: a guard page makes all that is read with it unreadable."""
        try:
            return [(begin, self.read_memory(begin, end - begin))]
        except Unreadable:
            if end - begin <= PAGE:
                return []
        middle = begin + (end - begin) // 2 // PAGE * PAGE or end
        return self._readable(begin, middle) + self._readable(middle, end) if begin < middle < end else []

    def _tid_in(self, record):
        try:
            return int.from_bytes(self.read_memory(record + RECORD_TID, 4), "little")
        except Unreadable:
            return None

    def thread_of_stack(self, address):
        region = self._region_of(address)
        for thread in self._process:
            if region is not None and region[0] <= thread.GetFrameAtIndex(0).GetSP() < region[1]:
                return thread.GetIndexID()
        return None

    # --- addresses

    def place_of(self, address):
        place = self._target.ResolveLoadAddress(address)
        symbol, section, module = place.GetSymbol(), place.GetSection(), place.GetModule()
        if section.IsValid() and module.IsValid():
            if symbol.IsValid() and symbol.GetStartAddress().GetSection().IsValid():
                offset = address - symbol.GetStartAddress().GetLoadAddress(self._target)
                return "It is %s%s in section %s of %s." % (symbol.GetName(), " + %d" % offset if offset else "", section.GetName(), module.GetFileSpec())
            return "It lies in the section %s of %s." % (section.GetName(), module.GetFileSpec())
        region = self._region_of(address)
        if region is None:
            return None
        return "It lies in the mapping %#x-%#x%s." % (region[0], region[1], " of " + region[2] if region[2] else ", which belongs to no file")

    def _evaluate(self, expression):
        """Without code that would run in the program: that could call malloc."""
        options = lldb.SBExpressionOptions()
        options.SetAllowJIT(False)
        frame = self._process.GetSelectedThread().GetSelectedFrame()
        return (frame if frame.IsValid() else self._target).EvaluateExpression(expression, options)

    def address_of(self, expression):
        value = self._evaluate(expression)
        if not value.GetError().Success():
            if "without a running target" in str(value.GetError()):
                raise Problem("lldb would have to run code in the program to evaluate %s. Let `expression -- %s` do that, and give the `$0` that it prints." % (
                    expression, expression))
            said = re.findall(r"error: (?:<user expression \d+>:\d+:\d+: )?(.+)", str(value.GetError()))
            raise Problem("lldb cannot evaluate %s: %s" % (expression, said[-1].strip().rstrip(".") if said else value.GetError()))
        if value.GetType().IsReferenceType():
            value = value.Dereference()
        kind = value.GetType().GetCanonicalType()
        if kind.IsArrayType():
            # Without a running process the array is a copy, which has no address.
            at = self._evaluate("&(%s)" % expression)
            if not at.GetError().Success():
                raise Problem("%s is not in the memory of the program: it has no address." % expression)
            return at.GetValueAsUnsigned()
        flags = kind.GetTypeFlags()
        is_number = flags & (lldb.eTypeIsInteger | lldb.eTypeIsEnumeration) and not flags & lldb.eTypeIsFloat
        is_of_members = kind.GetTypeClass() == lldb.eTypeClassMemberPointer
        if value.GetByteSize() > 8 or is_of_members or not (value.TypeIsPointerType() or is_number):
            raise Problem("%s is a %s, not an address. Give a pointer, or &(%s)." % (expression, value.GetType().GetName(), expression))
        return (value.GetValueAsSigned() if flags & lldb.eTypeIsSigned else value.GetValueAsUnsigned()) & WORD


class Command:
    """Base of the commands; lldb makes an object for each debugger."""
    function = None

    def __init__(self, debugger, _):
        pass

    def get_short_help(self):
        return self.function.__doc__.splitlines()[0]

    def get_long_help(self):
        return self.function.__doc__

    def __call__(self, debugger, argument, _, result):
        lines = []
        problem = heapwright_commands.run(self.function, Process(debugger.GetSelectedTarget(), lines.append), argument)
        if lines:
            result.AppendMessage("\n".join(lines))  # which leaves out empty lines of their own
        if problem is not None:
            result.SetError(problem)


class Value:
    """An SBValue, as heapwright_values asks for it."""

    def __init__(self, value):
        self._value = value.GetNonSyntheticValue()

    def __getitem__(self, name):
        member = self._value.GetChildMemberWithName(name)
        if not member.IsValid():
            raise ValueError("it has no member %s" % name)
        return Value(member)

    def __int__(self):
        error = lldb.SBError()
        number = self._value.GetValueAsUnsigned(error)
        if not error.Success():
            raise ValueError(str(error))
        return number

    def members(self):
        return [Value(self._value.GetChildAtIndex(i)) for i in range(self._value.GetNumChildren())]

    def target(self):
        return Value(self._value.Dereference())

    @property
    def address(self):
        return self._value.GetLoadAddress()

    @property
    def size(self):
        return self._value.GetByteSize()

    @property
    def target_size(self):
        return self._value.GetType().GetPointeeType().GetByteSize()

    def text(self):
        error = lldb.SBError()
        text = self._value.GetProcess().ReadCStringFromMemory(int(self), 100, error)
        if not error.Success():
            raise ValueError(str(error))
        return text


def _summary_of(printer):
    return lambda value, _: heapwright_values.safe(printer, Value(value), (SystemError,))  # of lldb, for text that is none


def __lldb_init_module(debugger, _):
    # Both replace what is there: the script may be loaded a second time.
    debugger.HandleCommand("command container add -o -h 'What libheapwright knows of the memory of the program.' heapwright")
    for name, function in heapwright_commands.COMMANDS.items():
        globals()["Command_" + name] = type("Command_" + name, (Command,), {"function": staticmethod(function)})
        debugger.HandleCommand("command script add -o -c %s.Command_%s heapwright %s" % (__name__, name, name))
    for name, pattern, printer in heapwright_values.PRINTERS:
        function = "summary_of_" + name
        globals()[function] = _summary_of(printer)
        debugger.HandleCommand("type summary add -w heapwright -p -x %s -F %s.%s" % (shlex.quote(pattern), __name__, function))
    debugger.HandleCommand("type category enable heapwright")
