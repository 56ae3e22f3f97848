"""What a heap knows of an address, in sentences."""
from heapwright_heap import ABSENT
from heapwright_record import Problem, Unreadable, show_bytes, show_count

IN_USE = "in use"


class Describer:
    """Sentences about a heap. `name_of(cache)` names a thread cache: "the cache of thread 2"."""

    def __init__(self, heap, name_of):
        self.heap, self.name_of = heap, name_of

    def state_name(self, s):
        p = self.heap.p
        names = {p.state_free_resident: "free, not given back", p.state_free_decommitted: "free, given back or new",
                 p.state_cut: "of small blocks", p.state_large: "large", p.state_mixed: "mixed", p.state_free_large: "free, for large blocks",
                 p.state_retired: "empty, kept for its class", p.state_guard: "guard pages", p.state_room: "room behind a large block"}
        if s.state == p.state_large and self.heap.tag(s.start) == 0:
            return "large, free: nothing can touch it yet"
        return names.get(s.state, "in state %d, which this script does not know" % s.state)

    def block(self, address):
        """Lines about the address; None: it is not of this heap."""
        heap = self.heap
        empty = heap.empty_block(address)
        if empty is not None:
            begin, state = empty
            return ["block    %#x%s" % (begin, self._where(address - begin)), "size     no bytes: it cannot be touched", "state    " + state]
        sample = heap.guarded_sample(address)
        if sample is not None:
            return self._sample(address, *sample)
        if heap._leaf(address >> heap.p.leaf_shift) is None:
            return None
        s = heap.find_span(address)
        if s is None:
            heap.check_leaf(address)
            if heap.tag(address) != 0:
                raise Problem("The page map says that the page of %#x has blocks, but no sound record of a span has the page: "
                              "the records of the heap are damaged." % address)
            return None
        if s.guard_pages > s.pages or (s.state == heap.p.state_mixed and heap.p.mixed_span_bytes == ABSENT):
            raise Problem("The record of the span at %#x says what cannot be: it is damaged." % s.start)
        if s.state == heap.p.state_cut:
            return self._cut(address, s)
        if s.state == heap.p.state_large:
            return self._large(address, s)
        if s.state == heap.p.state_mixed:
            return self._mixed(address, s)
        lines = ["block    none: %#x lies in a span without blocks" % address, self._span_line(s, self.state_name(s))]
        return lines + (["state    free"] if s.state in heap.free_states else [])

    @staticmethod
    def _where(offset, end=None, end_is="what was asked for"):
        """Of an address, from the beginning of its block. `end`: of what the program may use, where that is known."""
        if offset < 0:
            return "; the address is %s before it" % show_count(-offset, "byte")
        behind = "" if end is None or offset < end or offset == 0 else ", which is %s behind %s" % (show_count(offset - end, "byte"), end_is)
        return "" if offset == 0 else ", %s before the address%s" % (show_count(offset, "byte"), behind)

    def _span_line(self, s, what):
        return "span     %#x, %s: %s" % (s.start, show_bytes(s.bytes), what)

    def _sample(self, address, block, size, is_live):
        return ["block    %#x%s" % (block, self._where(address - block, size, "its end")), "size     %s" % show_count(size, "byte"),
                "span     none: a guarded sample, with pages of its own",
                "state    " + ("in use" if is_live else "free: nothing of it can be touched")]

    def _owner_lines(self, s):
        heap = self.heap
        number = s.owner >> heap.p.owner_shift
        cache = next((c for c in heap.caches() if number != 0 and c.id == number), None)
        if s.place == heap.p.place_attached and cache is not None:
            return ["owner    %s: it alone refills from the span" % self.name_of(cache)]
        return [] if cache is None else ["owner    %s, which refilled last from the span" % self.name_of(cache)]

    def _cut(self, address, s):
        heap = self.heap
        c = s.size_class
        size = heap.size_of_class(c)
        if size == 0:
            raise Problem("The span at %#x is of class %d, which this heap does not have: its record is damaged." % (s.start, c))
        if not s.live <= s.carved <= s.capacity <= s.bytes // size or s.begin + s.capacity * size > s.usable_end:
            heap.notes.append("The counts of the span at %#x do not agree: its record is damaged." % s.start)
        if heap.class_of(heap.tag(s.begin)) != c:
            heap.notes.append("The page map has class %d for the span at %#x: it or the span's record is damaged." % (heap.class_of(heap.tag(s.begin)), s.start))
        kept, fresh = heap.kept(c, self.name_of)
        is_free = heap.free_in_span(s)
        in_caches = sum(1 for b in kept if s.begin <= b < s.usable_end)
        in_caches += sum(max(0, min(end, s.usable_end) - max(first, s.begin)) // size for first, end, _ in fresh)
        what = "of class %d; %s with the program%s, %d in thread caches, %d free, %d never given out" % (
            c, show_count(max(s.live - in_caches, 0), "block"), " or behind the damage" if c in heap.broken else "", in_caches,
            max(s.carved - s.live, 0), max(s.capacity - s.carved, 0))
        span_lines = [self._span_line(s, what)]
        if size >= heap.page:  # each block has a tag of its own
            number = heap.tag(s.begin + max((address - s.begin) // size, 0) * size) >> heap.p.owner_shift
            cache = next((k for k in heap.caches() if number != 0 and k.id == number), None)
            span_lines += [] if cache is None else ["owner    %s, which got the block last" % self.name_of(cache)]
        else:
            span_lines += self._owner_lines(s)
        index = (address - s.begin) // size
        if not 0 <= index < s.capacity:
            where = "before its first block" if index < 0 else "in its guard pages" if address >= s.usable_end else "behind its last block"
            return ["block    none: %#x lies in a span, %s" % (address, where)] + span_lines
        begin = s.begin + index * size
        if index >= s.carved:
            state = "never given out"
        elif begin in is_free:
            state = "free, in the central free list"
        else:
            state = self._state_in_caches(begin, c, kept, fresh)
        state, seal_lines, asked = self._with_seal(begin, size, state)
        head = ["block    %#x%s" % (begin, self._where(address - begin, asked)), "size     %s, class %d" % (show_count(size, "byte"), c)]
        return head + span_lines + ["state    " + state] + seal_lines

    def _state_in_caches(self, begin, c, kept, fresh):
        if begin in kept:
            what, cache = kept[begin]
            where = {"free blocks": "in the free list of ", "deferred frees": "in the deferred frees of ",
                     "remote frees": "freed by another thread, in the inbox of ", "quarantine": "in the quarantine of ",
                     "remote frees on their way": "freed by a thread that is not its owner, in the outbox of "}[what]
            return "free, " + where + self.name_of(cache)
        for first, end, cache in fresh:
            if first <= begin < end:
                return "never given out, in " + self.name_of(cache)
        return IN_USE if c not in self.heap.broken else "in use, or free behind the damaged place of a list"

    def _large(self, address, s):
        heap = self.heap
        tag = heap.tag(s.start)
        bytes_ = max(s.usable_end - s.begin, 0)

        def head(asked):
            if address >= s.usable_end:
                return ["block    %#x; the address is in the guard pages behind it" % s.begin]
            return ["block    %#x%s" % (s.begin, self._where(address - s.begin, asked))]
        if tag in (heap.p.large_tag, 0):
            state, seal_lines, asked = IN_USE, [], None
            if tag == 0:
                state = "free: nothing can touch it until its pages are used again"
            elif heap.p.seal_bytes:
                state, seal_lines, asked = self._with_seal(s.begin, bytes_, state)
            else:
                asked = bytes_ - s.free if s.free < bytes_ else bytes_
            size_line = "size     %s, no class" % show_count(bytes_, "byte")
            if asked is not None and not seal_lines:
                size_line += ": %s asked for" % "{:,}".format(asked)
            return head(asked) + [size_line, self._span_line(s, "large, this block alone"), "state    " + state] + seal_lines
        c = heap.class_of(tag)
        size = heap.size_of_class(c)
        if size == 0:
            raise Problem("The page at %#x is of class %d, which this heap does not have: the page map is damaged." % (s.start, c))
        kept, fresh = heap.kept(c, self.name_of)
        state, seal_lines, asked = self._with_seal(s.begin, size, self._state_in_caches(s.begin, c, kept, fresh))
        cache = next((k for k in heap.caches() if k.id == tag >> heap.p.owner_shift), None)
        owner = [] if cache is None else ["owner    %s, which got the block last" % self.name_of(cache)]
        return head(asked) + ["size     %s, class %d" % (show_count(size, "byte"), c),
                              self._span_line(s, "large, a page run for this block alone")] + owner + ["state    " + state] + seal_lines

    def _mixed(self, address, s):
        heap, p = self.heap, self.heap.p
        begin, size, is_outside = heap.chunk_at(address)
        span_line = self._span_line(s, "mixed, blocks of many sizes")
        c = next((i for i in range(1, p.classes_cut_end) if heap.size_of_class(i) == size), 0)
        head = ["block    %#x%s" % (begin, self._where(address - begin)),
                "size     %s, %s" % (show_count(size, "byte"), "class %d" % c if c else "no class")]
        if not is_outside:
            return head + [span_line, "state    free, merged with its free neighbours"]
        if begin == heap.memory.u64(p.heap + p.mixed_tail_begin) != heap.memory.u64(p.heap + p.mixed_tail_end):
            return head + [span_line, "state    never given out: the rest of the newest mixed span"]
        for cache in heap.caches():
            first, end = heap.memory.u64(cache.address + p.cache_strip_begin), heap.memory.u64(cache.address + p.cache_strip_end)
            if begin == first != end:
                return head + [span_line, "state    never given out: the rest of the strip of %s" % self.name_of(cache)]
        if begin in set(heap.follow(heap.memory.u64(p.heap + p.mixed_waiting), 0, "The list of blocks that wait to be merged")):
            return head + [span_line, "state    free, waits until the strip that it is in has moved on"]
        kept, _ = heap.kept(c, self.name_of) if c else ({}, [])
        return head + [span_line, "state    " + self._state_in_caches(begin, c, kept, [])]

    def _with_seal(self, begin, size, state):
        """The state with what the block's seal tells of it, the lines on the seal, and how many bytes were asked for, where it says so. `size`: with
        the seal."""
        heap = self.heap
        is_in_no_list = state.startswith(IN_USE)
        if heap.p.seal_bytes == 0:
            return state, [], None
        try:
            seal = heap.seal_of(begin, size - heap.p.seal_bytes)
        except Unreadable:
            return state, ["seal     cannot be read"], None
        if seal.state == "live":
            asked = size - heap.p.seal_bytes - seal.slack
            aligned = ", aligned to %d" % seal.alignment if seal.alignment else ""
            lines = ["seal     of a live block: %s asked for by %s%s" % (show_count(asked, "byte"), seal.origin, aligned)]
            if is_in_no_list:
                return IN_USE, lines, asked
            return state, lines + ["         but the program does not have the block: a seal was copied there, or a list is damaged"], asked
        if seal.state == "free":
            return "free, in no list: a list is damaged, or a thread is at work on the block" if is_in_no_list else state, ["seal     of a free block"], None
        if seal.state == "fresh":
            return state, ["seal     0: never given out, or overwritten with zeros" if is_in_no_list else "seal     none: never given out"], None
        return state, ["seal     overwritten: the end of the block, or what is behind what was asked for, was written to"], None
