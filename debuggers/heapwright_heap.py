"""The heap of a process on libheapwright, read from its memory: page map, spans, thread caches, lists, seals.

The process_record says where the parts of the heap lie (heap_places.hpp). The memory may be damaged, and a stopped process may be in the middle
of a change. So each list is followed only as far as it leads to what the page map says is a block of its class, never twice to the same, and no
further than a bound.
"""
import struct
from array import array

from heapwright_record import WORD, Problem, Unreadable, show_count

ABSENT = (1 << 32) - 1  # heap_places::absent

# heap_places, in its order: three addresses and numbers of 32 bits. The sizes of classes follow.
PLACES = (
    "heap page_map_root link_key root_entries leaf_shift page_shift tag_bytes leaf_spans leaf_bits class_shift class_mask "
    "owner_shift large_tag mixed_tag span_bytes span_start span_pages span_free span_live span_carved span_capacity "
    "span_owner span_size_class span_state span_place span_guard_pages span_offset state_free_resident "
    "state_free_decommitted state_cut state_large state_mixed state_free_large state_retired state_guard state_room "
    "place_exhausted place_listed place_attached mixed_span_bytes mixed_grain mixed_bits_bytes mixed_words "
    "mixed_waiting mixed_tail_begin mixed_tail_end classes_cut_end classes_end caches_open caches_unused "
    "caches_borrowed cache_registered cache_next cache_parked_at cache_id cache_classes "
    "cache_class_bytes list_free list_deferred list_room list_limit list_fresh list_fresh_count cache_inbox "
    "inbox_address_bits cache_outbox outbox_batches batch_bytes batch_tag batch_count batch_first cache_strip_begin "
    "cache_strip_end cache_quarantine quarantine_per_class cache_quarantine_long quarantine_longs "
    "quarantine_long_bytes seal_bytes seal_key seal_older_keys seal_older_count empty_begin empty_records "
    "empty_places empty_place_bytes empty_record_bytes").split()
MOST_CLASSES = 256

FIGURES = ("mapped mapped_peak spans large free_resident free_decommitted metadata page_map decommitted_total mappings huge_reserved_total "
           "huge_transparent_total locked_total bound_total threads threads_total").split()

SAMPLES = "first count stride state begin bytes block asked_for".split()  # guarded_sample_places

# Bounds of what is read of memory that may be damaged.
LONGEST_LIST = 1 << 16
MOST_CACHES = 1 << 16
FURTHEST_BACK = 1 << 22  # heap pages from an address to the beginning of its span

# gdb 13 gives up at the first page of a mapping that it cannot read, and writes zeros from there on.
NOT_IN_CORE = ("The core file does not have the heap's records: they read as zeros. gdb's generate-core-file leaves out memory that has guard pages "
               "in it, as libheapwright-hardened has them; a core file that the kernel writes (kill -ABRT) has it.")


def fibonacci_hash(key):
    return key * 0x9E3779B97F4A7C15 & WORD


INVERSE = 0xF1DE83E19937733D  # of that multiplier


# --- seals (heap/block_seal.hpp)

class Seal:
    """What a seal says: `state` is fresh, live, free or broken; of a live one `slack`, `alignment` and `origin`."""
    ORIGINS = ("malloc", "new", "new[]", "?")

    def __init__(self, state, slack=0, alignment=0, origin=""):
        self.state, self.slack, self.alignment, self.origin = state, slack, alignment, origin


def seal_hash(address, key):
    h = fibonacci_hash(address ^ key)
    return h ^ h >> 32


def read_seal(memory, begin, room, key):
    word = memory.u64(begin + room)
    if word == 0:
        return Seal("fresh")
    h = seal_hash(begin, key)
    if word == h | 1 << 63 | 0x81:
        return Seal("free")
    info = (word ^ h) >> 36 & (1 << 27) - 1
    canary = fibonacci_hash(h + info) >> 28 | 0x81
    if word != (h ^ info << 36) >> 36 << 36 & WORD | canary | 1 << 63 or not info >> 26:
        return Seal("broken")
    slack, alignment = info & (1 << 18) - 1, info >> 18 & 63
    filled = min(slack, 16 if room >= 16 else 8, room)
    filler = (h >> 8 & 0xFF) | 0x81
    if slack > room or memory.read(begin + room - slack, filled) != bytes([filler]) * filled:
        return Seal("broken")
    return Seal("live", slack, 1 << alignment - 1 if alignment else 0, Seal.ORIGINS[info >> 24 & 3])


# --- the heap

class Span:
    """A copy of a span's record."""

    def __init__(self, heap, address):
        self.record = address
        raw = heap.memory.read(address, heap.p.span_bytes)

        def field(name, size):
            at = getattr(heap.p, "span_" + name)
            return int.from_bytes(raw[at:at + size], "little")
        self.start, self.pages, self.free = field("start", 8), field("pages", 8), field("free", 8)
        self.live, self.carved, self.capacity, self.owner = (field(n, 4) for n in ("live", "carved", "capacity", "owner"))
        self.size_class, self.state, self.place, self.guard_pages = (field(n, 1) for n in ("size_class", "state", "place", "guard_pages"))
        self.offset = field("offset", 2)
        page = 1 << heap.p.page_shift
        self.bytes = self.pages * page
        self.end = self.start + self.bytes
        self.usable_end = self.end - self.guard_pages * page
        self.begin = self.start + self.offset  # of the block, or of the first

    def contains(self, address):
        return self.start <= address < self.end


class Cache:
    """A thread cache. `state`: open, parked, idle or borrowed."""

    def __init__(self, address, number, state):
        self.address, self.id, self.state = address, number, state


class Places:
    pass


class Heap:
    """`is_core`: zeros where there must be none mean that the core file lacks memory."""

    def __init__(self, record, is_core=False):
        self.record, self.memory, self.is_core = record, record.memory, is_core
        size = (24 + (len(PLACES) - 3) * 4 + 7) // 8 * 8  # both parts end where an address may begin
        classes = (record.places_bytes - size) // 4
        if not 1 < classes <= MOST_CLASSES or record.places_bytes % 4:
            raise Problem("The record of %s has another length than its layout: it is damaged." % record.path)
        raw = self.memory.read(record.places, record.places_bytes)
        self.p = Places()
        for name, value in zip(PLACES, struct.unpack_from("<3Q%dI" % (len(PLACES) - 3), raw)):
            setattr(self.p, name, value)
        p = self.p
        self.class_sizes = struct.unpack_from("<%dI" % classes, raw, size)
        is_sound = (12 <= p.page_shift <= 20 < p.leaf_shift < 48 and p.root_entries <= 1 << 20 and classes - 1 <= p.classes_end <= classes
                    and p.classes_cut_end <= p.classes_end and p.tag_bytes == 4 and p.span_bytes <= 4096
                    and p.outbox_batches <= 4096 and 32 <= p.inbox_address_bits < 64)
        if not is_sound:
            raise Problem("What the record of %s says of its heap cannot be: it is damaged." % record.path)
        self.page = 1 << p.page_shift
        self.leaf_pages = 1 << p.leaf_shift - p.page_shift
        self.free_states = (p.state_free_resident, p.state_free_decommitted, p.state_free_large)
        self.notes = []  # sentences about what was found damaged
        self.broken = set()  # classes of which a list breaks off: what lies behind the place is not known to be free
        self._caches = None
        self._kept = {}

    # --- the page map

    def _leaf(self, index):
        """The address of a leaf, or None."""
        if index >= self.p.root_entries:
            return None
        biased = self.memory.u64(self.p.page_map_root + index * 8)
        return None if biased == 0 else biased + index * self.leaf_pages * self.p.tag_bytes & WORD

    def tag(self, address):
        leaf = self._leaf(address >> self.p.leaf_shift)
        if leaf is None:
            return 0
        return self.memory.number(leaf + (address >> self.p.page_shift) % self.leaf_pages * self.p.tag_bytes, self.p.tag_bytes)

    def span_at(self, address):
        """The address of the span's record that the map has for the page, or 0."""
        leaf = self._leaf(address >> self.p.leaf_shift)
        return 0 if leaf is None else self.memory.u64(leaf + self.p.leaf_spans + (address >> self.p.page_shift) % self.leaf_pages * 8)

    def _span(self, record):
        """The span, if the map has it at both ends: there is no other that has their pages. Or None."""
        if record == 0 or record % 8:
            return None
        try:
            s = Span(self, record)
            if 0 < s.pages < 1 << 36 and s.start % self.page == 0 and self.span_at(s.start) == self.span_at(s.end - self.page) == record:
                return s
            if self.is_core and s.pages == s.start == s.state == 0:
                raise Problem(NOT_IN_CORE)
        except Unreadable:
            pass
        return None

    def find_span(self, address):
        """The span that has the address, or None. Within free and large spans, the map does not know the pages: the nearest span that begins
        before the address is looked at."""
        page = address >> self.p.page_shift
        last = max(page - FURTHEST_BACK, 0)
        step = 512
        while page >= last:
            leaf = self._leaf(page // self.leaf_pages)
            if leaf is None:
                return None
            first = max(page - step + 1, page // self.leaf_pages * self.leaf_pages, last)
            raw = self.memory.read(leaf + self.p.leaf_spans + first % self.leaf_pages * 8, (page - first + 1) * 8)
            if raw.strip(b"\0"):
                entries = array("Q", raw)
                seen = 0
                for record in reversed(entries):
                    if record == 0 or record == seen:
                        continue
                    seen = record
                    s = self._span(record)
                    if s is not None and s.contains(address):
                        return s
                    if s is not None and s.end <= address:
                        return None
            page = first - 1
        return None

    def check_leaf(self, address):
        """A leaf is made for spans: in a core file, one of zeros is missing."""
        leaf = self._leaf(address >> self.p.leaf_shift)
        step = 1 << 16
        if self.is_core and leaf is not None and not any(
                self.memory.read(leaf + self.p.leaf_spans + at, step).strip(b"\0") for at in range(0, self.leaf_pages * 8, step)):
            raise Problem(NOT_IN_CORE)

    def for_each_span(self):
        """By address."""
        entries = array("Q", b"".join(self.memory.read(self.p.page_map_root + at * 8, min(4096, self.p.root_entries - at) * 8)
                                      for at in range(0, self.p.root_entries, 4096)))
        after = 0
        for index, biased in enumerate(entries):
            if biased == 0:
                continue
            leaf = biased + index * self.leaf_pages * self.p.tag_bytes & WORD
            for at in range(0, self.leaf_pages, 8192):
                try:
                    raw = self.memory.read(leaf + self.p.leaf_spans + at * 8, min(8192, self.leaf_pages - at) * 8)
                except Unreadable:
                    self.notes.append("A part of the page map cannot be read: spans are missing.")
                    break
                if not raw.strip(b"\0"):
                    continue
                for i, record in enumerate(array("Q", raw)):
                    start = index * self.leaf_pages + at + i << self.p.page_shift
                    if record == 0 or start < after:
                        continue
                    s = self._span(record)
                    if s is not None and s.start == start:
                        after = s.end
                        yield s

    # --- classes, caches, lists

    def class_of(self, tag):
        return (tag & self.p.class_mask) >> self.p.class_shift

    def size_of_class(self, c):
        return self.class_sizes[c] if 0 < c < self.p.classes_end else 0

    def index_of(self, span, address):
        """Of the block of a cut span that has the address."""
        size = self.size_of_class(span.size_class)
        return (address - span.begin) // size if size else -1

    def is_block(self, address, c):
        """Whether a block of class c begins there. 0: of any."""
        if address % 8:
            return False
        try:
            tag = self.tag(address)
            if tag in (0, self.p.large_tag):
                return False
            if tag == self.p.mixed_tag:
                return self.chunk_at(address)[0] == address
            if c not in (0, self.class_of(tag)):
                return False
            s = self._span(self.span_at(address))
            if s is None or not s.contains(address):
                return False
            if s.state == self.p.state_large:
                return address == s.begin
            size = self.size_of_class(s.size_class)
            return s.state == self.p.state_cut and size != 0 and address >= s.begin and (address - s.begin) % size == 0
        except Unreadable:
            return False

    def caches(self):
        """All that the heap has."""
        if self._caches is not None:
            return self._caches
        found, seen = [], set()

        def add(pointer, state):
            address = pointer - self.p.cache_registered
            seen.add(address)
            if self.is_core and self.memory.number(address + self.p.cache_id, 4) == 0:
                raise Problem(NOT_IN_CORE)
            parked = state == "idle" and self.memory.u64(address + self.p.cache_parked_at) != 0
            found.append(Cache(address, self.memory.number(address + self.p.cache_id, 4), "parked" if parked else state))
            return self.memory.u64(address + self.p.cache_next)
        for first, state in ((self.p.caches_open, "open"), (self.p.caches_unused, "idle"), (self.p.caches_borrowed, "borrowed")):
            try:
                pointer = self.memory.u64(self.p.heap + first)
                while pointer != 0:
                    if pointer - self.p.cache_registered in seen or len(found) >= MOST_CACHES:
                        self.notes.append("The list of thread caches leads in a circle: it is damaged, and caches are missing.")
                        break
                    pointer = add(pointer, state)
                    if state == "borrowed":
                        break
            except Unreadable as e:
                self.notes.append("The list of thread caches leads to %#x, which cannot be read: it is damaged, and caches are missing." % e.address)
        self._caches = found
        return found

    def link_of(self, b):
        """The block that follows in a list (heap/block_links.hpp); 0 at its end; None: the link was written to."""
        word = self.memory.u64(b)
        if self.p.link_key == 0:
            return word
        to = (word ^ fibonacci_hash(b ^ self.memory.u64(self.p.link_key))) * INVERSE & WORD
        return to if to >> 48 == 0 else None

    def follow(self, first, c, what, count=None):
        """The blocks of a list; a note where it breaks off, or has not as many as `count`."""
        seen = set()

        def broken(note):
            self.broken.add(c)
            self.notes.append(what + " " + note)
        b, before = first, None
        while b != 0:
            if b in seen:
                return broken("leads in a circle, at %#x: a block was freed twice, or written to after its free." % b)
            if not self.is_block(b, c):
                return broken("leads to %#x, which is no block of its class%s." % (b, "" if before is None else ": " + self._overwritten(before)))
            if len(seen) == LONGEST_LIST:
                return broken("was followed for %d blocks, and goes on." % LONGEST_LIST)
            seen.add(b)
            yield b
            before = b
            try:
                b = self.link_of(b)
            except Unreadable:
                return broken("breaks off at %#x: that block cannot be read." % before)
            if b is None:
                return broken("breaks off at %#x: %s." % (before, self._overwritten(before)))
        if count is not None and len(seen) != count:
            broken("has %s, and counts %d: a free block was written to, or a thread is at work on the list." % (show_count(len(seen), "block"), count))

    def _overwritten(self, b):
        """Why the first word of a free block is no link."""
        before = self._block_before(b)
        if before is not None and self.p.seal_bytes:
            size = self.size_of_class(self._span(self.span_at(b)).size_class)
            try:
                if self.seal_of(before, size - self.p.seal_bytes).state == "broken":
                    return "its first word was overwritten, and so was the end of the block before it, at %#x, which has been written beyond" % before
            except Unreadable:
                pass
            return "the first word of that block was written to after its free"
        return "the first word of the block at %#x was overwritten, after its free or by a write beyond the block before it" % b

    def _block_before(self, b):
        """In the same span; or None."""
        s = self._span(self.span_at(b))
        size = self.size_of_class(s.size_class) if s is not None and s.state == self.p.state_cut else 0
        return b - size if size and b - size >= s.begin else None

    def kept(self, c, name_of):
        """What thread caches keep of class c: {block: (where, cache)}, and [(first, end, cache)] of their blocks that were never given out.
        `name_of(cache)` names one in a sentence."""
        if c in self._kept:
            return self._kept[c]
        blocks, fresh = {}, []
        p, memory = self.p, self.memory

        def add(first, what, cache, count=None):
            for b in self.follow(first, c, "The list of %s of class %d in %s" % (what, c, name_of(cache)), count):
                blocks.setdefault(b, (what, cache))
        for cache in self.caches():
            try:
                lists = cache.address + p.cache_classes + c * p.cache_class_bytes
                add(memory.u64(lists + p.list_free), "free blocks", cache)
                deferred = memory.u64(lists + p.list_deferred)
                if deferred:  # a class with mixed spans has none, and another meaning of the room
                    add(deferred, "deferred frees", cache, memory.number(lists + p.list_limit, 4) - memory.number(lists + p.list_room, 4))
                first, count = memory.u64(lists + p.list_fresh), memory.number(lists + p.list_fresh_count, 2)
                if first:
                    fresh.append((first, first + count * self.size_of_class(c), cache))
                inbox = memory.u64(cache.address + p.cache_inbox + c * 8)
                add(inbox & (1 << p.inbox_address_bits) - 1, "remote frees", cache, inbox >> p.inbox_address_bits)
                for i in range(p.outbox_batches):
                    batch = cache.address + p.cache_outbox + i * p.batch_bytes
                    if self.class_of(memory.number(batch + p.batch_tag, 4)) == c:
                        add(memory.u64(batch + p.batch_first), "remote frees on their way", cache, memory.number(batch + p.batch_count, 4))
                if p.cache_quarantine != ABSENT:
                    self._add_quarantine(blocks, cache, c)
            except Unreadable as e:
                self.notes.append("%s cannot be read at %#x: what it keeps is not known." % (name_of(cache).capitalize(), e.address))
        self._kept[c] = blocks, fresh
        return self._kept[c]

    def _add_quarantine(self, blocks, cache, c):
        p = self.p
        if c < p.classes_cut_end:
            places = ((cache.address + p.cache_quarantine + (c * p.quarantine_per_class + i) * 8) for i in range(min(p.quarantine_per_class, 4096)))
        else:
            places = ((cache.address + p.cache_quarantine_long + i * p.quarantine_long_bytes) for i in range(min(p.quarantine_longs, 4096)))
        for place in places:
            b = self.memory.u64(place)
            if b and self.is_block(b, c):
                blocks.setdefault(b, ("quarantine", cache))

    def free_in_span(self, span):
        """The free blocks of a cut span that are with its central free list."""
        count = span.carved - span.live if span.live <= span.carved else None
        return set(self.follow(span.free, span.size_class, "The free list of the span at %#x" % span.start, count))

    # --- mixed spans

    def chunk_at(self, address):
        """Of an address in a mixed span: where its chunk begins, its bytes, and whether it is outside."""
        p = self.p
        leaf = self._leaf(address >> p.leaf_shift)
        bits = leaf + p.leaf_bits + address % (1 << p.leaf_shift) // p.mixed_span_bytes * p.mixed_bits_bytes + p.mixed_words
        grains = p.mixed_span_bytes // p.mixed_grain
        words = struct.unpack("<%dQ" % (grains // 32), self.memory.read(bits, grains // 4))
        begins = sum(w << 64 * i for i, w in enumerate(words[0::2]))
        outside = sum(w << 64 * i for i, w in enumerate(words[1::2]))
        span = address - address % p.mixed_span_bytes
        g = address % p.mixed_span_bytes // p.mixed_grain
        first = (begins & (2 << g) - 1).bit_length() - 1
        if first < 0:
            return span, p.mixed_span_bytes, False
        later = begins >> first + 1
        end = first + 1 + ((later & -later).bit_length() - 1) if later else grains
        return span + first * p.mixed_grain, (end - first) * p.mixed_grain, bool(outside >> first & 1)

    # --- seals, blocks of no bytes, guarded samples

    def seal_of(self, begin, room):
        """By the newest key that it can be read with."""
        p = self.p
        keys = [self.memory.u64(p.heap + p.seal_key)]
        older = min(self.memory.u64(p.heap + p.seal_older_count), 7)
        keys += [self.memory.u64(p.heap + p.seal_older_keys + i * 8) for i in reversed(range(older))]
        for key in keys:
            seal = read_seal(self.memory, begin, room, key)
            if seal.state != "broken":
                break
        return seal

    def empty_block(self, address):
        """Of the place of a block of no bytes: where it begins, and its state; or None."""
        p = self.p
        if p.empty_begin == ABSENT:
            return None
        begin = self.memory.u64(p.heap + p.empty_begin)
        if begin == 0 or not 0 <= address - begin < p.empty_places * p.empty_place_bytes:
            return None
        place = (address - begin) // p.empty_place_bytes
        state = self.memory.number(self.memory.u64(p.heap + p.empty_records) + place * p.empty_record_bytes, 1)
        return begin + place * p.empty_place_bytes, {2: "in use", 3: "free"}.get(state, "never given out")

    def guarded_sample(self, address):
        """Of an address in a guarded sample: its block, what was asked for, whether it is live; or None."""
        if self.record.samples == 0:
            return None
        at = dict(zip(SAMPLES, struct.unpack("<8Q", self.memory.read(self.record.samples, 64))))
        for i in range(min(at["count"], 4096)):
            place = at["first"] + i * at["stride"]
            state = self.memory.number(place + at["state"], 1)
            begin, size = self.memory.u64(place + at["begin"]), self.memory.u64(place + at["bytes"])
            if state in (1, 2) and begin <= address < begin + size:
                return self.memory.u64(place + at["block"]), self.memory.u64(place + at["asked_for"]), state == 1
        return None

    # --- figures

    def figures(self):
        raw = self.memory.read(self.record.figures, len(FIGURES) * 8)
        return dict(zip(FIGURES, struct.unpack("<%dQ" % len(FIGURES), raw)))

    def class_figures(self):
        """[(class, bytes of a block, blocks outside, bytes in spans)]"""
        found = []
        stride = self.record.class_stride
        if not 16 <= stride <= 4096 or self.record.class_count >= MOST_CLASSES:
            return found
        for c in range(1, self.record.class_count + 1):
            outside, span_bytes = struct.unpack("<QQ", self.memory.read(self.record.first_of_class + (c - 1) * stride, 16))
            found.append((c, self.size_of_class(c), outside, span_bytes))
        return found
