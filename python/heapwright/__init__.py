"""Whether this process runs on libheapwright, and how much memory its malloc has.

    heapwright run -- python3 program.py

    >>> import heapwright
    >>> heapwright.is_loaded()
    True
    >>> heapwright.statistics()["in_use_bytes"] > 0
    True

Python takes memory for its objects from arenas of its own, which come from mmap; with
PYTHONMALLOC=malloc each object is a block of malloc's.
"""
import ctypes

__all__ = ["is_loaded", "statistics"]


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def is_loaded() -> bool:
    """Whether malloc in this process is libheapwright's, or one that `heapwright build` has made."""
    return hasattr(ctypes.CDLL(None), "heapwright_process_record")


def statistics() -> dict:
    """How much memory the malloc of this process has, in bytes: a dictionary.

    in_use_bytes      in blocks that are allocated, small ones rounded up to their size class
    free_bytes        in free blocks and free pages, given back to the system or not
    cached_bytes      of these, in caches of threads
    releasable_bytes  in free pages that are in memory; malloc_trim gives them back
    held_bytes        address space, for blocks in use and free

    Other threads wait in malloc's slow steps meanwhile. Raises RuntimeError where malloc is not
    libheapwright's.
    """
    if not is_loaded():
        raise RuntimeError("this process does not run on libheapwright: start it by `heapwright run -- python3 ...`")
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    figures = mallinfo2()
    return {
        "in_use_bytes": figures.uordblks + figures.hblkhd,
        "free_bytes": figures.fordblks,
        "cached_bytes": figures.fsmblks,
        "releasable_bytes": figures.keepcost,
        "held_bytes": figures.arena + figures.hblkhd,
    }
