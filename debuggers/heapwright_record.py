"""What a process on libheapwright says of itself: where its record is, and what it holds. No debugger is needed for it.

It is given a function that reads memory, and the addresses at which files are mapped. An ELF note leads to the process_record
(include/heapwright/malloc/process_record.hpp). So no debugging information is needed, and no file: the memory of a core file is enough.
"""
import struct

MAGIC = b"heapwright 0001\0"
LAYOUT = 8  # process_record::current_layout

# process_record up to `samples`, and its fields that are used here.
RECORD = struct.Struct("<16sII32s32s64sQ1024sIIQQII6QQQqQ")
RECORD_FIELDS = ("magic layout bytes version build recipe figures options class_count class_stride class_bytes first_of_class page_bytes "
                 "page_map_bytes_per_page last_span_bytes steps_per_doubling share_bytes max_long_bytes max_free_resident give_back "
                 "places places_bytes cache_from_thread samples").split()

MOST_PAGES_READ = 1 << 18  # of 4 KiB, in one command

WORD = (1 << 64) - 1


class Unreadable(Exception):
    """Memory that the process or the core file does not have."""

    def __init__(self, address):
        super().__init__(address)
        self.address = address


class Problem(Exception):
    """A sentence for the user."""


def show_bytes(n):
    """As the tool shows them."""
    if n < 1024:
        return "%d B" % n
    value = n / 1024
    for unit in ("KiB", "MiB", "GiB"):
        if value < 1024:
            return ("%.1f %s" if value < 100 else "%.0f %s") % (value, unit)
        value /= 1024
    return "%.1f TiB" % value


def show_count(n, one):
    return "{:,} {}{}".format(n, one, "" if n == 1 else "s")


class Memory:
    """Reads by pages, and each only once: a command sees one moment."""

    PAGE = 4096

    def __init__(self, read):
        self._read = read
        self._pages = {}
        self._left = MOST_PAGES_READ

    def _count(self, pages):
        self._left -= pages
        if self._left < 0:
            raise Problem("More than %s of memory would have to be read: the records of the heap are damaged, or it is too large."
                          % show_bytes(MOST_PAGES_READ * self.PAGE))

    def read(self, address, size):
        address &= WORD
        if size > 1 << 24 or address + size > WORD:
            raise Unreadable(address)
        page, offset = divmod(address, self.PAGE)
        if offset + size > self.PAGE:
            self._count(size // self.PAGE + 1)
            return bytes(self._read(address, size))
        content = self._pages.get(page)
        if content is None:
            self._count(1)
            try:
                content = bytes(self._read(page * self.PAGE, self.PAGE))
            except Unreadable:
                # A core file may have a part of a page.
                return bytes(self._read(address, size))
            self._pages[page] = content
        return content[offset:offset + size]

    def number(self, address, size):
        return int.from_bytes(self.read(address, size), "little")

    def u64(self, address):
        return self.number(address, 8)


# --- where the record is

def record_of_image(memory, begin):
    """The address of the record of the file whose beginning is mapped at `begin`, or None."""
    try:
        header = memory.read(begin, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            return None
        headers_at, = struct.unpack_from("<Q", header, 32)
        header_bytes, count = struct.unpack_from("<HH", header, 54)
        if header_bytes != 56:
            return None
        parts = []
        for i in range(min(count, 64)):
            kind, _, offset, address, _, in_file, _, align = struct.unpack("<IIQQQQQQ", memory.read(begin + headers_at + i * 56, 56))
            parts.append((kind, offset, address, in_file, max(align, 4)))
    except Unreadable:
        return None
    base = next((address - offset for kind, offset, address, _, _ in parts if kind == 1 and offset == 0), 0)
    for kind, offset, address, in_file, align in parts:
        if kind != 4:
            continue
        at, end = begin + address - base, begin + address - base + in_file
        try:
            for _ in range(64):
                if at + 12 > end:
                    break
                name_bytes, bytes_, note_type = struct.unpack("<III", memory.read(at, 12))
                content = at + 12 + (name_bytes + align - 1) // align * align
                if (note_type, name_bytes, bytes_) == (1, 11, 4) and memory.read(at + 12, 11) == b"Heapwright\0":
                    return (content + struct.unpack("<i", memory.read(content, 4))[0]) & WORD
                at = (content + bytes_ + align - 1) // align * align
        except Unreadable:
            continue
    return None


class Record:
    """A process_record."""

    def __init__(self, memory, address, path):
        self.memory, self.address, self.path = memory, address, path
        head = memory.read(address, 24)
        if head[:16] != MAGIC:
            raise Problem("%s holds no valid record of its heap." % path)
        layout, size = struct.unpack_from("<II", head, 16)
        if layout != LAYOUT or size < RECORD.size:
            raise Problem("%s writes record layout %d; this script reads layout %d. Load the script that came with that libheapwright."
                          % (path, layout, LAYOUT))
        values = dict(zip(RECORD_FIELDS, RECORD.unpack(memory.read(address, RECORD.size))))
        for name, value in values.items():
            setattr(self, name, value.split(b"\0")[0].decode("utf-8", "replace") if isinstance(value, bytes) else value)

    def has_begun(self):
        return self.places != 0 and self.figures != 0

    def recipe_name(self):
        name = self.recipe
        return name[2:] if name.startswith("::") else name[12:] if name.startswith("heapwright::") else name
