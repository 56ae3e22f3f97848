"""What values of the kit are, each in a line: for the pretty printers of debuggers.

A debugger gives a value as an object with

    v[name]        its member of that name, also one of a base
    int(v)         of a number or a pointer
    members()      its own members
    target()       what a pointer leads to
    address        in the program
    size           in bytes
    target_size    of what a pointer leads to
    text()         what a char* leads to
"""
from heapwright_record import show_bytes, show_count

MOST_CHUNKS = 10000
MOST_BYTES = 1 << 47  # of an address space


class Implausible(ValueError):
    """Members that contradict each other."""


def check(is_plausible):
    if not is_plausible:
        raise Implausible()


def is_alignment(n):
    return n > 0 and n & n - 1 == 0


def layout(v):
    check(is_alignment(int(v["alignment"])))
    return "%s, aligned to %d" % (show_count(int(v["size"]), "byte"), int(v["alignment"]))


def figure(v):
    return str(int(v["value_"]["_M_i"]))


def chunks(first, link):
    seen = set()
    while int(first) != 0 and int(first) not in seen and len(seen) < MOST_CHUNKS:
        seen.add(int(first))
        yield first.target()
        first = first.target()[link]


def span(v):
    """Beginning and size in bytes of a std::span of bytes."""
    extent = v["_M_extent"].members()
    return int(v["_M_ptr"]), int(extent[0]) if extent else 0


def arena(v):
    """What arena::stats says."""
    cursor, newest = int(v["cursor_"]), int(v["newest_"])
    buffer_begin, buffer_bytes = span(v["buffer_"])
    used_of_buffer = int(v["buffer_used_"])
    begin = (buffer_begin + 7) // 8 * 8
    in_use = used_of_buffer - begin if used_of_buffer else 0
    held, count = buffer_bytes, 0
    for c in chunks(v["newest_"], "older"):
        header = c.address + c.size
        in_use += (cursor if c.address == newest else int(c["used"])) - header
        held += int(c["bytes"])
        count += 1
    if int(v["spare_"]) != 0:
        held += int(v["spare_"].target()["bytes"])
        count += 1
    if newest == 0 and buffer_bytes:
        in_use = cursor - begin
    check(0 <= in_use <= held < MOST_BYTES and count < MOST_CHUNKS)
    return "arena: %s in use of %s, in %s" % (show_bytes(in_use), show_bytes(held), show_count(count, "chunk"))


def pool(v):
    size, chunk_bytes, alignment = int(v["size_"]), int(v["chunk_bytes_"]), int(v["alignment_"])
    check(0 < size <= chunk_bytes < MOST_BYTES and is_alignment(alignment) and size % alignment == 0)
    count = sum(1 for _ in chunks(v["first_"], "next"))
    header = v["first_"].target_size
    capacity = (chunk_bytes - (header + alignment - 1) // alignment * alignment) // size
    free = sum(1 for _ in chunks(v["free_"], "next"))
    more = " or more" if free == MOST_CHUNKS else ""
    never = (int(v["fresh_end_"]) - int(v["fresh_"])) // size
    check(0 <= never <= capacity and free + never <= capacity * count)
    return "pool of blocks of %s: %d in %s, %d%s free, %d of the last chunk never given out" % (
        show_count(size, "byte"), capacity * count, show_count(count, "chunk"), free, more, never)


def object_pool(v):
    return "object_" + pool(v["blocks_"])


def heap(v):
    name = v["name_"]
    return "heap %s" % (name.text() if int(name) != 0 else "without a name")


# Names of types, as regular expressions.
PRINTERS = (("layout", "^heapwright::layout$", layout), ("figure", "^heapwright::figure$", figure),
            ("arena", "^heapwright::(stack_)?arena<.*>$", arena), ("pool", "^heapwright::pool<.*>$", pool),
            ("object_pool", "^heapwright::object_pool<.*>$", object_pool), ("heap", "^heapwright::basic_heap<.*>$", heap))


def safe(printer, value, errors):
    """A value that is not initialised yet, or damaged, has no pretty form."""
    try:
        return printer(value)
    except Implausible:
        return "<not initialised, or damaged>"
    except (ValueError, OverflowError, TypeError, *errors) as e:
        return "<cannot be read: %s>" % str(e).removeprefix("error: ")
